//! Money and positions fill by fill, and the way from flat to flat that each position is on. The
//! exchange's account may be further already, because fills of one trade are told together.

use domain::adjustment::{Adjustment, ExRights};
use domain::{InstrumentIx, Money, OrderSide, Price, ShortText, TsNanos};

use crate::rows::{FillRow, PositionEnd, PositionEvent, RoundTrip};
use exchange::{CashAccount, PositionChange};

/// Books fills.
#[derive(Debug)]
pub(super) struct Ledger {
    account: CashAccount,
    trips: Vec<Option<Trip>>,
}

/// The account after a fill.
#[derive(Debug)]
pub(super) struct Change {
    /// The fill's instrument.
    pub(super) instrument: usize,
    /// When, in nanoseconds.
    pub(super) ts_event: u64,
    /// Money afterwards.
    pub(super) cash: Money,
    /// Shares of the instrument held afterwards.
    pub(super) held: i64,
    /// Money that the way from flat has brought up to now, fees taken off; negative while shares
    /// are paid for.
    pub(super) trip_money: Money,
}

/// What a fill or a split did: to the account, and the way from flat to flat that it ended, whose excursions
/// are not known yet.
pub(super) type Booked = (Change, Option<RoundTrip>);

/// A way from flat that has not come back yet.
#[derive(Debug)]
struct Trip {
    row: RoundTrip,
    bought: Money,
    sold: Money,
    shares_bought: u64,
    shares_sold: u64,
}

impl Ledger {
    pub(super) fn new(cash: Money, instruments: usize) -> Self {
        Self {
            account: CashAccount::new(cash, instruments),
            trips: std::iter::repeat_with(|| None).take(instruments).collect(),
        }
    }

    /// Takes a position that was bought before `ts_event` for `cost`.
    pub(super) fn carry(
        &mut self,
        ts_event: TsNanos,
        (instrument, quantity, cost): (InstrumentIx, i64, Money),
    ) -> Booked {
        self.account.carry(instrument, quantity, cost);
        let place = usize::from(instrument.0);
        let trip = self.trips[place].insert(Trip::carried(ts_event, instrument, quantity, cost));
        let trip_money = trip.money();
        let cash = self.account.account().cash;
        let (ts_event, held) = (ts_event.nanos(), quantity);
        (Change { instrument: place, ts_event, cash, held, trip_money }, None)
    }

    /// Adds shares that are held from before the run; they have cost nothing.
    pub(super) fn hold(&mut self, instrument: InstrumentIx, shares: i64) {
        self.account.carry(instrument, shares, Money::ZERO);
    }

    /// Books a fill. The second value tells of a position that was opened or closed.
    pub(super) fn book(&mut self, fill: &FillRow) -> (Booked, Option<PositionEvent>) {
        let instrument = usize::from(fill.instrument.0);
        let change = self.account.book(
            fill.instrument,
            fill.side,
            fill.price,
            fill.quantity,
            fill.commission,
        );
        let held = self.account.held(fill.instrument);
        let trip = self.trips[instrument].get_or_insert_with(|| Trip::start(fill));
        trip.add(fill, held);
        let trip_money = trip.money();
        let entry_side = trip.row.entry_side;
        let closed = match change {
            PositionChange::Closed => self.trips[instrument]
                .take()
                .map(|trip| trip.end(fill.ts_event, fill.client_order_id.clone())),
            PositionChange::Opened | PositionChange::Changed => None,
        };
        let told = (change != PositionChange::Changed).then(|| PositionEvent {
            ts_event: fill.ts_event,
            instrument: fill.instrument,
            opened: change == PositionChange::Opened,
            entry_side,
            quantity: held,
            price: fill.price,
            realised_pnl: closed.as_ref().map(|trip| trip.pnl),
            client_order_id: fill.client_order_id.clone(),
        });
        let cash = self.account.account().cash;
        let ts_event = fill.ts_event.nanos();
        ((Change { instrument, ts_event, cash, held, trip_money }, closed), told)
    }

    /// Adjusts a position for a split, at the adjusted last price. The second value is the money paid
    /// for the rest of a share. A position that is less than one new share ends.
    pub(super) fn adjust(
        &mut self,
        ts_event: TsNanos,
        ex_rights: &ExRights,
        price: Price,
    ) -> (Booked, Money) {
        let (at, adjustment) = (ex_rights.instrument, ex_rights.adjustment);
        let paid = self.account.adjust(at, adjustment, price);
        let instrument = usize::from(at.0);
        let held = self.account.held(at);
        let mut trip_money = Money::ZERO;
        let mut closed = None;
        if let Some(trip) = &mut self.trips[instrument] {
            match held {
                0 => trip.sell_out(paid),
                _ => trip.adjust(adjustment, paid),
            }
            trip_money = trip.money();
        }
        if held == 0 {
            closed = self.trips[instrument].take().map(|trip| {
                let order = trip.row.entry_order.clone();
                trip.end(ts_event, order)
            });
        }
        let cash = self.account.account().cash;
        let ts_event = ts_event.nanos();
        ((Change { instrument, ts_event, cash, held, trip_money }, closed), paid)
    }

