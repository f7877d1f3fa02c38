//! Says that the gateway's paths lead to another host.

use kumiki_dialect_sdk::gateway::prelude::*;
use kumiki_dialect_sdk::register_gateway_dialect;

/// The dialect.
#[derive(Debug)]
pub struct Strays;

impl GatewayDialect for Strays {
    fn describe() -> Description {
        Description {
            name: "gateway-strays".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "leads elsewhere".to_owned(),
            rest_prefix: "@elsewhere.example".to_owned(),
            push_path: "/websocket".to_owned(),
            board_read_registers: true,
        }
    }

    fn classify(_status: u16, body: &str) -> GatewayError {
        ErrorBody::of(body).into_error(ErrorKind::Other)
    }
}

register_gateway_dialect!(Strays);
