//! JSON that people read and that has a size known beforehand: the outer levels have a line for each value, and what
//! is inside of them stands on that line. Indented all the way down, 4 kB of lists in lists become half a megabyte.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Levels with a line for each value: a document's own, and that of what it consists of.
const LEVELS: usize = 2;

/// Writes a value and a line end.
///
/// # Errors
/// What the writer returns.
pub fn write(mut writer: impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut writer, Lines::default());
    value.serialize(&mut serializer)?;
    writer.write_all(b"\n")?;
    writer.flush()
}

/// A value as [`write()`] writes it.
#[must_use]
pub fn text(value: &serde_json::Value) -> String {
    let mut bytes = Vec::new();
    // Writing to memory does not fail, and JSON is always text.
    _ = write(&mut bytes, value);
    String::from_utf8(bytes).unwrap_or_default()
}

#[derive(Default)]
struct Lines {
    /// Arrays and objects around the present place.
    depth: usize,
    /// The innermost of them has a value.
    has_value: bool,
}

impl Lines {
    fn begin(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn end(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        let has_lines = self.depth <= LEVELS && self.has_value;
        self.depth -= 1;
        if has_lines {
            self.new_line(writer)?;
        }
        writer.write_all(bracket)
    }

    fn new_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }

    fn next(&self, writer: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        match (self.depth <= LEVELS, first) {
            (true, true) => self.new_line(writer),
            (true, false) => {
                writer.write_all(b",")?;
                self.new_line(writer)
            }
            (false, true) => Ok(()),
            (false, false) => writer.write_all(b", "),
        }
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.next(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::{Value, json};

    #[test]
    fn the_outer_levels_have_lines_and_the_inner_ones_do_not() {
        let value = json!({ "a": 1, "b": { "c": [1, [2, { "d": [] }]], "e": {} }, "f": [[], "x"], "g": [] });
        let expected = "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": [1, [2, {\"d\": []}]],\n    \"e\": {}\n  },\n  \
                    \"f\": [\n    [],\n    \"x\"\n  ],\n  \"g\": []\n}\n";
        assert_eq!(text(&value), expected);
        assert_eq!(serde_json::from_str::<Value>(expected).unwrap(), value);
        assert_eq!(text(&json!(5)), "5\n");
        assert_eq!(text(&json!([])), "[]\n");
    }

    #[test]
    fn nothing_becomes_longer_by_more_than_a_space_for_each_value() {
        let deep = format!("{}0{}{}", "[".repeat(100), ",0".repeat(2_000), "]".repeat(100));
        let value: Value = serde_json::from_str(&format!("[[{deep}]]")).unwrap();
        assert!(text(&value).len() < 2 * deep.len());
    }
}
