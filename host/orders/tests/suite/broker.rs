//! A broker in memory: it takes requests, fills orders, and keeps what it has told.

use std::collections::{BTreeMap, BTreeSet};

use domain::order_mapping::{BrokerAnswer, BrokerOrder, BrokerRequest, Field};
use domain::{OrderStatus, Quantity, TsNanos};
use venues::web_broker::Answered;

use crate::dialect::{named, order, words};

pub(crate) struct AtBroker {
    pub(crate) order: BrokerOrder,
    pub(crate) status: OrderStatus,
    pub(crate) filled: u64,
    /// Whether the desk's account placed it through the desk.
    pub(crate) by_desk: bool,
    placed: TsNanos,
}

impl AtBroker {
    fn leaves(&self) -> u64 {
        match self.status {
            OrderStatus::Accepted => self.order.quantity.shares() - self.filled,
            _ => 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.status == OrderStatus::Accepted
    }
}

#[derive(Default)]
pub(crate) struct Broker {
    pub(crate) orders: BTreeMap<String, AtBroker>,
    /// Everything that a stream tells, from the day's first.
    pub(crate) notices: Vec<Vec<Field>>,
    pub(crate) trades: u64,
    pub(crate) cash: u64,
    /// Orders that came through the desk.
    pub(crate) placed: u64,
}

/// An answer of fields.
pub(crate) fn answer(id: &str, errno: &str, fields: Vec<Field>) -> Answered {
    let answer = BrokerAnswer {
        id: id.to_owned(),
        errno: errno.to_owned(),
        error_text: String::new(),
        fields,
    };
    Answered { answer, lists: BTreeMap::new() }
}

pub(crate) fn refused(id: &str, why: &str) -> Answered {
    answer(id, "", vec![Field::new("refused", why)])
}

impl Broker {
    pub(crate) fn tell(&mut self, kind: &str, number: &str, more: Vec<Field>) {
        let mut fields = vec![Field::new("kind", kind), Field::new("number", number)];
        fields.push(Field::new("event", self.notices.len().to_string()));
        fields.extend(more);
        self.notices.push(fields);
    }

    pub(crate) fn place(&mut self, order: BrokerOrder, by_desk: bool, now: TsNanos) -> String {
        let number = format!("{}", 1_000 + self.orders.len());
        // The broker's times have no fractions of seconds.
        let second = now.nanos() / 1_000_000_000 * 1_000_000_000;
        let placed = TsNanos::from_nanos(second);
        let status = OrderStatus::Accepted;
        self.orders.insert(number.clone(), AtBroker { order, status, filled: 0, by_desk, placed });
        self.placed += u64::from(by_desk);
        self.tell("accepted", &number, Vec::new());
        number
    }

    /// Fills some of an order, at most what is open.
    pub(crate) fn fill(&mut self, number: &str, shares: u64) {
        let Some(order) = self.orders.get_mut(number).filter(|order| order.is_open()) else {
            return;
        };
        let shares = shares.min(order.leaves());
        if shares == 0 {
            return;
        }
        order.filled += shares;
        if order.leaves() == 0 {
            order.status = OrderStatus::Filled;
        }
        self.trades += 1;
        let more = vec![
            Field::new("trade", self.trades.to_string()),
            Field::new("quantity", shares.to_string()),
            Field::new("price", "2500.5"),
        ];
        self.tell("filled", number, more);
    }

    pub(crate) fn end(&mut self, number: &str, status: OrderStatus) {
        let Some(order) = self.orders.get_mut(number).filter(|order| order.is_open()) else {
            return;
        };
        order.status = status;
        let kind = if status == OrderStatus::Canceled { "canceled" } else { "expired" };
        self.tell(kind, number, Vec::new());
    }

    /// Does what a request wants.
    pub(crate) fn take(&mut self, request: &BrokerRequest, now: TsNanos) -> Answered {
        let id = request.id.as_str();
        let number = named(&request.fields, "number").to_owned();
        match id {
            "new" => {
                let made = order(&request.fields).expect("the desk sends whole orders");
                let number = self.place(made, true, now);
                answer(id, "", vec![Field::new("number", number)])
            }
            "modify" => match self.orders.get_mut(&number).filter(|order| order.is_open()) {
                Some(order) => {
                    let quantity: Option<u64> = named(&request.fields, "quantity").parse().ok();
                    if quantity.is_some_and(|shares| shares <= order.filled) {
                        return refused(id, "quantity");
                    }
                    if let Some(shares) = quantity {
                        order.order.quantity = Quantity::new(shares);
                    }
                    if let Ok(price) = named(&request.fields, "price").parse() {
                        order.order.price = Some(price);
                    }
                    self.tell("updated", &number, Vec::new());
                    answer(id, "", vec![Field::new("number", number)])
                }
                None => refused(id, "ended"),
            },
            "cancel" => {
                if !self.orders.get(&number).is_some_and(AtBroker::is_open) {
                    return refused(id, "ended");
                }
                self.end(&number, OrderStatus::Canceled);
                answer(id, "", vec![Field::new("number", number)])
            }
            "cancel-all" => {
                let open: BTreeSet<String> = self
                    .orders
                    .iter()
                    .filter(|(_, order)| order.is_open())
                    .map(|(number, _)| number.clone())
                    .collect();
                for number in open {
                    self.end(&number, OrderStatus::Canceled);
                }
                answer(id, "", Vec::new())
            }
            "list" => {
                let rows = self.orders.iter().map(|(number, order)| order.row(number)).collect();
                let mut answered = answer(id, "", Vec::new());
                answered.lists.insert("rows".to_owned(), rows);
                answered
            }
            "CLMZanKaiKanougaku" => {
                let cash = self.cash.to_string();
                answer(
                    id,
                    "",
                    vec![
                        Field::new("sResultCode", "0"),
                        Field::new("sSummaryGenkabuKaituke", cash),
                    ],
                )
            }
            "CLMZanUriKanousuu" => {
                let shares = |name| Field::new(name, "100000");
                answer(
                    id,
                    "",
                    vec![
                        Field::new("sResultCode", "0"),
                        shares("sZanKabuSuryouUriKanouIppan"),
                        shares("sZanKabuSuryouUriKanouTokutei"),
                        shares("sZanKabuSuryouUriKanouNisa"),
                        shares("sZanKabuSuryouUriKanouNseityou"),
                    ],
                )
            }
            _ => refused(id, "unknown request"),
        }
    }
}

impl AtBroker {
    fn row(&self, number: &str) -> Vec<Field> {
        let status = match self.status {
            OrderStatus::Accepted if self.filled > 0 => OrderStatus::PartiallyFilled,
            status => status,
        };
        let mut row = words(&self.order);
        row.extend([
            Field::new("number", number),
            Field::new("filled", self.filled.to_string()),
            Field::new("leaves", self.leaves().to_string()),
            Field::new("status", status.as_str()),
            Field::new("ns", self.placed.nanos().to_string()),
        ]);
        row
    }
}
