//! What boards of the gateway become: a snapshot each, and at most one trade derived from it (specification
//! 1, "DepthSnapshot mapping", "Derived trade"; specification 4, P53 to P56). Everything is exact integers
//! of 1/10,000; nothing here reads a clock.

use domain::TsNanos;
use domain::gateway_mapping::{GatewayBoard, GatewayLevel};
use ipc::{
    BookLevel, Decimal, DepthSnapshot, SideRule, Text, TimestampSource, TradeRow, TradeSide,
};

use crate::local_broker::drops::Report;
use crate::local_broker::limits::STREAMS_MAX;
use crate::local_broker::quote::Quote;
use crate::local_broker::{EXCHANGE, VENUE};

/// What one frame became: the snapshot is told first (specification 4, P56).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameOut<'a> {
    /// The board.
    pub depth: DepthSnapshot<'a>,
    /// The trade; its session is the snapshot's.
    pub trade: Option<TradeRow>,
}

/// The streams of all symbols in the session that runs.
#[derive(Debug, Default)]
pub struct Feed {
    session: Session,
    /// By their symbols.
    streams: Vec<Stream>,
    /// No stream of the session that was removed has told a higher number.
    numbers_used: u64,
    /// Frames and boards so far, to know which stream was used longest ago.
    uses: u64,
    midpoints: Report,
}

/// One login and one Japanese day (specification 4, P54).
#[derive(Debug, Default)]
struct Session {
    /// Empty before the first one.
    id: String,
    /// Days since 1970 in Japan.
    day: u64,
    begun_ms: u64,
}

/// What is known of one symbol.
#[derive(Debug)]
struct Stream {
    symbol: String,
    /// The last number that was told, of snapshots and trades together.
    sequence: u64,
    /// See [`Feed::uses`].
    used: u64,
    market: Market,
}

/// What the next frame is compared with.
#[derive(Debug, Default)]
struct Market {
    /// That of the frame before; none before the first frame.
    quote: Option<Quote>,
    /// The last known number, in 1/10,000 share.
    volume: Option<i64>,
    /// Of that, what no trade has told yet.
    untold: i64,
    /// The push was interrupted, and no number came since.
    in_gap: bool,
    /// Some of `untold` was missed in a gap.
    has_missed: bool,
    /// The frame before had no number or 0, none came before it in the session, and nothing was missed since:
    /// the first number above 0 is the opening auction.
    is_unopened: bool,
    /// Some of `untold` is the opening auction's.
    has_auction: bool,
    /// A number above 0 came in the session before the symbol was subscribed again.
    was_open: bool,
}

/// A trade before it has a number and a time.
struct Derived {
    price: i64,
    qty: i64,
    side: TradeSide,
    rule: SideRule,
}

impl Feed {
    /// A login: a new session begins, and every symbol's next frame is its first.
    pub fn begin_session(&mut self, now: TsNanos) {
        self.begin(now, now.millis());
    }

