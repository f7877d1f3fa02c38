//! Counts what a strategy's records leave in a run's folder, in bytes, against the budget of the run.
//!
//! Each record has a fixed cost for its lines and rows. Each of its texts has a cost for every file with a
//! copy. The cost is a little more than the bytes on the disk. It is the same whether a folder is written or
//! not, so that runs and sweeps end at the same event.

use std::collections::BTreeMap;

use domain::fault::FaultKind;
use domain::guest_limit::{
    LOG_LINE_COST, NARRATIVE_COST, SIGNAL_COST, SIGNAL_FORMS, TABLE_FORMS, text_cost,
    text_page_cost,
};
use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{GuestLimit, OrderEvent, OrderEventKind, Origin};

/// An order that is taken, from its sending to its end: two lines of the audit log, three events, and its row
/// in three tables and in the page.
const ORDER_COST: usize = 1_450;
/// Copies of its id.
const ORDER_IDS: usize = 9;
/// A fill: two events, one for the position, and its row in three tables and in the page. Half a row of a round
/// trip is in the same places.
const FILL_COST: usize = 1_350;
const FILL_IDS: usize = 10;
/// A reported parameter: in the manifest, where lists have a space for each value, and in the page.
const PARAMETER_COPIES: usize = 3;
/// A change or a cancel: an event.
const COMMAND_COST: usize = 90;

/// Bytes so far, and the limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputBudget {
    bytes: u64,
    allowed: u64,
    per_day: u64,
    days: u64,
}

impl OutputBudget {
    /// A budget of `first_day` bytes, and `per_day` more on each later day.
    pub(crate) const fn new(first_day: u64, per_day: u64) -> Self {
        Self { bytes: 0, allowed: first_day, per_day, days: 0 }
    }

    /// Counts the parameters that a strategy reports: in the manifest, with a space for each value, and in the
    /// page.
    pub(crate) fn parameters(&mut self, parameters: &BTreeMap<String, String>) {
        let texts = parameters.iter().flat_map(|(name, value)| [name, value]);
        self.take(PARAMETER_COPIES * texts.map(|text| text_page_cost(text)).sum::<usize>());
    }

    /// Adds the budget of a new day.
    pub(crate) const fn begin_day(&mut self) {
        if self.days > 0 {
            self.allowed = self.allowed.saturating_add(self.per_day);
        }
        self.days += 1;
    }

    /// Counts an event of an order of the strategy; orders of clients do not count. The execution counts the
    /// bytes of rejections. Tags are in no file, but stay in memory until the order is done.
    #[inline]
    pub(crate) fn order_event(&mut self, event: &OrderEvent) {
        if event.origin != Origin::Strategy {
            return;
        }
        let (cost, ids) = match &event.kind {
            OrderEventKind::Submitted(request) => {
                let tags: usize = request.tags.iter().map(String::len).sum();
                (ORDER_COST + tags, ORDER_IDS)
            }
            OrderEventKind::Filled(_) => (FILL_COST, FILL_IDS),
            OrderEventKind::PendingUpdate(_) | OrderEventKind::PendingCancel => (COMMAND_COST, 1),
            OrderEventKind::Accepted
            | OrderEventKind::Rejected(_)
            | OrderEventKind::Updated(_)
            | OrderEventKind::Canceled
            | OrderEventKind::Expired(_) => return,
        };
        self.take(cost + ids * text_cost(&event.client_order_id));
    }

    /// Counts a mark.
    pub(crate) fn signal(&mut self, signal: &Signal) {
        let texts = [&signal.tag, &signal.note].into_iter().flatten();
        let texts: usize = texts.map(|text| text_cost(text)).sum();
        self.take(SIGNAL_FORMS * (SIGNAL_COST + texts));
    }

    /// Counts a decision.
    pub(crate) fn narrative(&mut self, record: &NarrativeRecord) {
        let texts = [record.title.as_str(), &record.body];
        let texts = texts.into_iter().chain(record.client_order_id.as_deref());
        let texts: usize = texts.map(text_cost).sum();
        self.take(TABLE_FORMS * (NARRATIVE_COST + texts));
    }

    /// Counts a line of the log.
    pub(crate) fn log_line(&mut self, line: &LogLine) {
        self.take(TABLE_FORMS * (LOG_LINE_COST + text_cost(&line.message)));
    }

    const fn take(&mut self, cost: usize) {
        self.bytes = self.bytes.saturating_add(cost as u64);
    }

    /// Checks that there is room for the bytes so far and for so many bytes of rejected orders.
    pub(crate) const fn check(&self, rejected: u64) -> Result<(), FaultKind> {
        let (used, allowed) = (self.bytes.saturating_add(rejected), self.allowed);
        match rejected {
            _ if used <= allowed => Ok(()),
            0 => Err(FaultKind::Budget { limit: GuestLimit::Folder, used, allowed }),
            rejected => Err(FaultKind::Folder { used, rejected, allowed }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_after_the_first_allows_more() {
        let mut budget = OutputBudget::new(100, 10);
        budget.begin_day();
        assert_eq!(budget.check(100), Ok(()));
        let fault = |used, rejected, allowed| Err(FaultKind::Folder { used, rejected, allowed });
        assert_eq!(budget.check(101), fault(101, 101, 100));
        budget.begin_day();
        budget.take(60);
        assert_eq!(budget.check(50), Ok(()));
        assert_eq!(budget.check(51), fault(111, 51, 110));
        budget.take(51);
        let (limit, used, allowed) = (GuestLimit::Folder, 111, 110);
        assert_eq!(budget.check(0), Err(FaultKind::Budget { limit, used, allowed }));
    }

    #[test]
    fn rejected_orders_that_fill_the_folder_are_named() {
        let budget = OutputBudget::new(100, 10);
        let fault = budget.check(101).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "produced 101 bytes of records in the run's folder, 101 of them rejected orders; 100 are \
             allowed"
        );
        assert_eq!(fault.advice("submit").unwrap(), "`--guest-limit folder=200` allows more");
    }
}
