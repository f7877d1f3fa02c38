//! The local gateway as its vendor has it: kabu STATION API 1.5, with the codes that it really answers.

use kumiki_dialect_sdk::gateway::prelude::*;
use kumiki_dialect_sdk::register_gateway_dialect;

#[cfg(test)]
mod tests;

/// The dialect.
#[derive(Debug)]
pub struct LocalBrokerKabusapi;

/// The kind of an error: the status decides first, then the code.
const fn kind_of(status: u16, code: Option<i64>) -> ErrorKind {
    match (status, code) {
        (429, _) => ErrorKind::RateLimited,
        // Not logged in, another token was issued. 4001013 is a wrong password, and one that nobody knows is no
        // reason to ask for a token.
        (401, Some(4_001_007 | 4_001_009 | 4_001_017)) => ErrorKind::TokenExpired,
        (401, _) => ErrorKind::Other,
        (400..=499, Some(4_001_006)) => ErrorKind::RateLimited,
        (400..=499, Some(4_002_006)) => ErrorKind::RegisterFull,
        _ => ErrorKind::Other,
    }
}

impl GatewayDialect for LocalBrokerKabusapi {
    fn describe() -> Description {
        Description {
            name: "local-broker-kabusapi".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "The local gateway as its vendor documents it, API 1.5".to_owned(),
            rest_prefix: "/kabusapi".to_owned(),
            push_path: "/kabusapi/websocket".to_owned(),
            board_read_registers: false,
        }
    }

    fn classify(status: u16, body: &str) -> GatewayError {
        let body = ErrorBody::of(body);
        let kind = kind_of(status, body.code);
        body.into_error(kind)
    }
}

register_gateway_dialect!(LocalBrokerKabusapi);
