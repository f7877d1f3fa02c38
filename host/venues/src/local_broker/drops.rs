//! Frames that are dropped, and a limit for log lines about frequent things (specification 4, P52, P53).

use std::fmt;

use domain::TsNanos;
use domain::gateway_mapping::{BOARD_LEVELS_MAX, GatewayBoard};

use crate::local_broker::keys::{TOKYO, is_symbol};
use crate::local_broker::limits::REPORT_EVERY;

/// Why a frame is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// It is of another market than Tokyo.
    OtherExchange,
    /// It names no market.
    WithoutExchange,
    /// No client is subscribed to its symbol.
    NotSubscribed,
    /// It is not a board, or a number in it is impossible.
    Malformed,
    /// The symbols are not registered again yet, or there is no login (specification 4, P47, P49).
    Untrusted,
    /// The gateway logs out all programs at that time (specification 4, P47).
    LoggedOut,
}

/// Checks that a board is taken.
///
/// # Errors
/// Why it is dropped.
pub fn accepts(board: &GatewayBoard, is_subscribed: bool) -> Result<(), DropReason> {
    match board.exchange {
        None => return Err(DropReason::WithoutExchange),
        Some(TOKYO) => {}
        Some(_) => return Err(DropReason::OtherExchange),
    }
    if !is_subscribed {
        return Err(DropReason::NotSubscribed);
    }
    let numbers = [board.last_price, board.volume, board.best_ask, board.best_bid];
    let levels = || board.asks.iter().chain(&board.bids);
    let is_well_formed = is_symbol(&board.symbol)
        && numbers.iter().flatten().all(|number| *number >= 0)
        && levels().all(|level| level.price >= 0 && level.quantity >= 0)
        && board.asks.len() <= BOARD_LEVELS_MAX
        && board.bids.len() <= BOARD_LEVELS_MAX;
    if is_well_formed { Ok(()) } else { Err(DropReason::Malformed) }
}

/// How many frames were dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// [`DropReason::OtherExchange`]
    pub other_exchange: u64,
    /// [`DropReason::WithoutExchange`]
    pub without_exchange: u64,
    /// [`DropReason::NotSubscribed`]
    pub not_subscribed: u64,
    /// [`DropReason::Malformed`]
    pub malformed: u64,
    /// [`DropReason::Untrusted`]
    pub untrusted: u64,
    /// [`DropReason::LoggedOut`]
    pub logged_out: u64,
    report: Report,
}

impl Dropped {
    /// Counts a frame, and logs the counts at most once in [`REPORT_EVERY`].
    pub fn count(&mut self, reason: DropReason, now: TsNanos) {
        let count = match reason {
            DropReason::OtherExchange => &mut self.other_exchange,
            DropReason::WithoutExchange => &mut self.without_exchange,
            DropReason::NotSubscribed => &mut self.not_subscribed,
            DropReason::Malformed => &mut self.malformed,
            DropReason::Untrusted => &mut self.untrusted,
            DropReason::LoggedOut => &mut self.logged_out,
        };
        *count = count.saturating_add(1);
        if let Some(count) = self.report.count(now) {
            tracing::warn!(
                venue = crate::local_broker::VENUE,
                "the engine dropped {count} frames; {self}"
            );
        }
    }

    /// The last line for the log; `None` if no frame was dropped.
    #[must_use]
    pub fn at_the_end(&self) -> Option<String> {
        (self.total() > 0).then(|| format!("the engine dropped {} frames; {self}", self.total()))
    }

    /// The number of dropped frames.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.other_exchange
            .saturating_add(self.without_exchange)
            .saturating_add(self.not_subscribed)
            .saturating_add(self.malformed)
            .saturating_add(self.untrusted)
            .saturating_add(self.logged_out)
    }
}

/// The counts since the start.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { other_exchange, without_exchange, not_subscribed, malformed, .. } = self;
        let Self { untrusted, logged_out, .. } = self;
        write!(
            f,
            "since the start: {other_exchange} of other exchanges, {without_exchange} without one, \
             {not_subscribed} not subscribed, {malformed} malformed, {untrusted} before the symbols were \
             registered, {logged_out} while the gateway is logged out"
        )
    }
}

/// Limits the log lines about something frequent. The first one is logged at once, those that follow together
/// at most once in [`REPORT_EVERY`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Report {
    reported_at: Option<TsNanos>,
    unreported: u64,
}

