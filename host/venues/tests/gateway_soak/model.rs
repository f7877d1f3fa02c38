//! A model of the gateway: its registrations, trades, pushes and faults.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use domain::Random;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use venues::local_broker::REGISTER_MAX;
use venues::local_broker::request::{Answer, Class, NoAnswer, Question, Request};

/// The right password.
pub(crate) const PASSWORD: &str = "marker-password-of-the-soak";
/// Symbols that clients want: more than can be registered.
pub(crate) const SYMBOLS: usize = 64;
/// Calls of one class that are allowed in a second (specification 1, "Limits").
const CALLS_PER_SECOND: usize = 10;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// An issue: its price in yen, and its day's volume in shares.
#[derive(Debug, Clone)]
pub(crate) struct Issue {
    pub(crate) symbol: String,
    pub(crate) price: i64,
    /// None before the day's first trade.
    pub(crate) volume: Option<i64>,
    /// Whether there is a seller, and a buyer.
    pub(crate) sides: (bool, bool),
}

/// The fault of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AnswerFault {
    Status(u16, i64),
    /// It is executed, and the answer is unreadable.
    Garbage,
    /// Whether it is executed; the answer never comes.
    Silence(bool),
    /// The connection is refused.
    Refused,
    /// The list lacks so many of its last entries.
    Short(usize),
}

/// The connection of the push.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: u64,
    /// It sends nothing any more, and stays open.
    pub(crate) is_frozen: bool,
    /// When the last frame arrives: none arrives before it.
    pub(crate) last: Duration,
}

/// The gateway.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) random: Random,
    /// When it runs again.
    pub(crate) down_until: Option<Duration>,
    pub(crate) is_logged_in: bool,
    /// When a person logs in at it again.
    pub(crate) out_until: Option<Duration>,
    token: Option<String>,
    /// A person has logged in.
    is_password_known: bool,
    /// The token that was used last: the venue knows it.
    used: String,
    pub(crate) registered: Vec<(String, i64)>,
    /// Entries of other programs.
    pub(crate) foreign: BTreeSet<(String, i64)>,
    pub(crate) issues: Vec<Issue>,
    pub(crate) link: Option<Link>,
    pub(crate) faults: VecDeque<AnswerFault>,
    /// Times of the last calls for balances and for information.
    calls: [VecDeque<Duration>; 2],
}

