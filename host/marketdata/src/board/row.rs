//! What is recorded: order books and trades as a live engine tells them (specification 4, P53 to P55).

use domain::market_update::{Board, Level, TradePrint};
use domain::{JstDate, TsNanos};

use crate::limits::{BOARD_LEVELS_MAX, BOARD_VALUE_MAX, SESSION_ID_BYTES_MAX};

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardRow {
    /// An order book.
    Depth(Board),
    /// A trade.
    Trade(TradePrint),
}

impl BoardRow {
    /// When it was received.
    #[must_use]
    pub const fn received(&self) -> TsNanos {
        match self {
            Self::Depth(row) => row.received,
            Self::Trade(row) => row.received,
        }
    }

    /// The day in Japan on which it was received, to which it belongs.
    #[must_use]
    pub fn day(&self) -> JstDate {
        self.received().jst_date()
    }

    /// Whether it can be kept: sizes and values within the limits.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_value = |value: i64| (-BOARD_VALUE_MAX..=BOARD_VALUE_MAX).contains(&value);
        let is_time =
            |ms: u64| i64::try_from(ms).is_ok_and(|ms| ms.checked_mul(1_000_000).is_some());
        let is_level = |level: &Level| is_value(level.price) && is_value(level.quantity);
        let (session, sequence, received, timestamp_ms) = match self {
            Self::Depth(row) => {
                (&row.stream_session_id, row.sequence_id, row.received, row.timestamp_ms)
            }
            Self::Trade(row) => {
                (&row.stream_session_id, row.sequence_id, row.received, row.timestamp_ms)
            }
        };
        let has_values = match self {
            Self::Depth(row) => {
                let sides = [&row.bids, &row.asks];
                row.last_price.is_none_or(is_value)
                    && sides
                        .iter()
                        .all(|side| side.len() <= BOARD_LEVELS_MAX && side.iter().all(is_level))
            }
            Self::Trade(row) => is_value(row.price) && is_value(row.quantity),
        };
        has_values
            && (1..=SESSION_ID_BYTES_MAX).contains(&session.len())
            && i64::try_from(sequence).is_ok()
            && i64::try_from(received.nanos()).is_ok()
            && is_time(timestamp_ms)
    }
}
