//! The body of an error.

use super::json::{Json, Read};
use super::{ErrorKind, GatewayError, line};

/// What the body of an error says. Where it is no JSON, has fields of other kinds or one of them twice, it says
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// `Code`.
    pub code: Option<i64>,
    /// `Message` on one line of at most 512 bytes; empty where there is none.
    pub message: String,
}

impl ErrorBody {
    /// Reads a body.
    #[must_use]
    pub fn of(body: &str) -> Self {
        read(body).unwrap_or_default()
    }

    /// The error of this kind.
    #[must_use]
    pub fn into_error(self, kind: ErrorKind) -> GatewayError {
        GatewayError { kind, code: self.code, message: self.message }
    }
}

fn read(body: &str) -> Read<ErrorBody> {
    let (mut found, mut has_code, mut has_message) = (ErrorBody::default(), false, false);
    let mut json = Json::new(body);
    json.object(|json, name| {
        match name {
            "Code" if std::mem::replace(&mut has_code, true) => return json.twice(name),
            "Message" if std::mem::replace(&mut has_message, true) => return json.twice(name),
            "Code" if !json.null()? => found.code = Some(json.integer(name)?),
            "Message" if !json.null()? => found.message = line(&json.text(name)?),
            "Code" | "Message" => {}
            _ => return json.skip(),
        }
        Ok(())
    })?;
    json.end()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, code: Option<i64>, message: &str) {
        assert_eq!(ErrorBody::of(body), ErrorBody { code, message: message.to_owned() }, "{body}");
    }

    #[test]
    fn a_body_says_its_code_and_its_words() {
        check(
            "{\n \"Code\": 4001001,\n \"Message\": \"内部エラー\"\n}",
            Some(4_001_001),
            "内部エラー",
        );
        check(r#"{"Message":"a\r\n\u202eb","Code":1.0,"More":[{}]}"#, Some(1), "a   b");
        check(r#"{"Code":null,"Message":null}"#, None, "");
        check("{}", None, "");
        let long = format!(r#"{{"Message":"{}"}}"#, "字".repeat(200));
        assert_eq!(ErrorBody::of(&long).message.len(), 510);
    }

    #[test]
    fn a_body_that_is_none_says_nothing() {
        for body in [
            "",
            "<html>401</html>",
            "[]",
            "null",
            r#"{"Code":"4001005","Message":"a"}"#,
            r#"{"Code":1.5}"#,
            r#"{"Code":1,"Code":2}"#,
            r#"{"Message":"a","Message":"a"}"#,
            r#"{"Code":1} x"#,
            r#"{"Code":1"#,
        ] {
            check(body, None, "");
        }
    }
}
