//! What waits for one client, in order. A client that keeps up gets every event in a message of its
//! own, and trades that come within a millisecond in one; of one that is behind, all trades that wait are
//! joined, and of events that only state the present the newest is sent.
//! Orders, fills, trades and final bars are never left out: a client for which too much waits is too
//! slow, and its connection ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::clock::Stopwatch;
use ipc::TradeRow;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::limits::{
    BEHIND_FRAMES, LIST_AHEAD_BYTES, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX, READERS_BEHIND,
    TICKER_BYTES_MAX, TRADES_PER_FRAME_MAX, TRADES_PER_FRAME_TIME, TRADES_REST,
};
use crate::present::market::trades_event;
use crate::waits::Waits;

/// What a trade takes in a message, about.
const TRADE_BYTES: usize = 170;
/// Messages that are written at once at most, and their bytes.
const TAKEN_FRAMES_MAX: usize = 64;
const TAKEN_BYTES_MAX: usize = 256 << 10;
/// Events of which only the newest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Newest {
    /// The account, of a client that is behind.
    BuyingPower,
    /// How far something is.
    Progress,
    /// The growing bar of an instrument, by its position in the run's list.
    GrowingBar(usize),
    /// The board of a symbol, of a client that is behind.
    Depth([u8; TICKER_BYTES_MAX]),
}

impl Newest {
    /// The board of a symbol; none for one that is longer than any is.
    pub(crate) fn depth(ticker: &str) -> Option<Self> {
        let mut bytes = [0; TICKER_BYTES_MAX];
        bytes.get_mut(..ticker.len())?.copy_from_slice(ticker.as_bytes());
        Some(Self::Depth(bytes))
    }

    /// Whether only clients that are behind lose the older ones.
    const fn is_for_those_behind(self) -> bool {
        match self {
            Self::BuyingPower | Self::Depth(_) => true,
            Self::Progress | Self::GrowingBar(_) => false,
        }
    }
}

/// What the trades of one message have in common.
#[derive(Debug)]
pub(crate) struct TradesHead {
    pub(crate) venue: String,
    pub(crate) exchange: String,
    pub(crate) ticker: String,
    /// Sent by a replay.
    pub(crate) instrument_id: Option<String>,
    pub(crate) stream_session_id: String,
}

/// One message that waits.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// A message as it is sent, and when it came, where that is measured.
    Frame { since: Duration, text: Utf8Bytes },
    /// Trades of one ticker, and when the first of them came.
    Trades { head: Arc<TradesHead>, since: Duration, rows: Vec<TradeRow> },
}

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame { text, .. } => text.len(),
            Self::Trades { rows, .. } => rows.len() * TRADE_BYTES,
        }
    }

    /// Whether it has trades and nothing else.
    pub(crate) const fn is_trades(&self) -> bool {
        matches!(self, Self::Trades { .. })
    }

    /// When the first of its events came, and how many it has.
    fn events(&self) -> (Duration, u64) {
        match self {
            Self::Frame { since, .. } => (*since, 1),
            Self::Trades { since, rows, .. } => (*since, rows.len() as u64),
        }
    }

    /// The message as it is sent.
    pub(crate) fn into_text(self) -> Utf8Bytes {
        match self {
            Self::Frame { text, .. } => text,
            Self::Trades { head, rows, .. } => crate::hub::text(&trades_event(&head, rows)),
        }
    }
}

/// Why a connection ends, as a close code and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// Whether waiting messages are discarded.
    pub(crate) at_once: bool,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Option<Waiting>>,
    /// Number of the first of them, counted since the connection began.
    first: u64,
    frames: usize,
    bytes: usize,
    newest: BTreeMap<Newest, u64>,
    closing: Option<Closing>,
    /// Bytes that were handed to the writer so far.
    written: u64,
    /// No run waits for the client, until its queue is empty.
    backpressure_off: bool,
    /// The writer is not awake yet for the market data in the queue.
    has_market: bool,
}