impl Report {
    /// Counts one; returns how many are not logged yet, if a line is due.
    pub(crate) fn count(&mut self, now: TsNanos) -> Option<u64> {
        self.unreported = self.unreported.saturating_add(1);
        let is_due = self.reported_at.is_none_or(|reported_at| {
            let passed = now.nanos().saturating_sub(reported_at.nanos());
            // A line is due, too, after the clock was set back.
            now < reported_at || u128::from(passed) >= REPORT_EVERY.as_nanos()
        });
        if !is_due {
            return None;
        }
        self.reported_at = Some(now);
        Some(std::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use domain::market_update::Level;
    use domain::time::NANOS_PER_SECOND;

    use super::*;

    fn board() -> GatewayBoard {
        GatewayBoard {
            symbol: "130A".to_owned(),
            exchange: Some(1),
            last_price: Some(1_000_000),
            volume: Some(0),
            best_ask: Some(1_000_000),
            best_bid: Some(990_000),
            asks: vec![Level { price: 1_000_000, quantity: 0 }; BOARD_LEVELS_MAX],
            bids: vec![Level { price: 990_000, quantity: 1_000_000 }; BOARD_LEVELS_MAX],
            ..GatewayBoard::default()
        }
    }

    #[test]
    fn p52_frames_of_other_markets_and_of_symbols_not_subscribed_are_not_taken() {
        assert_eq!(accepts(&board(), true), Ok(()));
        assert_eq!(accepts(&board(), false), Err(DropReason::NotSubscribed));
        for other in [3, 5, 6, 9, 27, 0, -1] {
            let board = GatewayBoard { exchange: Some(other), ..board() };
            assert_eq!(accepts(&board, true), Err(DropReason::OtherExchange), "{other}");
        }
        let board = GatewayBoard { exchange: None, ..board() };
        assert_eq!(accepts(&board, true), Err(DropReason::WithoutExchange));
    }

    #[test]
    fn p53_a_board_that_cannot_be_one_is_malformed() {
        let level = Level { price: 1, quantity: 1 };
        type Spoil = fn(&mut GatewayBoard);
        let wrongs: [(&str, Spoil); 9] = [
            ("symbol", |board| board.symbol = "130a".to_owned()),
            ("price", |board| board.last_price = Some(-1)),
            ("volume", |board| board.volume = Some(-1)),
            ("ask", |board| board.best_ask = Some(-1)),
            ("bid", |board| board.best_bid = Some(i64::MIN)),
            ("level's price", |board| board.asks[9].price = -1),
            ("level's quantity", |board| board.bids[9].quantity = -1),
            ("asks", |board| board.asks.push(Level { price: 1, quantity: 1 })),
            ("bids", |board| board.bids.push(Level { price: 1, quantity: 1 })),
        ];
        for (what, spoil) in wrongs {
            let mut board = board();
            spoil(&mut board);
            assert_eq!(accepts(&board, true), Err(DropReason::Malformed), "{what}");
        }
        // An empty board is a board, too: before the day's first trade most fields are null.
        let empty = GatewayBoard {
            symbol: "7203".to_owned(),
            exchange: Some(1),
            asks: vec![level],
            ..GatewayBoard::default()
        };
        assert_eq!(accepts(&empty, true), Ok(()));
    }

    #[test]
    fn p53_drops_are_counted_and_logged_once_a_minute() {
        let at = |seconds: u64| TsNanos::from_nanos((1_000_000 + seconds) * NANOS_PER_SECOND);
        let mut report = Report::default();
        let reported_at =
            [0, 1, 59, 60, 61, 119, 120, 500, 499].map(|second| report.count(at(second)));
        let expected = [Some(1), None, None, Some(3), None, None, Some(3), Some(1), Some(1)];
        assert_eq!(reported_at, expected);

        let mut dropped = Dropped::default();
        assert_eq!(dropped.at_the_end(), None);
        for (reason, times) in [
            (DropReason::OtherExchange, 1),
            (DropReason::WithoutExchange, 2),
            (DropReason::NotSubscribed, 3),
            (DropReason::Malformed, 4),
            (DropReason::Untrusted, 5),
            (DropReason::LoggedOut, 6),
        ] {
            for _ in 0..times {
                dropped.count(reason, at(0));
            }
        }
        assert_eq!(dropped.total(), 21);
        // Until now only the first of them was logged.
        let end = dropped.at_the_end().unwrap();
        assert!(
            end.starts_with("the engine dropped 21 frames; since the start: 1 of other"),
            "{end}"
        );
        assert_eq!(
            dropped.to_string(),
            "since the start: 1 of other exchanges, 2 without one, 3 not subscribed, 4 malformed, \
             5 before the symbols were registered, 6 while the gateway is logged out"
        );
    }
}
