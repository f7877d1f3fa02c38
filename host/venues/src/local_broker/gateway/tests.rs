//! The venue against a gateway of these tests, in simulated time.

mod again;
mod late;
mod life;
mod limits;
mod places;
mod push;
mod reads;
mod symbols;

use std::collections::BTreeSet;
use std::time::Duration;

use domain::JstDate;
use domain::TsNanos;
use domain::fault::Identity;
use domain::gateway_mapping::{
    GatewayBoard, GatewayDescription, GatewayErrorKind, GatewayMapping, GatewayRefusal,
};
use domain::market_update::Level;
use domain::order_mapping::Mapped;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::{Gateway, Out, Rules};
use crate::local_broker::config::{ForcedLogout, KeepAlive};
use crate::local_broker::event::VenueEvent;
use crate::local_broker::lifecycle::State;
use crate::local_broker::registration_file::LeftOver;
use crate::local_broker::request::{Answer, NoAnswer, Question};
use crate::local_broker::service::NoPassword;
use crate::{Now, Recipient, RequestContext};

/// The right password.
const PASSWORD: &str = "marker4password";

/// A dialect whose codes are words and whose boards are small.
struct Plain(GatewayDescription);

impl GatewayMapping for Plain {
    fn identity(&self) -> Identity {
        Identity { component: "plain".to_owned(), sha256: "0".repeat(64) }
    }

    fn description(&self) -> &GatewayDescription {
        &self.0
    }

    fn classify(&mut self, status: u16, body: &str) -> Mapped<GatewayRefusal> {
        let kind = match (status, body) {
            (401, "wrong password") => GatewayErrorKind::Other,
            (401, _) => GatewayErrorKind::TokenExpired,
            (429, _) => GatewayErrorKind::RateLimited,
            (400, "full") => GatewayErrorKind::RegisterFull,
            _ => GatewayErrorKind::Other,
        };
        let code = body.strip_prefix("code ").and_then(|code| code.parse().ok());
        Ok(GatewayRefusal { kind, code, message: body.to_owned() })
    }

    fn read_board(&mut self, message: &str) -> Mapped<Result<GatewayBoard, String>> {
        let Ok(read) = serde_json::from_str::<Value>(message) else {
            return Ok(Err("no JSON".to_owned()));
        };
        let number = |name: &str| read.get(name).and_then(Value::as_i64);
        let level = |price| Level { price, quantity: 1_000_000 };
        let (best_ask, best_bid) = (number("ask"), number("bid"));
        Ok(Ok(GatewayBoard {
            symbol: read["symbol"].as_str().unwrap_or_default().to_owned(),
            exchange: number("exchange").or(Some(1)),
            name: read["name"].as_str().or(Some("トヨタ自動車")).map(str::to_owned),
            last_price: number("price"),
            volume: number("volume"),
            best_ask,
            best_bid,
            asks: best_ask.map(level).into_iter().collect(),
            bids: best_bid.map(level).into_iter().collect(),
            ..GatewayBoard::default()
        }))
    }
}

/// A gateway: its state, and its faults.
struct Fake {
    is_up: bool,
    /// Whether the stream can be opened.
    pushes: bool,
    /// Whether it answers requests.
    is_logged_in: bool,
    /// It takes requests, and never answers.
    is_mute: bool,
    /// The same for some paths.
    mute: Vec<&'static str>,
    /// Reading a board registers its symbol.
    board_registers: bool,
    tokens: u32,
    /// The token that it takes.
    token: Option<String>,
    registered: Vec<(String, i64)>,
    /// Symbols that it leaves out of its list.
    deaf: BTreeSet<String>,
    /// Symbols with which a registration is answered by status 500.
    poison: BTreeSet<String>,
    /// Answers in place of its own, for requests whose path begins so.
    instead: Vec<(&'static str, u16, &'static str)>,
    context: Vec<String>,
    orders: Vec<Value>,
    /// The time, and until when it refuses requests for balances; each earlier request prolongs that.
    now: Duration,
    locked: Duration,
}

