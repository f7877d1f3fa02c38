//! The desk's reports and the state of the broker: in the end both must agree.

use std::collections::{BTreeMap, BTreeSet};

use domain::Discrepancy;
use domain::OrderStatus;
use ipc::{Event, SubmitOrderRequest};

use crate::broker::AtBroker;
use crate::world::World;

/// The events that clients got, checked by the rules for any order of events.
#[derive(Default)]
pub(crate) struct Seen {
    /// Shares reported as filled, by order, and the fills themselves.
    pub(crate) filled: BTreeMap<String, u64>,
    trades: BTreeSet<(String, String)>,
    pub(crate) canceled: BTreeSet<String>,
    accepted: BTreeSet<String>,
    submitted: u64,
    /// Reasons of refusals with the prefixes of their texts.
    pub(crate) refusals: BTreeSet<String>,
    /// Orders whose end was reported in this process.
    ended: BTreeSet<String>,
    pub(crate) discrepancies: Vec<String>,
    /// Orders whose numbers stay unknown, because several rows of a list fit them.
    ambiguous: BTreeSet<String>,
}

impl Seen {
    /// Takes events and checks them by the rules for any order of events.
    pub(crate) fn take(&mut self, world: &mut World) {
        for (_, event) in std::mem::take(&mut world.reported) {
            match &event {
                Event::OrderSubmitted(_) => self.submitted += 1,
                Event::OrderRejected(event) => {
                    let tag = event.reason_text.split(':').next().unwrap_or_default();
                    self.refusals.insert(format!("{} {tag}", event.reason_code));
                }
                Event::OrderAccepted(event) => {
                    self.accepted.extend(event.venue_order_id.as_deref().map(str::to_owned));
                }
                Event::OrderFilled(event) => {
                    let number = event.venue_order_id.as_deref().unwrap().to_owned();
                    if event.client_order_id.is_some() {
                        assert!(self.accepted.contains(&number), "accepted before filled");
                    }
                    let json = serde_json::to_value(event).unwrap();
                    let shares = |name: &str| json[name].as_str().unwrap().parse::<u64>().unwrap();
                    let trade = (number.clone(), event.trade_id.to_string());
                    assert!(self.trades.insert(trade), "a fill was told twice");
                    let filled = self.filled.entry(number.clone()).or_default();
                    *filled += shares("last_qty");
                    assert_eq!(shares("cumulative_qty"), *filled, "cumulative of {number}");
                    if shares("leaves_qty") == 0 && !self.canceled.contains(&number) {
                        self.ended.insert(number.clone());
                    }
                    let ordered = shares("cumulative_qty") + shares("leaves_qty");
                    assert!(ordered >= *filled && shares("last_qty") > 0, "{json}");
                    let at_broker = &world.broker.orders[&number];
                    assert!(*filled <= at_broker.filled, "no fill is made up");
                }
                Event::OrderUpdated(event) => {
                    let number = event.venue_order_id.as_deref().unwrap();
                    assert!(!self.ended.contains(number), "changed after its end");
                }
                Event::OrderExpired(event) => {
                    let number = event.venue_order_id.as_deref().unwrap().to_owned();
                    assert!(self.ended.insert(number), "ended twice");
                }
                Event::OrderCanceled(event) => {
                    let number = event.venue_order_id.as_deref().unwrap().to_owned();
                    assert!(self.ended.insert(number.clone()), "ended twice");
                    assert!(self.canceled.insert(number), "cancelled twice");
                }
                Event::OrderDiscrepancy(event) => {
                    if event.discrepancy == Discrepancy::Ambiguous {
                        self.ambiguous.extend(event.client_order_id.as_deref().map(str::to_owned));
                    }
                    self.discrepancies.push(format!("{:?}: {}", event.discrepancy, event.message));
                }
                _ => {}
            }
        }
    }

    /// A new process reports the day's ends again, to clients that connect anew. Fills are reported once
    /// (P130).
    pub(crate) fn restart(&mut self) {
        self.canceled.clear();
        self.ended.clear();
        self.ambiguous.clear();
    }
}

/// Each id has at most one order at the broker for each submit line that was not rejected. The broker's number
/// in the log belongs to an order of equal content.
pub(crate) fn check_ids(world: &World) {
    let submits = world.log.lines("submit");
    let rejected = world.log.lines("rejected");
    let ours = world.broker.orders.values().filter(|order| order.by_desk).count();
    assert!(ours <= submits.len());
    let mut by_id: BTreeMap<String, u64> = BTreeMap::new();
    for line in &submits {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        *by_id.entry(line["client_order_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    for line in &rejected {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let count = by_id.get_mut(line["client_order_id"].as_str().unwrap()).unwrap();
        *count -= 1;
    }
    assert!(by_id.values().all(|count| *count <= 1), "{by_id:?}");
    let numbers: BTreeSet<String> = world
        .log
        .lines("accepted")
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["venue_order_id"].as_str().unwrap().to_owned())
        .collect();
    for number in &numbers {
        assert!(world.broker.orders[number].by_desk, "a foreign order was taken for ours");
    }
}

/// Orders of the log by their ids, with the broker's number; `None` while that is unknown.
fn logged(world: &World) -> BTreeMap<String, Option<String>> {
    let bytes = world.log.bytes.lock().unwrap().clone();
    let mut orders = BTreeMap::new();
    for line in String::from_utf8(bytes).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        let Some(id) = text("client_order_id") else { continue };
        match line["phase"].as_str() {
            Some("rejected") => _ = orders.remove(&id),
            Some("filled") => {}
            _ => _ = orders.insert(id, text("venue_order_id")),
        }
    }
    orders
}

/// The states that the desk may report of an order when nothing is under way any more.
fn states(order: &AtBroker, has_notices: bool) -> &'static [OrderStatus] {
    use OrderStatus as S;
    match (order.status, order.filled > 0) {
        (S::Canceled, _) => &[S::Canceled],
        (S::Expired, _) => &[S::Expired],
        // By notices, or by a list that was read since if there are no notices.
        (S::Filled, _) if !has_notices => &[S::Filled, S::Accepted],
        (S::Filled, _) => &[S::Filled],
        // Other fills are reported by notices only.
        _ if !has_notices => &[S::Accepted],
        (_, true) => &[S::PartiallyFilled],
        (_, false) => &[S::Accepted],
    }
}

/// Every order of the log has the broker's state, and none waits for something that is over. Each is sent
/// again, which reports its state and sends nothing.
pub(crate) fn check_states(
    world: &mut World,
    seen: &mut Seen,
    requests: &BTreeMap<String, Vec<SubmitOrderRequest>>,
) {
    let has_notices = world.rules.phase.takes_notices();
    for (id, number) in logged(world) {
        let before = world.sent.len();
        let mut status = None;
        for request in &requests[&id] {
            world.submit(request);
            let reported = world.json("SubmitOrderResult");
            seen.take(world);
            if reported["outcome"] == "IdempotentReplay" {
                status = Some(reported["status"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(world.sent.len(), before, "{id} was sent again");
        let status = status.unwrap_or_else(|| panic!("nothing is known of {id}"));
        let Some(number) = number else {
            assert!(seen.ambiguous.contains(&id), "{id} is {status} and its number unknown");
            continue;
        };
        let order = &world.broker.orders[&number];
        let expected = states(order, has_notices);
        assert!(
            expected.iter().any(|one| one.as_str() == status),
            "{id} ({number}) is {status}, and {:?} with {} filled at the broker; {:?}",
            order.status,
            order.filled,
            seen.discrepancies
        );
    }
}
