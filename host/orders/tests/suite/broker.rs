//! A broker in memory: it takes requests, fills orders, and stores the notices that it has sent.

use std::collections::{BTreeMap, BTreeSet};

use domain::order_mapping::{BrokerAnswer, BrokerOrder, BrokerRequest, Field, Funding};
use domain::{OrderSide, OrderStatus, Quantity, TimeInForce, TsNanos};
use venues::web_broker::Answered;

use crate::account::{Account, BALANCES, Balance, balance_answer};
use crate::dialect::{closes, funding, named, order, words};

pub(crate) struct AtBroker {
    pub(crate) order: BrokerOrder,
    pub(crate) status: OrderStatus,
    pub(crate) filled: u64,
    /// Whether the desk's account placed it through the desk.
    pub(crate) by_desk: bool,
    /// How it is paid for.
    pub(crate) funding: Funding,
    /// Shares of margin positions that it closes.
    pub(crate) closes: Vec<(String, u64)>,
    placed: TsNanos,
    /// Its fills as its details have them.
    pub(crate) fills: Vec<(u64, &'static str)>,
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

    /// Whether it sells what is held.
    pub(crate) fn sells_shares(&self) -> bool {
        self.funding == Funding::Cash && self.order.side == OrderSide::Sell
    }
}

#[derive(Default)]
pub(crate) struct Broker {
    pub(crate) orders: BTreeMap<String, AtBroker>,
    /// Orders of earlier days: no list has them, and their details do.
    pub(crate) past: BTreeMap<String, AtBroker>,
    /// All notices of the stream, from the day's first.
    pub(crate) notices: Vec<Vec<Field>>,
    pub(crate) trades: u64,
    pub(crate) cash: u64,
    pub(crate) account: Account,
    /// Rows of the list of shares: symbols and shares, as a test says.
    pub(crate) held: Vec<(String, u64)>,
    /// A balance in an answer that is under way.
    pub(crate) says: Option<Balance>,
    /// The balances in its answers since the desk's last other event.
    pub(crate) reported: Vec<Balance>,
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
    pub(crate) fn notify(&mut self, kind: &str, number: &str, more: Vec<Field>) {
        let mut fields = vec![Field::new("kind", kind), Field::new("number", number)];
        fields.push(Field::new("event", self.notices.len().to_string()));
        fields.extend(more);
        self.notices.push(fields);
    }

    /// The day is over: its orders have ended, and lists have them no more.
    pub(crate) fn end_day(&mut self) {
        self.past.append(&mut self.orders);
    }

    /// Places an order elsewhere.
    pub(crate) fn place_elsewhere(&mut self, order: BrokerOrder, now: TsNanos) -> String {
        self.place(order, Funding::Cash, Vec::new(), false, now)
    }

    /// Changes an order elsewhere: to so many shares, if that is possible.
    pub(crate) fn change_elsewhere(&mut self, number: &str, shares: u64) {
        let Some(order) = self.orders.get_mut(number).filter(|order| order.is_open()) else {
            return;
        };
        let has_bound = order.sells_shares() || order.funding == Funding::MarginRepay;
        if shares > order.filled && !(has_bound && shares > order.order.quantity.shares()) {
            order.order.quantity = Quantity::new(shares);
            self.notify("updated", number, Vec::new());
        }
    }

    fn place(
        &mut self,
        order: BrokerOrder,
        funding: Funding,
        closes: Vec<(String, u64)>,
        by_desk: bool,
        now: TsNanos,
    ) -> String {
        let number = format!("{}", 1_000 + self.orders.len());
        // The broker's times have no fractions of seconds.
        let second = now.nanos() / 1_000_000_000 * 1_000_000_000;
        let placed = TsNanos::from_nanos(second);
        let status = OrderStatus::Accepted;
        let fills = Vec::new();
        let made = AtBroker { order, status, filled: 0, by_desk, funding, closes, placed, fills };
        self.orders.insert(number.clone(), made);
        self.placed += u64::from(by_desk);
        self.notify("accepted", &number, Vec::new());
        number
    }

    /// Fills some of an order, at most what is open.
    pub(crate) fn fill(&mut self, number: &str, shares: u64) {
        self.fill_at(number, shares, "2500.5");
    }

    /// The same, at a price.
    pub(crate) fn fill_at(&mut self, number: &str, shares: u64, price: &'static str) {
        let Some(order) = self.orders.get_mut(number).filter(|order| order.is_open()) else {
            return;
        };
        let shares = shares.min(order.leaves());
        if shares == 0 {
            return;
        }
        let before = order.filled;
        order.filled += shares;
        order.fills.push((shares, price));
        if order.leaves() == 0 {
            order.status = OrderStatus::Filled;
        }
        let yen = shares * 2_500;
        if order.funding == Funding::Cash && order.order.side == OrderSide::Buy {
            self.cash = self.cash.saturating_sub(yen);
        }
        self.account.filled(order, before, before + shares, yen);
        self.trades += 1;
        let more = vec![
            Field::new("trade", self.trades.to_string()),
            Field::new("quantity", shares.to_string()),
            Field::new("price", price),
        ];
        self.notify("filled", number, more);
    }

