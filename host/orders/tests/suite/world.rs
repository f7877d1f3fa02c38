//! A desk, its log, its broker and its clients, moved step by step.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::order_mapping::{BrokerRequest, Field};
use domain::{
    OrderModify, OrderOrigin, OrderSide, OrderType, Origin, Quantity, Secret, TimeInForce, TsNanos,
};
use ipc::{
    CancelAllOrders, CancelOrder, Command, Event, GetOrderList, ModifyOrder, OrderListFilter,
    OrderModifyChange, SubmitOrder, SubmitOrderRequest,
};
use orders::event::StrategyEvent;
use orders::limits::DETAILS_TIME;
use orders::{
    Desk, DeskCommand, DeskEvent, DeskRules, LoginDone, LoginFailed, NamedOrder, NewOrder, Now,
    OrderChange, OrderPhase, Out, Recipient, RequestContext, Restored,
};
use venues::web_broker::{Answered, CallFailure, Called, Masters};

use crate::account::BALANCES;
use crate::broker::Broker;
use crate::command::{ClientCommand, VenueCommand};
use crate::desk_command;
use crate::dialect::PlainDialect;
use crate::log::Log;
use crate::present::desk_event;

/// The desk's request that has no answer yet.
pub(crate) enum InFlight {
    Request { ticket: u64, request: BrokerRequest, sent_p_no: u64 },
    Login { ticket: u64 },
}

pub(crate) struct World {
    pub(crate) desk: Desk,
    pub(crate) log: Log,
    pub(crate) broker: Broker,
    pub(crate) rules: DeskRules,
    pub(crate) rejects: bool,
    pub(crate) in_flight: Option<InFlight>,
    /// The answer to it, if the broker has executed it already.
    pub(crate) reached: Option<Answered>,
    pub(crate) reported: Vec<(Recipient, Event<'static>)>,
    /// Orders of fills that were reported and not written.
    pub(crate) unwritten: Vec<String>,
    /// What was told of strategies.
    pub(crate) told: Vec<StrategyEvent>,
    /// Requests by name, as they left.
    pub(crate) sent: Vec<String>,
    pub(crate) passwords: Vec<String>,
    pub(crate) mono: Duration,
    pub(crate) wall: TsNanos,
    pub(crate) p_no: u64,
    /// Notices that the stream has not delivered yet.
    pub(crate) stream: VecDeque<Vec<Field>>,
    /// Notices of the broker that were put into the stream.
    pub(crate) streamed: usize,
    pub(crate) is_streaming: bool,
    /// The account in logins, and the state of the broker in masters.
    pub(crate) has_margin: bool,
    pub(crate) is_open: Option<bool>,
    /// Whether the dialect has a request for the fills of an order.
    has_details: bool,
    commands: u64,
    /// New orders that were sent, and their kinds.
    orders_sent: usize,
    pub(crate) kinds_sent: BTreeSet<String>,
    /// The test has answered instead of the broker.
    has_odd_answers: bool,
    /// Orders that sell what a strategy holds leave without a guard.
    pub(crate) trusts_strategies: bool,
    /// A person has requested balances.
    has_requested_balances: bool,
}

/// 2026-11-20, 09:30 in Japan.
pub(crate) const MORNING: TsNanos = TsNanos::from_nanos(1_795_134_600_000_000_000);

pub(crate) fn masters() -> Arc<Masters> {
    let issue = |symbol: &str, ticks: u32| {
        format!(
            r#""{symbol}":{{"symbol":"{symbol}","name":"x","lot":100,"upper_limit":30000000,"lower_limit":20000000,"ticks":{ticks}}}"#
        )
    };
    let text = format!(
        r#"{{"date":"2026-11-20","days":{{"today":"2026-11-20","next":["2026-11-24","2026-11-25"]}},
            "issues":{{{},{}}},"ticks":{{"101":{{"bands":[[30000000,10000],[50000000,50000]]}}}}}}"#,
        issue("7203", 101),
        issue("6758", 7),
    );
    Arc::new(serde_json::from_str(&text).unwrap())
}

pub(crate) fn limit_buy(id: &str, quantity: u64, price: &str) -> SubmitOrderRequest {
    SubmitOrderRequest {
        client_order_id: id.to_owned(),
        instrument_id: "7203.TSE".to_owned(),
        order_side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: quantity.to_string(),
        price: Some(price.to_owned()),
        trigger_price: None,
        trigger_type: None,
        time_in_force: TimeInForce::Day,
        expire_time_ns: None,
        post_only: false,
        reduce_only: false,
        tags: None,
    }
}

