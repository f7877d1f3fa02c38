//! Market data for clients: subscriptions, trades, depth and bars (specification 1, "Events"; pins
//! P51, P53 to P55, P75).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Decimal, RequestId, Text};

/// Declares a command about one ticker of a venue.
macro_rules! ticker_command {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
            pub request_id: RequestId,
            /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
            pub venue: String,
            /// The symbol, like `7203`; `7203.TSE` is taken too.
            pub ticker: String,
        }
    };
}

ticker_command! {
    /// Asks for the market data of a ticker.
    Subscribe
}

ticker_command! {
    /// Gives the market data of a ticker up.
    Unsubscribe
}

ticker_command! {
    /// Reads the board of a ticker once; answered by a [`DepthSnapshot`].
    GetBoard
}

/// Removes the ticker from the register set that was used longest ago.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvictLru {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
}

/// Answers a [`Subscribe`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Subscribed<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: Text<'a>,
    /// Market and name of the ticker.
    pub ticker_info: TickerInfo<'a>,
}

/// Market and name of a ticker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TickerInfo<'a> {
    /// The exchange's code without a suffix, like `7203`.
    pub symbol: Text<'a>,
    /// The market, like `LocalBrokerStock`.
    pub exchange: Text<'a>,
    /// `Stock`.
    pub market_kind: Text<'a>,
    /// Its name in Japanese.
    pub display_name_ja: Option<Text<'a>>,
}

/// Answers an [`Unsubscribe`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Unsubscribed<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: Text<'a>,
}

/// A ticker left the register set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SubscriptionEvicted<'a> {
    /// The id of the `EvictLru` that caused it (specification 4, P61).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// The exchange's code without a suffix, like `7203`.
    pub symbol: Text<'a>,
}

/// Trades of one ticker, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Trades<'a> {
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The market as clients know it, like `LocalBrokerStock`.
    pub exchange: Text<'a>,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: Text<'a>,
    /// The instrument; in a replay only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument_id: Option<Text<'a>>,
    /// The session whose numbers the rows have: a login and a day, or a run.
    pub stream_session_id: Text<'a>,
    /// The trades in the order of the stream.
    pub trades: Vec<TradeRow>,
}

/// Side of the aggressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TradeSide {
    /// The buyer.
    Buy,
    /// The seller.
    Sell,
    /// Unknown.
    Unknown,
}

/// Why a trade has its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideRule {
    /// At or above the best ask before it.
    AtAsk,
    /// At or below the best bid before it.
    AtBid,
    /// Exactly between.
    Midpoint,
    /// Between, and nearer to one of them.
    InsideNearer,
    /// The bid was above the ask.
    Crossed,
    /// Only one of them was there.
    OneSided,
    /// The stream had a gap before it.
    AfterGap,
    /// The opening auction, which has no aggressor.
    Auction,
}

/// One trade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TradeRow {
    /// Price of the trade in yen per share.
    pub price: Decimal,
    /// Shares of the trade.
    pub qty: Decimal,
    /// Side of the aggressor.
    pub side: TradeSide,
    /// Why; null in a replay, which knows no quotes.
    pub side_rule: Option<SideRule>,
    /// Time of the trade in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_ms: u64,
    /// The same time in nanoseconds since 1970 UTC; in a replay only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts_ns: Option<u64>,
    /// Its number in the session.
    pub sequence_id: u64,
    /// When it was received, in milliseconds UTC; null in a replay.
    pub received_ms: Option<u64>,
    /// Whether it adds up the trades of a gap in the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_gap: Option<bool>,
}

/// Where the time of a snapshot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimestampSource {
    /// The venue sends it.
    Venue,
    /// It is the time of receipt.
    Received,
}

/// The order book of one ticker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DepthSnapshot<'a> {
    /// The command's id, when it answers a [`GetBoard`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The market as clients know it, like `LocalBrokerStock`.
    pub exchange: Text<'a>,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: Text<'a>,
    /// The session whose number it has: a login and a day.
    pub stream_session_id: Text<'a>,
    /// Its number in the session.
    pub sequence_id: u64,
    /// When it was received, in milliseconds UTC.
    pub received_ms: u64,
    /// Time of this state, in milliseconds UTC.
    pub timestamp_ms: u64,
    /// Where that time comes from.
    pub timestamp_source: TimestampSource,
    /// Yen per share of the last trade.
    pub last_price: Option<Decimal>,
    /// Bids in the venue's order, usually the best first. One without a price is left out, also the best.
    pub bids: Vec<BookLevel>,
    /// Asks likewise.
    pub asks: Vec<BookLevel>,
}

/// A price at which orders rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BookLevel {
    /// Price of the level in yen per share.
    pub price: Decimal,
    /// Shares that rest at this price.
    pub qty: Decimal,
}

/// How long a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KlineInterval {
    /// A minute.
    #[serde(rename = "1m")]
    Minute,
    /// A day.
    #[serde(rename = "1d")]
    Day,
}

/// Bars of one ticker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KlineUpdate<'a> {
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: Text<'a>,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// How long each bar is.
    pub interval: KlineInterval,
    /// The bars, each of the length of `interval`.
    pub klines: Vec<Kline>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Kline {
    /// Its start in milliseconds UTC.
    pub open_time_ms: u64,
    /// Its end in milliseconds UTC.
    pub close_time_ms: u64,
    /// Price of its first trade in yen per share.
    pub open: Decimal,
    /// Highest price of the bar in yen per share.
    pub high: Decimal,
    /// Lowest price of the bar in yen per share.
    pub low: Decimal,
    /// Price of its last trade in yen per share.
    pub close: Decimal,
    /// Shares traded in the bar.
    pub volume: Decimal,
    /// Value of the trades of the bar in yen; null where it is not known.
    pub turnover: Option<Decimal>,
    /// Whether it will not change any more.
    pub is_final: bool,
}
