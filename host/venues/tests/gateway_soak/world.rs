//! The venue, its gateway, its clients and the time.

mod draws;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::gateway_mapping::GatewayDescription;
use domain::{JstDate, Random, TsNanos};
use secrecy::SecretString;
use venues::local_broker::gateway::{Gateway, Out, Rules};
use venues::local_broker::lifecycle::{Push, State};
use venues::local_broker::request::{Answer, NoAnswer};
use venues::local_broker::{ErrorCode, ForcedLogout, KeepAlive, NoPassword, VenueEvent};
use venues::{Now, Recipient, RequestContext};

use crate::dialect::Dialect;
use crate::model::{Issue, Link, Model, PASSWORD};
use crate::oracle::{Oracle, is_auction};

/// Trading days of a seed.
const DAYS: u64 = 10;
/// Random steps on a day.
const STEPS: u64 = 600;
/// The time between two ticks.
const TICK: Duration = Duration::from_millis(500);
/// The longest recovery of the venue after the last fault, and how long it is then watched.
const HEALED_WITHIN: Duration = Duration::from_secs(3_600);
const WATCHED: Duration = Duration::from_secs(120);

/// What arrives at the venue.
enum Delivery {
    Answer(u64, Result<Answer, NoAnswer>),
    Opened(u64),
    Closed(u64, &'static str),
    Pong(u64),
    /// A frame, and the issue at that time; `None` if nothing of it may be broadcast.
    Frame(u64, Vec<u8>, Option<Issue>),
    Password(Result<SecretString, NoPassword>),
}

/// A command without an answer yet.
#[derive(Debug)]
struct Waiting {
    client: u64,
    /// The symbol of a subscription that was not refused at once, and is the client's first of the symbol.
    symbol: Option<String>,
}

pub(crate) struct World {
    random: Random,
    gateway: Gateway,
    model: Model,
    oracle: Oracle,
    mono: Duration,
    begin: TsNanos,
    keep_alive: KeepAlive,
    deliveries: BTreeMap<(Duration, u64), Delivery>,
    /// Deliveries, clients and commands so far.
    serials: u64,
    clients: Vec<u64>,
    waiting: BTreeMap<String, Waiting>,
    answered: BTreeSet<String>,
    is_logging_in: bool,
    /// The symbols that were written down for the next engine.
    written: Vec<String>,
    /// The last fault is over.
    is_calm: bool,
    /// How often each case was reached.
    pub(crate) reached: BTreeMap<String, u64>,
}

/// A minute of a day in Japan.
fn at(date: JstDate, minute: u64) -> TsNanos {
    TsNanos::from_jst(date, minute * domain::time::NANOS_PER_MINUTE).unwrap()
}

/// The wire's name of an event, the id of its command or an empty text, and its code.
fn parts(event: &VenueEvent) -> (&'static str, String, Option<&'static str>) {
    let (name, id, code) = match event {
        VenueEvent::LoginStarted { request_id } => ("VenueLoginStarted", request_id.as_ref(), None),
        VenueEvent::LoginCancelled { request_id } => {
            ("VenueLoginCancelled", request_id.as_ref(), None)
        }
        VenueEvent::Ready { request_id } => ("VenueReady", request_id.as_ref(), None),
        VenueEvent::Unusable { code, .. } => ("VenueError", None, Some(*code)),
        VenueEvent::State { request_id, code, .. } => ("VenueState", Some(request_id), *code),
        VenueEvent::Error { request_id, code, .. } => ("Error", request_id.as_ref(), Some(*code)),
        VenueEvent::Subscribed { request_id, .. } => ("Subscribed", Some(request_id), None),
        VenueEvent::Unsubscribed { request_id, .. } => ("Unsubscribed", Some(request_id), None),
        VenueEvent::Evicted { request_id, .. } => ("SubscriptionEvicted", Some(request_id), None),
        VenueEvent::Board { request_id, .. } => ("DepthSnapshot", Some(request_id), None),
        VenueEvent::BuyingPower { request_id, .. } => {
            ("BuyingPowerUpdated", Some(request_id), None)
        }
        VenueEvent::Orders { request_id, .. } => ("OrderListUpdated", Some(request_id), None),
        VenueEvent::Positions { request_id, .. } => ("PositionsUpdated", Some(request_id), None),
        VenueEvent::UnreadableOrder { .. } => ("OrderDiscrepancy", None, None),
    };
    (name, id.cloned().unwrap_or_default(), code.map(ErrorCode::name))
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 2]);
        let keep_alive =
            if random.permille(750) { KeepAlive::Ping } else { KeepAlive::ReadTimeout };
        let rules = Rules {
            keep_alive,
            read_timeout: Duration::from_secs(120),
            forced_logout: ForcedLogout::default(),
            retry_wait: Duration::from_secs(5),
            reconnect_base: Duration::from_secs(5),
            order_calls_per_second: 5,
        };
        let board_read_registers = random.permille(500);
        let description = GatewayDescription { board_read_registers, ..Default::default() };
        // A Tuesday.
        let begin = at(JstDate::from_ymd_opt(2026, 11, 24).unwrap(), 8 * 60 + 50);
        let now = Now { mono: Duration::ZERO, wall: begin };
        Self {
            random,
            gateway: Gateway::new(rules, Box::new(Dialect(description)), now),
            model: Model::new(seed),
            oracle: Oracle::default(),
            mono: Duration::ZERO,
            begin,
            keep_alive,
            deliveries: BTreeMap::new(),
            serials: 4,
            clients: vec![1, 2, 3, 4],
            waiting: BTreeMap::new(),
            answered: BTreeSet::new(),
            is_logging_in: false,
            written: Vec::new(),
            is_calm: false,
            reached: BTreeMap::new(),
        }
    }

    /// Plays ten trading days, ends all faults, and checks the end.
    pub(crate) fn play(&mut self) {
        for day in 0..DAYS {
            for _ in 0..STEPS {
                self.step();
            }
            if day + 1 < DAYS {
                self.night();
            }
        }
        self.heal();
        self.check_registered();
        self.check_volumes();
        self.check_last_unregister();
    }

    fn now(&self) -> Now {
        let nanos = u64::try_from(self.mono.as_nanos()).unwrap();
        Now { mono: self.mono, wall: self.begin.plus_nanos(nanos) }
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.reached.entry(what.into()).or_default() += 1;
    }

    fn deliver(&mut self, after: Duration, delivery: Delivery) {
        self.serials += 1;
        self.deliveries.insert((self.mono + after, self.serials), delivery);
    }

    /// Passes time; deliveries arrive in order.
    fn advance(&mut self, time: Duration) {
        let end = self.mono + time;
        while self.mono < end {
            let next = (self.mono + TICK).min(end);
            self.advance_to(next);
        }
    }

    fn advance_to(&mut self, next: Duration) {
        while let Some(first) = self.deliveries.first_entry()
            && first.key().0 <= next
        {
            self.mono = self.mono.max(first.key().0);
            let delivery = first.remove();
            self.arrives(delivery);
            self.settle();
        }
        self.mono = next;
        let (before, now) = (self.gateway.state(), self.now());
        self.gateway.tick(now);
        self.settle();
        let after = self.gateway.state();
        if before != after {
            self.count(format!("state {after:?}"));
        }
    }

    fn arrives(&mut self, delivery: Delivery) {
        let (before, now) = (self.gateway.state(), self.now());
        match delivery {
            Delivery::Answer(ticket, came) => self.gateway.answered(ticket, came, now),
            Delivery::Opened(connection) => self.gateway.push_opened(connection, now),
            Delivery::Closed(connection, why) => self.gateway.push_closed(connection, why, now),
            Delivery::Pong(connection) => self.gateway.push_lives(connection, now),
            Delivery::Password(given) => self.gateway.password(given, now),
            Delivery::Frame(connection, message, issue) => {
                let day = now.wall.jst_day();
                let is_logout = ForcedLogout::default().contains(now.wall);
                let shown = self.gateway.frame(connection, &message, now);
                let what = match (shown, issue) {
                    (None, _) => "not shown",
                    (Some(out), None) => panic!("a frame is told that may not be: {out:?}"),
                    (Some(out), Some(issue)) => {
                        assert!(!is_logout, "a frame is told while the gateway is logged out");
                        let trade = out.trade.as_ref();
                        self.oracle.frame(&issue, &out.board, trade, day);
                        match trade {
                            None => "shown",
                            Some(trade) if trade.after_gap => "after_gap",
                            trade if is_auction(trade) => "auction",
                            Some(_) => "trade",
                        }
                    }
                };
                self.count(what);
            }
        }
        let after = self.gateway.state();
        if before != after {
            self.count(format!("state {after:?}"));
        }
    }

    /// Executes the output of the venue.
    fn settle(&mut self) {
        loop {
            let outs = self.gateway.take_out();
            if outs.is_empty() {
                return;
            }
            for out in outs {
                self.does(out);
            }
        }
    }

    fn does(&mut self, out: Out) {
        let soon = Duration::from_millis(1 + self.random.below(80));
        match out {
            Out::Send(to, event) => self.take_event(to, &event),
            Out::Ask { ticket, request } => {
                let (came, after) = self.model.ask(&request, self.mono);
                let ours =
                    self.model.registered.iter().filter(|at| !self.model.foreign.contains(at));
                for (symbol, _) in ours {
                    assert!(
                        self.written.contains(symbol),
                        "{symbol} is registered, and nobody knows"
                    );
                }
                self.deliver(after, Delivery::Answer(ticket, came));
            }
            Out::WriteRegistered { symbols, .. } => self.written = symbols,
            Out::AskPassword => {
                let given = match self.random.below(20) {
                    0 if !self.is_calm => Ok(SecretString::from("marker-wrong-password")),
                    1 | 2 if !self.is_calm => {
                        Err(NoPassword { why: "given up".to_owned(), is_wanted: true })
                    }
                    _ => Ok(SecretString::from(PASSWORD)),
                };
                let after = Duration::from_secs(1 + self.random.below(30));
                self.deliver(after, Delivery::Password(given));
            }
            Out::OpenPush { connection } => {
                if self.model.is_up(self.mono) {
                    let last = self.mono + soon;
                    self.model.link = Some(Link { connection, is_frozen: false, last });
                    self.deliver(soon, Delivery::Opened(connection));
                } else {
                    self.model.link = None;
                    self.deliver(soon, Delivery::Closed(connection, "refused"));
                }
            }
            Out::ClosePush => self.model.link = None,
            Out::Ping => {
                if let Some(link) = self.model.link.as_ref().filter(|link| !link.is_frozen) {
                    let pong = Delivery::Pong(link.connection);
                    self.deliver(soon, pong);
                }
            }
        }
    }

    fn take_event(&mut self, to: Recipient, event: &VenueEvent) {
        let text = format!("{event:?}");
        assert!(!text.contains("marker"), "a secret is told: {text}");
        let (name, id, code) = parts(event);
        self.count(code.map_or(name.to_owned(), |code| format!("{name} {code}")));
        assert!(!self.answered.contains(&id), "a second answer: {text}");
        match event {
            VenueEvent::LoginStarted { .. } => return self.is_logging_in = true,
            VenueEvent::Ready { .. } => {
                self.oracle.logins += u64::from(self.is_logging_in);
                return self.is_logging_in = false;
            }
            VenueEvent::LoginCancelled { .. } | VenueEvent::Unusable { .. } => {
                return self.is_logging_in = false;
            }
            VenueEvent::Evicted { symbol, .. } => return self.oracle.gone(symbol),
            VenueEvent::Board { board, .. } => {
                let day = self.now().wall.jst_day();
                self.oracle.board(board, day);
            }
            _ => {}
        }
        let Some(waiting) = self.waiting.remove(&id) else { return };
        assert_eq!(to, Recipient::Client(waiting.client), "{text}");
        if name == "Error"
            && let Some(symbol) = &waiting.symbol
        {
            self.oracle.released(waiting.client, symbol);
        }
        self.answered.insert(id);
    }

    /// The last fault is over: the venue recovers by itself, except for a login that only a person can do.
    fn heal(&mut self) {
        self.is_calm = true;
        self.model.faults.clear();
        self.model.down_until = None;
        (self.model.is_logged_in, self.model.out_until) = (true, None);
        let foreign = std::mem::take(&mut self.model.foreign);
        self.model.registered.retain(|entry| !foreign.contains(entry));
        if self.model.link.as_ref().is_some_and(|link| link.is_frozen) {
            self.cut("the connection ended");
        }
        let (end, mut whole_since) = (self.mono + HEALED_WITHIN, None);
        while whole_since.is_none_or(|since| self.mono < since + WATCHED) {
            let state = self.gateway.state();
            assert!(self.mono < end, "{state:?} an hour after the last fault: {:?}", self.waiting);
            if matches!(state, State::Disconnected | State::TokenExpired) {
                self.log_in();
            }
            // A market without data is a fault, too.
            self.market();
            self.advance(Duration::from_secs(1));
            let is_whole = state == State::Ready(Push::Streaming) && self.waiting.is_empty();
            whole_since = is_whole.then(|| whole_since.unwrap_or(self.mono));
        }
    }

    /// Checks that the gateway has the wanted symbols, and no others of ours.
    fn check_registered(&self) {
        let mut held: Vec<&str> =
            self.model.registered.iter().map(|(symbol, _)| symbol.as_str()).collect();
        held.sort_unstable();
        let all = self.gateway.symbols();
        let mut ours: Vec<&str> = all.iter().map(String::as_str).collect();
        ours.sort_unstable();
        assert_eq!(held, ours, "what the gateway has, and what the venue wants");
        for symbol in self.oracle.wanted.keys() {
            assert!(ours.contains(&symbol.as_str()), "{symbol} is wanted: {ours:?}");
        }
    }

    /// Checks that every share that was traded since the first frame of a stretch was broadcast, once.
    fn check_volumes(&mut self) {
        let wanted: Vec<String> = self.oracle.wanted.keys().cloned().collect();
        for _ in 0..2 {
            for symbol in &wanted {
                let place = self.model.issue(symbol).unwrap();
                self.model.trade(place);
                self.model.issues[place].sides = (true, true);
                assert!(self.model.pushes(symbol));
                self.frame_of(place, 1);
            }
            self.advance(Duration::from_secs(1));
        }
        for symbol in &wanted {
            let place = self.model.issue(symbol).unwrap();
            self.oracle.check_whole(symbol, self.model.issues[place].volume);
        }
        self.count(format!("{} symbols at the end", wanted.len() / 10 * 10));
    }

    /// Checks that at the end of the program nothing of ours stays registered.
    fn check_last_unregister(&mut self) {
        // A token that another login has ended is detected by a request.
        let (context, now) =
            (RequestContext { client: 0, request_id: "last".to_owned() }, self.now());
        self.gateway.positions(context, now);
        self.advance(Duration::from_secs(5));
        let Some(request) = self.gateway.last_unregister() else {
            assert_eq!(self.gateway.symbols().len(), 0);
            return;
        };
        let (answer, _) = self.model.ask(&request, self.mono + Duration::from_secs(2));
        assert_eq!(answer.unwrap().status, 200);
        assert_eq!(self.model.registered, []);
    }
}
