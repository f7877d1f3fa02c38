//! The orders and positions of a run as clients see them: what lists and sessions are made from, and
//! which command an event answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::account::Position;
use domain::adjustment::Adjustment;
use domain::{
    InstrumentIx, Money, OrderEvent, OrderEventKind, OrderRecord, OrderSide, Origin, Price,
    Quantity, ShortText, TsNanos,
};
use results::rows::FillRow;

use crate::hub::ClientId;
use crate::session::CommandContext;

/// A command and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestContext {
    pub(crate) client: ClientId,
    pub(crate) request_id: String,
}

impl RequestContext {
    /// The command at its end.
    pub(crate) fn command_context(&self, op: &'static str, now: Duration) -> CommandContext<'_> {
        let request_id = Some(&*self.request_id);
        CommandContext { client: self.client, op, request_id, venue: None, now }
    }
}

/// One order and the commands about it.
#[derive(Debug)]
pub(crate) struct LedgerOrder {
    pub(crate) record: OrderRecord,
    pub(crate) submit: Option<RequestContext>,
    pub(crate) modify: Option<RequestContext>,
    pub(crate) cancel: Option<RequestContext>,
    /// What was odd about it, as a code and in words.
    pub(crate) warning: Option<(&'static str, String)>,
}

/// The orders of a run.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    all: Vec<LedgerOrder>,
    ids: BTreeMap<(Origin, ShortText), usize>,
    /// Orders with a number of the venue, as they got it.
    numbered: Vec<usize>,
    /// Orders without a number of the venue: on their way to it, or ended on it.
    unnumbered: BTreeSet<usize>,
}

impl Orders {
    /// Takes an event, with the numbers that clients see. Gives its order; none for one that was rejected before
    /// its first event.
    pub(crate) fn take(&mut self, event: &OrderEvent) -> Option<&mut LedgerOrder> {
        let key = (event.origin, event.client_order_id.clone());
        if let OrderEventKind::Submitted(request) = &event.kind {
            let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
            let mut record =
                OrderRecord::new(event.origin, number, Arc::clone(request), event.ts_event);
            record.request = Arc::clone(request);
            self.ids.insert(key.clone(), self.all.len());
            self.unnumbered.insert(self.all.len());
            let (submit, modify, cancel, warning) = (None, None, None, None);
            self.all.push(LedgerOrder { record, submit, modify, cancel, warning });
        }
        let index = *self.ids.get(&key)?;
        let order = self.all.get_mut(index)?;
        let record = &mut order.record;
        record.status = event.status;
        record.ts_last = event.ts_event;
        if event.venue_order_id.is_some() {
            self.unnumbered.remove(&index);
        }
        match &event.kind {
            OrderEventKind::Accepted => {
                record.venue_order_id = event.venue_order_id.clone();
                self.numbered.push(index);
            }
            OrderEventKind::Updated(request) => record.request = Arc::clone(request),
            OrderEventKind::Filled(fill) => record.filled = fill.cumulative_quantity,
            OrderEventKind::Rejected(rejection) => record.rejection = Some(rejection.clone()),
            OrderEventKind::Submitted(_)
            | OrderEventKind::PendingUpdate(_)
            | OrderEventKind::PendingCancel
            | OrderEventKind::Canceled
            | OrderEventKind::Expired(_) => {}
        }
        Some(order)
    }

    /// An order of an origin by its id.
    pub(crate) fn get_mut(&mut self, origin: Origin, id: &str) -> Option<&mut LedgerOrder> {
        let index = *self.ids.get(&(origin, ShortText::from(id)))?;
        self.all.get_mut(index)
    }

    /// The same to look at.
    pub(crate) fn get(&self, origin: Origin, id: &str) -> Option<&LedgerOrder> {
        self.all.get(*self.ids.get(&(origin, ShortText::from(id)))?)
    }

    /// An order by the number that clients see.
    pub(crate) fn by_number(&self, number: &str) -> Option<&OrderRecord> {
        // Numbers are given in turn, so `R12` is the twelfth order that has one.
        let place: usize = number.strip_prefix('R')?.parse().ok()?;
        let record = &self.all.get(*self.numbered.get(place.checked_sub(1)?)?)?.record;
        (record.venue_order_id.as_deref() == Some(number)).then_some(record)
    }

    /// Orders with a number, as they got it.
    pub(crate) fn numbered(&self) -> impl DoubleEndedIterator<Item = &OrderRecord> {
        self.numbered.iter().filter_map(|index| self.all.get(*index)).map(|order| &order.record)
    }

    /// Orders without a number of the venue, as they were sent.
    pub(crate) fn unnumbered(&self) -> impl DoubleEndedIterator<Item = &OrderRecord> {
        self.unnumbered.iter().filter_map(|index| self.all.get(*index)).map(|order| &order.record)
    }