/// The queue of one client. The engine puts messages in, the connection's writer takes them out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// There is something to write.
    pub(crate) wake: Notify,
    /// The connection is to end without waiting for the client.
    pub(crate) hurry: Notify,
    /// There is something else than trades to write.
    urgent: Notify,
    /// How long events wait here, where that is measured.
    waits: Option<Waits>,
    /// An order list for the client has more messages.
    has_list: AtomicBool,
}

/// What a writer has to do next.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Write these.
    Messages(Vec<Waiting>),
    /// Nothing waits, and nothing will come.
    Close(Closing),
    /// Nothing waits.
    Nothing,
}

impl Outbox {
    /// The queue of a new client. `clock` is the one of the trades' times.
    pub(crate) fn new(clock: Stopwatch) -> Self {
        Self { waits: Waits::if_wanted(clock), ..Self::default() }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message behind the others; of `newest` one that waits already is left out.
    pub(crate) fn push(&self, text: Utf8Bytes, newest: Option<Newest>) {
        let since = self.waits.as_ref().map(Waits::now).unwrap_or_default();
        let mut queue = self.queue();
        queue.put_text(text, since, newest);
        self.end_if_too_slow(queue);
        self.wake.notify_one();
        self.urgent.notify_one();
    }

    /// Puts a board behind the others, and then a trade. Its writer sleeps until [`Self::wake_for_market`], so
    /// that what comes together is written together.
    pub(crate) fn put_market(
        &self,
        depth: Utf8Bytes,
        newest: Option<Newest>,
        trade: Option<(&Arc<TradesHead>, &TradeRow)>,
        now: Duration,
    ) {
        let since = self.waits.as_ref().map(Waits::now).unwrap_or_default();
        let mut queue = self.queue();
        queue.put_text(depth, since, newest);
        if let Some((head, row)) = trade {
            queue.put_trade(head, row, now);
        }
        queue.has_market = true;
        self.end_if_too_slow(queue);
    }

    /// Wakes the writer, if market data was put here since the last time.
    pub(crate) fn wake_for_market(&self) {
        if std::mem::take(&mut self.queue().has_market) {
            self.wake.notify_one();
            self.urgent.notify_one();
        }
    }

    /// Puts a trade behind the others, into a message of the same ticker where one still waits. `now`
    /// is the time since the engine's start.
    pub(crate) fn push_trade(&self, head: &Arc<TradesHead>, row: &TradeRow, now: Duration) {
        let mut queue = self.queue();
        queue.put_trade(head, row, now);
        self.end_if_too_slow(queue);
        self.wake.notify_one();
    }

    fn end_if_too_slow(&self, mut queue: std::sync::MutexGuard<'_, Queue>) {
        let too_much = queue.frames > OUTBOX_FRAMES_MAX || queue.bytes > OUTBOX_BYTES_MAX;
        if too_much && queue.closing.as_ref().is_none_or(|closing| !closing.at_once) {
            let reason = "too_slow".to_owned();
            queue.end(Closing { code: 1008, reason, at_once: true });
            drop(queue);
            self.hurry.notify_one();
            self.wake.notify_one();
        }
    }

    /// Ends the connection. The first reason counts; one that discards waiting messages counts more.
    pub(crate) fn close(&self, closing: Closing) {
        let mut queue = self.queue();
        let hurry = closing.at_once;
        if queue.closing.is_none() || hurry {
            queue.end(closing);
        }
        drop(queue);
        if hurry {
            self.hurry.notify_one();
        }
        self.wake.notify_one();
        self.urgent.notify_one();
    }

    /// Why the connection ends, if it does.
    pub(crate) fn closing(&self) -> Option<Closing> {
        self.queue().closing.clone()
    }

    /// Whether the connection is to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.queue().closing.is_some()
    }

