//! What is known of one ticker: its newest board, its last trades, and what the stream left out.

use std::collections::VecDeque;

use ipc::{DepthSnapshot, TickerInfo, TradeRow, Trades};

/// Trades that are kept for the eye.
pub(super) const TRADES_SHOWN_MAX: usize = 100;

/// One ticker.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) ticker: String,
    /// The name.
    pub(super) name: Option<String>,
    /// The id of the command that asked for the name once more.
    pub(super) name_asked: Option<String>,
    /// It had to make room for another ticker: nothing of it comes any more.
    pub(super) is_evicted: bool,
    pub(super) depth: Option<DepthSnapshot<'static>>,
    /// The last first.
    pub(super) trades: VecDeque<TradeRow>,
    /// Boards and trades that came.
    pub(super) told: u64,
    /// Numbers of the stream that did not come: boards that were left out because this program reads too
    /// slowly.
    pub(super) left_out: u64,
    session: String,
    sequence: u64,
}

impl Book {
    pub(super) fn new(ticker: &str) -> Self {
        Self { ticker: ticker.to_owned(), ..Self::default() }
    }

    /// Takes what is known of a ticker that is subscribed now.
    pub(super) fn take_info(&mut self, info: TickerInfo<'_>) {
        self.is_evicted = false;
        if let Some(name) = info.display_name_ja {
            self.name = Some(name.into_owned());
        }
    }

    /// It is no longer subscribed: what was known of the market is of no more use.
    pub(super) fn evict(&mut self) {
        self.is_evicted = true;
        self.depth = None;
        self.trades.clear();
    }

    /// Whether the engine has to be asked for the name: it knows none before it has heard a frame, and is asked only
    /// once, for an issue may have none.
    pub(super) const fn wants_name(&self) -> bool {
        self.depth.is_some() && self.name.is_none() && self.name_asked.is_none()
    }

    /// Takes a board.
    pub(super) fn take_depth(&mut self, depth: DepthSnapshot<'static>) {
        // One that waited while the ticker was taken out.
        if self.is_evicted {
            return;
        }
        self.count(&depth.stream_session_id, depth.sequence_id);
        self.depth = Some(depth);
    }

    /// Takes trades.
    pub(super) fn take_trades(&mut self, trades: &Trades<'_>) {
        if self.is_evicted {
            return;
        }
        for row in &trades.trades {
            self.count(&trades.stream_session_id, row.sequence_id);
            self.trades.truncate(TRADES_SHOWN_MAX - 1);
            self.trades.push_front(row.clone());
        }
    }

    /// Counts what came, and what did not: boards and trades of a session have one row of numbers.
    fn count(&mut self, session: &str, sequence: u64) {
        self.told += 1;
        if self.session == session {
            self.left_out += sequence.saturating_sub(self.sequence + 1);
        } else {
            session.clone_into(&mut self.session);
        }
        self.sequence = sequence;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ipc::{BookLevel, Decimal, SideRule, TimestampSource, TradeSide};

    use super::*;

    fn yen(units: i64) -> Decimal {
        Decimal::from_units(units * 10_000)
    }

    /// A board of 2,850 yen with ten levels a side, 100 shares more at each.
    pub(in crate::watch) fn depth(session: &str, sequence_id: u64) -> DepthSnapshot<'static> {
        let level =
            |price, index: i64| BookLevel { price: yen(price), qty: yen(100 * (index + 1)) };
        DepthSnapshot {
            request_id: None,
            venue: "local_broker".into(),
            exchange: "LocalBrokerStock".into(),
            ticker: "7203".into(),
            stream_session_id: session.to_owned().into(),
            sequence_id,
            // 13:00:05.250 in Japan on 2026-11-24.
            received_ms: 1_795_492_805_300,
            timestamp_ms: 1_795_492_805_250,
            timestamp_source: TimestampSource::Venue,
            last_price: Some(Decimal::from_units(28_505_000)),
            bids: (0..10).map(|index| level(2_850 - index, index)).collect(),
            asks: (0..10).map(|index| level(2_851 + index, index)).collect(),
        }
    }

    pub(in crate::watch) fn trades(session: &str, numbers: &[u64]) -> Trades<'static> {
        let row = |number: &u64| TradeRow {
            price: yen(2_851),
            qty: yen(100 * i64::try_from(*number).unwrap()),
            side: TradeSide::Buy,
            side_rule: Some(SideRule::AtAsk),
            ts_ms: 1_795_492_805_000,
            ts_ns: None,
            sequence_id: *number,
            received_ms: Some(1_795_492_805_300),
            after_gap: None,
        };
        Trades {
            venue: "local_broker".into(),
            exchange: "LocalBrokerStock".into(),
            ticker: "7203".into(),
            instrument_id: None,
            stream_session_id: session.to_owned().into(),
            trades: numbers.iter().map(row).collect(),
        }
    }

    #[test]
    fn numbers_that_are_missing_are_counted() {
        let mut book = Book::new("7203");
        book.take_depth(depth("one", 7));
        assert_eq!((book.told, book.left_out), (1, 0), "what was before is nobody's");
        book.take_trades(&trades("one", &[8, 9]));
        book.take_depth(depth("one", 13));
        assert_eq!((book.told, book.left_out), (4, 3));
        book.take_depth(depth("two", 1));
        assert_eq!((book.told, book.left_out), (5, 3), "another session counts anew");
    }

    pub(in crate::watch) fn info(name: Option<&'static str>) -> TickerInfo<'static> {
        TickerInfo {
            symbol: "7203".into(),
            exchange: "LocalBrokerStock".into(),
            market_kind: "Stock".into(),
            display_name_ja: name.map(Into::into),
        }
    }

    #[test]
    fn a_name_is_asked_for_once_after_the_first_board() {
        let mut book = Book::new("7203");
        book.take_info(info(None));
        assert!(!book.wants_name(), "nobody knows it yet");
        book.take_depth(depth("one", 1));
        assert!(book.wants_name());
        book.name_asked = Some("id".to_owned());
        assert!(!book.wants_name());
        book.take_info(info(None));
        assert!(!book.wants_name(), "an issue without a name");
        book.take_info(info(Some("name")));
        book.take_info(info(None));
        assert_eq!(book.name.as_deref(), Some("name"), "it is not forgotten");
    }

    #[test]
    fn nothing_is_kept_of_a_ticker_that_had_to_make_room() {
        let mut book = Book::new("7203");
        book.take_depth(depth("one", 1));
        book.take_trades(&trades("one", &[2]));
        book.evict();
        // What waited in the meantime.
        book.take_depth(depth("one", 3));
        book.take_trades(&trades("one", &[4]));
        assert!(book.depth.is_none() && book.trades.is_empty() && !book.wants_name());
        book.take_info(info(None));
        book.take_depth(depth("one", 5));
        assert!(book.depth.is_some(), "it is subscribed again");
    }

    #[test]
    fn trades_are_kept_for_the_eye_only() {
        let mut book = Book::new("7203");
        let numbers: Vec<u64> = (1..=TRADES_SHOWN_MAX as u64 + 5).collect();
        book.take_trades(&trades("one", &numbers));
        assert_eq!(book.trades.len(), TRADES_SHOWN_MAX);
        assert_eq!(book.trades[0].sequence_id, TRADES_SHOWN_MAX as u64 + 5, "the last first");
    }
}
