//! What an audit log says when the desk starts (specification 2, "Audit log", rule 5).
//!
//! Specification 4, P22 and P23. Nothing is made up: only a submit line makes an order.
//!
//! | line | what becomes of the order |
//! |---|---|
//! | submit | sent, its number unknown; a second one of the same id takes the place of the first |
//! | accepted with a number | the broker has it |
//! | accepted without one | sent, its number unknown |
//! | rejected | its id is free; a strategy's order that was not at the broker may come back (P121) |
//! | accepted after that | it came back |
//! | rejected after a number | its id is free, its number stays its own |
//! | filled | the fill counts, and is not reported again |
//! | ended | a strategy's order has ended |
//! | adjusted | see [`super::holdings`] |
//! | session_expired, another version of the key, what is no line | nothing |

use std::collections::{HashMap, VecDeque};

use domain::{
    OrderOrigin, OrderSide, OrderStatus, OrderType, Origin, Price, Quantity, ShortText,
    TimeInForce, TsNanos,
};
use ipc::{AuditContext, AuditFilled, AuditLine, AuditSubmit};

use super::holdings::Holdings;
use crate::limits::{AUDIT_LINE_BYTES_MAX, FILLS_RESTORED_MAX, PRESUMED_REJECTED_MAX};
use crate::reconcile::NOT_AT_BROKER;

/// Version of the key of requests that lines are written with; one without it is version 1.
pub const REQUEST_KEY_VERSION: u32 = 1;

/// An order that the log has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredOrder {
    /// Who sent it.
    pub origin: OrderOrigin,
    /// The caller's id.
    pub client_order_id: ShortText,
    /// The key of the request.
    pub request_key: u64,
    /// `7203.TSE`.
    pub instrument_id: ShortText,
    /// Buy or sell.
    pub side: OrderSide,
    /// How it finds its price.
    pub order_type: OrderType,
    /// Shares.
    pub quantity: Quantity,
    /// Limit price as it was sent.
    pub price: Option<Price>,
    /// Trigger price as it was sent.
    pub trigger_price: Option<Price>,
    /// How long it lives; `None` in lines that do not say.
    pub time_in_force: Option<TimeInForce>,
    /// End of life.
    pub expire_time: Option<TsNanos>,
    /// The broker's number, where it is known.
    pub venue_order_id: Option<ShortText>,
    /// The broker's business day of it, where it is known.
    pub business_day: Option<ShortText>,
    /// Whether it is a strategy's order on margin.
    pub is_margin: bool,
    /// How it ended, where the log says so.
    pub ended: Option<OrderStatus>,
    /// Time of the submit line in milliseconds UTC.
    pub ts_ms: u64,
}

/// A fill that an earlier process reported, or was about to report (specification 4, P130).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredFill {
    /// The broker's number of the order.
    pub venue_order_id: ShortText,
    /// When the order was placed, in milliseconds UTC.
    pub order_ts_ms: u64,
    /// `7203.TSE`.
    pub instrument_id: ShortText,
    /// The broker's business day of the notice, where it said one.
    pub business_day: Option<ShortText>,
    /// Whether the broker's details of the order reported it; its number is the desk's own then.
    pub from_details: bool,
    /// The broker's number of the fill.
    pub trade_id: ShortText,
    /// Shares.
    pub quantity: Quantity,
    /// Shares of these that count for the order.
    pub counted: Quantity,
    /// Yen per share.
    pub price: Price,
}

/// What a log says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Orders in the order of their submit lines.
    pub entries: Vec<RestoredOrder>,
    /// Fills that were reported, the newest [`FILLS_RESTORED_MAX`].
    pub fills: VecDeque<RestoredFill>,
    /// Orders of strategies that were reported as not at the broker, the newest [`PRESUMED_REJECTED_MAX`]
    /// (specification 4, P121).
    pub presumed_rejected: VecDeque<RestoredOrder>,
    /// What strategies hold.
    pub holdings: Holdings,
    /// Bytes up to the end of the last whole line.
    pub whole_bytes: u64,
    /// Whole lines that are not lines of the log.
    pub unreadable: u64,
}

