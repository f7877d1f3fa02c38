//! The local gateway as the specification describes it: its table of errors to the letter.

use kumiki_dialect_sdk::gateway::prelude::*;
use kumiki_dialect_sdk::register_gateway_dialect;

#[cfg(test)]
mod tests;

/// The dialect.
#[derive(Debug)]
pub struct LocalBrokerSpec;

/// What the codes of the table mean (specification 1, "Errors").
const fn of_code(code: i64) -> Option<ErrorKind> {
    Some(match code {
        4_001_001 | 4_001_005 => ErrorKind::TokenExpired,
        4_001_003 => ErrorKind::Other,
        4_002_001 => ErrorKind::RegisterFull,
        4_002_006 => ErrorKind::RateLimited,
        _ => return None,
    })
}

/// The kind of an error: the code decides where the table knows it, which has statuses of 400 to 499 only, else
/// the status (specification 4, P59).
fn kind_of(status: u16, code: Option<i64>) -> ErrorKind {
    let known = if matches!(status, 400..=499) { code.and_then(of_code) } else { None };
    match (known, status) {
        (Some(kind), _) => kind,
        (None, 429) => ErrorKind::RateLimited,
        (None, _) => ErrorKind::Other,
    }
}

impl GatewayDialect for LocalBrokerSpec {
    fn describe() -> Description {
        Description {
            name: "local-broker-spec".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "The local gateway as the specification's tables have it".to_owned(),
            rest_prefix: String::new(),
            push_path: "/brokerapi/websocket".to_owned(),
            board_read_registers: true,
        }
    }

    fn classify(status: u16, body: &str) -> GatewayError {
        let body = ErrorBody::of(body);
        let kind = kind_of(status, body.code);
        body.into_error(kind)
    }
}

register_gateway_dialect!(LocalBrokerSpec);