    /// Every instrument at the end, valued at its last price.
    pub(super) fn positions(&self, last_prices: &[Option<Price>]) -> Vec<PositionEnd> {
        let end = |(position, price): (&domain::account::Position, &Option<Price>)| PositionEnd {
            instrument: position.instrument,
            quantity: position.quantity,
            cost: position.cost,
            last_price: *price,
            realised_pnl: position.realised_pnl,
        };
        self.account.positions().iter().zip(last_prices).map(end).collect()
    }
}

/// The order that began a way whose fills are of an earlier run.
const CARRIED: &str = "carried";

impl Trip {
    fn start(fill: &FillRow) -> Self {
        let order = fill.client_order_id.clone();
        Self::new(fill.instrument, fill.side, fill.ts_event, order)
    }

    /// A way that began before the run.
    fn carried(ts_event: TsNanos, instrument: InstrumentIx, quantity: i64, cost: Money) -> Self {
        let shares = quantity.unsigned_abs();
        let side = if quantity < 0 { OrderSide::Sell } else { OrderSide::Buy };
        let mut trip = Self::new(instrument, side, ts_event, CARRIED.into());
        match side {
            OrderSide::Buy => (trip.bought, trip.shares_bought) = (cost, shares),
            OrderSide::Sell => (trip.sold, trip.shares_sold) = (Money::ZERO - cost, shares),
        }
        trip.row.quantity_max = shares;
        trip
    }

    fn new(
        instrument: InstrumentIx,
        entry_side: OrderSide,
        ts_entry: TsNanos,
        order: ShortText,
    ) -> Self {
        Self {
            row: RoundTrip {
                instrument,
                entry_side,
                ts_entry,
                ts_exit: ts_entry,
                entry_order: order.clone(),
                exit_order: order,
                quantity: 0,
                quantity_max: 0,
                buy_price: Price::default(),
                sell_price: Price::default(),
                fills: 0,
                commission: Money::ZERO,
                pnl: Money::ZERO,
                mae: Money::ZERO,
                mfe: Money::ZERO,
            },
            bought: Money::ZERO,
            sold: Money::ZERO,
            shares_bought: 0,
            shares_sold: 0,
        }
    }

    fn add(&mut self, fill: &FillRow, held: i64) {
        // The account has booked the same value before, so it fits.
        let value = Money::checked_notional(fill.price, fill.quantity).unwrap_or_default();
        match fill.side {
            OrderSide::Buy => {
                self.bought += value;
                self.shares_bought += fill.quantity.shares();
            }
            OrderSide::Sell => {
                self.sold += value;
                self.shares_sold += fill.quantity.shares();
            }
        }
        self.row.commission += fill.commission;
        self.row.fills += 1;
        self.row.quantity_max = self.row.quantity_max.max(held.unsigned_abs());
    }

    fn money(&self) -> Money {
        self.sold - self.bought - self.row.commission
    }

    /// Counts the shares traded so far as the shares that they become.
    fn adjust(&mut self, adjustment: Adjustment, paid: Money) {
        let adjusted = |shares: u64| {
            let shares = i64::try_from(shares).unwrap_or(i64::MAX);
            adjustment.shares(shares).whole.unsigned_abs()
        };
        self.shares_bought = adjusted(self.shares_bought);
        self.shares_sold = adjusted(self.shares_sold);
        self.row.quantity_max = adjusted(self.row.quantity_max);
        self.sold += paid;
    }

    /// The whole position was less than one new share.
    fn sell_out(&mut self, paid: Money) {
        self.shares_sold = self.shares_bought;
        self.sold += paid;
    }

    fn end(self, ts_exit: TsNanos, exit_order: ShortText) -> RoundTrip {
        let pnl = self.money();
        RoundTrip {
            ts_exit,
            exit_order,
            quantity: self.shares_bought,
            buy_price: average(self.bought, self.shares_bought),
            sell_price: average(self.sold, self.shares_sold),
            pnl,
            ..self.row
        }
    }
}

/// Average price, cut off at 1/10,000 yen. A way from flat to flat has shares on both sides.
fn average(value: Money, shares: u64) -> Price {
    let shares = i64::try_from(shares).unwrap_or(i64::MAX).max(1);
    Price::from_units(value.units() / shares)
}

/// The index of an instrument whose position in a list of at most [`domain::limits::INSTRUMENTS_MAX`]
/// is known.
pub(super) fn instrument_at(index: usize) -> InstrumentIx {
    InstrumentIx(index as u16)
}
