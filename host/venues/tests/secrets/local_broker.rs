//! A local gateway that repeats the password and the token, in every spelling, in every text that it can send.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::fault::Identity;
use domain::gateway_mapping::{
    GatewayBoard, GatewayDescription, GatewayErrorKind, GatewayMapping, GatewayRefusal,
};
use domain::order_mapping::Mapped;
use domain::{JstDate, TsNanos};
use secrecy::SecretString;
use serde_json::{Value, json};
use venues::local_broker::gateway::{Gateway, Out, Rules};
use venues::local_broker::request::{Answer, Question};
use venues::local_broker::{ForcedLogout, KeepAlive, VenueEvent};
use venues::{Now, OrderQuery, RequestContext};

use super::{collect_logs, log_so_far};

const PASSWORD: &str = "Canary7Word";
const TOKEN: &str = "tOken-Marker5";
/// Letters of a secret in a row that must not be shown.
const LETTERS_MAX: usize = 5;

/// A dialect that cuts its texts, at an unlucky place each time.
struct Cutting {
    description: GatewayDescription,
    cut: usize,
}

impl Cutting {
    fn cut(&self, text: &str) -> String {
        text.chars().take(self.cut).collect()
    }
}

impl GatewayMapping for Cutting {
    fn identity(&self) -> Identity {
        Identity { component: "cutting".to_owned(), sha256: "0".repeat(64) }
    }

    fn description(&self) -> &GatewayDescription {
        &self.description
    }

    fn classify(&mut self, _: u16, body: &str) -> Mapped<GatewayRefusal> {
        let read: Value = serde_json::from_str(body).unwrap_or_default();
        let message = self.cut(read["Message"].as_str().unwrap_or(body));
        Ok(GatewayRefusal { kind: GatewayErrorKind::Other, code: read["Code"].as_i64(), message })
    }

    fn read_board(&mut self, message: &str) -> Mapped<Result<GatewayBoard, String>> {
        let Ok(read) = serde_json::from_str::<Value>(message) else {
            return Ok(Err(format!("`{}` is no JSON", self.cut(message))));
        };
        let Some(symbol) = read["Symbol"].as_str().filter(|symbol| *symbol == "7203") else {
            return Ok(Err(format!("`{}` is no symbol", self.cut(&read["Symbol"].to_string()))));
        };
        let name = read["SymbolName"].as_str().map(|name| self.cut(name));
        Ok(Ok(GatewayBoard {
            symbol: symbol.to_owned(),
            exchange: Some(1),
            name,
            ..GatewayBoard::default()
        }))
    }
}

/// The spellings of a secret in JSON, and the text that a reader of it would see.
fn spellings(secret: &str) -> Vec<(String, String)> {
    let each = |spell: &dyn Fn(u8) -> String| secret.bytes().map(spell).collect::<String>();
    let encoded = |before: &str| STANDARD.encode(format!("{before}{secret}+more"));
    let plain = [
        secret.to_owned(),
        secret.to_uppercase(),
        secret.to_lowercase(),
        STANDARD.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
        encoded("u:"),
        encoded("xyz9"),
        each(&|byte| format!("%{byte:02X}")),
        each(&|byte| format!("%{byte:02x}")),
        each(&|byte| format!("{byte:02x}")),
        each(&|byte| format!("{byte:02X}")),
        each(&|byte| format!("{byte:02x} ")),
        each(&|byte| format!("{}\u{200b}", char::from(byte))),
    ];
    let mut all: Vec<(String, String)> = plain.map(|text| (text.clone(), text)).into();
    all.push((each(&|byte| format!("\\u{byte:04x}")), secret.to_owned()));
    all.push((each(&|byte| format!("{}\\n", char::from(byte))), secret.to_owned()));
    all
}

