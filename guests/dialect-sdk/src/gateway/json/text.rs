//! Texts of JSON: their ends, and their escapes.

use std::borrow::Cow;

use super::{Json, Read};

impl<'a> Json<'a> {
    /// A text from its quotation mark on.
    #[inline]
    pub(super) fn string(&mut self) -> Read<Cow<'a, str>> {
        let from = self.at + 1;
        self.at = self.plain(from);
        match self.peek() {
            Some(b'"') => {
                // Both ends are beside a quotation mark, which is a character of its own.
                let text = &self.text[from..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            _ => self.escaped(from).map(Cow::Owned),
        }
    }

    /// Goes over what is neither a quotation mark nor an escape nor a control character, eight bytes at a time.
    #[inline]
    pub(super) fn plain(&self, mut at: usize) -> usize {
        while let Some(eight) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            let special = special(u64::from_le_bytes(*eight));
            if special != 0 {
                return at + special.trailing_zeros() as usize / 8;
            }
            at += 8;
        }
        while let Some(byte) = self.bytes.get(at) {
            if matches!(byte, b'"' | b'\\' | 0..=0x1f) {
                break;
            }
            at += 1;
        }
        at
    }

    /// A text with escapes in it, the first of them where it is read to.
    #[cold]
    pub(super) fn escaped(&mut self, from: usize) -> Read<String> {
        let mut text = self.text[from..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return self.expected("the rest of a text"),
            }
            let from = self.at;
            self.at = self.plain(from);
            text.push_str(&self.text[from..self.at]);
        }
    }

    /// One escape from its backslash on.
    fn escape(&mut self) -> Read<char> {
        let begin = self.at;
        self.at += 2;
        Ok(match self.bytes.get(begin + 1) {
            Some(sign @ (b'"' | b'\\' | b'/')) => char::from(*sign),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let found = self.code_point();
                return found.map_or_else(|| self.no_escape(begin), Ok);
            }
            _ => return self.no_escape(begin),
        })
    }

    /// The code point of one or two escapes, from the digits of the first on.
    fn code_point(&mut self) -> Option<char> {
        let high = self.unit()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
            return None;
        }
        self.at += 2;
        let low = self.unit().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        digits.iter().try_fold(0, |value, byte| Some(value * 16 + digit(byte)?))
    }

    #[cold]
    fn no_escape<T>(&mut self, begin: usize) -> Read<T> {
        self.at = begin;
        self.expected("an escape of JSON")
    }

    pub(super) fn skip_string(&mut self) -> Read<()> {
        self.at = self.plain(self.at + 1);
        while self.peek() == Some(b'\\') {
            self.escape()?;
            self.at = self.plain(self.at);
        }
        self.take(b'"', "the rest of a text")
    }
}

/// The highest bit of the first byte that is a quotation mark, a backslash or a control character; bits above it
/// mean nothing.
const fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    // A byte below `least` borrows, and only then is its highest bit set that was not.
    const fn below(eight: u64, least: u64) -> u64 {
        eight.wrapping_sub(ONES * least) & !eight
    }
    let quotes = below(eight ^ (ONES * b'"' as u64), 1);
    let escapes = below(eight ^ (ONES * b'\\' as u64), 1);
    (quotes | escapes | below(eight, 0x20)) & (ONES << 7)
}