impl World {
    pub(crate) fn new(rules: DeskRules, rejects: bool) -> Self {
        let log = Log::default();
        let now = Now { mono: Duration::ZERO, wall: MORNING };
        let dialect = Box::new(PlainDialect::new(rejects));
        let desk = Desk::new(rules, dialect, Box::new(log.clone()), Restored::default(), now);
        Self {
            desk,
            log,
            broker: Broker { cash: 1_000_000_000, ..Broker::default() },
            rules,
            rejects,
            in_flight: None,
            reached: None,
            reported: Vec::new(),
            told: Vec::new(),
            unwritten: Vec::new(),
            sent: Vec::new(),
            passwords: Vec::new(),
            mono: Duration::ZERO,
            wall: MORNING,
            p_no: 1,
            stream: VecDeque::new(),
            streamed: 0,
            is_streaming: false,
            has_margin: true,
            is_open: None,
            has_details: false,
            commands: 0,
            orders_sent: 0,
            kinds_sent: BTreeSet::new(),
            has_odd_answers: false,
            trusts_strategies: false,
            has_requested_balances: false,
        }
    }

    /// A desk that is logged in and holds the second password, with its stream up and a list read.
    pub(crate) fn ready(rules: DeskRules, rejects: bool) -> Self {
        let mut world = Self::new(rules, rejects);
        world.log_in();
        world.password("0000");
        world
    }

    /// The same, with a dialect that has a request for the fills of an order.
    pub(crate) fn with_details(rules: DeskRules) -> Self {
        let mut world = Self::new(rules, false);
        world.has_details = true;
        world.restart(false);
        world.log_in();
        world.password("0000");
        world
    }

    pub(crate) fn now(&self) -> Now {
        Now { mono: self.mono, wall: self.wall }
    }

    pub(crate) fn context(&mut self) -> RequestContext {
        self.commands += 1;
        RequestContext { client: 1, request_id: format!("r{}", self.commands) }
    }

    /// Takes the output of the desk. In every order of messages, no order tries a transition that the state
    /// table does not have.
    pub(crate) fn collect(&mut self) {
        assert_eq!(self.desk.illegal_transitions(), 0, "an illegal transition");
        for out in self.desk.take_out() {
            match out {
                Out::Emit(to, event) => {
                    // A guard's answer counts for its own order only.
                    if let DeskEvent::Order(order) = &*event
                        && !order.is_written
                    {
                        self.unwritten.push(order.client_order_id.clone().unwrap().to_string());
                    }
                    let Some(wire) = desk_event(&event) else {
                        let DeskEvent::Strategy(event) = *event else { unreachable!("{event:?}") };
                        self.told.push(event);
                        continue;
                    };
                    let event = owned(&wire);
                    let is_other = !matches!(event, Event::OrderSubmitted(_));
                    if is_other && self.in_flight.is_none() {
                        self.broker.reported.clear();
                    }
                    self.reported.push((to, event));
                }
                Out::Send { ticket, request, password, within } => {
                    assert!(self.in_flight.is_none(), "one question at a time");
                    assert_eq!(within, (request.id == "detail").then_some(DETAILS_TIME));
                    self.watch(&request);
                    self.sent.push(request.id.clone());
                    self.passwords.extend(password.map(|password| password.expose().to_owned()));
                    self.p_no += 1;
                    let sent_p_no = self.p_no;
                    self.in_flight =
                        Some(InFlight::Request { ticket, request: *request, sent_p_no });
                }
                Out::Login { ticket } => {
                    assert!(self.in_flight.is_none(), "one question at a time");
                    self.sent.push("login".to_owned());
                    self.in_flight = Some(InFlight::Login { ticket });
                }
            }
        }
    }