impl Model {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 1]);
        let issues = (0..SYMBOLS)
            .map(|number| Issue {
                symbol: if number % 7 == 3 {
                    format!("{}A", 100 + number)
                } else {
                    format!("{}", 1_300 + number)
                },
                price: 500 + i64::try_from(random.below(5_000)).unwrap(),
                volume: None,
                sides: (true, true),
            })
            .collect();
        Self {
            random,
            down_until: None,
            is_logged_in: true,
            out_until: None,
            token: None,
            is_password_known: false,
            used: String::new(),
            registered: Vec::new(),
            foreign: BTreeSet::new(),
            issues,
            link: None,
            faults: VecDeque::new(),
            calls: [VecDeque::new(), VecDeque::new()],
        }
    }

    pub(crate) fn is_up(&self, now: Duration) -> bool {
        self.down_until.is_none_or(|until| until <= now)
    }

    /// The answer to a request, and the time until it arrives.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        now: Duration,
    ) -> (Result<Answer, NoAnswer>, Duration) {
        let soon = Duration::from_millis(1 + self.random.below(80));
        self.count(request.question.class(), now);
        self.out_until = self.out_until.filter(|until| *until > now);
        if !self.is_up(now) {
            return (Err(NoAnswer::Refused("the connection is refused".to_owned())), soon);
        }
        let (question, secret) = (&request.question, request.secret.expose_secret());
        match self.faults.pop_front() {
            None => (Ok(self.done(question, secret, 0)), soon),
            Some(AnswerFault::Status(status, code)) => {
                // A gateway that repeats secrets.
                let password = if self.is_password_known { PASSWORD } else { "nobody" };
                let reported = format!("key {secret} of {password} is\nnot taken");
                (Ok(refusal(status, code, &reported)), soon)
            }
            Some(AnswerFault::Garbage) => {
                self.done(question, secret, 0);
                (Ok(Answer { status: 200, body: format!("<html>{secret}</html>").into() }), soon)
            }
            Some(AnswerFault::Silence(is_done)) => {
                if is_done {
                    self.done(question, secret, 0);
                }
                (Err(NoAnswer::Unreachable("nothing came in time".to_owned())), PATIENCE)
            }
            Some(AnswerFault::Refused) => {
                (Err(NoAnswer::Refused("the connection is refused".to_owned())), soon)
            }
            Some(AnswerFault::Short(missing)) => (Ok(self.done(question, secret, missing)), soon),
        }
    }

    /// No second, wherever it begins, has more calls than the limit.
    fn count(&mut self, class: Class, now: Duration) {
        let place = match class {
            Class::Token => return,
            Class::Balance => 0,
            Class::Information => 1,
            Class::Order => panic!("this phase sends no order"),
        };
        let calls = &mut self.calls[place];
        calls.push_back(now);
        while calls.front().is_some_and(|at| *at + Duration::from_secs(1) <= now) {
            calls.pop_front();
        }
        assert!(calls.len() <= CALLS_PER_SECOND, "{} calls of {class:?} in a second", calls.len());
    }

    fn done(&mut self, question: &Question, secret: &str, missing: usize) -> Answer {
        if *question == Question::Token {
            return self.log_in(secret);
        }
        if !self.is_logged_in || self.out_until.is_some() {
            return refusal(401, 4_001_001, "nobody is logged in");
        }
        if self.token.as_deref() != Some(secret) {
            return refusal(401, 4_001_005, &format!("{secret} is dead"));
        }
        secret.clone_into(&mut self.used);
        let say = |body: String| Answer { status: 200, body: body.into() };
        match question {
            Question::Register(symbols) => {
                let mut list = self.registered.clone();
                for symbol in symbols {
                    assert!(self.issue(symbol).is_some(), "{symbol} was never asked for");
                    let entry = (symbol.clone(), 1);
                    if !list.contains(&entry) {
                        list.push(entry);
                    }
                }
                if list.len() > REGISTER_MAX {
                    return refusal(400, 4_002_001, "full");
                }
                self.registered = list;
                say(self.list(missing))
            }
            Question::Unregister(symbols) => {
                let ours = |entry: &(String, i64)| entry.1 == 1 && symbols.contains(&entry.0);
                let stolen = self.foreign.iter().find(|entry| ours(entry));
                assert!(stolen.is_none(), "{stolen:?} is another program's");
                self.registered.retain(|entry| !ours(entry));
                say(self.list(missing))
            }
            Question::Board(key) => {
                let symbol = key.strip_suffix("@1").expect("Tokyo alone").to_owned();
                let entry = (symbol.clone(), 1);
                if !self.registered.contains(&entry) {
                    if self.registered.len() >= REGISTER_MAX {
                        return refusal(429, 4_002_001, "full");
                    }
                    self.registered.push(entry);
                }
                let place = self.issue(&symbol).expect("one of ours");
                say(self.board(place, 1))
            }
            Question::Cash => say(json!({ "StockAccountWallet": 12_345.5 }).to_string()),
            Question::Margin => say(json!({ "MarginAccountWallet": null }).to_string()),
            Question::Orders | Question::Positions => say("[]".to_owned()),
            Question::UnregisterAll => panic!("{} are not all ours", self.registered.len()),
            Question::Token => unreachable!("above"),
        }
    }

    fn log_in(&mut self, password: &str) -> Answer {
        if !self.is_logged_in || self.out_until.is_some() {
            return refusal(401, 4_001_001, "nobody is logged in");
        }
        if password != PASSWORD {
            return refusal(401, 4_001_003, &format!("{password} is wrong"));
        }
        let token = format!("marker-token-{}", self.random.number());
        self.token = Some(token.clone());
        self.is_password_known = true;
        Answer { status: 200, body: json!({ "ResultCode": 0, "Token": token }).to_string().into() }
    }

    fn list(&self, missing: usize) -> String {
        let count = self.registered.len().saturating_sub(missing);
        let row = |(symbol, at): &(String, i64)| json!({ "Symbol": symbol, "Exchange": at });
        let rows: Vec<Value> = self.registered.iter().take(count).map(row).collect();
        json!({ "RegistList": rows }).to_string()
    }

    pub(crate) fn end_token(&mut self) {
        self.token = None;
    }

    pub(crate) fn issue(&self, symbol: &str) -> Option<usize> {
        self.issues.iter().position(|issue| issue.symbol == symbol)
    }

    /// The text of an issue's board on a market.
    pub(crate) fn board(&self, place: usize, exchange: i64) -> String {
        let issue = &self.issues[place];
        let level = |there: bool, price: i64| {
            if there { json!({ "Price": price, "Qty": 100 }) } else { Value::Null }
        };
        let traded = issue.volume.map(|_| issue.price);
        // A name that repeats secrets.
        let name = format!("銘柄 {} {PASSWORD}", self.used);
        json!({
            "Symbol": issue.symbol, "SymbolName": name, "Exchange": exchange,
            "CurrentPrice": traded, "TradingVolume": issue.volume,
            "Sell1": level(issue.sides.0, issue.price + 1),
            "Buy1": level(issue.sides.1, issue.price - 1),
        })
        .to_string()
    }

    /// Whether frames of an issue go out.
    pub(crate) fn pushes(&self, symbol: &str) -> bool {
        self.link.as_ref().is_some_and(|link| !link.is_frozen)
            && self.registered.iter().any(|(of, at)| of == symbol && *at == 1)
    }

    /// A trade of the market.
    pub(crate) fn trade(&mut self, place: usize) {
        let (step, lots) = (self.random.below(5), self.random.below(9));
        let sides = match self.random.below(20) {
            0 => (true, false),
            1 => (false, true),
            2 => (false, false),
            _ => (true, true),
        };
        let issue = &mut self.issues[place];
        issue.sides = sides;
        issue.price = (issue.price + i64::try_from(step).unwrap() - 2).max(10);
        let shares = 100 * (1 + i64::try_from(lots).unwrap());
        issue.volume = Some(issue.volume.unwrap_or(0) + shares);
    }

    pub(crate) fn begin_day(&mut self) {
        for issue in &mut self.issues {
            issue.volume = None;
        }
    }
}

fn refusal(status: u16, code: i64, words: &str) -> Answer {
    Answer { status, body: json!({ "Code": code, "Message": words }).to_string().into() }
}
