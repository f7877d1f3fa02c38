//! Notices, fills and orders that are not settled yet.
//!
//! They are notices without an order, fills of an earlier process, and orders that were presumed rejected.
//! `crate::reconcile` decides what a list means for an order.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use domain::order_mapping::{BrokerAccepted, BrokerNotice, BrokerRow};
use domain::{Discrepancy, ShortText};

use super::lists::ListSchedule;
use super::{Desk, Now};
use crate::audit::restore::RestoredFill;
use crate::book::{DeskOrder, OrderKey};
use crate::event::StrategyEvent;
use crate::limits::{NOTICES_HELD_MAX, PRESUMED_REJECTED_MAX};
use crate::reconcile::{FreeRow, came_back_as, fits};
use crate::seen_notices::SeenNotices;

/// All that is not settled yet.
#[derive(Debug, Default)]
pub(crate) struct Reconciliation {
    /// The broker's newest list, and when the next one is due.
    pub(crate) lists: ListSchedule,
    /// Notices that have arrived before.
    pub(crate) seen: SeenNotices,
    /// Notices of orders that are not known yet.
    pub(crate) held: HeldNotices,
    /// Fills that an earlier process reported.
    pub(crate) earlier_fills: EarlierFills,
    /// Orders that were presumed rejected.
    pub(crate) presumed_rejected: PresumedRejected,
}

/// Notices of orders that are not known yet, with the times of their arrival.
#[derive(Debug, Default)]
pub(crate) struct HeldNotices(Vec<(Duration, BrokerNotice)>);

impl HeldNotices {
    /// Holds a notice that came at a time, or returns it if there is no room.
    pub(crate) fn hold(&mut self, came: Duration, notice: BrokerNotice) -> Option<BrokerNotice> {
        if self.0.len() >= NOTICES_HELD_MAX {
            return Some(notice);
        }
        self.0.push((came, notice));
        None
    }

    /// Takes all of them, for another look at each.
    pub(crate) fn take(&mut self) -> Vec<(Duration, BrokerNotice)> {
        std::mem::take(&mut self.0)
    }

    /// Holds a taken notice again.
    pub(crate) fn put_back(&mut self, came: Duration, notice: BrokerNotice) {
        self.0.push((came, notice));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them is a fill that came before an instant that `is_late` knows.
    pub(crate) fn has_fill(&self, is_late: impl Fn(Duration) -> bool) -> bool {
        self.0.iter().any(|(came, notice)| notice.fill.is_some() && is_late(*came))
    }

    /// Whether one of them may be of an order of that symbol.
    pub(crate) fn has_symbol(&self, symbol: Option<&ShortText>) -> bool {
        self.0.iter().any(|(_, notice)| Some(&notice.symbol) == symbol)
    }
}

/// Fills that an earlier process reported, by the number of the order, until a list has the order.
#[derive(Debug, Default)]
pub(crate) struct EarlierFills(HashMap<ShortText, Vec<RestoredFill>>);

impl EarlierFills {
    /// Collects those of a log.
    pub(crate) fn new(fills: impl IntoIterator<Item = RestoredFill>) -> Self {
        let mut by_number: HashMap<ShortText, Vec<RestoredFill>> = HashMap::new();
        for fill in fills {
            by_number.entry(fill.venue_order_id.clone()).or_default().push(fill);
        }
        Self(by_number)
    }

    /// Counts those of an order whose number is known now.
    pub(crate) fn give(&mut self, order: &mut DeskOrder) {
        let Some(number) = order.venue_order_id.clone() else { return };
        let Some(fills) = self.0.get_mut(&number) else { return };
        fills.retain(|fill| {
            let is_its = order.has_reported(fill);
            if is_its {
                order.take_reported(fill);
            }
            !is_its
        });
        if fills.is_empty() {
            self.0.remove(&number);
        }
    }
}

/// Orders that were reported as not at the broker (specification 4, P20), whose lists may lag. Their ids are
/// free, so they stay rejected. But their senders must get a report if a later list has a fitting row.
#[derive(Debug, Default)]
pub(crate) struct PresumedRejected(VecDeque<DeskOrder>);

impl PresumedRejected {
    pub(crate) fn remember(&mut self, order: DeskOrder) {
        if self.0.len() >= PRESUMED_REJECTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(order);
    }

