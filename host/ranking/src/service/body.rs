//! An answer as bytes: what the library made, with the rows that were written aside put in.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use async_graphql::indexmap::IndexMap;
use async_graphql::{Name, Value};

use crate::blocks::Blocks;

/// The rows of a request's rankings by their response keys, written already.
#[derive(Debug, Default)]
pub(super) struct WrittenRows(Mutex<BTreeMap<Name, Blocks>>);

impl WrittenRows {
    pub(super) fn put(&self, key: Name, rows: Blocks) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, rows);
    }

    fn take(&self, key: &Name) -> Option<Blocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }
}

/// The JSON of an answer without errors. The library puts in first what was ready first; answers go out in the
/// order asked, as `keys` have it.
///
/// # Errors
/// When a value has no JSON form.
pub(super) fn blocks(
    data: &IndexMap<Name, Value>,
    keys: &[Name],
    written: &WrittenRows,
) -> Result<Blocks, serde_json::Error> {
    let mut out = Blocks::default();
    let put = |text: &str, out: &mut Blocks| {
        out.write_all(text.as_bytes()).map_err(serde_json::Error::io)
    };
    put("{\"data\":{", &mut out)?;
    let asked = keys.iter().filter_map(|key| Some((key, data.get(key)?)));
    for (index, (key, value)) in asked.enumerate() {
        let comma = if index > 0 { "," } else { "" };
        put(&format!("{comma}{}:", crate::rows::quoted(key)), &mut out)?;
        match written.take(key) {
            Some(rows) => out.append(rows),
            None => serde_json::to_writer(&mut out, value)?,
        }
    }
    put("}}", &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_put_in_where_they_were_asked_for() {
        let written = WrittenRows::default();
        let rows = |key: &str, text: &str| {
            written.put(Name::new(key), text.as_bytes().to_vec().into());
            (Name::new(key), Value::Null)
        };
        let data =
            [rows("b", "[{\"rank\":1}]"), (Name::new("v"), Value::from("1")), rows("a", "[]")];
        // One was left out by a directive.
        let keys = ["a", "left", "v", "b"].map(Name::new);
        let blocks = blocks(&IndexMap::from(data), &keys, &written).unwrap().finish();
        let text: Vec<u8> = blocks.iter().flatten().copied().collect();
        assert_eq!(text, br#"{"data":{"a":[],"v":"1","b":[{"rank":1}]}}"#);
    }
}