    /// The push was interrupted: what is missed until it comes again is one trade of each symbol.
    pub fn gap(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.market.interrupt());
    }

    /// The push of one symbol was interrupted.
    pub fn gap_of(&mut self, symbol: &str) {
        if let Ok(place) = self.place(symbol) {
            self.streams[place].market.interrupt();
        }
    }

    /// The symbol was unsubscribed: its next frame is a first one. Its numbers go on, so that none of a
    /// session comes twice.
    pub fn forget(&mut self, symbol: &str) {
        if let Ok(place) = self.place(symbol) {
            let market = &mut self.streams[place].market;
            *market = Market { was_open: market.is_open(), ..Market::default() };
        }
    }

    /// Takes a pushed board that [`super::accepts`] took.
    pub fn frame<'a>(&'a mut self, board: &'a GatewayBoard, received: TsNanos) -> FrameOut<'a> {
        self.enter_day(received);
        let stream = self.stream(&board.symbol);
        stream.sequence += 1;
        let sequence_id = stream.sequence;
        let derived = stream.market.advance(board);
        stream.sequence += u64::from(derived.is_some());
        if derived.as_ref().is_some_and(|derived| derived.rule == SideRule::Midpoint) {
            self.warn_of_midpoint(received);
        }
        let trade = derived.map(|derived| TradeRow {
            price: Decimal::from_units(derived.price),
            qty: Decimal::from_units(derived.qty),
            side: derived.side,
            side_rule: Some(derived.rule),
            ts_ms: board.time_ms.unwrap_or(received.millis()),
            ts_ns: None,
            sequence_id: sequence_id + 1,
            received_ms: Some(received.millis()),
            after_gap: (derived.rule == SideRule::AfterGap).then_some(true),
        });
        FrameOut { depth: self.snapshot(board, received, sequence_id), trade }
    }

    /// Takes a board that was read: it has the last number of its symbol's session, or 0, so that nobody else
    /// misses one, and nothing is compared with it (specification 4, P51).
    pub fn board<'a>(
        &'a mut self,
        board: &'a GatewayBoard,
        received: TsNanos,
    ) -> DepthSnapshot<'a> {
        self.enter_day(received);
        let sequence_id = self.stream(&board.symbol).sequence;
        self.snapshot(board, received, sequence_id)
    }

    /// Begins a session at midnight in Japan. A clock that was set back begins none.
    fn enter_day(&mut self, received: TsNanos) {
        if self.session.id.is_empty() {
            self.begin(received, received.millis());
        } else if received.jst_day() > self.session.day {
            let midnight = TsNanos::from_jst(received.jst_date(), 0).unwrap_or(received);
            self.begin(received, midnight.millis());
        }
    }

    fn begin(&mut self, now: TsNanos, begun_ms: u64) {
        // Two logins in one millisecond are two sessions.
        let begun_ms = begun_ms.max(self.session.begun_ms.saturating_add(1));
        let id = format!("{}-{begun_ms}", now.jst_date().format("%Y%m%d"));
        self.session = Session { id, day: now.jst_day(), begun_ms };
        self.streams.clear();
        self.numbers_used = 0;
    }

    fn stream(&mut self, symbol: &str) -> &mut Stream {
        self.uses += 1;
        let place = self.place(symbol).unwrap_or_else(|_| self.add(symbol));
        let stream = &mut self.streams[place];
        stream.used = self.uses;
        stream
    }

    /// Where a symbol's stream is, or would be.
    fn place(&self, symbol: &str) -> Result<usize, usize> {
        self.streams.binary_search_by(|stream| stream.symbol.as_str().cmp(symbol))
    }

    /// Adds a stream, and says where. Where there are [`STREAMS_MAX`] another one goes: of those that get
    /// no frames the one used longest ago, else of all. Its symbol would go on with higher numbers.
    fn add(&mut self, symbol: &str) -> usize {
        if self.streams.len() >= STREAMS_MAX {
            let last_use = |stream: &Stream| (stream.market.quote.is_some(), stream.used);
            let oldest =
                (0..self.streams.len()).min_by_key(|place| last_use(&self.streams[*place]));
            if let Some(place) = oldest {
                let removed = self.streams.remove(place);
                self.numbers_used = self.numbers_used.max(removed.sequence);
            }
        }
        let place = self.place(symbol).unwrap_or_else(|place| place);
        let market = Market::default();
        let sequence = self.numbers_used;
        self.streams.insert(place, Stream { symbol: symbol.to_owned(), sequence, used: 0, market });
        place
    }

    fn snapshot<'a>(
        &'a self,
        board: &'a GatewayBoard,
        received: TsNanos,
        sequence_id: u64,
    ) -> DepthSnapshot<'a> {
        let timestamp_source = match board.time_ms {
            Some(_) => TimestampSource::Venue,
            None => TimestampSource::Received,
        };
        DepthSnapshot {
            request_id: None,
            venue: Text::Borrowed(VENUE),
            exchange: Text::Borrowed(EXCHANGE),
            ticker: Text::Borrowed(&board.symbol),
            stream_session_id: Text::Borrowed(&self.session.id),
            sequence_id,
            received_ms: received.millis(),
            timestamp_ms: board.time_ms.unwrap_or(received.millis()),
            timestamp_source,
            last_price: board.last_price.map(Decimal::from_units),
            bids: levels(&board.bids),
            asks: levels(&board.asks),
        }
    }

    /// Specification 1, "Derived trade", rule 2.
    fn warn_of_midpoint(&mut self, now: TsNanos) {
        if let Some(count) = self.midpoints.count(now) {
            tracing::warn!(
                venue = VENUE,
                count,
                "trades exactly between bid and ask count as buys"
            );
        }
    }
}

impl Market {
    /// What is pushed from now on is missed, until a number comes again.
    const fn interrupt(&mut self) {
        self.in_gap = self.volume.is_some();
        self.is_unopened = false;
    }

    /// Whether a number above 0 came in the session, or since a reset.
    fn is_open(&self) -> bool {
        self.was_open || self.volume.is_some_and(|volume| volume != 0)
    }

    /// Takes a frame in, and says which trade it tells of.
    fn advance(&mut self, board: &GatewayBoard) -> Option<Derived> {
        let trade = self.derive(board);
        self.is_unopened = !self.in_gap && !self.is_open();
        trade
    }

    fn derive(&mut self, board: &GatewayBoard) -> Option<Derived> {
        let quote = self.quote.replace(Quote::of(board));
        if let Some(volume) = board.volume {
            let last = self.volume.or(self.is_unopened.then_some(0));
            let grown = last.and_then(|last| volume.checked_sub(last));
            let grown = grown.filter(|grown| *grown >= 0);
            let Some(untold) = grown.and_then(|grown| self.untold.checked_add(grown)) else {
                // The first number, or a reset: nothing is compared with what was before.
                let was_open = self.was_open && self.volume.is_none();
                *self =
                    Self { quote: self.quote, volume: Some(volume), was_open, ..Self::default() };
                return None;
            };
            self.volume = Some(volume);
            self.untold = untold;
            self.has_missed = untold > 0 && (self.has_missed || self.in_gap);
            self.has_auction = untold > 0 && (self.has_auction || self.is_unopened);
            self.in_gap = false;
        }
        if self.untold == 0 || self.in_gap {
            return None;
        }
        let price = board.last_price?;
        let (side, rule) = if self.has_missed {
            (TradeSide::Unknown, SideRule::AfterGap)
        } else if self.has_auction {
            (TradeSide::Unknown, SideRule::Auction)
        } else {
            quote?.judge(price)?
        };
        (self.has_missed, self.has_auction) = (false, false);
        Some(Derived { price, qty: std::mem::take(&mut self.untold), side, rule })
    }
}

fn levels(levels: &[GatewayLevel]) -> Vec<BookLevel> {
    let level = |level: &GatewayLevel| BookLevel {
        price: Decimal::from_units(level.price),
        qty: Decimal::from_units(level.qty),
    };
    levels.iter().map(level).collect()
}

#[cfg(test)]
mod tests;