impl Restored {
    /// Reads a log. What follows the last newline is no line.
    #[must_use]
    pub fn read(log: &[u8]) -> Self {
        let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut entries: Vec<Option<RestoredOrder>> = Vec::new();
        let mut places: HashMap<(Origin, ShortText), usize> = HashMap::new();
        let mut fills = VecDeque::new();
        let mut presumed_rejected: VecDeque<RestoredOrder> = VecDeque::new();
        let mut holdings = Holdings::default();
        let mut unreadable = 0_u64;
        let is_other = |version: Option<u32>| version.unwrap_or(1) != REQUEST_KEY_VERSION;
        for line in log[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let read = (line.len() <= AUDIT_LINE_BYTES_MAX)
                .then(|| serde_json::from_slice::<AuditLine<'_>>(line).ok());
            match read.flatten() {
                Some(AuditLine::Submit(submit)) => {
                    if is_other(submit.request_key_version) {
                        continue;
                    }
                    let order = RestoredOrder::new(&submit);
                    if let Some(strategy_id) = order.origin.strategy_id() {
                        holdings.submitted(strategy_id);
                    }
                    let name = (order.origin.kind(), order.client_order_id.clone());
                    if let Some(before) = places.insert(name, entries.len()) {
                        entries[before] = None;
                    }
                    entries.push(Some(order));
                }
                Some(AuditLine::Accepted(accepted)) => {
                    if is_other(accepted.request_key_version) {
                        continue;
                    }
                    let name = name_of(&accepted.client_order_id, &accepted.context);
                    let is_it = |order: &RestoredOrder| {
                        (order.origin.kind(), &order.client_order_id) == (name.0, &name.1)
                    };
                    if !places.contains_key(&name)
                        && let Some(place) = presumed_rejected.iter().position(is_it)
                    {
                        places.insert(name.clone(), entries.len());
                        entries.push(presumed_rejected.remove(place));
                    }
                    let place = places.get(&name);
                    let number = accepted.venue_order_id.as_deref().map(ShortText::from);
                    if let Some(Some(order)) = place.map(|place| &mut entries[*place])
                        && number.is_some()
                    {
                        order.venue_order_id = number;
                        order.business_day = accepted.business_day.as_deref().map(ShortText::from);
                    }
                }
                Some(AuditLine::Rejected(rejected)) => {
                    if is_other(rejected.request_key_version) {
                        continue;
                    }
                    let name = name_of(&rejected.client_order_id, &rejected.context);
                    let Some(place) = places.remove(&name) else { continue };
                    // The exchange refused it later: its id is free, and its number stays its own.
                    if let Some(order) = &mut entries[place]
                        && order.venue_order_id.is_some()
                    {
                        order.ended = Some(OrderStatus::Rejected);
                        continue;
                    }
                    let Some(order) = entries[place].take() else { continue };
                    if order.origin.strategy_id().is_some()
                        && rejected.reason_text.starts_with(NOT_AT_BROKER)
                    {
                        if presumed_rejected.len() >= PRESUMED_REJECTED_MAX {
                            presumed_rejected.pop_front();
                        }
                        presumed_rejected.push_back(order);
                    }
                }
                Some(AuditLine::Filled(filled)) => {
                    if fills.len() >= FILLS_RESTORED_MAX {
                        fills.pop_front();
                    }
                    fills.push_back(RestoredFill::new(&filled));
                    if let Err(why) = holdings.filled(&filled) {
                        let id = filled.client_order_id.as_deref();
                        tracing::warn!(?why, id, "a fill of the audit log does not count in full");
                    }
                }
                Some(AuditLine::Ended(ended)) => {
                    let place = places.get(&name_of(&ended.client_order_id, &ended.context));
                    if let Some(Some(order)) = place.map(|place| &mut entries[*place]) {
                        order.ended = Some(ended.status);
                    }
                }
                Some(AuditLine::Adjusted(adjusted)) => holdings.adjusted(&adjusted),
                Some(AuditLine::SessionExpired(_)) => {}
                None => unreadable += 1,
            }
        }
        if unreadable > 0 {
            tracing::warn!(
                lines = unreadable,
                "the engine cannot read some lines of the audit log and leaves them out"
            );
        }
        Self {
            entries: entries.into_iter().flatten().collect(),
            fills,
            presumed_rejected,
            holdings,
            whole_bytes: whole as u64,
            unreadable,
        }
    }
}

/// The kind of a sender and the sender's id, by which an order is known (specification 4, P92).
fn name_of(client_order_id: &str, context: &AuditContext<'_>) -> (Origin, ShortText) {
    (context.origin.unwrap_or(Origin::Client), client_order_id.into())
}

impl RestoredOrder {
    fn new(submit: &AuditSubmit<'_>) -> Self {
        let AuditContext { origin, strategy_id, .. } = &submit.context;
        Self {
            origin: OrderOrigin::read(*origin, strategy_id.as_deref()),
            client_order_id: ShortText::from(&*submit.client_order_id),
            request_key: submit.request_key,
            instrument_id: ShortText::from(&*submit.instrument_id),
            side: submit.order_side,
            order_type: submit.order_type,
            quantity: submit.quantity.into(),
            price: submit.price.map(Into::into),
            trigger_price: submit.trigger_price.map(Into::into),
            time_in_force: submit.time_in_force,
            expire_time: submit.expire_time_ns.map(TsNanos::from_nanos),
            venue_order_id: None,
            business_day: None,
            is_margin: submit.margin,
            ended: None,
            ts_ms: submit.ts,
        }
    }
}

impl RestoredFill {
    fn new(filled: &AuditFilled<'_>) -> Self {
        Self {
            venue_order_id: ShortText::from(&*filled.venue_order_id),
            order_ts_ms: filled.order_ts,
            instrument_id: ShortText::from(&*filled.instrument_id),
            business_day: filled.business_day.as_deref().map(ShortText::from),
            from_details: filled.from_details,
            trade_id: ShortText::from(&*filled.trade_id),
            quantity: filled.last_qty.into(),
            counted: filled.counted_qty.unwrap_or(filled.last_qty).into(),
            price: filled.last_price.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::audit::testing::{accepted_line, rejected_line, submit_line};

    fn text(lines: &[AuditLine<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, line).unwrap();
            bytes.push(b'\n');
        }
        bytes
    }

    #[test]
    fn lines_do_what_the_table_says() {
        let expired = AuditLine::SessionExpired(ipc::AuditSessionExpired { ts: 1 });
        let log = text(&[
            submit_line("a", 1),
            submit_line("b", 2),
            accepted_line("b", Some("11")),
            submit_line("c", 3),
            accepted_line("c", None),
            submit_line("d", 4),
            expired,
            rejected_line("d"),
            accepted_line("nobody", Some("12")),
            rejected_line("nobody"),
            submit_line("d", 5),
        ]);
        let restored = Restored::read(&log);
        let reported: Vec<(&str, u64, Option<&str>)> = restored
            .entries
            .iter()
            .map(|one| (&*one.client_order_id, one.request_key, one.venue_order_id.as_deref()))
            .collect();
        assert_eq!(
            reported,
            [("a", 1, None), ("b", 2, Some("11")), ("c", 3, None), ("d", 5, None)]
        );
        assert_eq!((restored.unreadable, restored.whole_bytes), (0, log.len() as u64));
    }

    /// Specification 2, "Versioning", 3; specification 4, P23.
    #[test]
    fn another_version_of_the_key_is_another_namespace() {
        let mut log = text(&[submit_line("a", 1)]);
        let other = String::from_utf8(log.clone()).unwrap();
        log.extend(
            other
                .replace("\"a\"", "\"b\"")
                .replace("\"ts\":", "\"request_key_version\":2,\"ts\":")
                .into_bytes(),
        );
        let restored = Restored::read(&log);
        assert_eq!(restored.entries.len(), 1);
        assert_eq!((&*restored.entries[0].client_order_id, restored.unreadable), ("a", 0));
    }

    /// The other version's accepted and rejected lines do not count here.
    #[test]
    fn what_became_of_another_version_s_order_is_passed_over() {
        let other = |line: AuditLine<'_>| {
            let line = String::from_utf8(text(&[line])).unwrap();
            line.replace("\"ts\":", "\"request_key_version\":2,\"ts\":").into_bytes()
        };
        let mut log = text(&[submit_line("a", 1), accepted_line("a", Some("11"))]);
        log.extend(text(&[submit_line("b", 2)]));
        log.extend(other(submit_line("a", 3)));
        log.extend(other(accepted_line("a", Some("12"))));
        log.extend(other(accepted_line("b", Some("13"))));
        log.extend(other(rejected_line("a")));
        log.extend(other(rejected_line("b")));
        let restored = Restored::read(&log);
        let reported = restored.entries.iter().map(|one| one.venue_order_id.as_deref());
        assert_eq!(reported.collect::<Vec<_>>(), [Some("11"), None]);
        assert_eq!(restored.unreadable, 0);
    }