/// The parts of a spelling that must not be shown, in small letters: each row of letters that is too long.
fn shown_parts(seen: &str) -> Vec<String> {
    let letters: Vec<char> = seen.to_lowercase().chars().collect();
    // An encoded letter takes two or three.
    let count = match seen {
        text if text.starts_with('%') => LETTERS_MAX * 3,
        text if text.len() >= 22 => LETTERS_MAX * 2,
        _ => LETTERS_MAX,
    };
    letters.windows(count + 1).map(|window| window.iter().collect()).collect()
}

/// A venue that is logged in with the stream open, the time, and all of its output.
struct World {
    gateway: Gateway,
    mono: Duration,
    /// The gateway's answer to every request, except the login and registrations.
    answer: (u16, String),
    token_answer: String,
    connection: u64,
    reported: String,
}

fn context(client: u64) -> RequestContext {
    RequestContext { client, request_id: "r".to_owned() }
}

impl World {
    fn new(cut: usize) -> Self {
        let mut world = Self::logged_out(cut);
        world.log_in();
        world
    }

    fn logged_out(cut: usize) -> Self {
        let rules = Rules {
            keep_alive: KeepAlive::Ping,
            read_timeout: Duration::from_secs(120),
            forced_logout: ForcedLogout::default(),
            retry_wait: Duration::from_secs(5),
            reconnect_base: Duration::from_secs(5),
            order_calls_per_second: 5,
        };
        let description = GatewayDescription { board_read_registers: true, ..Default::default() };
        let now = Now { mono: Duration::ZERO, wall: wall(Duration::ZERO) };
        Self {
            gateway: Gateway::new(rules, Box::new(Cutting { description, cut }), now),
            mono: Duration::ZERO,
            answer: (200, "[]".to_owned()),
            token_answer: json!({ "ResultCode": 0, "Token": TOKEN }).to_string(),
            connection: 0,
            reported: String::new(),
        }
    }

    fn now(&self) -> Now {
        Now { mono: self.mono, wall: wall(self.mono) }
    }

    fn log_in(&mut self) {
        self.gateway.login(Some(context(1)), self.now());
        self.settle();
    }

    /// Executes the output of the venue for half a minute: as long as any request is repeated.
    fn settle(&mut self) {
        for _ in 0..60 {
            let mut outs: VecDeque<Out> = self.gateway.take_out();
            while let Some(out) = outs.pop_front() {
                self.reported += &format!("{out:?}\n");
                let now = self.now();
                match out {
                    Out::Ask { ticket, request } => {
                        let answer = self.answer_to(&request.question);
                        self.gateway.answered(ticket, Ok(answer), now);
                    }
                    Out::AskPassword => {
                        self.gateway.password(Ok(SecretString::from(PASSWORD)), now);
                    }
                    Out::OpenPush { connection } => {
                        self.connection = connection;
                        self.gateway.push_opened(connection, now);
                    }
                    // Further fields go to clients as they are.
                    Out::Send(_, event) => {
                        if let VenueEvent::Orders { orders, .. } = *event {
                            for order in orders {
                                self.reported += &serde_json::to_string(&order.extra).unwrap();
                            }
                        }
                    }
                    Out::ClosePush | Out::Ping | Out::WriteRegistered { .. } => {}
                }
                outs.extend(self.gateway.take_out());
            }
            self.mono += Duration::from_millis(500);
            self.gateway.push_lives(self.connection, self.now());
            self.gateway.tick(self.now());
        }
    }

    fn answer_to(&self, question: &Question) -> Answer {
        let (status, body) = match question {
            Question::Token => (200, self.token_answer.clone()),
            Question::Register(_) if self.answer.0 == 200 => {
                (200, json!({ "RegistList": [{ "Symbol": "7203", "Exchange": 1 }] }).to_string())
            }
            _ => self.answer.clone(),
        };
        Answer { status, body: body.into() }
    }

    /// Sends every request to a gateway that answers this.
    fn request_all(&mut self, status: u16, body: &str) {
        self.answer = (status, body.to_owned());
        self.gateway.order_list(context(1), &OrderQuery::default(), self.now());
        self.gateway.positions(context(1), self.now());
        self.gateway.buying_power(context(1), self.now());
        self.gateway.board(context(1), "7203", self.now());
        self.settle();
    }