    pub(crate) fn end(&mut self, number: &str, status: OrderStatus) {
        let Some(order) = self.orders.get_mut(number).filter(|order| order.is_open()) else {
            return;
        };
        order.status = status;
        let kind = if status == OrderStatus::Canceled { "canceled" } else { "expired" };
        self.notify(kind, number, Vec::new());
    }

    /// Executes a request.
    pub(crate) fn take(&mut self, request: &BrokerRequest, now: TsNanos) -> Answered {
        let id = request.id.as_str();
        let number = named(&request.fields, "number").to_owned();
        match id {
            "new" => {
                let made = order(&request.fields).expect("the desk sends whole orders");
                let funding = funding(&request.fields);
                let Some(closes) = self.closed_by(&made, funding, closes(&request.fields)) else {
                    return refused(id, "funds");
                };
                let number = self.place(made, funding, closes, true, now);
                answer(id, "", vec![Field::new("number", number)])
            }
            "modify" => match self.orders.get_mut(&number).filter(|order| order.is_open()) {
                Some(order) => {
                    let quantity: Option<u64> = named(&request.fields, "quantity").parse().ok();
                    let has_bound = order.sells_shares() || order.funding == Funding::MarginRepay;
                    let is_more = |shares| has_bound && shares > order.order.quantity.shares();
                    if quantity.is_some_and(|shares| shares <= order.filled || is_more(shares)) {
                        return refused(id, "quantity");
                    }
                    if let Some(shares) = quantity {
                        order.order.quantity = Quantity::new(shares);
                    }
                    if let Ok(price) = named(&request.fields, "price").parse() {
                        order.order.price = Some(price);
                    }
                    if let Ok(trigger) = named(&request.fields, "trigger").parse() {
                        order.order.trigger_price = Some(trigger);
                    }
                    if let Ok(date) = named(&request.fields, "expire").parse() {
                        order.order.expire_date = Some(date);
                        order.order.time_in_force = TimeInForce::Gtd;
                    }
                    self.notify("updated", &number, Vec::new());
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
            "detail" => {
                let past = self.past.get(&number);
                let fills = self.orders.get(&number).or(past).map(|order| order.fills.clone());
                let row = |(shares, price): (u64, &str)| {
                    vec![
                        Field::new("quantity", shares.to_string()),
                        Field::new("price", price),
                        Field::new("at", now.nanos().to_string()),
                    ]
                };
                let mut fields = vec![Field::new("number", number.as_str())];
                fields.extend(past.map(|order| Field::new("sIssueCode", &*order.order.symbol)));
                let mut answered = answer(id, "", fields);
                let rows = fills.unwrap_or_default().into_iter().map(row).collect();
                answered.lists.insert("fills".to_owned(), rows);
                answered
            }
            "CLMGenbutuKabuList" => {
                let mut answered = answer(id, "", vec![Field::new("sResultCode", "0")]);
                let rows = self.held.iter().map(|(symbol, shares)| {
                    let shares = shares.to_string();
                    vec![
                        Field::new("sUriOrderIssueCode", symbol.as_str()),
                        Field::new("sUriOrderZyoutoekiKazeiC", "1"),
                        Field::new("sUriOrderZanKabuSuryou", shares.as_str()),
                        Field::new("sUriOrderUritukeKanouSuryou", shares.as_str()),
                    ]
                });
                answered.lists.insert("aGenbutuKabuList".to_owned(), rows.collect());
                answered
            }
            _ if BALANCES.contains(&id) => {
                let reported = self.balance(id);
                let answered = balance_answer(id, &reported, self.account.are_short);
                self.says = Some(reported);
                answered
            }
            _ => refused(id, "unknown request"),
        }
    }

    fn balance(&self, id: &str) -> Balance {
        match id {
            "CLMZanKaiKanougaku" => Balance::Cash(self.cash),
            "CLMZanShinkiKanoIjiritu" => Balance::Margin(self.account.margin),
            "CLMZanUriKanousuu" => Balance::Sellable(self.account.sellable(self.orders.values())),
            _ => Balance::Positions(self.account.free(self.orders.values())),
        }
    }

    /// The positions that a new order closes, by its own choice or the broker's; `None` if it wants more than
    /// there is.
    fn closed_by(
        &self,
        order: &BrokerOrder,
        funding: Funding,
        named: Vec<(String, u64)>,
    ) -> Option<Vec<(String, u64)>> {
        let wanted_shares = order.quantity.shares();
        if funding == Funding::Cash && order.side == OrderSide::Sell {
            let is_there = wanted_shares <= self.account.sellable(self.orders.values());
            return is_there.then(Vec::new);
        }
        if funding != Funding::MarginRepay {
            return Some(Vec::new());
        }
        let free = self.account.free(self.orders.values());
        if !named.is_empty() {
            let is_free = |(id, shares): &(String, u64)| {
                free.iter().any(|(known, there)| known == id && shares <= there)
            };
            let all: u64 = named.iter().map(|(_, shares)| shares).sum();
            return (all == wanted_shares && named.iter().all(is_free)).then_some(named);
        }
        crate::watch::ascending(&free, &[], wanted_shares)
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
