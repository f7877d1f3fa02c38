//! A GraphQL request as HTTP carries it, and the form in which its answer is wanted (GraphQL over
//! HTTP, draft of 2025).

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::response::JSON;

/// The media type of answers whose status says what happened.
const GRAPHQL_RESPONSE: &str = "application/graphql-response+json";

/// A request's parameters. Others than these are ignored.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GraphqlRequest {
    pub(super) query: String,
    #[serde(default)]
    pub(super) operation_name: Option<String>,
    #[serde(default)]
    pub(super) variables: Option<Map<String, Value>>,
    /// Nothing is read from them, but they have to be a map.
    #[serde(default, rename = "extensions")]
    _extensions: Option<Map<String, Value>>,
    /// Whether it came by GET, which must not change anything.
    #[serde(skip)]
    pub(super) is_get: bool,
}

impl GraphqlRequest {
    /// The request in a body of JSON, with a byte order mark before it or without (RFC 8259, 8.1).
    pub(super) fn from_body(body: &[u8]) -> Result<Self, Failure> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        serde_json::from_slice(body).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            invalid(format!(
                "the body is not a GraphQL request ({place}); send JSON like {{\"query\": \"{{ \
                 schemaVersion }}\"}}"
            ))
        })
    }

    /// The request in the query of a URL, each parameter once.
    pub(super) fn from_url(query: &str) -> Result<Self, Failure> {
        let mut request = Self { is_get: true, ..Self::default() };
        let mut known = Vec::new();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            match name.as_str() {
                "query" => request.query = value,
                "operationName" => request.operation_name = Some(value),
                "variables" => request.variables = map(&name, &value)?,
                "extensions" => request._extensions = map(&name, &value)?,
                _ => continue,
            }
            if known.contains(&name) {
                return Err(invalid(format!("the parameter {name} is given twice")));
            }
            known.push(name);
        }
        if !known.iter().any(|name| name == "query") {
            return Err(invalid(
                "the URL has no parameter query; send one like ?query={schemaVersion}".to_owned(),
            ));
        }
        Ok(request)
    }
}

/// Variables in which a whole number has no fraction: JSON knows one kind of number, and some clients write `5.0`
/// for an Int. A Float takes both.
pub(super) fn with_whole_numbers(variables: Map<String, Value>) -> Value {
    let mut value = Value::Object(variables);
    drop_fractions(&mut value);
    value
}

fn drop_fractions(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|found| found.fract() == 0.0 && found.abs() <= f64::from(i32::MAX));
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(drop_fractions),
        Value::Object(fields) => fields.values_mut().for_each(drop_fractions),
        _ => {}
    }
}

fn invalid(message: String) -> Failure {
    Failure::new("REQUEST_INVALID", message)
}

fn decoded(text: &str) -> Result<String, Failure> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    let decoded = decoded.map_err(|_| invalid("the URL is not UTF-8".to_owned()))?;
    Ok(decoded.into_owned())
}

/// A parameter that is JSON of a map; empty and null are none.
fn map(name: &str, text: &str) -> Result<Option<Map<String, Value>>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text)
        .map_err(|_| invalid(format!("the parameter {name} is not JSON of a map")))
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseType {
    /// `application/json`: status 200 whenever the request was one.
    Json,
    /// `application/graphql-response+json`: the status says what happened.
    GraphqlResponse,
}

