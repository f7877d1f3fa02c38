//! What a strategy may ask and do while it handles an event.

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
    orders_made: u64,
    /// Orders that are not done, with their instrument, by their ids. There are few of them; a tree
    /// would be a tenth of the code of a component.
    working: Vec<(String, InstrumentIx)>,
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

    /// The virtual time: that of the event being handled.
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

    /// Whether an order of this instrument is not done: sent in this callback or before.
    #[inline]
    pub fn has_working_orders(&self, instrument: InstrumentIx) -> bool {
        self.working_count[usize::from(instrument.0)] > 0
    }

    /// The orders that are not done, as the host sees them. Orders asked for in this callback are
    /// not among them yet.
    pub fn working_orders(&self) -> Vec<WorkingOrder> {
        host::working_orders()
    }

    /// Who took the liquidity of the trade being handled. Replay never knows it, so decisions that
    /// use it cannot be tested; the import it needs shows in `kumiki strategy check`.
    pub fn aggressor_side(&self, trade: &Trade) -> AggressorSide {
        host::aggressor_side(trade.row)
    }

    /// Sends an order and tells its client order id.
    ///
    /// # Panics
    /// When an order with the same client order id is not done yet.
    pub fn submit(&mut self, mut order: Order) -> String {
        self.orders_made += 1;
        let made = self.orders_made;
        let id = order.client_order_id.get_or_insert_with(|| order_id(made)).clone();
        match self.find_working(&id) {
            Ok(_) => panic!("client order id `{id}` is used twice"),
            Err(place) => self.working.insert(place, (id.clone(), order.instrument)),
        }
        self.working_count[usize::from(order.instrument.0)] += 1;
        self.actions.push(Action::Submit(order));
        id
    }

    /// Where an order that is not done stands, or where it would.
    fn find_working(&self, client_order_id: &str) -> Result<usize, usize> {
        self.working.binary_search_by(|(id, _)| id.as_str().cmp(client_order_id))
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

/// The client order id of the `made`-th order that was given none: `O-` and the number. Formatting
/// machinery would cost more than the rest of the order.
fn order_id(made: u64) -> String {
    /// Digits of the largest `u64`.
    const DIGITS_MAX: usize = 20;
    let mut digits = [0; DIGITS_MAX];
    let (mut rest, mut first) = (made, DIGITS_MAX);
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut id = String::with_capacity(2 + DIGITS_MAX);
    id.push_str("O-");
    id.extend(digits[first..].iter().map(|digit| char::from(*digit)));
    id
}

#[cfg(test)]
mod tests {
    use super::order_id;

    #[test]
    fn made_ids_count() {
        for made in [1, 9, 10, 13_293, u64::MAX] {
            assert_eq!(order_id(made), format!("O-{made}"));
        }
    }
}