    /// The newest fills are those that a broker sends again.
    #[test]
    fn fills_are_restored_up_to_a_number() {
        let line = |number: usize| {
            AuditLine::Filled(AuditFilled {
                ts: 1,
                client_order_id: None,
                venue_order_id: "11".into(),
                order_ts: 7,
                instrument_id: "7203.TSE".into(),
                business_day: Some("20261120".into()),
                from_details: false,
                order_side: None,
                margin: false,
                counted_qty: None,
                trade_id: number.to_string().into(),
                last_qty: Quantity::new(100).into(),
                last_price: Price::from_yen(2_500).into(),
                context: AuditContext::default(),
            })
        };
        let lines: Vec<_> = (0..=FILLS_RESTORED_MAX).map(line).collect();
        let restored = Restored::read(&text(&lines));
        assert_eq!((restored.fills.len(), restored.unreadable), (FILLS_RESTORED_MAX, 0));
        assert_eq!(&*restored.fills[0].trade_id, "1");
        assert_eq!(restored.fills[0].price, Price::from_yen(2_500));
    }

    #[test]
    fn fields_of_later_versions_and_foreign_lines_are_passed_over() {
        let log = String::from_utf8(text(&[submit_line("a", 1)])).unwrap();
        let more = log.replace("\"ts\":", "\"later\":[1],\"ts\":");
        let mixed = format!("{more}hello\n{{\"phase\":\"dance\"}}\n\n");
        let restored = Restored::read(mixed.as_bytes());
        assert_eq!((restored.entries.len(), restored.unreadable), (1, 2));
    }

