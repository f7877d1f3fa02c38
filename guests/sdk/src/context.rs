//! What a strategy may ask and do while it handles an event.

use std::cmp::Ordering;

use crate::host;
use crate::model::{
    Account, AccountEvent, AggressorSide, Instrument, InstrumentIx, LogLevel, Narrative, Order,
    OrderChange, OrderEvent, Position, Side, Signal, SignalKind, Timestamp, Trade, WorkingOrder,
};
use crate::number::Price;
use crate::runner::Action;

/// What a strategy may ask and do while it handles an event.
#[derive(Debug, Default)]
pub struct Context {
    now: Timestamp,
    pub(crate) actions: Vec<Action>,
    instruments: Vec<Instrument>,
    made: MadeIds,
    /// Orders that are not done, with their instrument, by their ids. There are few of them; a tree
    /// would be a tenth of the code of a component.
    working: Vec<(WorkingId, InstrumentIx)>,
    /// How many of them each instrument has.
    working_count: Vec<u32>,
    /// How often the host has handed over.
    turn: u64,
    /// Answers of the host, with the turn in which they were given; they hold in no other.
    positions: Vec<(u64, Position)>,
    account: (u64, Account),
}

impl Context {
    pub(crate) fn new(instruments: Vec<Instrument>) -> Self {
        Self {
            working_count: vec![0; instruments.len()],
            positions: vec![(0, Position::default()); instruments.len()],
            instruments,
            turn: 1,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
        host::set_now(now);
    }

    /// The virtual time: that of the current event.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The instruments of this run, by their index.
    pub fn instruments(&self) -> &[Instrument] {
        &self.instruments
    }

    /// One instrument of this run.
    ///
    /// # Panics
    /// When the index is unknown.
    pub fn instrument(&self, instrument: InstrumentIx) -> &Instrument {
        &self.instruments[usize::from(instrument.0)]
    }

    /// What is held of an instrument.
    ///
    /// # Panics
    /// When the index is unknown.
    #[inline]
    pub fn position(&mut self, instrument: InstrumentIx) -> Position {
        let index = usize::from(instrument.0);
        if self.positions[index].0 != self.turn {
            self.ask_position(instrument);
        }
        self.positions[index].1
    }

    #[inline(always)]
    fn ask_position(&mut self, instrument: InstrumentIx) {
        self.positions[usize::from(instrument.0)] = (self.turn, host::position(instrument));
    }

    /// The cash account.
    pub fn account(&mut self) -> Account {
        if self.account.0 != self.turn {
            self.account = (self.turn, host::account());
        }
        self.account.1
    }

    /// Whether an order of this instrument is working: sent in this callback or before.
    #[inline]
    pub fn has_working_orders(&self, instrument: InstrumentIx) -> bool {
        self.working_count[usize::from(instrument.0)] > 0
    }

    /// /// The working orders, as the host sees them, without orders of this callback.
    pub fn working_orders(&self) -> Vec<WorkingOrder> {
        host::working_orders()
    }

    /// /// Who took the liquidity of the current trade. Replay never knows it, so you cannot test decisions that use
    /// it. `kumiki strategy check` shows the import that it needs.
    pub fn aggressor_side(&self, trade: &Trade) -> AggressorSide {
        host::aggressor_side(trade.row)
    }

    /// Sends an order and returns its client order id.
    ///
    /// # Panics
    /// When an order with the same client order id is still working.
    #[inline]
    pub fn submit(&mut self, mut order: Order) -> String {
        self.made.count();
        let id = order.client_order_id.get_or_insert_with(|| self.made.last.clone());
        // Where nobody wants it, the compiler sees that it is not made.
        let told = String::from(id.as_str());
        self.send(order);
        told
    }

    /// Sends an order that has an id.
    #[inline(never)]
    fn send(&mut self, order: Order) {
        let id = order.client_order_id.as_deref().unwrap_or_default();
        match self.find_working(id) {
            Ok(_) => panic!("client order id `{id}` is used twice"),
            Err(place) => self.working.insert(place, (WorkingId::new(id), order.instrument)),
        }
        self.working_count[usize::from(order.instrument.0)] += 1;
        self.actions.push(Action::Submit(order));
    }

    /// Where an order that is not done stands, or where it would.
    #[inline]
    fn find_working(&self, client_order_id: &str) -> Result<usize, usize> {
        let short = short_form(client_order_id);
        self.working.binary_search_by(|(id, _)| {
            id.short.cmp(&short).then_with(|| match id.long.as_deref() {
                Some(long) => long.cmp(client_order_id),
                None => Ordering::Equal,
            })
        })
    }

    /// Changes a working order.
    pub fn modify(&mut self, client_order_id: &str, change: OrderChange) {
        self.actions.push(Action::Modify { client_order_id: client_order_id.to_owned(), change });
    }

    /// Cancels a working order.
    pub fn cancel(&mut self, client_order_id: &str) {
        self.actions.push(Action::Cancel { client_order_id: client_order_id.to_owned() });
    }

    /// Cancels all working orders, of one instrument or of all.
    pub fn cancel_all(&mut self, instrument: Option<InstrumentIx>) {
        self.actions.push(Action::CancelAll { instrument });
    }

    /// Sets a mark beside the price of an instrument.
    pub fn emit_signal(
        &mut self,
        instrument: InstrumentIx,
        kind: SignalKind,
        side: Option<Side>,
        price: Option<Price>,
        tag: Option<&str>,
        note: Option<&str>,
    ) {
        self.actions.push(Action::EmitSignal(Signal {
            instrument,
            kind,
            side,
            price,
            tag: tag.map(str::to_owned),
            note: note.map(str::to_owned),
        }));
    }

    /// Keeps a decision with its reasons beside the run's orders.
    pub fn narrate(&mut self, client_order_id: Option<&str>, title: &str, body: &str) {
        self.actions.push(Action::Narrate(Narrative {
            client_order_id: client_order_id.map(str::to_owned),
            title: title.to_owned(),
            body: body.to_owned(),
        }));
    }

    /// Writes a line to the strategy's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        host::log(level, self.now, message);
    }

