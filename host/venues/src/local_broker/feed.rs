//! What boards of the gateway become: an order book each, and at most one trade derived from it (specification
//! 1, "DepthSnapshot mapping", "Derived trade"; specification 4, P53 to P56). Everything is exact integers
//! of 1/10,000; nothing here reads a clock.

use std::sync::Arc;

use domain::TsNanos;
use domain::gateway_mapping::GatewayBoard;
use domain::market_update::{
    AggressorSide, Board, MarketUpdate, SideRule, Symbol, TimeSource, TradePrint,
};

use crate::local_broker::VENUE;
use crate::local_broker::drops::Report;
use crate::local_broker::limits::STREAMS_MAX;
use crate::local_broker::quote::Quote;

/// The streams of all symbols in the session that runs.
#[derive(Debug, Default)]
pub struct Feed {
    session: Session,
    /// By their symbols.
    streams: Vec<Stream>,
    /// No stream of the session that was removed had a higher number.
    numbers_used: u64,
    /// Frames and boards so far, to know which stream was used longest ago.
    uses: u64,
    midpoints: Report,
}

/// One login and one Japanese day (specification 4, P54).
#[derive(Debug)]
struct Session {
    /// Empty before the first one.
    id: Arc<str>,
    /// Days since 1970 in Japan.
    day: u64,
    begun_ms: u64,
}

impl Default for Session {
    fn default() -> Self {
        Self { id: Arc::from(""), day: 0, begun_ms: 0 }
    }
}

/// What is known of one symbol.
#[derive(Debug)]
struct Stream {
    symbol: String,
    /// The last number that was used, of snapshots and trades together.
    sequence: u64,
    /// See [`Feed::uses`].
    used: u64,
    market: Market,
    /// The push was interrupted since its last frame.
    was_interrupted: bool,
}

/// What the next frame is compared with.
#[derive(Debug, Default)]
struct Market {
    /// That of the frame before; none before the first frame.
    quote: Option<Quote>,
    /// The last known number, in 1/10,000 share.
    volume: Option<i64>,
    /// Of that, what is in no trade yet.
    untraded: i64,
    /// The push was interrupted, and no number came since.
    in_gap: bool,
    /// Some of `untraded` was missed in a gap.
    has_missed: bool,
    /// The frame before had no number or 0, none came before it in the session, and nothing was missed since:
    /// the first number above 0 is the opening auction.
    is_unopened: bool,
    /// Some of `untraded` is the opening auction's.
    has_auction: bool,
    /// A number above 0 came in the session before the symbol was subscribed again.
    was_open: bool,
}

/// A trade before it has a number and a time.
struct Derived {
    price: i64,
    qty: i64,
    side: AggressorSide,
    rule: SideRule,
}

impl Feed {
    /// A login: a new session begins, and every symbol's next frame is its first.
    pub fn begin_session(&mut self, now: TsNanos) {
        self.begin(now, now.millis());
    }

    /// The push was interrupted: what is missed until it comes again is one trade of each symbol.
    pub fn gap(&mut self) {
        self.streams.iter_mut().for_each(Stream::interrupt);
    }

    /// The push of one symbol was interrupted.
    pub fn gap_of(&mut self, symbol: &str) {
        if let Ok(place) = self.place(symbol) {
            self.streams[place].interrupt();
        }
    }

    /// The symbol was unsubscribed: its next frame is a first one. Its numbers go on, so that none of a
    /// session comes twice.
    pub fn forget(&mut self, symbol: &str) {
        if let Ok(place) = self.place(symbol) {
            let market = &mut self.streams[place].market;
            *market = Market { was_open: market.is_open(), ..Market::default() };
            self.streams[place].was_interrupted = false;
        }
    }

    /// Takes a pushed board that [`super::accepts`] took; none comes of one without a symbol.
    pub fn frame(&mut self, board: GatewayBoard, received: TsNanos) -> Option<MarketUpdate> {
        let symbol = Symbol::new(&board.symbol)?;
        self.enter_day(received);
        let stream = self.stream(&board.symbol);
        stream.sequence += 1;
        let sequence_id = stream.sequence;
        let derived = stream.market.advance(&board);
        let gap = std::mem::take(&mut stream.was_interrupted);
        stream.sequence += u64::from(derived.is_some());
        if derived.as_ref().is_some_and(|derived| derived.rule == SideRule::Midpoint) {
            self.warn_of_midpoint(received);
        }
        let board = self.board_of(symbol, board, received, sequence_id);
        let trade = derived.map(|derived| TradePrint {
            symbol,
            stream_session_id: Arc::clone(&board.stream_session_id),
            sequence_id: sequence_id + 1,
            received: board.received,
            timestamp_ms: board.timestamp_ms,
            price: derived.price,
            quantity: derived.qty,
            side: derived.side,
            side_rule: Some(derived.rule),
            after_gap: derived.rule == SideRule::AfterGap,
        });
        Some(MarketUpdate { board, trade, gap })
    }

    /// Takes a board that was read: it has the last number of its symbol's session, or 0, so that no client
    /// misses one, and nothing is compared with it (specification 4, P51).
    pub fn board(&mut self, board: GatewayBoard, received: TsNanos) -> Option<Board> {
        let symbol = Symbol::new(&board.symbol)?;
        self.enter_day(received);
        let sequence_id = self.stream(&board.symbol).sequence;
        Some(self.board_of(symbol, board, received, sequence_id))
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
        self.session = Session { id: id.into(), day: now.jst_day(), begun_ms };
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
        let symbol = symbol.to_owned();
        let stream = Stream { symbol, sequence, used: 0, market, was_interrupted: false };
        self.streams.insert(place, stream);
        place
    }

    fn board_of(
        &self,
        symbol: Symbol,
        board: GatewayBoard,
        received: TsNanos,
        sequence_id: u64,
    ) -> Board {
        let timestamp_source = match board.time_ms {
            Some(_) => TimeSource::Venue,
            None => TimeSource::Received,
        };
        Board {
            symbol,
            stream_session_id: Arc::clone(&self.session.id),
            sequence_id,
            // To the millisecond, as messages and recordings have it.
            received: received.whole_millis(),
            timestamp_ms: board.time_ms.unwrap_or(received.millis()),
            timestamp_source,
            last_price: board.last_price,
            bids: board.bids,
            asks: board.asks,
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

impl Stream {
    /// What is pushed from now on is missed, until a frame comes again.
    const fn interrupt(&mut self) {
        self.was_interrupted = true;
        self.market.interrupt();
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
            let Some(untraded) = grown.and_then(|grown| self.untraded.checked_add(grown)) else {
                // The first number, or a reset: nothing is compared with what was before.
                let was_open = self.was_open && self.volume.is_none();
                *self =
                    Self { quote: self.quote, volume: Some(volume), was_open, ..Self::default() };
                return None;
            };
            self.volume = Some(volume);
            self.untraded = untraded;
            self.has_missed = untraded > 0 && (self.has_missed || self.in_gap);
            self.has_auction = untraded > 0 && (self.has_auction || self.is_unopened);
            self.in_gap = false;
        }
        if self.untraded == 0 || self.in_gap {
            return None;
        }
        let price = board.last_price?;
        let (side, rule) = if self.has_missed {
            (AggressorSide::Unknown, SideRule::AfterGap)
        } else if self.has_auction {
            (AggressorSide::Unknown, SideRule::Auction)
        } else {
            quote?.judge(price)?
        };
        (self.has_missed, self.has_auction) = (false, false);
        Some(Derived { price, qty: std::mem::take(&mut self.untraded), side, rule })
    }
}

#[cfg(test)]
mod tests;