    /// Checks a request that leaves.
    fn watch(&mut self, request: &BrokerRequest) {
        if request.id == "new" {
            self.orders_sent += 1;
            let lines = self.log.lines("submit").len();
            assert_eq!(lines, self.orders_sent, "an order leaves with a line of its own");
            if !self.has_odd_answers && !self.trusts_strategies {
                let kinds =
                    crate::watch::new_order(request, self.rules.phase, &self.broker.reported);
                self.kinds_sent.extend(kinds);
            }
        } else {
            crate::watch::other(&request.id, self.rules.phase);
        }
        if BALANCES.contains(&request.id.as_str()) {
            let has_guards = self.rules.phase == OrderPhase::O3;
            assert!(has_guards || self.has_requested_balances, "no guard before O3");
        } else {
            self.broker.reported.clear();
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.mono += time;
        self.wall = self.wall.plus_nanos(u64::try_from(time.as_nanos()).unwrap());
        let now = self.now();
        self.desk.tick(now);
        self.collect();
    }

    /// Gives the desk a command as the engine decodes it.
    pub(crate) fn command(&mut self, context: RequestContext, command: Command) {
        let now = self.now();
        let request_id = context.request_id.clone();
        let command = match ClientCommand::from(command) {
            ClientCommand::Venue(VenueCommand::Order(order)) => {
                desk_command::order(order, self.desk.instruments())
            }
            ClientCommand::Venue(VenueCommand::Account(account)) => {
                desk_command::account(account, Some(&request_id))
            }
            ClientCommand::Password(password) => desk_command::password(password),
            other => panic!("{other:?} is not for the order desk"),
        };
        self.desk.command(context, command, now);
        self.collect();
    }

    pub(crate) fn submit(&mut self, order: &SubmitOrderRequest) -> String {
        let context = self.context();
        let id = context.request_id.clone();
        let command = SubmitOrder {
            request_id: id.clone().try_into().unwrap(),
            venue: "web_broker".to_owned(),
            order: order.clone(),
        };
        self.command(context, Command::SubmitOrder(command));
        id
    }

    /// A new order of another sender than a person.
    pub(crate) fn submit_of(&mut self, origin: OrderOrigin, order: &SubmitOrderRequest) {
        let place = self.desk.instruments().place(&order.instrument_id).unwrap();
        let order = NewOrder {
            origin,
            client_order_id: order.client_order_id.as_str().into(),
            request_key: order.request_key(),
            request: order.to_request(place),
        };
        let context = self.context();
        let now = self.now();
        self.desk.command(context, DeskCommand::Submit(order), now);
        self.collect();
    }

    /// A command of the engine itself; returns its id.
    pub(crate) fn tell(&mut self, command: DeskCommand) -> String {
        self.has_requested_balances = true;
        let context = self.context();
        let request_id = context.request_id.clone();
        let now = self.now();
        self.desk.command(context, command, now);
        self.collect();
        request_id
    }

    /// A strategy cancels its order.
    pub(crate) fn cancel_of_strategy(&mut self, id: &str) {
        self.tell(DeskCommand::Cancel(NamedOrder {
            origin: Origin::Strategy,
            client_order_id: Some(id.to_owned()),
            venue_order_id: None,
        }));
    }

    /// A strategy changes the shares of its order.
    pub(crate) fn modify_of_strategy(&mut self, id: &str, shares: u64) {
        let quantity = Some(Quantity::new(shares));
        self.tell(DeskCommand::Modify(OrderChange {
            order: NamedOrder {
                origin: Origin::Strategy,
                client_order_id: Some(id.to_owned()),
                venue_order_id: None,
            },
            change: Ok(OrderModify { quantity, ..OrderModify::default() }),
        }));
    }

    /// Time passes in steps; all requests are answered and all notices delivered.
    pub(crate) fn settle(&mut self, seconds: u64) {
        for _ in 0..seconds * 5 {
            self.pass(Duration::from_millis(200));
            self.answer_all();
            self.deliver_all();
        }
    }

    pub(crate) fn modify(
        &mut self,
        id: &str,
        quantity: Option<&str>,
        price: Option<&str>,
    ) -> String {
        let change = OrderModifyChange {
            new_quantity: quantity.map(str::to_owned),
            new_price: price.map(str::to_owned),
            ..OrderModifyChange::default()
        };
        self.change(id, change)
    }

    pub(crate) fn change(&mut self, id: &str, change: OrderModifyChange) -> String {
        let context = self.context();
        let request_id = context.request_id.clone();
        let command = ModifyOrder {
            request_id: request_id.clone().try_into().unwrap(),
            venue: "web_broker".to_owned(),
            client_order_id: Some(id.to_owned()),
            venue_order_id: None,
            change,
        };
        self.command(context, Command::ModifyOrder(command));
        request_id
    }

    pub(crate) fn cancel(&mut self, client: Option<&str>, venue: Option<&str>) -> String {
        let context = self.context();
        let request_id = context.request_id.clone();
        let command = CancelOrder {
            request_id: request_id.clone().try_into().unwrap(),
            venue: "web_broker".to_owned(),
            client_order_id: client.map(str::to_owned),
            venue_order_id: venue.map(str::to_owned),
        };
        self.command(context, Command::CancelOrder(command));
        request_id
    }

    pub(crate) fn cancel_all(&mut self, side: Option<OrderSide>) -> String {
        let context = self.context();
        let request_id = context.request_id.clone();
        let command = CancelAllOrders {
            request_id: request_id.clone().try_into().unwrap(),
            venue: "web_broker".to_owned(),
            instrument_id: None,
            order_side: side,
        };
        self.command(context, Command::CancelAllOrders(command));
        request_id
    }

    pub(crate) fn list(&mut self, filter: OrderListFilter) -> String {
        let context = self.context();
        let request_id = context.request_id.clone();
        let command = GetOrderList {
            request_id: request_id.clone().try_into().unwrap(),
            venue: "web_broker".to_owned(),
            filter,
        };
        self.command(context, Command::GetOrderList(command));
        request_id
    }

    pub(crate) fn password(&mut self, value: &str) {
        let context = self.context();
        let now = self.now();
        self.desk.set_second_password(context, Secret::from(value.to_owned()), now);
        self.collect();
    }

    /// The broker executes the request that is under way, and answers.
    pub(crate) fn answer(&mut self) {
        match self.in_flight.take() {
            Some(InFlight::Request { ticket, request, sent_p_no }) => {
                let reached = self.reached.take();
                let answered = reached.unwrap_or_else(|| self.broker.take(&request, self.wall));
                self.give(ticket, sent_p_no, Ok(answered));
            }
            Some(InFlight::Login { ticket }) => self.logged_in(ticket),
            None => {}
        }
    }

    /// The broker executes the request that is under way; its answer does not arrive yet.
    pub(crate) fn reach(&mut self) {
        if let (Some(InFlight::Request { request, .. }), None) = (&self.in_flight, &self.reached) {
            self.reached = Some(self.broker.take(request, self.wall));
        }
    }

    /// Answers all requests, until none is under way.
    pub(crate) fn answer_all(&mut self) {
        while self.in_flight.is_some() {
            self.answer();
        }
    }

    pub(crate) fn give(&mut self, ticket: u64, p_no: u64, result: Result<Answered, CallFailure>) {
        let said = self.broker.says.take();
        self.broker.reported.extend(said.filter(|_| result.is_ok()));
        let now = self.now();
        self.desk.answered(ticket, Called { p_no: Some(p_no), result }, now);
        self.collect();
    }

    /// The broker executes the request that is under way (or not), and its answer is lost.
    pub(crate) fn lose(&mut self, does_it: bool) {
        if matches!(self.in_flight, Some(InFlight::Login { .. })) {
            return;
        }
        if let Some(InFlight::Request { ticket, request, sent_p_no }) = self.in_flight.take() {
            let is_done = self.reached.take().is_some();
            if does_it && !is_done {
                self.broker.take(&request, self.wall);
            }
            self.give(ticket, sent_p_no, Err(CallFailure::Unknown("reset".to_owned())));
        }
    }

    /// The broker answers with a text of the test.
    pub(crate) fn answer_with(&mut self, answer: impl FnOnce(&str) -> Answered) {
        self.has_odd_answers = true;
        if matches!(self.in_flight, Some(InFlight::Login { .. })) {
            return;
        }
        // The broker does not refuse a request that it has executed.
        if self.reached.is_some() {
            return self.answer();
        }
        if let Some(InFlight::Request { ticket, request, sent_p_no }) = self.in_flight.take() {
            let answered = answer(&request.id);
            self.give(ticket, sent_p_no, Ok(answered));
        }
    }

    fn logged_in(&mut self, ticket: u64) {
        let now = self.now();
        let done = LoginDone {
            account: "1".to_owned(),
            has_margin: self.has_margin,
            changed: vec!["sUrlRequest"],
            is_open: self.is_open,
            masters: Some(masters()),
        };
        self.desk.login_ended(ticket, Ok(done), now);
        self.collect();
    }

    pub(crate) fn login_fails(&mut self) {
        if let Some(InFlight::Login { ticket }) = self.in_flight {
            self.in_flight = None;
            let now = self.now();
            let why = "the broker refuses the login (10031: no)".to_owned();
            let failed = LoginFailed::Failed { why, has_session: true };
            self.desk.login_ended(ticket, Err(failed), now);
            self.collect();
        }
    }

    pub(crate) fn log_in(&mut self) {
        let now = self.now();
        self.desk.login(Some("login".to_owned()), now);
        self.collect();
        self.answer_all();
        self.connect();
        self.answer_all();
    }

    /// A client requests a login, whatever is under way.
    pub(crate) fn login_again(&mut self) {
        let now = self.now();
        self.desk.login(None, now);
        self.collect();
    }

    /// A person requests the buying power, or the positions.
    pub(crate) fn balances(&mut self, positions: bool) {
        self.has_requested_balances = true;
        let context = self.context();
        let now = self.now();
        if positions {
            self.desk.positions(context, now);
        } else {
            self.desk.buying_power(context, now);
        }
        self.collect();
    }

    /// Connects the stream, which sends the day's notices again.
    pub(crate) fn connect(&mut self) {
        self.stream = self.broker.notices.iter().cloned().collect();
        self.streamed = self.broker.notices.len();
        self.is_streaming = true;
        let now = self.now();
        self.desk.stream_up(now);
        self.collect();
    }

    pub(crate) fn disconnect(&mut self) {
        self.is_streaming = false;
        self.stream.clear();
        self.desk.stream_down();
    }

    /// Puts new notices of the broker into the stream.
    pub(crate) fn pump(&mut self) {
        if self.is_streaming {
            let new = self.broker.notices[self.streamed..].iter().cloned();
            self.stream.extend(new);
            self.streamed = self.broker.notices.len();
        }
    }

    pub(crate) fn deliver(&mut self, place: usize) {
        if let Some(fields) = self.stream.remove(place) {
            let now = self.now();
            self.desk.frame(&fields, now);
            self.collect();
        }
    }

    /// Delivers all notices in order.
    pub(crate) fn deliver_all(&mut self) {
        self.pump();
        while !self.stream.is_empty() {
            self.deliver(0);
        }
    }

    /// Kills the program and starts it again: only the log's bytes are left. The request that is under way
    /// reaches the broker or not, and its answer is lost.
    pub(crate) fn restart(&mut self, reaches: bool) {
        if let Some(InFlight::Request { request, .. }) = self.in_flight.take()
            && self.reached.take().is_none()
            && reaches
        {
            self.broker.take(&request, self.wall);
        }
        self.is_streaming = false;
        self.stream.clear();
        let bytes = self.log.bytes.lock().unwrap().clone();
        let now = self.now();
        let dialect = Box::new(match self.has_details {
            true => PlainDialect::with_details(self.rejects),
            false => PlainDialect::new(self.rejects),
        });
        let restored = Restored::read(&bytes);
        self.desk = Desk::new(self.rules, dialect, Box::new(self.log.clone()), restored, now);
    }

    /// Names of the events since the last look, with the order's id.
    pub(crate) fn events(&mut self) -> Vec<String> {
        let reported = std::mem::take(&mut self.reported);
        // Where the second password stands is told beside all else.
        let is_asked = |event: &&Event<'_>| !matches!(event, Event::VenueState(state) if state.request_id.is_none());
        reported.iter().map(|(_, event)| event).filter(is_asked).map(short).collect()
    }

    /// The first event of a name since the last look, as JSON.
    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        let found = self.reported.iter().map(|(_, event)| serde_json::to_value(event).unwrap());
        found.rev().find(|event| event["event"] == name).unwrap_or_default()
    }
}

/// An event that outlives what it was made from.
fn owned(event: &Event<'_>) -> Event<'static> {
    serde_json::from_value(serde_json::to_value(event).unwrap()).unwrap()
}

/// An event in a few words: its name, the order, and what makes it differ.
pub(crate) fn short(event: &Event<'_>) -> String {
    let json = serde_json::to_value(event).unwrap();
    let mut text = json["event"].as_str().unwrap_or_default().to_owned();
    for name in
        ["client_order_id", "venue_order_id", "reason_code", "code", "discrepancy", "outcome"]
    {
        if let Some(value) = json[name].as_str() {
            text = format!("{text} {value}");
        }
    }
    text
}
