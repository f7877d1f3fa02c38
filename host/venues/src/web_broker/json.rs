//! JSON in the broker's form: texts, records and lists, within limits, each name once.

use domain::order_mapping::Field;

use crate::web_broker::limits::JSON_DEPTH_MAX;

/// A value of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text; numbers are the text that was sent.
    Text(String),
    /// `null`: an empty text in a row, no list in place of a list.
    Null,
    /// A list.
    List(Vec<Value>),
    /// A record, in order.
    Record(Vec<(String, Value)>),
}

/// Why a text is not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON, or it ends early.
    #[error("it is not JSON (byte {0})")]
    NotJson(usize),
    /// A name twice in one record.
    #[error("a name is twice in one record (byte {0})")]
    Twice(usize),
    /// Nested too deeply.
    #[error("it is nested deeper than {JSON_DEPTH_MAX}")]
    TooDeep,
    /// A list has an item that is not a record, or a record has one that only lists may have.
    #[error("it holds more than texts and lists of records")]
    OtherForm,
}

/// Reads a text that is one value.
///
/// # Errors
/// [`JsonError`].
pub fn parse(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() { Err(reader.wrong()) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self) -> JsonError {
        JsonError::NotJson(self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if depth >= JSON_DEPTH_MAX {
            return Err(JsonError::TooDeep);
        }
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'{') => self.record(depth),
            Some(b'[') => self.list(depth),
            _ => self.word(),
        }
    }

    fn record(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.at += 1;
        let mut fields = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        if self.take(b'}') {
            return Ok(Value::Record(fields));
        }
        loop {
            self.skip_space();
            let start = self.at;
            let name = self.string()?;
            if !names.insert(name.clone()) {
                return Err(JsonError::Twice(start));
            }
            if !self.take(b':') {
                return Err(self.wrong());
            }
            fields.push((name, self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Value::Record(fields));
            }
            if !self.take(b',') {
                return Err(self.wrong());
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.at += 1;
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(Value::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Value::List(values));
            }
            if !self.take(b',') {
                return Err(self.wrong());
            }
        }
    }

    /// A text in quotes; control characters are taken, because the broker sends them.
    fn string(&mut self) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong());
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.text.get(self.at..).ok_or_else(|| self.wrong())?;
            let plain = rest.find(['"', '\\']).ok_or_else(|| self.wrong())?;
            text.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes().get(plain) == Some(&b'"') {
                return Ok(text);
            }
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char, JsonError> {
        let letter = self.peek().ok_or_else(|| self.wrong())?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first).ok_or_else(|| self.wrong());
                }
                if self.text.get(self.at..self.at + 2) != Some("\\u") {
                    return Err(self.wrong());
                }
                self.at += 2;
                let second = self.unit()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(self.wrong());
                }
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).ok_or_else(|| self.wrong());
            }
            _ => return Err(self.wrong()),
        })
    }

    fn unit(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(|| self.wrong())?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(self.wrong());
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| self.wrong())
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Value, JsonError> {
        let rest = self.text.get(self.at..).ok_or_else(|| self.wrong())?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let is_number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && serde_json::from_str::<serde_json::Number>(word).is_ok();
        if !is_number && !matches!(word, "true" | "false" | "null") {
            return Err(self.wrong());
        }
        self.at += end;
        Ok(if word == "null" { Value::Null } else { Value::Text(word.to_owned()) })
    }
}

/// A record of texts as fields. A value that is not a text becomes JSON, for readers that know it.
///
/// # Errors
/// [`JsonError::OtherForm`] if the value is not a record.
pub fn fields(value: Value) -> Result<Vec<Field>, JsonError> {
    let Value::Record(fields) = value else {
        return Err(JsonError::OtherForm);
    };
    let field = |(name, value)| match value {
        Value::Text(text) => Field::new(name, text),
        Value::Null => Field::new(name, ""),
        other => Field::new(name, written(&other)),
    };
    Ok(fields.into_iter().map(field).collect())
}

fn written(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Null => quoted(""),
        Value::List(values) => {
            format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(","))
        }
        Value::Record(fields) => {
            let field =
                |(name, value): &(String, Value)| format!("{}:{}", quoted(name), written(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
    }
}

/// A text in quotes.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
