//! What the venue has told.

use std::collections::{BTreeMap, BTreeSet};

use ipc::Event;
use venues::Recipient;
use venues::local_broker::Told;

/// What must be in no event: the password of the simulated gateway, as a word.
const SECRET: &str = "\"demo\"";

/// The client that reads boards and does nothing else.
pub(crate) const BOARD_READER: u64 = 3;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Shares of all trades of a symbol.
    pub(crate) told: BTreeMap<String, i64>,
    pub(crate) snapshots: BTreeMap<String, u64>,
    /// The last number of a symbol's session.
    numbers: BTreeMap<(String, String), u64>,
    pub(crate) session: String,
    pub(crate) state: String,
    /// Answers about the state.
    pub(crate) states: u64,
    /// Symbols whose board a client has read, and its answered readings.
    pub(crate) boards: BTreeSet<String>,
    pub(crate) boards_answered: u64,
    pub(crate) subscribed: u64,
    /// Codes of what a client was refused, but for boards.
    pub(crate) refused: Vec<String>,
    /// What should not have been told; it is told on the thread of the venue, which must not panic.
    wrong: Vec<String>,
}

impl Seen {
    pub(crate) fn check(&self) {
        assert!(self.wrong.is_empty(), "{:?}", self.wrong);
    }

    pub(crate) fn take(&mut self, told: &Told<'_>) {
        match told {
            Told::Event(to, event) => self.event(*to, event),
            Told::MarketPause => {}
            Told::Market(market) => {
                let symbol = market.symbol.to_owned();
                let session = market.depth.stream_session_id.to_string();
                let numbers =
                    [Some(market.depth.sequence_id), market.trade.map(|row| row.sequence_id)];
                let last = self.numbers.entry((session.clone(), symbol.clone())).or_default();
                for number in numbers.into_iter().flatten() {
                    if number <= *last {
                        self.wrong.push(format!("{number} of {symbol} follows {last}"));
                    }
                    *last = number;
                }
                self.session = session;
                *self.snapshots.entry(symbol.clone()).or_default() += 1;
                let shares = market.trade.map_or(0, |row| row.qty.units() / 10_000);
                *self.told.entry(symbol).or_default() += shares;
            }
        }
    }

    fn event(&mut self, to: Recipient, event: &Event<'_>) {
        let text = serde_json::to_string(event).unwrap_or_default();
        if text.contains(SECRET) {
            self.wrong.push(text);
        }
        if let Event::VenueState(state) = event {
            let push = state.push.as_deref().map(|push| format!(" {push}")).unwrap_or_default();
            self.state = format!("{:?}{push}", state.state);
            self.states += 1;
        }
        match event {
            Event::DepthSnapshot(depth) => {
                self.boards.insert(depth.ticker.to_string());
                self.boards_answered += 1;
            }
            Event::Error(_) if to == Recipient::Client(BOARD_READER) => self.boards_answered += 1,
            Event::Error(error) if to == Recipient::Client(1) => {
                self.refused.push(error.code.to_string());
            }
            Event::Subscribed(_) if to == Recipient::Client(1) => self.subscribed += 1,
            _ => {}
        }
    }
}
