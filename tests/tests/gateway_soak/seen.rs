//! What the venue has told.

use std::collections::{BTreeMap, BTreeSet};

use domain::market_update::MarketUpdate;
use venues::Recipient;
use venues::local_broker::lifecycle::State;
use venues::local_broker::{Output, VenueEvent};

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

    pub(crate) fn take(&mut self, output: &Output<'_>) {
        match output {
            Output::Event(to, event) => self.event(*to, event),
            Output::MarketPause | Output::Streaming(_) | Output::Tick => {}
            Output::Market(update) => self.market(update),
        }
    }

    fn market(&mut self, update: &MarketUpdate) {
        let (board, trade) = (&update.board, update.trade.as_ref());
        let symbol = board.symbol.to_string();
        let session = board.stream_session_id.to_string();
        let last = self.numbers.entry((session.clone(), symbol.clone())).or_default();
        let numbers = [Some(board.sequence_id), trade.map(|trade| trade.sequence_id)];
        for number in numbers.into_iter().flatten() {
            if number <= *last {
                self.wrong.push(format!("{number} of {symbol} follows {last}"));
            }
            *last = number;
        }
        self.session = session;
        *self.snapshots.entry(symbol.clone()).or_default() += 1;
        let shares = trade.map_or(0, |trade| trade.quantity / 10_000);
        *self.told.entry(symbol).or_default() += shares;
    }

    fn event(&mut self, to: Recipient, event: &VenueEvent) {
        let text = format!("{event:?}");
        if text.contains(SECRET) {
            self.wrong.push(text);
        }
        match event {
            VenueEvent::State { state, .. } => {
                self.state = match state {
                    State::Ready(push) => format!("Ready {push}"),
                    state => format!("{state:?}"),
                };
                self.states += 1;
            }
            VenueEvent::Board { board, .. } => {
                self.boards.insert(board.symbol.to_string());
                self.boards_answered += 1;
            }
            VenueEvent::Error { .. } if to == Recipient::Client(BOARD_READER) => {
                self.boards_answered += 1;
            }
            VenueEvent::Error { code, .. } if to == Recipient::Client(1) => {
                self.refused.push(code.to_string());
            }
            VenueEvent::Subscribed { .. } if to == Recipient::Client(1) => self.subscribed += 1,
            _ => {}
        }
    }
}