    /// Pushes a frame, and then subscribes one more client to the issue.
    fn push(&mut self, client: u64, frame: &str) {
        self.gateway.subscribe(context(client), "7203", self.now());
        self.settle();
        let now = self.now();
        if let Some(update) = self.gateway.frame(self.connection, frame.as_bytes(), now) {
            self.settle();
            self.reported += &format!("{update:?}");
        }
        self.gateway.subscribe(context(client + 1), "7203", now);
        self.settle();
    }
}

fn wall(mono: Duration) -> TsNanos {
    let date = JstDate::from_ymd_opt(2026, 11, 24).unwrap();
    let begin = TsNanos::from_jst(date, 34_200_000_000_000).unwrap();
    begin.plus_nanos(u64::try_from(mono.as_nanos()).unwrap())
}

/// An order and a position at once, as JSON with `more` in it.
fn row(more: &str) -> String {
    format!(
        r#"[{{"ID":"1","State":5,"OrdType":1,"RecvTime":"2026-11-24T09:00:51+09:00","Symbol":"130A",
        "Exchange":1,"Price":1,"OrderQty":100,"CumQty":100,"LeavesQty":100,"Side":"2","ExpireDay":20261124,
        "Details":[]{more}}}]"#
    )
}

/// The same with another value in one field.
fn changed(field: &str, value: &str) -> String {
    let row = row("");
    let begin = row.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
    let end = begin + row[begin..].find([',', '}']).unwrap();
    format!("{}{value}{}", &row[..begin], &row[end..])
}