    /// The next messages to write.
    pub(crate) fn take(&self) -> Taken {
        let mut queue = self.queue();
        let mut taken = Vec::new();
        let mut bytes = 0;
        while taken.len() < TAKEN_FRAMES_MAX && bytes < TAKEN_BYTES_MAX {
            let Some(waiting) = queue.waiting.pop_front() else { break };
            queue.first += 1;
            if let Some(waiting) = waiting {
                queue.frames -= 1;
                queue.bytes -= waiting.bytes();
                bytes += waiting.bytes();
                taken.push(waiting);
            }
        }
        queue.written += bytes as u64;
        if queue.bytes == 0 {
            queue.backpressure_off = false;
        }
        if let Some(waits) = &self.waits {
            waits.taken(taken.iter().map(Waiting::events));
        }
        let first = queue.first;
        queue.newest.retain(|_, number| *number >= first);
        match (&queue.closing, taken.is_empty()) {
            (_, false) => Taken::Messages(taken),
            (Some(closing), true) => Taken::Close(closing.clone()),
            (None, true) => Taken::Nothing,
        }
    }

    /// How far the client is from being too slow, in parts of a thousand, and the bytes that it has been written,
    /// where so much waits that a run without pace is to wait for it.
    pub(crate) fn behind(&self) -> Option<(usize, u64)> {
        let queue = self.queue();
        let frames = queue.frames * 1_000 / OUTBOX_FRAMES_MAX;
        let parts = frames.max(queue.bytes / (OUTBOX_BYTES_MAX / 1_000));
        let is_behind = parts > READERS_BEHIND && queue.closing.is_none();
        (is_behind && !queue.backpressure_off).then_some((parts, queue.written))
    }

    /// Bytes that were handed to the writer so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.queue().written
    }

    /// The same and those that wait.
    pub(crate) fn bytes_queued(&self) -> u64 {
        let queue = self.queue();
        queue.written + queue.bytes as u64
    }

    /// No run waits for this client any more, until it has read what waits.
    pub(crate) fn end_backpressure(&self) {
        self.queue().backpressure_off = true;
    }

    /// Whether an order list for the client has more messages, which are made one by one.
    pub(crate) fn set_list(&self, has_list: bool) {
        self.has_list.store(has_list, Ordering::Relaxed);
        if has_list {
            self.wake.notify_one();
        }
    }

    /// Whether the next message of a list is to be made: what waits is little.
    pub(crate) fn wants_list(&self) -> bool {
        self.has_list.load(Ordering::Relaxed) && {
            let queue = self.queue();
            queue.closing.is_none() && queue.bytes <= LIST_AHEAD_BYTES
        }
    }

    /// What was taken last is written to the socket.
    pub(crate) fn written(&self) {
        if let Some(waits) = &self.waits {
            waits.written();
        }
    }

    /// Lets trades gather for a moment, as long as nothing but them waits.
    pub(crate) async fn rest(&self) {
        let may_rest = {
            let queue = self.queue();
            queue.closing.is_none() && queue.frames <= 1
        };
        if may_rest {
            // Over is over, whichever it was.
            let _ = timeout(TRADES_REST, self.urgent.notified()).await;
        }
    }

    /// Logs how long events have waited, where that is measured.
    pub(crate) fn log_waits(&self) {
        if let Some(waits) = &self.waits {
            waits.log();
        }
    }
}

impl Queue {
    fn put(&mut self, waiting: Waiting) {
        if self.closing.is_some() {
            return;
        }
        self.frames += 1;
        self.bytes += waiting.bytes();
        self.waiting.push_back(Some(waiting));
    }

    /// Puts a message behind the others; of `newest` one that waits already is left out.
    fn put_text(&mut self, text: Utf8Bytes, since: Duration, newest: Option<Newest>) {
        if let Some(kind) = newest {
            if !kind.is_for_those_behind() || self.frames >= BEHIND_FRAMES {
                self.leave_out(kind);
            }
            self.newest.insert(kind, self.first + self.waiting.len() as u64);
        }
        self.put(Waiting::Frame { since, text });
    }

    /// Puts a trade behind the others, into a message of the same ticker where one still waits.
    fn put_trade(&mut self, head: &Arc<TradesHead>, row: &TradeRow, now: Duration) {
        if !self.join(head, row, now) {
            let (head, rows) = (Arc::clone(head), vec![row.clone()]);
            self.put(Waiting::Trades { head, since: now, rows });
        }
    }

