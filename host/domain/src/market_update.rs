//! What a live market sends: the order book of a symbol and the trade derived from it, with what a feed knows of
//! them (specification 4, P53 to P55). A venue makes it, and the recorder, strategies and clients take it as it is.
//!
//! Prices are integers of 1/10,000 yen, quantities of 1/10,000 share, because a gateway may send parts of a share.

use std::fmt;
use std::sync::Arc;

use crate::time::TsNanos;

/// One message of a feed: the order book, and at most one trade that it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketUpdate {
    /// The order book; it comes before the trade (specification 4, P56).
    pub board: Board,
    /// The trade.
    pub trade: Option<TradePrint>,
    /// The stream was interrupted since the symbol's last message: what happened in between is missing.
    pub gap: bool,
}

/// Characters of the shortest symbol (specification 4, P51).
const SYMBOL_BYTES_MIN: usize = 4;
/// Characters of the longest one.
const SYMBOL_BYTES_MAX: usize = 9;

/// A symbol as a broker names it: 4 to 9 digits and capital letters, like `7203`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    /// Filled up with zeros, which no symbol has.
    bytes: [u8; SYMBOL_BYTES_MAX],
}

impl Symbol {
    /// A symbol from its text, where it is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_letter = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        let fits = (SYMBOL_BYTES_MIN..=SYMBOL_BYTES_MAX).contains(&text.len());
        if !fits || !text.bytes().all(is_letter) {
            return None;
        }
        let mut bytes = [0; SYMBOL_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { bytes })
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(SYMBOL_BYTES_MAX);
        // Only digits and capital letters get in, so this is never the empty text.
        std::str::from_utf8(&self.bytes[..end]).unwrap_or_default()
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A price at which orders rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Price in 1/10,000 yen.
    pub price: i64,
    /// Quantity in 1/10,000 share; 0 where the message has none.
    pub quantity: i64,
}

/// Where the time of an order book comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The venue sent it.
    Venue,
    /// It is when the message was received.
    Received,
}

/// Who was the aggressor of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggressorSide {
    /// The buyer.
    Buy,
    /// The seller.
    Sell,
    /// It is not known.
    Unknown,
}

/// Why a trade has its side (specification 4, P54).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Names of [`TimeSource`], [`AggressorSide`] and [`SideRule`] in tables, as messages have them.
macro_rules! names {
    ($kind:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $kind {
            /// All of them, in the order of their numbers in a journal.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one of that name.
            #[must_use]
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

names!(TimeSource: Venue = "venue", Received = "received");
names!(AggressorSide: Buy = "buy", Sell = "sell", Unknown = "unknown");
names!(
    SideRule: AtAsk = "at_ask", AtBid = "at_bid", Midpoint = "midpoint",
    InsideNearer = "inside_nearer", Crossed = "crossed", OneSided = "one_sided",
    AfterGap = "after_gap", Auction = "auction",
);

/// The order book of a symbol at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// The symbol.
    pub symbol: Symbol,
    /// The stream's session, 1 to 64 bytes.
    pub stream_session_id: Arc<str>,
    /// Its number in the session, shared with the trades of the symbol.
    pub sequence_id: u64,
    /// When it was received.
    pub received: TsNanos,
    /// When it was so, in milliseconds since 1970 UTC.
    pub timestamp_ms: u64,
    /// Where that time comes from.
    pub timestamp_source: TimeSource,
    /// Price of the last trade in 1/10,000 yen.
    pub last_price: Option<i64>,
    /// Bids in the venue's order, usually the best first, without those that have no price; at most 10.
    pub bids: Vec<Level>,
    /// Asks likewise.
    pub asks: Vec<Level>,
}

/// A trade as a feed tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradePrint {
    /// The symbol.
    pub symbol: Symbol,
    /// The stream's session, 1 to 64 bytes.
    pub stream_session_id: Arc<str>,
    /// Its number in the session, shared with the order books of the symbol.
    pub sequence_id: u64,
    /// When it was received.
    pub received: TsNanos,
    /// When it was made, in milliseconds since 1970 UTC.
    pub timestamp_ms: u64,
    /// Price in 1/10,000 yen.
    pub price: i64,
    /// Quantity in 1/10,000 share.
    pub quantity: i64,
    /// Who was the aggressor.
    pub side: AggressorSide,
    /// Why; none where nothing said so.
    pub side_rule: Option<SideRule>,
    /// Whether it adds up what a gap of the stream left out; such a trade reaches no strategy.
    pub after_gap: bool,
}