    /// Writes a line of news to the strategy's log.
    pub fn info(&self, message: &str) {
        self.log(LogLevel::Info, message);
    }

    /// Writes a warning to the strategy's log.
    pub fn warn(&self, message: &str) {
        self.log(LogLevel::Warn, message);
    }

    /// Takes notice of an event before the strategy sees it.
    pub(crate) fn take_notice(&mut self, event: &OrderEvent) {
        self.set_now(event.ts_event);
        self.forget();
        if event.status.is_final()
            && let Ok(place) = self.find_working(&event.client_order_id)
        {
            let (_, instrument) = self.working.remove(place);
            self.working_count[usize::from(instrument.0)] -= 1;
        }
    }

    /// The same of an event of the account.
    pub(crate) fn take_account_notice(&mut self, event: &AccountEvent) {
        self.set_now(event.ts_event);
        self.forget();
    }

    /// The host's answers do not hold any more: people trade in the same account, and nobody tells the
    /// strategy of their orders.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }
}

/// The id of an order that is not done. Ids of up to eight bytes, as the SDK makes them, are numbers: a loop over
/// their bytes would cost more than the rest of an event.
#[derive(Debug)]
struct WorkingId {
    short: (usize, u64),
    /// All of it, where it is longer.
    long: Option<Box<str>>,
}

impl WorkingId {
    fn new(id: &str) -> Self {
        Self { short: short_form(id), long: (id.len() > SHORT_MAX).then(|| Box::from(id)) }
    }
}

/// Bytes of an id that its [`short_form`] tells wholly.
const SHORT_MAX: usize = 8;

/// The length of an id and its first bytes, all of them where there are eight at most.
#[inline]
fn short_form(id: &str) -> (usize, u64) {
    let bytes = id.as_bytes();
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let number = match (bytes.first_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), _, _) => u64::from_le_bytes(*first),
        (None, Some(first), Some(last)) => half(first) | half(last) << 32,
        _ => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    };
    (bytes.len(), number)
}

/// The client order ids of orders that are given none: `O-` and how many orders were made so far.
#[derive(Debug)]
struct MadeIds {
    last: String,
}

impl Default for MadeIds {
    fn default() -> Self {
        Self { last: "O-0".to_owned() }
    }
}

impl MadeIds {
    /// One order more. The text itself counts: formatting machinery would cost more than the rest of the
    /// order.
    fn count(&mut self) {
        let mut nines = 0;
        loop {
            match self.last.pop() {
                Some('9') => nines += 1,
                Some(digit @ '0'..='8') => {
                    self.last.push(char::from(digit as u8 + 1));
                    break;
                }
                dash => {
                    self.last.extend(dash);
                    self.last.push('1');
                    break;
                }
            }
        }
        self.last.extend(std::iter::repeat_n('0', nines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Side;
    use crate::number::Quantity;

    /// Ids of every length, some of which differ in one byte alone, each found again in any order.
    #[test]
    fn working_orders_are_found_by_their_ids() {
        let mut ids: Vec<String> = (1..=12).map(|length| "a".repeat(length)).collect();
        for length in 1..=12 {
            for at in 0..length {
                let mut id = "a".repeat(length);
                id.replace_range(at..=at, "b");
                ids.push(id);
            }
        }
        let instrument = crate::Instrument {
            id: "A.TSE".to_owned(),
            lot: Quantity::new(100),
            ticks: Vec::new(),
        };
        let mut context = Context::new(vec![instrument]);
        for id in ids.iter().rev() {
            let order = Order::market(InstrumentIx(0), Side::Buy, Quantity::new(100));
            let order = Order { client_order_id: Some(id.clone()), ..order };
            assert_eq!(&context.submit(order), id);
        }
        assert_eq!(context.working.len(), ids.len());
        for (done, id) in ids.iter().enumerate() {
            let place = context.find_working(id).unwrap_or_else(|_| panic!("{id} after {done}"));
            context.working.remove(place);
            assert!(context.find_working(id).is_err(), "{id}");
        }
    }

    #[test]
    fn made_ids_count() {
        let mut ids = MadeIds::default();
        for made in 1..=12_345 {
            ids.count();
            assert_eq!(ids.last, format!("O-{made}"));
        }
    }
}