    fn leave_out(&mut self, kind: Newest) {
        let Some(number) = self.newest.remove(&kind) else { return };
        let slot = number.checked_sub(self.first).and_then(|slot| usize::try_from(slot).ok());
        if let Some(old) = slot.and_then(|slot| self.waiting.get_mut(slot)).and_then(Option::take) {
            self.frames -= 1;
            self.bytes -= old.bytes();
        }
        if self.waiting.len() > 2 * self.frames + BEHIND_FRAMES {
            self.close_gaps();
        }
    }

    /// Removes the places of what was left out: a client that reads nothing would leave one for each state that it
    /// does not get.
    fn close_gaps(&mut self) {
        let kinds: BTreeMap<u64, Newest> =
            self.newest.iter().map(|(kind, number)| (*number, *kind)).collect();
        let first = self.first;
        let numbered = (first..).zip(std::mem::take(&mut self.waiting));
        for (number, waiting) in numbered.filter(|(_, waiting)| waiting.is_some()) {
            if let Some(kind) = kinds.get(&number) {
                self.newest.insert(*kind, first + self.waiting.len() as u64);
            }
            self.waiting.push_back(waiting);
        }
    }

    /// Adds a trade to the last message, if that has trades of the same ticker. So events stay in their order.
    fn join(&mut self, head: &Arc<TradesHead>, row: &TradeRow, now: Duration) -> bool {
        if self.closing.is_some() {
            return true;
        }
        let Some(Some(Waiting::Trades { head: of, since, rows })) = self.waiting.back_mut() else {
            return false;
        };
        let has_room = Arc::ptr_eq(of, head)
            && rows.len() < TRADES_PER_FRAME_MAX
            && now.saturating_sub(*since) < TRADES_PER_FRAME_TIME;
        if has_room {
            rows.push(row.clone());
            self.bytes += TRADE_BYTES;
        }
        has_room
    }