    /// The order that a row may be. A person's is taken out, because it is reported once. A strategy's stays: a
    /// later row may be its own (P121).
    fn find_fitting(&mut self, row: &BrokerRow) -> Option<DeskOrder> {
        let place = self.0.iter().position(|order| fits(order, row))?;
        let order = self.0.get(place)?;
        if order.strategy_id().is_some() { Some(order.clone()) } else { self.0.remove(place) }
    }

    /// Takes the orders of strategies that are at the broker after all, with the places of their rows: of the
    /// order exactly one row, and of the row exactly one order.
    pub(crate) fn take_back(&mut self, rows: &[FreeRow<'_>]) -> Vec<(DeskOrder, usize)> {
        let is_of_strategy = |order: &DeskOrder| order.strategy_id().is_some();
        let orders_of = |row: &BrokerRow| {
            self.0.iter().filter(|order| is_of_strategy(order) && came_back_as(order, row)).count()
        };
        let mut found = Vec::new();
        for (place, order) in self.0.iter().enumerate().filter(|(_, one)| is_of_strategy(one)) {
            let mut fitting = rows.iter().filter(|free| came_back_as(order, free.row));
            if let (Some(free), None) = (fitting.next(), fitting.next())
                && orders_of(free.row) == 1
            {
                found.push((place, free.index));
            }
        }
        let taken = found.into_iter().rev();
        taken.filter_map(|(place, index)| Some((self.0.remove(place)?, index))).collect()
    }
}

impl Desk {
    /// Remembers an order that is about to be presumed rejected.
    pub(crate) fn presume_rejected(&mut self, key: OrderKey) {
        if let Some(order) = self.book.get(key) {
            self.reconciliation.presumed_rejected.remember(order.clone());
        }
    }

    /// A row counts as placed elsewhere. Reports the presumed rejected order that it may be.
    pub(crate) fn find_presumed_rejected(&mut self, row: &BrokerRow, now: Now) {
        let fitting = self.reconciliation.presumed_rejected.find_fitting(row);
        let Some(order) = fitting else { return };
        let number = &row.venue_order_id;
        let text = format!(
            "the engine reported it as rejected, NOT_AT_BROKER; a later list has an order that \
             fits, number {number}, {}, shown as placed elsewhere",
            row.status
        );
        let (id, number) = (order.client_order_id, Some(number.clone()));
        self.push_discrepancy(id, number, Discrepancy::EndedButWorking, text, now);
    }

    /// An order of a strategy that was reported as not at the broker is there after all: it is the strategy's
    /// again, and is cancelled at once (P121); one of an earlier process only once its strategy runs (P106).
    /// Returns its key.
    pub(crate) fn came_back(
        &mut self,
        order: DeskOrder,
        row: &BrokerRow,
        p_no: u64,
        now: Now,
    ) -> Option<OrderKey> {
        let strategy_id = ShortText::from(order.strategy_id()?);
        let client_order_id = order.client_order_id.clone()?;
        let is_left = order.is_restored() && self.strategies.runs.as_ref() != Some(&strategy_id);
        let venue_order_id = row.venue_order_id.clone();
        let key = self.book.add(order)?;
        self.report_strategy(StrategyEvent::CameBack {
            strategy_id,
            client_order_id,
            venue_order_id,
            is_left,
        });
        let accepted = BrokerAccepted {
            venue_order_id: Some(row.venue_order_id.clone()),
            business_day: row.business_day.clone(),
            ..BrokerAccepted::default()
        };
        self.accepted(key, &accepted, p_no, now);
        if !is_left
            && !row.status.is_final()
            && let Err(rejection) = self.put_own_cancel(key, now)
        {
            self.report_rejected(key, None, &rejection, now);
        }
        Some(key)
    }

    /// Counts the fills of an order that an earlier process reported, once its number is known.
    pub(crate) fn take_earlier_fills(&mut self, key: OrderKey) {
        if let Some(order) = self.book.get_mut(key) {
            self.reconciliation.earlier_fills.give(order);
        }
    }
}
