//! The dialect of a local gateway: the words between its venue and a sandboxed component that knows the
//! gateway's names and codes (`wit/gateway-mapping`; specification 1, "Push board message", "Errors").
//! Prices are in 1/10,000 yen, quantities in 1/10,000 share.

use crate::fault::Identity;
use crate::market_update::Level;
use crate::order_mapping::Mapped;

/// What a dialect says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayDescription {
    /// What users call it.
    pub name: String,
    /// The author's version.
    pub version: String,
    /// What it speaks, for people.
    pub summary: String,
    /// What stands before every path of a request: empty, or like `/kabusapi`.
    pub rest_prefix: String,
    /// Path of the WebSocket.
    pub push_path: String,
    /// Whether a board that was read is pushed from then on, without a registration (specification 4, P59).
    pub board_read_registers: bool,
}

/// What kind of error an answer is (specification 1, "Errors").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayErrorKind {
    /// The token is no longer taken, or nobody is logged in.
    TokenExpired,
    /// No more symbols can be registered.
    RegisterFull,
    /// Too many requests.
    RateLimited,
    /// Every other one.
    Other,
}

/// An error that the gateway answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRefusal {
    /// Its kind.
    pub kind: GatewayErrorKind,
    /// The gateway's own code, where it gave one.
    pub code: Option<i64>,
    /// The gateway's words on one line; empty where it gave none.
    pub message: String,
}

/// What a message about a board says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayBoard {
    /// Code of the issue.
    pub symbol: String,
    /// The gateway's code of the market.
    pub exchange: Option<i64>,
    /// Name of the issue.
    pub name: Option<String>,
    /// Price of the last trade in 1/10,000 yen.
    pub last_price: Option<i64>,
    /// When that was, in milliseconds since 1970 UTC.
    pub time_ms: Option<u64>,
    /// Quantity traded so far on the day, in 1/10,000 share.
    pub volume: Option<i64>,
    /// Price of the first level of those who sell.
    pub best_ask: Option<i64>,
    /// Price of the first level of those who buy.
    pub best_bid: Option<i64>,
    /// Those who sell, in the message's order, at most [`BOARD_LEVELS_MAX`].
    pub asks: Vec<Level>,
    /// Those who buy, likewise.
    pub bids: Vec<Level>,
}

/// Levels of each side of a board (specification 1, "DepthSnapshot mapping").
pub const BOARD_LEVELS_MAX: usize = 10;

/// One running dialect of a gateway. Each answer depends on what it is asked alone; a failed call leaves
/// it usable, because the host makes it anew.
pub trait GatewayMapping: Send {
    /// Name and SHA-256 of the component.
    fn identity(&self) -> Identity;

    /// What it says of itself.
    fn description(&self) -> &GatewayDescription;

    /// Says what an answer with another HTTP status than 200 means.
    ///
    /// # Errors
    /// [`crate::order_mapping::MappingFault`]
    fn classify(&mut self, status: u16, body: &str) -> Mapped<GatewayRefusal>;

    /// Reads a message about a board; the inner error says in one line why it is none.
    ///
    /// # Errors
    /// [`crate::order_mapping::MappingFault`]
    fn read_board(&mut self, message: &str) -> Mapped<Result<GatewayBoard, String>>;
}