/// Bodies of answers that repeat a text, each with a flag whether it is a list of rows.
fn bodies(text: &str) -> Vec<(bool, String)> {
    let quoted = format!("\"{text}\"");
    let step = r#""SeqNum":1,"RecType":8"#;
    let reported = [
        row(&format!(r#","SymbolName":{quoted},"ExchangeName":"of {text}.","Other":[{quoted}]"#)),
        row(&format!(r#","{text}":1,"a {text} b":{{"c{text}":null}}"#)),
        row(&format!(r#","ExecutionID":{quoted}"#)),
        changed("ID", &quoted),
        changed("Details", &format!(r#"[{{{step},"ID":{quoted},"ExecutionID":{quoted}}}]"#)),
        changed("Details", &format!(r#"[{{{step},"{text}":{{"{text}":{quoted}}}}}]"#)),
    ];
    let refused = [
        row(&format!(r#","{text}":1,"{text}":2"#)),
        row(&format!(r#","a":[[[[["{text}"]]]]],"{text}":[[[[[]]]]]"#)),
        changed("Side", &quoted),
        changed("RecvTime", &quoted),
        changed("Price", &quoted),
        changed("State", &format!("[{quoted}]")),
        changed("Exchange", &format!("{{{quoted}:1}}")),
        changed("Details", &quoted),
        quoted.clone(),
        format!("[{quoted}]"),
        format!("[{quoted}"),
        format!("{text} {text}"),
        format!(r#"{{"StockAccountWallet":{quoted}}}"#),
        format!(r#"{{"StockAccountWallet":1,"MarginAccountWallet":{quoted}}}"#),
        format!(r#"{{"{text}":1,"{text}":2}}"#),
        format!(r#"{{"Symbol":{quoted}}}"#),
        format!(r#"{{"Symbol":"7203","SymbolName":{quoted}"#),
    ];
    let reported = reported.into_iter().map(|body| (true, body));
    reported.chain(refused.into_iter().map(|body| (false, body))).collect()
}

fn check(reported: &str, what: &str, secret: &str) {
    let reported = reported.to_lowercase();
    for (spelled, seen) in spellings(secret) {
        for part in shown_parts(&seen) {
            let at = reported.find(&part);
            let around =
                at.map(|at| reported.get(at.saturating_sub(300)..(at + 60).min(reported.len())));
            assert_eq!(around, None, "`{part}` of `{spelled}`: {what}");
        }
    }
}

#[test]
fn rows_names_and_errors_of_the_local_gateway_hold_no_secret() {
    collect_logs();
    for secret in [PASSWORD, TOKEN] {
        for (text, _) in spellings(secret) {
            for (is_row, body) in bodies(&text) {
                let mut world = World::new(usize::MAX);
                world.request_all(200, &body);
                check(&world.reported, &body, secret);
                // A row is shown, with a sign in place of the secret.
                let of_row =
                    world.reported.contains("Orders {") && !world.reported.contains("orders: []");
                assert_eq!(
                    of_row && world.reported.contains("***"),
                    is_row,
                    "{body}: {}",
                    world.reported
                );
            }
        }
        check(&log_so_far(), "the log", secret);
    }
}

#[test]
fn exact_ids_that_hold_a_secret_are_hidden_whole_or_in_part() {
    let mut world = World::new(usize::MAX);
    let id = format!("20261124{PASSWORD}");
    world.request_all(200, &changed("ID", &format!("\"{id}\"")));
    assert!(world.reported.contains(r#"venue_order_id: "20261124***""#), "{}", world.reported);
    // A symbol has digits and capitals; a password may have these, too.
    let mut world = World::logged_out(usize::MAX);
    world.token_answer = json!({ "ResultCode": 0, "Token": "130A" }).to_string();
    world.log_in();
    world.request_all(200, &row(""));
    assert_eq!(
        world.reported.matches(r#"instrument_id: "***.TSE""#).count(),
        2,
        "{}",
        world.reported
    );
}

/// A dialect knows no secrets, and cuts texts where it likes.
#[test]
fn what_a_dialect_cuts_holds_no_part_of_a_secret() {
    collect_logs();
    for secret in [PASSWORD, TOKEN] {
        for (text, _) in spellings(secret) {
            for cut in [8_usize, 20, 40] {
                let filled = format!("{}{text}", "-".repeat(cut.saturating_sub(7)));
                let repeated = text.repeat(5);
                for text in [&text, &filled, &repeated] {
                    let mut world = World::new(cut);
                    for (client, name) in [(10, "SymbolName"), (20, "Other"), (30, "Symbol")] {
                        let frame = format!(r#"{{"Symbol":"7203","{name}":"{text}"}}"#);
                        world.push(client, &frame);
                        world.push(client + 5, &format!("{text}{frame}"));
                        // Of each kind one frame is logged in a minute.
                        world.mono += Duration::from_secs(60);
                    }
                    let body = format!(r#"{{"Code":1,"Message":"{text}"}}"#);
                    world.request_all(400, &body);
                    world.request_all(400, text);
                    world.request_all(200, &format!(r#"{{"Symbol":"{text}"}}"#));
                    check(&world.reported, &format!("cut {cut}: {text}"), secret);
                    assert!(
                        world.reported.contains("HTTP status 400, code 1"),
                        "{}",
                        world.reported
                    );
                }
            }
        }
        check(&log_so_far(), "the log", secret);
    }
}

#[test]
fn a_number_that_is_the_password_is_no_code() {
    let mut world = World::logged_out(usize::MAX);
    world.token_answer = json!({ "ResultCode": 0, "Token": "20261124" }).to_string();
    world.log_in();
    world.request_all(400, r#"{"Code":20261124,"Message":"no"}"#);
    assert!(world.reported.contains("HTTP status 400, code ***: (not shown"), "{}", world.reported);
    world.request_all(200, &row(r#","Other":20261124,"More":[1e400,12026112400]"#));
    assert!(world.reported.contains(r#""ExpireDay":"***""#), "{}", world.reported);
    assert!(world.reported.contains(r#""More":["1e400","***"]"#), "{}", world.reported);
}
