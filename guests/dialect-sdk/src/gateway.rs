//! Write dialects of a local gateway in Rust.
//!//! Such a dialect says what the gateway's errors mean, and reads its messages about boards. It is a type
//! that implements [`GatewayDialect`]; [`register_gateway_dialect!`](crate::register_gateway_dialect) makes
//! it a component. It is a function, like every dialect.
//!
//! [`board`] reads a message about a board exactly, without binary floating point, and [`ErrorBody`] the body
//! of an error; both use [`json`], which reads any JSON. All of it runs without wasm too.
//!
//! ```
//! let message = r#"{"Symbol": "7203", "CurrentPrice": 2408.5, "Sell1": {"Price": 2409.0, "Qty": 100.0}}"#;
//! let board = kumiki_dialect_sdk::gateway::board::read(message).unwrap();
//! assert_eq!((board.last_price, board.best_ask), (Some(24_085_000), Some(24_090_000)));
//! ```

pub mod board;
mod decimal;
mod error_body;
pub mod json;
mod time;
#[doc(hidden)]
pub mod wasm;

use wasm::bindings::exports::kumiki::gateway_mapping::guest;

pub use error_body::ErrorBody;
pub use guest::{Board, Description, ErrorKind, GatewayError, Level};

/// Everything that a dialect of a gateway needs.
pub mod prelude {
    pub use super::{
        Board, Description, ErrorBody, ErrorKind, GatewayDialect, GatewayError, Level,
    };
}

/// Bytes of a text that a dialect answers.
pub const TEXT_BYTES_MAX: usize = 512;
/// Levels of each side of a board.
pub const LEVELS_MAX: usize = 10;
/// The largest price, quantity or volume, in 1/10,000.
pub const NUMBER_MAX: i64 = 10_000_000_000_000_000;
/// Units of a price or a quantity in 1: they are in 1/10,000.
pub const UNITS: i64 = 10_000;

/// The dialect of a gateway. Every answer depends on the arguments alone.
pub trait GatewayDialect {
    /// Describes the dialect.
    fn describe() -> Description;

    /// Classifies an answer with an HTTP status other than 200; `body` is JSON or not.
    fn classify(status: u16, body: &str) -> GatewayError;

    /// Reads a message about a board.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_board(message: &str) -> Result<Board, String> {
        board::read(message)
    }
}

/// A text on one line of at most [`TEXT_BYTES_MAX`] bytes.
fn line(text: &str) -> String {
    let mut line = crate::text::line(text);
    line.truncate(line.floor_char_boundary(TEXT_BYTES_MAX));
    line
}

/// Makes a [`GatewayDialect`] the component's dialect. Use it once, at the top level of the crate.
#[macro_export]
macro_rules! register_gateway_dialect {
    ($dialect:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Component = $dialect;

    $crate::gateway::wasm::export!(Component with_types_in $crate::gateway::wasm::bindings);
        };
    };
}
