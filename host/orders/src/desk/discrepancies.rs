//! Events of differences between the broker's data and the desk's (specification 4, "Reconciliation").
//!
//! Their number stays readable for a client. Differences of an order are reported once for each kind, and
//! unreadable rows once for each reason. Of the others a minute has a limited number, and then a count of the
//! rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::{Discrepancy, ShortText};

use super::{Desk, Now};
use crate::book::{OrderKey, Seen};
use crate::event::{DeskEvent, DiscrepancyReport};
use crate::limits::{DISCREPANCIES_PER_MINUTE_MAX, NUMBER_CHARS_MAX, UNREADABLE_ROWS_REPORTED_MAX};

const MINUTE: Duration = Duration::from_secs(60);

/// Discrepancies without an order of ours that were reported in the present minute.
#[derive(Debug, Default)]
pub(crate) struct ReportRate {
    /// When the minute began.
    since: Option<Duration>,
    reported: u32,
    left_out: BTreeMap<Discrepancy, u64>,
}

impl ReportRate {
    fn is_over(&self, now: Now) -> bool {
        self.since.is_some_and(|since| now.mono.saturating_sub(since) >= MINUTE)
    }

    /// Whether one more is reported in this minute.
    pub(crate) fn has_room(&self, now: Now) -> bool {
        self.reported < DISCREPANCIES_PER_MINUTE_MAX || self.is_over(now)
    }

    /// Whether one more is reported; if not, it is counted.
    fn takes(&mut self, discrepancy: Discrepancy, now: Now) -> bool {
        self.since.get_or_insert(now.mono);
        let has_room = self.reported < DISCREPANCIES_PER_MINUTE_MAX;
        if has_room {
            self.reported += 1;
        } else {
            *self.left_out.entry(discrepancy).or_default() += 1;
        }
        has_room
    }
}

/// The number of the order with which a dialect's text about a row begins: `order 1000: ...`.
fn number_in(why: &str) -> Option<&str> {
    let (number, _) = why.strip_prefix("order ")?.split_once(": ")?;
    let is_number = !number.is_empty()
        && number.chars().count() <= NUMBER_CHARS_MAX
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_number.then_some(number)
}

impl Desk {
    /// Reports a discrepancy, once for each order and kind. Those without an order of ours have a limit for
    /// each minute. For unreadable rows see [`Self::report_unreadable_rows`].
    pub(crate) fn report_discrepancy(
        &mut self,
        key: Option<OrderKey>,
        number: Option<&str>,
        discrepancy: Discrepancy,
        message: String,
        now: Now,
    ) {
        match key.and_then(|key| self.book.get_mut(key)) {
            Some(order) => {
                if !order.reported.insert(discrepancy) && discrepancy != Discrepancy::Unreadable {
                    return;
                }
            }
            None => {
                self.tick_discrepancies(now);
                if !self.report_rate.takes(discrepancy, now) {
                    return;
                }
            }
        }
        let (client_order_id, known) = key.map(|key| self.ids(key)).unwrap_or_default();
        let number = known.or_else(|| number.map(ShortText::from));
        self.push_discrepancy(client_order_id, number, discrepancy, message, now);
    }

    /// Reports the rows of a list that cannot be read: the first ones, and a count of the rest. A text that the
    /// list before had is not repeated. An order's text is reported once, and an order has a limited number of
    /// them.
    pub(crate) fn report_unreadable_rows(&mut self, why: Vec<String>, now: Now) {
        let all: BTreeSet<String> = why.iter().cloned().collect();
        let before = std::mem::replace(&mut self.reconciliation.lists.left_out, all);
        let (mut new, mut seen) = (Vec::new(), before);
        for why in why {
            if !seen.insert(why.clone()) {
                continue;
            }
            let number = number_in(&why).map(str::to_owned);
            let key = number.as_deref().and_then(|number| {
                self.book.by_number(number, Seen::number_alone(now.wall.jst_date()))
            });
            let order = key.and_then(|key| self.book.get_mut(key));
            if order.is_none_or(|order| order.is_unreadable_anew(&why)) {
                new.push((why, number, key));
            }
        }
        let more = new.len().saturating_sub(UNREADABLE_ROWS_REPORTED_MAX);
        for (why, number, key) in new.into_iter().take(UNREADABLE_ROWS_REPORTED_MAX) {
            let text = format!("{why}; the engine leaves the row out of the list");
            self.report_discrepancy(key, number.as_deref(), Discrepancy::Unreadable, text, now);
        }
        if more > 0 {
            let text =
                format!("the engine cannot read {more} more rows of the list and leaves them out");
            self.report_discrepancy(None, None, Discrepancy::Unreadable, text, now);
        }
    }

    /// Reports the count of those that were left out of a minute that is over.
    pub(crate) fn tick_discrepancies(&mut self, now: Now) {
        if !self.report_rate.is_over(now) {
            return;
        }
        for (discrepancy, count) in std::mem::take(&mut self.report_rate).left_out {
            let text = format!(
                "{count} more of this kind came within a minute; the engine reports only the first \
                 {DISCREPANCIES_PER_MINUTE_MAX} one by one"
            );
            self.push_discrepancy(None, None, discrepancy, text, now);
        }
    }

    pub(super) fn push_discrepancy(
        &mut self,
        client_order_id: Option<ShortText>,
        venue_order_id: Option<ShortText>,
        discrepancy: Discrepancy,
        message: String,
        now: Now,
    ) {
        tracing::warn!(
            ?discrepancy,
            client_order_id = client_order_id.as_deref(),
            venue_order_id = venue_order_id.as_deref(),
            message,
            "the broker's data on an order do not fit"
        );
        let ts = now.wall;
        let report =
            DiscrepancyReport { client_order_id, venue_order_id, discrepancy, message, ts };
        self.broadcast(DeskEvent::Discrepancy(report));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_order_is_what_a_word_on_its_row_begins_with() {
        for (why, number) in [
            ("order 11000021: sOrderBaibaiKubun `9` is no side", Some("11000021")),
            ("order 1: a: b", Some("1")),
            ("the row has no order number", None),
            ("order : x", None),
            ("order a b: x", None),
            ("order 12345678901234567: x", None),
            ("order 1", None),
        ] {
            assert_eq!(number_in(why), number, "{why}");
        }
    }
}
