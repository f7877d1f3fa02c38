//! The market data that clients may get, computed beside the venue.
//!
//! A stretch of a symbol is a part of its data without a break that the venue may not bridge. It begins with
//! the first frame with a volume after a login, midnight in Japan, a falling volume, or the first subscription.
//! It ends at the next of these, or with the last subscription. Over a stretch the trades that were broadcast
//! add up to the last volume less the first one, with or without outages. Trades before the first frame of a
//! stretch are not counted. If frames without a volume came before it, they may be the opening auction.

use std::collections::{BTreeMap, BTreeSet};

use domain::market_update::{Board, SideRule, TradePrint};

use crate::dialect::UNITS;
use crate::model::Issue;

/// Whether a trade is broadcast as the opening auction.
pub(crate) fn is_auction(trade: Option<&TradePrint>) -> bool {
    trade.is_some_and(|trade| trade.side_rule == Some(SideRule::Auction))
}

#[derive(Debug)]
struct Stretch {
    session: String,
    base: Option<i64>,
    reported: i64,
    last: Option<i64>,
    /// Whether the frame before had a quote.
    has_quote: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    stretches: BTreeMap<String, Stretch>,
    /// The clients of each symbol.
    pub(crate) wanted: BTreeMap<String, BTreeSet<u64>>,
    /// The last number of each symbol in each session.
    numbers: BTreeMap<(String, String), u64>,
    /// Which session a login and a day have.
    sessions: BTreeMap<(u64, u64), String>,
    pub(crate) logins: u64,
    /// Trades that were broadcast, in shares, of stretches that have ended and of those that run.
    pub(crate) reported: i64,
}

impl Oracle {
    /// A client subscribes to a symbol. Returns whether it was not subscribed before.
    pub(crate) fn wants(&mut self, client: u64, symbol: &str) -> bool {
        self.wanted.entry(symbol.to_owned()).or_default().insert(client)
    }

    /// A client unsubscribes from a symbol.
    pub(crate) fn released(&mut self, client: u64, symbol: &str) {
        let Some(clients) = self.wanted.get_mut(symbol) else { return };
        clients.remove(&client);
        if clients.is_empty() {
            self.gone(symbol);
        }
    }

    /// No client gets a symbol any more.
    pub(crate) fn gone(&mut self, symbol: &str) {
        self.wanted.remove(symbol);
        self.stretches.remove(symbol);
    }

    pub(crate) fn left(&mut self, client: u64) {
        let all: Vec<String> = self.wanted.keys().cloned().collect();
        for symbol in all {
            self.released(client, &symbol);
        }
    }

    /// A board that was read was sent: it takes no number.
    pub(crate) fn board(&mut self, depth: &Board, day: u64) {
        self.number(depth, &[], day);
        let last = self.numbers[&(depth.stream_session_id.to_string(), depth.symbol.to_string())];
        assert!(
            depth.sequence_id >= last,
            "{} of {} after {last}",
            depth.sequence_id,
            depth.symbol
        );
    }

    /// Numbers of a symbol were broadcast, in its session and on its day.
    fn number(&mut self, depth: &Board, numbers: &[u64], day: u64) {
        let session = depth.stream_session_id.to_string();
        let known = self.sessions.entry((self.logins, day)).or_insert_with(|| session.clone());
        assert_eq!(*known, session, "one login and one day are one session");
        let times = self.sessions.values().filter(|other| **other == session).count();
        assert_eq!(times, 1, "{session} is of several days or logins");
        let last = self.numbers.entry((session, depth.symbol.to_string())).or_default();
        for number in numbers {
            assert!(number > last, "{number} of {} follows {last}", depth.symbol);
            *last = *number;
        }
    }

    /// A frame was broadcast.
    pub(crate) fn frame(
        &mut self,
        issue: &Issue,
        depth: &Board,
        trade: Option<&TradePrint>,
        day: u64,
    ) {
        let symbol = &issue.symbol;
        assert_eq!(symbol, depth.symbol.as_str());
        assert!(self.wanted.contains_key(symbol), "{symbol} is told, and nobody wants it");
        let mut numbers = vec![depth.sequence_id];
        numbers.extend(trade.map(|trade| trade.sequence_id));
        self.number(depth, &numbers, day);
        let qty = trade.map_or(0, |trade| trade.quantity);
        assert!(trade.is_none() || qty > 0, "a trade of {qty}");
        assert_eq!(qty % UNITS, 0);
        let qty = qty / UNITS;
        self.reported += qty;
        let session = depth.stream_session_id.to_string();
        let runs = |stretch: &Stretch| stretch.session == session && stretch.last <= issue.volume;
        let has_quote = issue.sides.0 || issue.sides.1;
        match self.stretches.get_mut(symbol) {
            // A frame without a volume says nothing about it.
            Some(stretch) if issue.volume.is_none() && stretch.session == session => {
                assert_eq!(qty, 0);
                stretch.has_quote = has_quote;
            }
            Some(stretch) if runs(stretch) && stretch.base.is_some() => {
                stretch.reported += qty;
                stretch.last = issue.volume;
                let seen = issue.volume.zip(stretch.base).map_or(0, |(last, base)| last - base);
                let is_after_gap =
                    trade.is_some_and(|trade| trade.side_rule == Some(SideRule::AfterGap));
                // Without a quote before it, the aggressor is unknown: the trade comes with the next quote.
                let may_wait = !stretch.has_quote && !is_after_gap && qty == 0;
                assert!(
                    stretch.reported == seen || may_wait,
                    "{symbol}: {} shares were told of {seen}",
                    stretch.reported
                );
                stretch.has_quote = has_quote;
            }
            before => {
                let was_unopened =
                    before.is_some_and(|before| before.session == session && before.base.is_none());
                let is_auction = was_unopened && is_auction(trade);
                let expected = issue.volume.filter(|_| is_auction).unwrap_or(0);
                assert_eq!(qty, expected, "{symbol}: a first frame tells of no trade");
                let base = issue.volume.map(|volume| volume - expected);
                let stretch =
                    Stretch { session, base, reported: qty, last: issue.volume, has_quote };
                self.stretches.insert(symbol.clone(), stretch);
            }
        }
    }

    /// Checks that the whole volume of a symbol was broadcast.
    pub(crate) fn check_whole(&self, symbol: &str, volume: Option<i64>) {
        let stretch = self.stretches.get(symbol).unwrap_or_else(|| panic!("{symbol}: no frame"));
        assert_eq!(stretch.last, volume, "{symbol}: the last frame was not told");
        let seen = stretch.last.zip(stretch.base).map_or(0, |(last, base)| last - base);
        assert_eq!(
            stretch.reported, seen,
            "{symbol}: shares told, and traded since the first frame"
        );
    }
}