    proptest! {
        /// Every prefix of a log gives orders that were submitted, and nothing else; a prefix that ends
        /// within a line gives what the lines before it give.
        #[test]
        fn no_prefix_makes_an_order_up(
            steps in prop::collection::vec((0_u8..4, 0_u8..5), 0..30),
            cut in 0.0_f64..=1.0,
        ) {
            let ids = ["a", "b", "c", "d", "e"];
            let mut submitted = Vec::new();
            let mut lines = Vec::new();
            for (index, (kind, id)) in steps.iter().enumerate() {
                let id = ids[usize::from(*id)];
                lines.push(match kind {
                    0 => {
                        submitted.push((id, index as u64));
                        submit_line(id, index as u64)
                    }
                    1 => accepted_line(id, Some("R7")),
                    2 => accepted_line(id, None),
                    _ => rejected_line(id),
                });
            }
            let log = text(&lines);
            for end in [(log.len() as f64 * cut) as usize, log.len()] {
                let restored = Restored::read(&log[..end]);
                for entry in &restored.entries {
                    let known = (&*entry.client_order_id, entry.request_key);
                    prop_assert!(submitted.contains(&known));
                }
                let whole = usize::try_from(restored.whole_bytes).unwrap();
                prop_assert!(whole <= end);
                prop_assert_eq!(&Restored::read(&log[..whole]).entries, &restored.entries);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let restored = Restored::read(&bytes);
            prop_assert!(restored.entries.is_empty());
        }
    }
}
