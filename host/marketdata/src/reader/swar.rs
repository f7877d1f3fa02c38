//! Reads up to eight decimal digits at once, as the bytes of one integer (SIMD within a register).
//! The vendor's numbers differ in length from row to row, and a loop over their digits would be
//! mispredicted on most rows.

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// Added to a byte it reaches the high bit from 10 on.
const TEN_TO_HIGH_BIT: u64 = 0x7676_7676_7676_7676;

/// The bytes of `text` minus `0`: digits become 0 to 9, the first byte is the lowest.
#[inline(always)]
pub(super) fn minus_zero(text: [u8; 8]) -> u64 {
    u64::from_le_bytes(text) ^ ZEROS
}

/// The high bit of each byte that is above 9. Right up to the first such byte from below, which is
/// all that the callers use.
#[inline(always)]
pub(super) fn non_digits(digits: u64) -> u64 {
    (digits.wrapping_add(TEN_TO_HIGH_BIT) | digits) & HIGH_BITS
}

/// The number written by eight bytes of 0 to 9, the most significant in the lowest byte.
#[inline(always)]
pub(super) fn number(digits: u64) -> u64 {
    // Pairs, then quadruples and the whole: each product keeps its sum in its own bits.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let odd = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let even = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    odd.wrapping_add(even) >> 32
}

/// The number at the front of `text`, one to seven digits before the first other byte, and its
/// length; `None` for longer numbers and where fewer than eight bytes are left.
#[inline(always)]
pub(super) fn leading_number(text: &[u8]) -> Option<(u64, usize)> {
    let digits = minus_zero(*text.first_chunk()?);
    let others = non_digits(digits);
    let length = others.trailing_zeros() / 8;
    if length == 0 || length > 7 {
        return None;
    }
    // Moves the digits to the end; the freed bytes become leading zeros.
    Some((number(digits << (64 - 8 * length)), length as usize))
}

/// The number written by exactly twelve digits.
#[inline(always)]
pub(super) fn twelve_digits(text: &[u8; 12]) -> Option<u64> {
    let (high, low) = text.split_first_chunk::<8>()?;
    let high = minus_zero(*high);
    let [a, b, c, d] = *low.first_chunk::<4>()?;
    let low = minus_zero([b'0', b'0', b'0', b'0', a, b, c, d]);
    // A closure here would not be inlined.
    if non_digits(high) | non_digits(low) == 0 {
        Some(number(high) * 10_000 + number(low))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_the_standard_library() {
        for value in (0..=9_999_999_u64).step_by(37).chain([9, 99, 9_999_999]) {
            let text = format!("{value},00000000");
            let length = text.find(',').unwrap();
            assert_eq!(leading_number(text.as_bytes()), Some((value, length)));
        }
        for value in [0, 1, 999_999_999_999, 123_456_789_012, 90_000_000, 100_000_000] {
            let text = format!("{value:012}");
            assert_eq!(twelve_digits(text.as_bytes().first_chunk().unwrap()), Some(value));
        }
    }

    #[test]
    fn every_other_byte_ends_a_number() {
        for other in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for index in 0..8 {
                let mut text = *b"12345678";
                text[index] = other;
                // What follows the first other byte never matters.
                for after in &mut text[index + 1..] {
                    *after = 0xff;
                }
                let expected = b"12345678"[..index]
                    .iter()
                    .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
                let expected = (index > 0).then_some((expected, index));
                assert_eq!(leading_number(&text), expected, "{other} at {index}");
            }
            for index in 0..12 {
                let mut text = *b"123456789012";
                text[index] = other;
                assert_eq!(twelve_digits(&text), None, "{other} at {index}");
            }
        }
        assert_eq!(leading_number(b"12345678"), None);
        assert_eq!(leading_number(b"1,2"), None);
    }
}
