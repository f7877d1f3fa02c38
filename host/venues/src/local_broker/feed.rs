//! Turns boards of the gateway into order books, and derives at most one trade from each.
//!
//! Specification 1, "DepthSnapshot mapping", "Derived trade"; specification 4, P53 to P56. All numbers are
//! exact integers of 1/10,000; nothing here reads a clock.

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

/// The streams of all symbols in the present session.
#[derive(Debug, Default)]
pub struct Feed {
    session: Session,
    /// Sorted by symbol.
    streams: Vec<Stream>,
    /// The highest number of all streams of this session that were removed.
    numbers_used: u64,
    /// Frames and boards so far, to find the least recently used stream.
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

/// State of one symbol.
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

/// State with which the next frame is compared.
#[derive(Debug, Default)]
struct Market {
    /// The quote of the frame before; `None` before the first frame.
    quote: Option<Quote>,
    /// The last known volume, in 1/10,000 share.
    volume: Option<i64>,
    /// The part of it that is in no trade yet.
    untraded: i64,
    /// The push was interrupted, and no volume has come since.
    in_gap: bool,
    /// Some of `untraded` was missed in a gap.
    has_missed: bool,
    /// The frame before had no volume or 0, none came before it in the session, and nothing was missed since.
    /// The first volume above 0 is then the opening auction.
    is_unopened: bool,
    /// Some of `untraded` belongs to the opening auction.
    has_auction: bool,
    /// A volume above 0 came in the session before the symbol was subscribed again.
    was_open: bool,
}

/// A trade without its number and time.
struct Derived {
    price: i64,
    qty: i64,
    side: AggressorSide,
    rule: SideRule,
}

impl Feed {
    /// Begins a session after a login: every symbol's next frame is its first.
    pub fn begin_session(&mut self, now: TsNanos) {
        self.begin(now, now.millis());
    }

    /// The push was interrupted: the volume missed until it comes again is one trade of each symbol.
    pub fn gap(&mut self) {
        self.streams.iter_mut().for_each(Stream::interrupt);
    }

    /// The push of one symbol was interrupted.
    pub fn gap_of(&mut self, symbol: &str) {
        if let Ok(place) = self.place(symbol) {
            self.streams[place].interrupt();
        }
    }

    /// Ends the stream of an unsubscribed symbol: its next frame is a first one. Its numbers go on, so that no
    /// number of a session comes twice.
    pub fn forget(&mut self, symbol: &str) {
        if let Ok(place) = self.place(symbol) {
            let market = &mut self.streams[place].market;
            *market = Market { was_open: market.is_open(), ..Market::default() };
            self.streams[place].was_interrupted = false;
        }
    }

    /// Takes a pushed board that passed [`super::accepts`]; returns `None` for a board without a symbol.
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

    /// Takes a board that was read. It gets the last number of its symbol's session, or 0, so that no client
    /// misses one. It is compared with nothing (specification 4, P51).
    pub fn board(&mut self, board: GatewayBoard, received: TsNanos) -> Option<Board> {
        let symbol = Symbol::new(&board.symbol)?;
        self.enter_day(received);
        let sequence_id = self.stream(&board.symbol).sequence;
        Some(self.board_of(symbol, board, received, sequence_id))
    }

    /// Begins a session at midnight in Japan. A clock that was set back begins no session.
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

    /// The position of a symbol's stream, or its insert position.
    fn place(&self, symbol: &str) -> Result<usize, usize> {
        self.streams.binary_search_by(|stream| stream.symbol.as_str().cmp(symbol))
    }

    /// Adds a stream, and returns its position. At [`STREAMS_MAX`] another stream is removed: the least
    /// recently used one without frames, else the least recently used one. Its symbol would continue with
    /// higher numbers.
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
            // To the millisecond, like messages and recordings.
            received: received.whole_millis(),
            timestamp_ms: board.time_ms.unwrap_or(received.millis()),
            timestamp_source,
            last_price: board.last_price,
            bids: board.bids,
            asks: board.asks,
        }
    }

    /// Logs trades at the midpoint (specification 1, "Derived trade", rule 2).
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
    /// Volume is missed from now on, until a frame comes.
    const fn interrupt(&mut self) {
        self.was_interrupted = true;
        self.market.interrupt();
    }
}

impl Market {
    /// Volume is missed from now on, until a volume comes.
    const fn interrupt(&mut self) {
        self.in_gap = self.volume.is_some();
        self.is_unopened = false;
    }

    /// Whether a volume above 0 came in the session, or since a reset.
    fn is_open(&self) -> bool {
        self.was_open || self.volume.is_some_and(|volume| volume != 0)
    }

    /// Takes a frame, and returns the trade that it shows.
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
                // The first volume, or a reset: it is compared with nothing before.
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
