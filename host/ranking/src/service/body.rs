//! An answer as bytes: what the library made, with the rows that were written aside put in.

use async_graphql::{Name, Response, Value};
use axum::body::Bytes;

/// The chunks of an answer's JSON, in order.
pub(super) type Chunks = Vec<Bytes>;

/// The JSON of `response`. Rows stand in it as binary values, which are JSON already.
///
/// # Errors
/// When a value has no JSON form.
pub(super) fn chunks(mut response: Response, keys: &[Name]) -> Result<Chunks, serde_json::Error> {
    let holds_rows = |value: &Value| matches!(value, Value::Binary(_));
    let mut data = match &mut response.data {
        Value::Object(data) if data.values().any(holds_rows) => std::mem::take(data),
        _ => return Ok(vec![serde_json::to_vec(&response)?.into()]),
    };
    // The library puts in first what was ready first; answers go out in the order asked.
    let position = |name: &Name| keys.iter().position(|key| key == name);
    data.sort_by(|a, _, b, _| position(a).cmp(&position(b)));
    let mut chunks = Vec::with_capacity(2 * data.len() + 1);
    let mut text = b"{\"data\":{".to_vec();
    for (index, (name, value)) in data.into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(crate::rows::quoted(&name).as_bytes());
        text.push(b':');
        match value {
            Value::Binary(rows) => {
                chunks.push(std::mem::take(&mut text).into());
                chunks.push(rows);
            }
            other => serde_json::to_writer(&mut text, &other)?,
        }
    }
    text.extend_from_slice(b"}}");
    chunks.push(text.into());
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use async_graphql::indexmap::IndexMap;

    use super::*;

    #[test]
    fn rows_are_put_in_where_they_were_asked_for() {
        let mut data = IndexMap::new();
        data.insert(Name::new("b"), Value::Binary(b"[{\"rank\":1}]".to_vec().into()));
        data.insert(Name::new("v"), Value::from("1"));
        data.insert(Name::new("a"), Value::Binary(b"[]".to_vec().into()));
        let keys = ["a", "v", "b"].map(Name::new);
        let chunks = chunks(Response::new(Value::Object(data)), &keys).unwrap();
        let text = String::from_utf8(chunks.concat()).unwrap();
        assert_eq!(text, r#"{"data":{"a":[],"v":"1","b":[{"rank":1}]}}"#);
    }
}
