//! //! Reads any JSON from its text, piece by piece, without a tree. Skipped parts must be JSON too. Nothing
//! recurses, and every error is one line.

use std::borrow::Cow;

use super::decimal::{self, Number};
use super::{UNITS, line};

mod text;

/// Values inside of one another.
pub const NESTING_MAX: u32 = 32;
/// Bytes of a wrong value that an error shows; the host shows no error about a message that holds a secret.
const SHOWN_BYTES_MAX: usize = 32;

/// What is read, or why it is wrong.
pub type Read<T> = Result<T, String>;

/// A text of JSON, and how far it is read.
#[derive(Debug)]
pub struct Json<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Objects that [`Self::object`] is in.
    depth: u32,
}

impl<'a> Json<'a> {
    /// Begins at the first value of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let mut json = Self { text, bytes: text.as_bytes(), at: 0, depth: 0 };
        json.blanks();
        json
    }

    /// Reads an object: `member` is given each name and reads its value, or skips it.
    ///
    /// # Errors
    /// Where it is no object, or `member` fails.
    #[inline]
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Read<()>) -> Read<()> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return self.too_deep();
        }
        self.take(b'{', "an object")?;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.depth -= 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.expected("a name");
            }
            let from = self.at + 1;
            self.at = self.plain(from);
            // Almost every name stands there as it is.
            let (plain, escaped);
            let name = if self.peek() == Some(b'"') {
                plain = &self.text[from..self.at];
                self.at += 1;
                plain
            } else {
                escaped = self.escaped(from)?;
                &escaped
            };
            self.colon()?;
            member(self, name)?;
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.expected("`,` or `}`"),
            }
            self.blanks();
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    /// Takes `null`, if the value is that.
    ///
    /// # Errors
    /// Where it begins like it and is another word.
    #[inline]
    pub fn null(&mut self) -> Read<bool> {
        match self.peek() {
            Some(b'n') => self.word("null").map(|()| true),
            _ => Ok(false),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Where it is none; `field` is named.
    #[inline]
    pub fn text(&mut self, field: &str) -> Read<Cow<'a, str>> {
        match self.peek() {
            Some(b'"') => self.string(),
            _ => self.wrong(field, self.at, "is no text"),
        }
    }

    /// Reads a number in 1/10,000.
    ///
    /// # Errors
    /// Where it is none, is finer than that or does not fit 64 bits; `field` is named.
    #[inline]
    pub fn decimal(&mut self, field: &str) -> Read<i64> {
        if let Some((units, end)) = decimal::plain(self.bytes, self.at) {
            self.at = end;
            return Ok(units);
        }
        let Some(number) = Number::find(self.bytes, self.at) else {
            return self.wrong(field, self.at, "is no number");
        };
        match number.units(self.bytes) {
            Ok(units) => {
                self.at = number.end;
                Ok(units)
            }
            Err(why) => self.wrong(field, self.at, why.words()),
        }
    }

    /// Reads a whole number.
    ///
    /// # Errors
    /// Where it is none or does not fit 64 bits of 1/10,000; `field` is named.
    pub fn integer(&mut self, field: &str) -> Read<i64> {
        let start = self.at;
        match self.decimal(field)? {
            units if units % UNITS == 0 => Ok(units / UNITS),
            _ => self.wrong(field, start, "is no whole number"),
        }
    }

    /// Reads a value that is not asked for.
    ///
    /// # Errors
    /// Where it is no JSON.
    pub fn skip(&mut self) -> Read<()> {
        // A bit for each value that is open, the innermost lowest: whether it is an object.
        let mut open: u64 = 0;
        let mut depth = self.depth;
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                Some(begin @ (b'{' | b'[')) => {
                    let is_object = begin == b'{';
                    self.at += 1;
                    self.blanks();
                    if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                        self.at += 1;
                    } else if depth >= NESTING_MAX {
                        return self.too_deep();
                    } else {
                        depth += 1;
                        open = (open << 1) | u64::from(is_object);
                        if is_object {
                            self.skip_name()?;
                        }
                        continue;
                    }
                }
                _ => return self.expected("a value"),
            }
            loop {
                if depth == self.depth {
                    return Ok(());
                }
                let is_object = open & 1 == 1;
                self.blanks();
                match (self.peek(), is_object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        self.blanks();
                        if is_object {
                            self.skip_name()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        depth -= 1;
                        open >>= 1;
                    }
                    (_, true) => return self.expected("`,` or `}`"),
                    (_, false) => return self.expected("`,` or `]`"),
                }
            }
        }
    }

    /// Holds that nothing follows.
    ///
    /// # Errors
    /// Where something does.
    pub fn end(&mut self) -> Read<()> {
        self.blanks();
        if self.at == self.bytes.len() {
            return Ok(());
        }
        self.expected("the end")
    }

    /// The error of a field that is there twice.
    ///
    /// # Errors
    /// Always.
    #[cold]
    pub fn twice<T>(&self, field: &str) -> Read<T> {
        Err(format!("{field}: it is there twice"))
    }

    /// The error of a field whose value began at `start`.
    #[cold]
    fn wrong<T>(&self, field: &str, start: usize, why: &str) -> Read<T> {
        Err(format!("{field}: `{}` {why}", self.shown(start)))
    }

    #[cold]
    fn expected<T>(&self, what: &str) -> Read<T> {
        if self.at >= self.bytes.len() {
            return Err(format!("it ends where {what} is expected"));
        }
        Err(format!("`{}` at byte {}: {what} is expected", self.shown(self.at), self.at))
    }

    #[cold]
    fn too_deep<T>(&self) -> Read<T> {
        Err(format!("more than {NESTING_MAX} values inside of one another"))
    }

    /// The beginning of what stands at `start`, on one line.
    fn shown(&self, start: usize) -> String {
        let rest = self.text.get(start..).unwrap_or_default();
        let end = rest.find([',', '}', ']', '\n']).unwrap_or(rest.len()).max(1).min(rest.len());
        let end = rest.floor_char_boundary(end.min(SHOWN_BYTES_MAX));
        line(&rest[..end])
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn blanks(&mut self) {
        if self.peek().is_some_and(|byte| byte <= b' ') {
            self.more_blanks();
        }
    }

    fn more_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, sign: u8, what: &str) -> Read<()> {
        if self.peek() != Some(sign) {
            return self.expected(what);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Read<()> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return self.expected("a value");
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_name(&mut self) -> Read<()> {
        if self.peek() != Some(b'"') {
            return self.expected("a name");
        }
        self.skip_string()?;
        self.colon()
    }

    #[inline]
    fn colon(&mut self) -> Read<()> {
        self.blanks();
        self.take(b':', "`:`")?;
        self.blanks();
        Ok(())
    }

    fn skip_number(&mut self) -> Read<()> {
        if let Some((_, end)) = decimal::plain(self.bytes, self.at) {
            self.at = end;
            return Ok(());
        }
        let Some(number) = Number::find(self.bytes, self.at) else {
            return self.expected("a number");
        };
        self.at = number.end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