impl Fake {
    fn answer(&mut self, question: &Question, secret: &SecretString) -> Result<Answer, NoAnswer> {
        let path = question.path();
        self.context.push(path.clone());
        if !self.is_up {
            return Err(NoAnswer::Refused("the server refuses the connection".to_owned()));
        }
        if self.is_mute || self.mute.iter().any(|of| path.starts_with(of)) {
            return Err(NoAnswer::Unreachable("nothing came in time".to_owned()));
        }
        let say = |status, body: String| Ok(Answer { status, body: body.into() });
        if path.starts_with("/wallet") && self.now < self.locked {
            self.locked = self.now + secs(1);
            return say(429, "slow down".to_owned());
        }
        if let Some(place) = self.instead.iter().position(|(of, ..)| path.starts_with(of)) {
            let (_, status, body) = self.instead.remove(place);
            return say(status, body.to_owned());
        }
        let secret = secret.expose_secret();
        if *question == Question::Token {
            return match (self.is_logged_in, secret == PASSWORD) {
                (false, _) => say(401, "nobody is logged in".to_owned()),
                (true, false) => say(401, "wrong password".to_owned()),
                (true, true) => {
                    self.tokens += 1;
                    let token = format!("marker4t{}oken", self.tokens);
                    let body = json!({ "ResultCode": 0, "Token": token }).to_string();
                    self.token = Some(token);
                    say(200, body)
                }
            };
        }
        if !self.is_logged_in || self.token.as_deref() != Some(secret) {
            return say(401, "no such token".to_owned());
        }
        match question {
            Question::Register(symbols) if symbols.iter().any(|one| self.poison.contains(one)) => {
                say(500, "oops".to_owned())
            }
            Question::Register(symbols) => {
                for symbol in symbols.iter().filter(|symbol| !self.deaf.contains(*symbol)) {
                    let entry = (symbol.clone(), 1);
                    if !self.registered.contains(&entry) {
                        if self.registered.len() >= 50 {
                            return say(400, "full".to_owned());
                        }
                        self.registered.push(entry);
                    }
                }
                say(200, self.list())
            }
            Question::Unregister(symbols) => {
                self.registered.retain(|(symbol, _)| !symbols.contains(symbol));
                say(200, self.list())
            }
            Question::Cash => say(200, json!({ "StockAccountWallet": 12_345.5 }).to_string()),
            Question::Margin => say(200, json!({ "MarginAccountWallet": null }).to_string()),
            Question::Orders => say(200, Value::from(self.orders.clone()).to_string()),
            Question::Positions => say(200, "[]".to_owned()),
            Question::Board(key) => {
                let symbol = key.split('@').next().unwrap_or_default();
                if self.board_registers {
                    self.registered.push((symbol.to_owned(), 1));
                }
                say(200, frame(symbol, 1_000, 0))
            }
            Question::Token | Question::UnregisterAll => say(500, String::new()),
        }
    }

    fn list(&self) -> String {
        let row = |(symbol, at): &(String, i64)| json!({ "Symbol": symbol, "Exchange": at });
        json!({ "RegistList": self.registered.iter().map(row).collect::<Vec<_>>() }).to_string()
    }

    fn symbols(&self) -> Vec<&str> {
        self.registered.iter().map(|(symbol, _)| symbol.as_str()).collect()
    }

    /// The number of requests for a path since the last call.
    fn took(&mut self, path: &str) -> usize {
        let count = self.context.iter().filter(|context| context.starts_with(path)).count();
        self.context.retain(|context| !context.starts_with(path));
        count
    }
}

/// A frame of a symbol: a price in yen and the day's volume in shares; the quote is one yen around it.
fn frame(symbol: &str, price: i64, volume: i64) -> String {
    json!({
        "symbol": symbol, "price": price * 10_000, "volume": volume * 10_000,
        "ask": (price + 1) * 10_000, "bid": (price - 1) * 10_000,
    })
    .to_string()
}

