//! An answer as bytes: what the library made, with the rows that were written aside put in.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use async_graphql::{Name, Response, Value};

use crate::blocks::Blocks;

/// The rows of a request's rankings, written already. In the library's answer each stands as a
/// binary value that holds its number here.
#[derive(Debug, Default)]
pub(super) struct WrittenRows(Mutex<Vec<Option<Blocks>>>);

impl WrittenRows {
    /// Keeps rows; what stands for them in the library's answer.
    pub(super) fn put(&self, rows: Blocks) -> Value {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Some(rows));
        let number = (all.len() as u64 - 1).to_le_bytes();
        Value::Binary(number.to_vec().into())
    }

    fn take(&self, number: &[u8]) -> Option<Blocks> {
        let number = usize::try_from(u64::from_le_bytes(number.try_into().ok()?)).ok()?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(number)?.take()
    }
}

/// The JSON of `response`, with the rows that stand in it as binary values.
///
/// # Errors
/// When a value has no JSON form.
pub(super) fn blocks(
    mut response: Response,
    keys: &[Name],
    written: &WrittenRows,
) -> Result<Blocks, serde_json::Error> {
    let mut out = Blocks::default();
    let holds_rows = |value: &Value| matches!(value, Value::Binary(_));
    let mut data = match &mut response.data {
        Value::Object(data) if data.values().any(holds_rows) => std::mem::take(data),
        _ => {
            serde_json::to_writer(&mut out, &response)?;
            return Ok(out);
        }
    };
    // The library puts in first what was ready first; answers go out in the order asked.
    let position = |name: &Name| keys.iter().position(|key| key == name);
    data.sort_by(|a, _, b, _| position(a).cmp(&position(b)));
    let put = |text: &[u8], out: &mut Blocks| out.write_all(text).map_err(serde_json::Error::io);
    put(b"{\"data\":{", &mut out)?;
    for (index, (name, value)) in data.into_iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        put(format!("{comma}{}:", crate::rows::quoted(&name)).as_bytes(), &mut out)?;
        match value {
            Value::Binary(number) => {
                let missing = || std::io::Error::other("the rows of a ranking are missing");
                let rows = written.take(&number);
                out.append(rows.ok_or_else(|| serde_json::Error::io(missing()))?);
            }
            other => serde_json::to_writer(&mut out, &other)?,
        }
    }
    put(b"}}", &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use async_graphql::indexmap::IndexMap;

    use super::*;

    #[test]
    fn rows_are_put_in_where_they_were_asked_for() {
        let written = WrittenRows::default();
        let rows = |text: &str| written.put(text.as_bytes().to_vec().into());
        let mut data = IndexMap::new();
        data.insert(Name::new("b"), rows("[{\"rank\":1}]"));
        data.insert(Name::new("v"), Value::from("1"));
        data.insert(Name::new("a"), rows("[]"));
        let keys = ["a", "v", "b"].map(Name::new);
        let joined = |response: Response| {
            let blocks = blocks(response, &keys, &written)?.finish();
            Ok::<_, serde_json::Error>(String::from_utf8(
                blocks.iter().flatten().copied().collect(),
            ))
        };
        let text = joined(Response::new(Value::Object(data.clone()))).unwrap().unwrap();
        assert_eq!(text, r#"{"data":{"a":[],"v":"1","b":[{"rank":1}]}}"#);
        let twice = joined(Response::new(Value::Object(data)));
        assert!(twice.unwrap_err().to_string().contains("missing"));
    }
}