    /// Orders of clients that are not done and that a cancel of many means, by their ids.
    pub(crate) fn open_of_clients(
        &self,
        instrument: Option<InstrumentIx>,
        side: Option<OrderSide>,
    ) -> Vec<ShortText> {
        self.all
            .iter()
            .map(|order| &order.record)
            .filter(|record| record.origin == Origin::Client && !record.status.is_final())
            .filter(|record| instrument.is_none_or(|only| record.request.instrument == only))
            .filter(|record| side.is_none_or(|only| record.request.side == only))
            .map(|record| record.request.client_order_id.clone())
            .collect()
    }
}

/// The life of the present position of an instrument, or of its last one.
#[derive(Debug, Clone, Default)]
pub(crate) struct PositionLife {
    /// Positions so far.
    pub(crate) number: u64,
    bought: Side,
    sold: Side,
    /// Commissions of its fills.
    commission: Money,
    /// Money for parts of shares at splits.
    paid: Money,
}

/// What a position came to that a split has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedBySplit {
    pub(crate) average_close: Price,
    pub(crate) realized_pnl: Money,
}

/// Shares bought over the life of a position, and the average prices of what was bought and sold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionAverages {
    pub(crate) shares: Quantity,
    pub(crate) open: Price,
    pub(crate) close: Price,
}

/// Shares and their value over the life of a position.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    shares: u64,
    /// In 1/10,000 yen.
    value: i128,
}

impl Side {
    fn add(&mut self, fill: &FillRow) {
        self.shares += fill.quantity.shares();
        self.value += i128::from(fill.price.units()) * i128::from(fill.quantity.shares());
    }

    /// The average price, rounded half to even at 4 decimals.
    fn average(self) -> Price {
        Price::from_units(half_to_even(self.value, i128::from(self.shares)))
    }
}

/// A quotient, rounded half to even; 0 where nothing is divided.
fn half_to_even(value: i128, by: i128) -> i64 {
    if by == 0 {
        return 0;
    }
    let (quotient, rest) = (value.div_euclid(by), value.rem_euclid(by));
    let up = match (rest * 2).cmp(&by) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => quotient & 1,
        std::cmp::Ordering::Greater => 1,
    };
    i64::try_from(quotient + up).unwrap_or(i64::MAX)
}

impl PositionLife {
    /// Takes a fill; one that opens a position begins another life.
    pub(crate) fn fill(&mut self, fill: &FillRow, opens: bool) {
        if opens {
            *self = Self { number: self.number + 1, ..Self::default() };
        }
        self.commission += fill.commission;
        match fill.side {
            OrderSide::Buy => self.bought.add(fill),
            OrderSide::Sell => self.sold.add(fill),
        }
    }

    /// Takes what an earlier run has bought, or has sold on margin where `quantity` is below zero.
    pub(crate) fn carry(&mut self, quantity: i64, cost: Money) {
        *self = Self { number: self.number + 1, ..Self::default() };
        let side = if quantity < 0 { &mut self.sold } else { &mut self.bought };
        side.shares = quantity.unsigned_abs();
        side.value = i128::from(cost.units()).abs();
    }

    /// What a position that was closed has come to, fees not counted; none where it does not fit.
    pub(crate) fn result(&self) -> Option<Money> {
        i64::try_from(self.sold.value - self.bought.value).ok().map(Money::from_units)
    }

    /// Shares were split: those of before are another number, for the same money; `paid` is what came for the
    /// rest of a share. Gives what the position came to if nothing else was left of it.
    pub(crate) fn split(&mut self, adjustment: Adjustment, paid: Money) -> ClosedBySplit {
        self.paid += paid;
        let received = self.sold.value + i128::from(self.paid.units());
        let result = received - self.bought.value - i128::from(self.commission.units());
        let average = half_to_even(received, i128::from(self.bought.shares));
        let closed = ClosedBySplit {
            average_close: Price::from_units(average),
            realized_pnl: Money::from_units(i64::try_from(result).unwrap_or(i64::MAX)),
        };
        for side in [&mut self.bought, &mut self.sold] {
            let shares = i64::try_from(side.shares).unwrap_or(i64::MAX);
            side.shares = adjustment.shares(shares).whole.unsigned_abs();
        }
        closed
    }

    pub(crate) fn averages(&self) -> PositionAverages {
        PositionAverages {
            shares: Quantity::new(self.bought.shares),
            open: self.bought.average(),
            close: self.sold.average(),
        }
    }
}

/// What a share held has cost on average.
pub(crate) fn average_cost(position: &Position) -> Price {
    Price::from_units(half_to_even(
        i128::from(position.cost.units()),
        i128::from(position.quantity),
    ))
}

/// The time of something that has not begun: midnight in Japan of its first day.
pub(crate) fn midnight(date: domain::JstDate) -> TsNanos {
    TsNanos::from_jst(date, 0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_rounded_half_to_even() {
        for (value, by, expected) in
            [(10, 4, 2), (14, 4, 4), (11, 4, 3), (9, 4, 2), (-10, 4, -2), (5, 0, 0), (7, 7, 1)]
        {
            assert_eq!(half_to_even(value, by), expected, "{value} / {by}");
        }
    }
}
