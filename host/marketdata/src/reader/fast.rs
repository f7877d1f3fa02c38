//! Rows written exactly as the vendor writes them, read by fixed positions.
//!
//! `YYYY-MM-DD,CCCCC,HH:MM:SS.ffffff,0S,price,volume,id` without quotes, the id of 12 digits. Anything else, damage
//! included, is left to the general path, which reads every legal spelling and explains the rest.

use domain::price::UNITS_PER_YEN;
use domain::time::NANOS_PER_SECOND;

use super::swar;
use super::values::{Session, is_price, is_quantity};

/// Bytes of a date, a code and their commas.
pub(super) const DATE_AND_CODE: usize = 17;
/// Bytes before the price.
const HEAD: usize = 36;

/// One row's values; the code and the date stand for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) nanos_of_day: u64,
    pub(super) price: i64,
    pub(super) quantity: u64,
    pub(super) transaction_id: u64,
}

/// The date's bytes and the code's bytes of the first line in text of the standard layout,
/// or `None` where the commas are elsewhere.
#[inline(always)]
pub(super) fn date_and_code(text: &[u8]) -> Option<([u8; 10], [u8; 5])> {
    let head = text.first_chunk::<DATE_AND_CODE>()?;
    if head[10] != b',' || head[16] != b',' {
        return None;
    }
    let (date, rest) = head.split_first_chunk::<10>()?;
    let code = rest[1..].first_chunk::<5>()?;
    Some((*date, *code))
}

/// The rest of the first line in `text`, whose date and code are known, and the line's length with
/// its line feed; `None` where the general path has to look.
#[inline(always)]
pub(super) fn values(text: &[u8]) -> Option<(Values, usize)> {
    let (head, rest) = text.split_first_chunk::<HEAD>()?;
    if head[32] != b',' || head[35] != b',' {
        return None;
    }
    let session = match (head[33], head[34]) {
        (b'0', b'1') => Session::Morning,
        (b'0', b'2') => Session::Afternoon,
        _ => return None,
    };
    let nanos_of_day = time_of_day(head[17..32].first_chunk::<15>()?)?;
    if !session.contains(nanos_of_day) {
        return None;
    }
    let (price, rest) = price(rest)?;
    let (quantity, length) = swar::leading_number(rest)?;
    let rest = rest[length..].strip_prefix(b",")?;
    let (digits, rest) = rest.split_first_chunk::<12>()?;
    let transaction_id = swar::twelve_digits(digits)?;
    let rest = match rest {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => rest,
        _ => return None,
    };
    if !is_price(price) || !is_quantity(quantity) {
        return None;
    }
    let values = Values { nanos_of_day, price, quantity, transaction_id };
    Some((values, text.len() - rest.len()))
}

/// `HH:MM:SS.ffffff`.
#[inline(always)]
fn time_of_day(text: &[u8; 15]) -> Option<u64> {
    let clock = u64::from_le_bytes(*text.first_chunk()?) ^ u64::from_le_bytes(*b"00:00:00");
    // The last digit of the seconds and the point, which are read elsewhere, become zeros.
    let micros = swar::minus_zero(*text.last_chunk()?) & !0xffff;
    let marks = (clock & 0x0000_ff00_00ff_0000) | u64::from(text[8] ^ b'.');
    if marks | swar::non_digits(clock) | swar::non_digits(micros) != 0 {
        return None;
    }
    // Tens and ones of each pair meet in the tens' byte; none exceeds 99.
    let pairs = clock.wrapping_mul(10).wrapping_add(clock >> 8);
    let (hour, minute, second) = (pairs & 0xff, (pairs >> 24) & 0xff, (pairs >> 48) & 0xff);
    // Hours need no check of their own: the session's hours follow.
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = hour * 3_600 + minute * 60 + second;
    Some(seconds * NANOS_PER_SECOND + swar::number(micros) * 1_000)
}

/// A price with at most one digit after the point (the smallest tick is 0.1 yen), and its comma.
#[inline(always)]
fn price(text: &[u8]) -> Option<(i64, &[u8])> {
    let (yen, length) = swar::leading_number(text)?;
    // At most seven digits, which fit.
    let yen = yen.cast_signed() * UNITS_PER_YEN;
    match &text[length..] {
        [b',', rest @ ..] => Some((yen, rest)),
        [b'.', tenth @ b'0'..=b'9', b',', rest @ ..] => {
            let units = yen + i64::from(tenth - b'0') * (UNITS_PER_YEN / 10);
            Some((units, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "2025-12-01,13010,09:00:00.067558,01,4812.5,2200,000000000021";

    #[test]
    fn the_vendors_line_is_read() {
        let (date, code) = date_and_code(LINE.as_bytes()).unwrap();
        assert_eq!((&date, &code), (b"2025-12-01", b"13010"));
        let expected = Values {
            nanos_of_day: 9 * 3_600 * NANOS_PER_SECOND + 67_558_000,
            price: 48_125_000,
            quantity: 2_200,
            transaction_id: 21,
        };
        let line = format!("{LINE}\nnext");
        assert_eq!(values(line.as_bytes()), Some((expected, LINE.len() + 1)));
        let line = format!("{LINE}\r\nnext");
        assert_eq!(values(line.as_bytes()), Some((expected, LINE.len() + 2)));
    }

    #[test]
    fn everything_else_is_left_to_the_general_path() {
        for (from, to) in [
            ("09:00:00.067558", "09:00:00.06755x"),
            ("09:00:00.067558", "09:60:00.067558"),
            ("09:00:00.067558", "09:00:60.067558"),
            ("09:00:00.067558", "12:00:00.067558"),
            ("09:00:00.067558", "09:00:00"),
            ("09:00:00.067558", "09-00:00.067558"),
            (",01,", ",03,"),
            (",01,", ",\"01\","),
            ("4812.5", "0"),
            ("4812.5", "4812.50"),
            ("4812.5", "4812."),
            ("4812.5", "-5"),
            ("4812.5", "9999999999"),
            ("4812.5", "9999999999999999"),
            (",2200,", ",0,"),
            (",2200,", ",2200.5,"),
            (",2200,", ",1000000000001,"),
            (",2200,", ",,"),
            ("021", "021,1"),
            ("021", "0000021"),
            ("021", "02\r1"),
            (",000000000021", ""),
        ] {
            let line = format!("{}\n", LINE.replacen(from, to, 1));
            assert_ne!(line.trim_end(), LINE);
            assert_eq!(values(line.as_bytes()), None, "{line}");
        }
        assert_eq!(values(LINE.as_bytes()), None);
        assert_eq!(date_and_code(b"2025-12-01,7203,09:00:00.0"), None);
        assert_eq!(date_and_code(b"\"2025-12-01\",13010,0"), None);
        assert_eq!(date_and_code(b""), None);
    }
}