/// A venue, its gateway, and the time.
struct World {
    gateway: Gateway,
    fake: Fake,
    mono: Duration,
    begin: TsNanos,
    reported: Vec<(Recipient, VenueEvent)>,
    /// The user's answer; `None` before there is one.
    user: Option<Result<&'static str, &'static str>>,
    /// The open connection.
    connection: Option<u64>,
    /// The symbols that were written down.
    written: (u64, Vec<String>),
    pings: usize,
    answers_pings: bool,
    /// The volume of all trades that were broadcast, in shares, and the number of snapshots.
    traded: i64,
    snapshots: usize,
}

/// A time on a Tuesday in Japan.
fn at(hour: u64, minute: u64) -> TsNanos {
    let date = JstDate::from_ymd_opt(2026, 11, 24).unwrap();
    TsNanos::from_jst(date, (hour * 60 + minute) * 60_000_000_000).unwrap()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn rules(keep_alive: KeepAlive) -> Rules {
    Rules {
        keep_alive,
        read_timeout: secs(120),
        forced_logout: ForcedLogout::default(),
        retry_wait: secs(5),
        reconnect_base: secs(5),
        order_calls_per_second: 5,
    }
}

impl World {
    fn new() -> Self {
        Self::with(KeepAlive::Ping, at(9, 30))
    }

    fn with(keep_alive: KeepAlive, begin: TsNanos) -> Self {
        let mapping =
            GatewayDescription { board_read_registers: true, ..GatewayDescription::default() };
        let now = Now { mono: Duration::ZERO, wall: begin };
        Self {
            gateway: Gateway::new(rules(keep_alive), Box::new(Plain(mapping)), now),
            fake: Fake {
                is_up: true,
                pushes: true,
                is_logged_in: true,
                is_mute: false,
                mute: Vec::new(),
                board_registers: false,
                tokens: 0,
                token: None,
                registered: Vec::new(),
                deaf: BTreeSet::new(),
                poison: BTreeSet::new(),
                instead: Vec::new(),
                context: Vec::new(),
                orders: Vec::new(),
                now: Duration::ZERO,
                locked: Duration::ZERO,
            },
            mono: Duration::ZERO,
            begin,
            reported: Vec::new(),
            user: Some(Ok(PASSWORD)),
            connection: None,
            written: (0, Vec::new()),
            pings: 0,
            answers_pings: true,
            traded: 0,
            snapshots: 0,
        }
    }

    /// A world with a dialect whose reads of boards register the symbol, or do not.
    fn dialect(board_read_registers: bool) -> Self {
        let mapping = GatewayDescription { board_read_registers, ..GatewayDescription::default() };
        let now = Now { mono: Duration::ZERO, wall: at(9, 30) };
        let gateway = Gateway::new(rules(KeepAlive::Ping), Box::new(Plain(mapping)), now);
        let mut world = Self { gateway, ..Self::new() };
        world.fake.board_registers = board_read_registers;
        world
    }

    /// A world with a login and an open stream.
    fn ready() -> Self {
        let mut world = Self::new();
        world.login("l");
        assert_eq!(world.state(), "Ready Streaming");
        // The next request may leave at once.
        world.wait(secs(1));
        world.reported.clear();
        world.fake.context.clear();
        world
    }

    fn now(&self) -> Now {
        let nanos = u64::try_from(self.mono.as_nanos()).unwrap();
        Now { mono: self.mono, wall: self.begin.plus_nanos(nanos) }
    }

    /// Executes the output of the venue, until there is no more.
    fn settle(&mut self) {
        loop {
            let outs = self.gateway.take_out();
            if outs.is_empty() {
                return;
            }
            for out in outs {
                let now = self.now();
                match out {
                    Out::Send(to, event) => {
                        // Clients know the venue by its name only (specification 1, "What the service does").
                        let text = format!("{event:?}");
                        assert!(!text.contains("127.0.0.1") && !text.contains("1808"), "{text}");
                        self.reported.push((to, *event));
                    }
                    Out::Ask { ticket, request } => {
                        self.fake.now = self.mono;
                        let answer = self.fake.answer(&request.question, &request.secret);
                        self.gateway.answered(ticket, answer, now);
                    }
                    Out::WriteRegistered { gateway_day, symbols } => {
                        self.written = (gateway_day, symbols)
                    }
                    Out::AskPassword => {
                        if let Some(user) = self.user {
                            let given = user.map(SecretString::from);
                            let given = given
                                .map_err(|why| NoPassword { why: why.to_owned(), is_wanted: true });
                            self.gateway.password(given, now);
                        }
                    }
                    Out::OpenPush { connection } => {
                        self.connection = None;
                        if self.fake.is_up && self.fake.pushes {
                            self.connection = Some(connection);
                            self.gateway.push_opened(connection, now);
                        } else {
                            self.gateway.push_closed(connection, "refused", now);
                        }
                    }
                    Out::ClosePush => self.connection = None,
                    Out::Ping => {
                        self.pings += 1;
                        if let Some(connection) = self.connection.filter(|_| self.answers_pings) {
                            self.gateway.push_lives(connection, now);
                        }
                    }
                }
            }
        }
    }

    /// Passes time.
    fn wait(&mut self, time: Duration) {
        let end = self.mono + time;
        while self.mono < end {
            self.mono = (self.mono + Duration::from_millis(100)).min(end);
            let now = self.now();
            self.gateway.tick(now);
            self.settle();
        }
    }

    fn context(client: u64, request: &str) -> RequestContext {
        RequestContext { client, request_id: request.to_owned() }
    }

    fn login(&mut self, request: &str) {
        let now = self.now();
        self.gateway.login(Some(Self::context(1, request)), now);
        self.settle();
    }

    fn subscribe(&mut self, client: u64, request: &str, ticker: &str) {
        let now = self.now();
        self.gateway.subscribe(Self::context(client, request), ticker, now);
        self.settle();
    }

    fn unsubscribe(&mut self, client: u64, request: &str, ticker: &str) {
        let now = self.now();
        self.gateway.unsubscribe(&Self::context(client, request), ticker, now);
        self.settle();
    }

    fn board(&mut self, client: u64, request: &str, ticker: &str) {
        let now = self.now();
        self.gateway.board(Self::context(client, request), ticker, now);
        self.settle();
    }

    fn evict(&mut self, request: &str) {
        let now = self.now();
        self.gateway.evict_lru(&Self::context(1, request), now);
        self.settle();
    }

    fn buying_power(&mut self, request: &str) {
        let now = self.now();
        self.gateway.buying_power(Self::context(1, request), now);
        self.settle();
    }

    fn positions(&mut self, client: u64, request: &str) {
        let now = self.now();
        self.gateway.positions(Self::context(client, request), now);
        self.settle();
    }

    /// The text of the last error.
    fn words(&self) -> String {
        let of = |(_, event): &(Recipient, VenueEvent)| match event {
            VenueEvent::Error { message, .. } | VenueEvent::Unusable { message, .. } => {
                Some(message.clone())
            }
            _ => None,
        };
        self.reported.iter().rev().find_map(of).unwrap_or_default()
    }

    fn left(&mut self, client: u64) {
        let now = self.now();
        self.gateway.client_left(client, now);
        self.settle();
    }

    /// Pushes a frame over the open connection. Returns whether it was broadcast.
    fn push(&mut self, message: &str) -> bool {
        let (connection, now) = (self.connection.unwrap_or(0), self.now());
        let update = self.gateway.frame(connection, message.as_bytes(), now);
        self.settle();
        let Some(update) = update else { return false };
        self.traded += update.trade.map(|trade| trade.quantity / 10_000).unwrap_or_default();
        self.snapshots += 1;
        true
    }

    /// The stream ends.
    fn drop_push(&mut self) {
        let (connection, now) = (self.connection.take().unwrap(), self.now());
        self.gateway.push_closed(connection, "the gateway ended the stream", now);
        self.settle();
    }

    /// The gateway goes down, for longer than the tries last.
    fn goes_down(&mut self) {
        self.fake.is_up = false;
        self.drop_push();
        self.wait(secs(200));
        assert_eq!(self.state(), "AppDown (local_app_down)");
    }

    /// State of the venue, as clients get it.
    fn state(&mut self) -> String {
        let now = self.now();
        self.gateway.venue_state(Self::context(9, "state"), now);
        let mut outs = self.gateway.take_out();
        let Some(Out::Send(Recipient::Client(9), event)) = outs.pop_front() else {
            panic!("{outs:?} waited");
        };
        let VenueEvent::State { state, code, .. } = *event else { panic!("{event:?}") };
        let push = state.push().map(|push| format!(" {push}")).unwrap_or_default();
        let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
        let name = match state {
            State::Disconnected => "Disconnected",
            State::LoggingIn(_) => "LoggingIn",
            State::Ready(_) => "Ready",
            State::TokenExpired => "TokenExpired",
            State::AppDown => "AppDown",
        };
        format!("{name}{push}{code}")
    }

    /// The events since the last call, in short.
    fn events(&mut self) -> Vec<String> {
        let reported = std::mem::take(&mut self.reported);
        reported.iter().map(|(to, event)| short(*to, event)).collect()
    }
}

/// An event in short: `*` is for all.
fn short(to: Recipient, event: &VenueEvent) -> String {
    let to = match to {
        Recipient::All => "*".to_owned(),
        Recipient::Client(client) => client.to_string(),
    };
    // Tests write events by the names of messages.
    let (name, request_id, symbol, code) = match event {
        VenueEvent::LoginStarted { request_id } => {
            ("VenueLoginStarted", request_id.as_deref(), None, None)
        }
        VenueEvent::LoginCancelled { request_id } => {
            ("VenueLoginCancelled", request_id.as_deref(), None, None)
        }
        VenueEvent::Ready { request_id } => ("VenueReady", request_id.as_deref(), None, None),
        VenueEvent::Unusable { code, .. } => ("VenueError", None, None, Some(*code)),
        VenueEvent::State { request_id, code, .. } => {
            ("VenueState", Some(&**request_id), None, *code)
        }
        VenueEvent::Error { request_id, code, .. } => {
            ("Error", request_id.as_deref(), None, Some(*code))
        }
        VenueEvent::Subscribed { request_id, symbol, .. } => {
            ("Subscribed", Some(&**request_id), Some(&**symbol), None)
        }
        VenueEvent::Unsubscribed { request_id, symbol } => {
            ("Unsubscribed", Some(&**request_id), Some(&**symbol), None)
        }
        VenueEvent::Evicted { request_id, symbol } => {
            ("SubscriptionEvicted", Some(&**request_id), Some(&**symbol), None)
        }
        VenueEvent::Board { request_id, board } => {
            ("DepthSnapshot", Some(&**request_id), Some(board.symbol.as_str()), None)
        }
        VenueEvent::BuyingPower { request_id, .. } => {
            ("BuyingPowerUpdated", Some(&**request_id), None, None)
        }
        VenueEvent::Orders { request_id, .. } => {
            ("OrderListUpdated", Some(&**request_id), None, None)
        }
        VenueEvent::Positions { request_id, .. } => {
            ("PositionsUpdated", Some(&**request_id), None, None)
        }
        VenueEvent::UnreadableOrder { .. } => ("OrderDiscrepancy", None, None, None),
    };
    let code = code.map(super::ErrorCode::name);
    let parts = [Some(&*to), Some(name), request_id, symbol, code];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

impl World {
    fn is_ready(&self) -> bool {
        matches!(self.gateway.state(), State::Ready(_))
    }
}