    fn end(&mut self, closing: Closing) {
        if closing.at_once {
            *self = Self::default();
        }
        self.closing = Some(closing);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use ipc::{Decimal, TradeSide};

    use super::*;

    fn texts(outbox: &Outbox) -> Vec<String> {
        match outbox.take() {
            Taken::Messages(messages) => {
                messages.into_iter().map(|waiting| waiting.into_text().to_string()).collect()
            }
            other => vec![format!("{other:?}")],
        }
    }

    fn head(ticker: &str) -> Arc<TradesHead> {
        Arc::new(TradesHead {
            venue: "replay".to_owned(),
            exchange: "TSE".to_owned(),
            ticker: ticker.to_owned(),
            instrument_id: Some(format!("{ticker}.TSE")),
            stream_session_id: "r".to_owned(),
        })
    }

    fn row(sequence_id: u64) -> TradeRow {
        TradeRow {
            price: Decimal::from_units(10_000),
            qty: Decimal::from_units(1_000_000),
            side: TradeSide::Unknown,
            side_rule: None,
            ts_ms: 1,
            ts_ns: Some(1_000_000),
            sequence_id,
            received_ms: None,
            after_gap: None,
        }
    }

    #[test]
    fn only_the_newest_of_what_tells_a_state_waits() {
        let outbox = Outbox::default();
        for (text, kind) in [
            ("bar 1", Some(Newest::GrowingBar(0))),
            ("other bar 1", Some(Newest::GrowingBar(1))),
            ("fill", None),
            ("bar 2", Some(Newest::GrowingBar(0))),
            ("cash 1", Some(Newest::BuyingPower)),
            ("cash 2", Some(Newest::BuyingPower)),
        ] {
            outbox.push(text.into(), kind);
        }
        assert_eq!(texts(&outbox), ["other bar 1", "fill", "bar 2", "cash 1", "cash 2"]);
        outbox.push("bar 3".into(), Some(Newest::GrowingBar(0)));
        assert_eq!(texts(&outbox), ["bar 3"], "what is sent is not left out any more");
        for number in 0..BEHIND_FRAMES {
            outbox.push(format!("event {number}").into(), None);
        }
        outbox.push("cash 3".into(), Some(Newest::BuyingPower));
        outbox.push("cash 4".into(), Some(Newest::BuyingPower));
        let mut all = Vec::new();
        while all.len() <= BEHIND_FRAMES {
            all.extend(texts(&outbox));
        }
        assert_eq!(all.last().unwrap(), "cash 4");
        assert_eq!(all.len(), BEHIND_FRAMES + 1);
    }

    /// P56: boards are left out for a client that is behind, and only then; what follows keeps its order.
    #[test]
    fn p56_of_a_client_that_is_behind_the_newest_board_of_each_symbol_waits() {
        let outbox = Outbox::default();
        let (toyota, softbank) = (Newest::depth("7203"), Newest::depth("9984"));
        assert!(toyota.is_some() && toyota != softbank);
        assert_eq!(Newest::depth("12345678901234567"), None, "longer than any symbol");
        for number in 0..BEHIND_FRAMES {
            outbox.push(format!("toyota {number}").into(), toyota);
        }
        outbox.push("trade 1".into(), None);
        outbox.push("softbank 1".into(), softbank);
        outbox.push("trade 2".into(), None);
        // From here on it is behind.
        outbox.push("toyota last".into(), toyota);
        outbox.push("softbank 2".into(), softbank);
        outbox.push("trade 3".into(), None);
        let mut all = Vec::new();
        while all.last().is_none_or(|last| last != "trade 3") {
            all.extend(texts(&outbox));
        }
        let each = BEHIND_FRAMES - 1;
        assert_eq!(all[each - 1], format!("toyota {}", each - 1), "each, until it is behind");
        assert_eq!(all[each..], ["trade 1", "trade 2", "toyota last", "softbank 2", "trade 3"]);
    }

    /// A client that reads nothing takes no more memory with each board that is left out.
    #[test]
    fn p56_boards_of_a_stopped_client_take_no_memory() {
        let outbox = Outbox::default();
        let symbols: Vec<_> =
            (0..50).map(|code| Newest::depth(&format!("{}", 1301 + code))).collect();
        for number in 0..200_000_u64 {
            let symbol = symbols[number as usize % symbols.len()];
            outbox.push(format!("{number:08}").into(), symbol);
            if number % 1_000 == 0 {
                outbox.push_trade(&head("7203"), &row(number), Duration::from_millis(number));
            }
        }
        let queue = outbox.queue();
        assert!(queue.frames <= BEHIND_FRAMES + symbols.len() + 200, "{}", queue.frames);
        let places = queue.waiting.len();
        assert!(places <= 2 * queue.frames + BEHIND_FRAMES + 1, "{places}");
        assert!(
            queue.waiting.capacity() <= 4 * (2 * queue.frames + BEHIND_FRAMES),
            "it is given back"
        );
        drop(queue);
        assert!(!outbox.is_closing(), "boards alone disconnect no client");
        let mut all = Vec::new();
        while let Taken::Messages(messages) = outbox.take() {
            all.extend(messages.into_iter().map(|waiting| waiting.into_text().to_string()));
        }
        let trades = all.iter().filter(|text| text.contains("Trades")).count();
        assert_eq!(trades, 200, "and every trade is there");
        let newest = all.iter().rfind(|text| text.len() == 8).unwrap();
        assert_eq!(newest, "00199999");
        outbox.push("after".into(), symbols[0]);
        assert_eq!(texts(&outbox), ["after"]);
    }

    /// What comes together is written together: the writer is woken for market data once, and at once for all else.
    #[test]
    fn market_data_wakes_the_writer_once() {
        let outbox = Outbox::default();
        let is_woken = || outbox.wake.notified().now_or_never().is_some();
        outbox.wake_for_market();
        assert!(!is_woken(), "nothing was put there");
        for number in 1..4 {
            let (head, row) = (head("7203"), row(2 * number));
            let board = format!("board {number}").into();
            outbox.put_market(board, Newest::depth("7203"), Some((&head, &row)), Duration::ZERO);
        }
        assert!(!is_woken());
        outbox.wake_for_market();
        assert!(is_woken());
        outbox.wake_for_market();
        assert!(!is_woken(), "once is enough");
        let sent = texts(&outbox);
        let boards = sent.iter().filter(|text| text.starts_with("board"));
        assert_eq!((sent.len(), boards.count()), (6, 3), "{sent:?}");
        outbox.put_market("board 4".into(), Newest::depth("7203"), None, Duration::ZERO);
        outbox.push("fill".into(), None);
        assert!(is_woken());
        assert_eq!(texts(&outbox), ["board 4", "fill"], "in their order");
    }

    #[test]
    fn trades_are_joined_only_while_they_wait() {
        let outbox = Outbox::default();
        let (toyota, softbank) = (head("7203"), head("9984"));
        let now = Duration::from_millis;
        outbox.push_trade(&toyota, &row(1), now(0));
        assert_eq!(texts(&outbox)[0].matches("sequence_id").count(), 1);
        for number in 2..6 {
            outbox.push_trade(&toyota, &row(number), now(number));
        }
        outbox.push_trade(&softbank, &row(1), now(5));
        outbox.push_trade(&toyota, &row(6), now(5));
        outbox.push("fill".into(), None);
        outbox.push_trade(&toyota, &row(7), now(6));
        outbox.push_trade(&toyota, &row(8), now(80));
        let sent = texts(&outbox);
        let rows: Vec<usize> =
            sent.iter().map(|text| text.matches("sequence_id").count()).collect();
        assert_eq!(rows, [4, 1, 1, 0, 1, 1], "never over another event, never over 50 ms");
        for number in 0..=TRADES_PER_FRAME_MAX as u64 {
            outbox.push_trade(&toyota, &row(number), now(100));
        }
        let sent = [texts(&outbox), texts(&outbox)].concat();
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0].matches("sequence_id").count(), TRADES_PER_FRAME_MAX);
    }

    #[tokio::test]
    async fn trades_gather_only_while_nothing_else_waits() {
        let outbox = Outbox::default();
        let rests = || outbox.rest().now_or_never().is_none();
        assert!(rests());
        outbox.push_trade(&head("7203"), &row(1), Duration::ZERO);
        assert!(rests(), "another trade may come");
        outbox.push("fill".into(), None);
        assert!(!rests(), "two messages wait");
        assert_eq!(texts(&outbox).len(), 2);
        outbox.push("fill".into(), None);
        assert!(!rests(), "what is no trade does not wait for others");
        assert_eq!(texts(&outbox), ["fill"]);
        assert!(rests());
        outbox.close(Closing { code: 1001, reason: String::new(), at_once: false });
        assert!(!rests());
    }

    #[test]
    fn a_client_for_which_too_much_waits_is_too_slow() {
        let outbox = Outbox::default();
        for _ in 0..OUTBOX_FRAMES_MAX {
            outbox.push("x".into(), None);
        }
        assert!(!outbox.is_closing());
        outbox.push("x".into(), None);
        let Taken::Close(closing) = outbox.take() else { panic!("nothing else is left") };
        assert_eq!((closing.code, closing.reason.as_str()), (1008, "too_slow"));
        let outbox = Outbox::default();
        let text = Utf8Bytes::from("x".repeat(1 << 20));
        for _ in 0..=OUTBOX_BYTES_MAX >> 20 {
            outbox.push(text.clone(), None);
        }
        assert!(matches!(outbox.take(), Taken::Close(_)));
    }

    #[test]
    fn what_waits_is_written_before_an_ordinary_end() {
        let outbox = Outbox::default();
        outbox.push("last".into(), None);
        let end = |code, at_once| Closing { code, reason: String::new(), at_once };
        outbox.close(end(1001, false));
        outbox.close(end(1000, false));
        outbox.push("after".into(), None);
        assert_eq!(texts(&outbox), ["last"]);
        assert!(matches!(outbox.take(), Taken::Close(closing) if closing.code == 1001));
    }
}