impl ResponseType {
    /// What suits a client best (RFC 9110, 12.5.1). Who accepts neither gets JSON.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let (mut json, mut graphql) = (0.0_f64, 0.0_f64);
        for range in lines.flat_map(|line| line.split(',')) {
            let mut words = range.split(';').map(str::trim);
            let name = words.next().unwrap_or_default().to_ascii_lowercase();
            let weight = words.find_map(|word| word.strip_prefix("q=")).map_or(1.0, |text| {
                text.trim().parse::<f64>().ok().filter(|weight| weight.is_finite()).unwrap_or(0.0)
            });
            match name.as_str() {
                GRAPHQL_RESPONSE => graphql = graphql.max(weight),
                JSON | "application/*" | "*/*" => json = json.max(weight),
                _ => {}
            }
        }
        // Who names the newer one means it.
        if graphql > 0.0 && graphql >= json { Self::GraphqlResponse } else { Self::Json }
    }

    /// The Content-Type header.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::GraphqlResponse => "application/graphql-response+json; charset=utf-8",
        }
    }

    /// The status of an answer. `was_executed` where fields were asked for their values, so that
    /// the answer has data, if only null.
    pub(super) fn status(self, code: &str, was_executed: bool) -> StatusCode {
        match code {
            "OK" => StatusCode::OK,
            "REQUEST_INVALID" => StatusCode::BAD_REQUEST,
            "UNAUTHORIZED" => StatusCode::UNAUTHORIZED,
            "FORBIDDEN" => StatusCode::FORBIDDEN,
            "METHOD" => StatusCode::METHOD_NOT_ALLOWED,
            "BODY_TOO_LARGE" => StatusCode::PAYLOAD_TOO_LARGE,
            "MEDIA_TYPE" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "NO_DATA" => StatusCode::SERVICE_UNAVAILABLE,
            _ if self == Self::Json => StatusCode::OK,
            _ if was_executed => partial_success(),
            "BUSY" | "TIMEOUT" => StatusCode::SERVICE_UNAVAILABLE,
            "INTERNAL" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// What GraphQL over HTTP recommends for an answer of data and errors, also where the data are null.
fn partial_success() -> StatusCode {
    StatusCode::from_u16(294).unwrap_or(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_hold_requests() {
        let request = GraphqlRequest::from_url(
            "query=query+A(%24n:Int)%7Ba%7D&operationName=A&variables=%7B%22n%22:5%7D&more=%",
        );
        let request = request.unwrap();
        assert_eq!(request.query, "query A($n:Int){a}");
        assert_eq!(request.operation_name.as_deref(), Some("A"));
        assert_eq!(Value::from(request.variables.unwrap()), serde_json::json!({ "n": 5 }));
        assert!(request.is_get);
        for wrong in [
            "",
            "quer=x",
            "query=%ff",
            "query={a}&query={b}",
            "query={a}&variables=[]",
            "query={a}&variables=x",
            "query={a}&extensions=5",
        ] {
            let failure = GraphqlRequest::from_url(wrong).unwrap_err();
            assert_eq!(failure.code, "REQUEST_INVALID", "{wrong}");
        }
        for none in ["query={a}", "query={a}&variables=", "query={a}&variables=null"] {
            assert_eq!(GraphqlRequest::from_url(none).unwrap().variables, None, "{none}");
        }
    }

    #[test]
    fn a_body_may_begin_with_a_byte_order_mark() {
        let body = b"\xef\xbb\xbf{\"query\": \"{a}\"}";
        assert_eq!(GraphqlRequest::from_body(body).unwrap().query, "{a}");
        let twice = [b"\xef\xbb\xbf", &body[..]].concat();
        assert_eq!(GraphqlRequest::from_body(&twice).unwrap_err().code, "REQUEST_INVALID");
    }

    #[test]
    fn a_whole_number_of_a_variable_has_no_fraction() {
        let sent = r#"{"a": 5.0, "b": [-3.0, 2.5, {"c": 1e3}], "d": "5.0", "e": 1e300, "f": 7}"#;
        let told = with_whole_numbers(map("variables", sent).unwrap().unwrap()).to_string();
        assert_eq!(told, r#"{"a":5,"b":[-3,2.5,{"c":1000}],"d":"5.0","e":1e+300,"f":7}"#);
    }

    #[test]
    fn the_client_says_which_form_it_wants() {
        let accepted = |text: &str| {
            let mut headers = HeaderMap::new();
            if !text.is_empty() {
                headers.insert(ACCEPT, text.parse().unwrap());
            }
            ResponseType::accepted(&headers)
        };
        for json in [
            "",
            "*/*",
            "text/html",
            "application/json",
            "application/json, application/graphql-response+json;q=0.5",
            "application/graphql-response+json;q=0",
        ] {
            assert_eq!(accepted(json), ResponseType::Json, "{json}");
        }
        for graphql in [
            "application/graphql-response+json",
            "application/graphql-response+json; charset=utf-8, application/json; charset=utf-8",
            "application/json;q=0.9, application/GraphQL-response+json",
            "application/json, application/graphql-response+json",
            "*/*, application/graphql-response+json",
        ] {
            assert_eq!(accepted(graphql), ResponseType::GraphqlResponse, "{graphql}");
        }
    }

    #[test]
    fn statuses_are_those_of_the_specification() {
        let (json, graphql) = (ResponseType::Json, ResponseType::GraphqlResponse);
        for (code, executed, of_json, of_graphql) in [
            ("OK", true, 200, 200),
            ("REQUEST_INVALID", false, 400, 400),
            ("GRAPHQL_INVALID", false, 200, 400),
            ("FORMULA_INVALID", true, 200, 294),
            ("TIMEOUT", true, 200, 294),
            ("RESULT_TOO_LARGE", false, 200, 400),
            ("BUSY", false, 200, 503),
            ("INTERNAL", false, 200, 500),
            ("NO_DATA", true, 503, 503),
        ] {
            assert_eq!(json.status(code, executed), of_json, "{code}");
            assert_eq!(graphql.status(code, executed), of_graphql, "{code}");
        }
    }
}
