//! The gateway itself: its token, its registrations, its boards, and what is due on the push.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use chrono::Datelike as _;
use domain::clock::{self, Stopwatch};
use domain::session::{MORNING_OPEN, TradingHours};
use domain::{ExchangeCalendar, JstDate, Price, Random, TsNanos};
use secrecy::ExposeSecret as _;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ServerError;
use super::account::Account;
use super::board::Board;
use super::config::{Config, Dialect, FeedStart, FirstDay, Source};
use super::faults::{FaultKind, Faults};
use super::limits::{
    DEAD_TOKENS_KEPT_MAX, QUEUE_FRAMES_MAX, REGISTERED_MAX, REQUESTS_KEPT_MAX, YEAR_MAX, YEAR_MIN,
};
use super::rates::Rates;
use super::refusal::Refusal;
use super::registrations::Entry;
use crate::web_broker::{Follower, NewDay};

/// The time of day in Japan at which a market that nothing feeds stands.
const STANDING_TIME: u64 = MORNING_OPEN + 30 * domain::time::NANOS_PER_MINUTE;
/// A client of the push.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) id: u64,
    pub(crate) sender: mpsc::Sender<Message>,
    /// Cancelled: nothing is sent or read any more, and the connection stays.
    freeze: CancellationToken,
}

/// What is counted.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Successful calls of `/token`.
    pub(crate) logins: u64,
    pub(crate) logins_refused: u64,
    /// Connections to the push.
    pub(crate) pushes: u64,
    /// Frames put on the push, without extra ones and repetitions.
    pub(crate) frames: u64,
    /// Extra frames and repetitions.
    pub(crate) extra_frames: u64,
    /// Frames of registered symbols that nobody got.
    pub(crate) lost_frames: u64,
    pub(crate) pings: u64,
    /// Messages that the client sent on the push: it should send none.
    pub(crate) client_frames: u64,
    pub(crate) restarts: u64,
}

/// A request that was seen.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) code: Option<i64>,
}

/// What a command does outside the gateway's own state.
#[derive(Debug)]
pub(crate) enum Effect {
    /// The listener closes, and opens again after so many milliseconds where they are given.
    Close(Option<u64>),
    /// The listener opens.
    Open,
    /// Connections end.
    Cut(Cut),
}

/// Connections that are to end without a word.
#[derive(Debug)]
pub(crate) struct Cut {
    token: CancellationToken,
    /// Kept until then: where it ends first, the connection is closed with a word.
    push: Option<Push>,
}

impl Cut {
    /// Ends them.
    pub(crate) fn cut(self) {
        self.token.cancel();
        drop(self.push);
    }
}

/// The gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) config: Arc<Config>,
    pub(crate) dialect: Dialect,
    pub(crate) calendar: ExchangeCalendar,
    token: Option<String>,
    dead_tokens: VecDeque<String>,
    pub(crate) registered: Vec<Entry>,
    pub(crate) boards: Vec<Board>,
    pub(crate) index: HashMap<String, usize>,
    pub(crate) rates: Rates,
    pub(crate) watch: Stopwatch,
    pub(crate) faults: Faults,
    pub(crate) account: Account,
    pub(crate) counts: Counts,
    /// Calls by name.
    pub(crate) calls: BTreeMap<&'static str, u64>,
    /// Refusals by `status/code`.
    pub(crate) refusals: BTreeMap<String, u64>,
    pub(crate) seen: VecDeque<Seen>,
    pub(crate) push: Option<Push>,
    /// Frames that the push has no room for yet, in their order.
    pub(crate) due: VecDeque<Message>,
    pub(crate) effects: Vec<Effect>,
    /// Ends every HTTP connection.
    pub(crate) http_cut: CancellationToken,
    /// Ends every connection of the push, frozen ones too.
    pub(crate) push_cut: CancellationToken,
    pub(crate) day: JstDate,
    pub(crate) market_time: TsNanos,
    pub(crate) market_runs: bool,
    pub(crate) market_over: bool,
    /// The broker at which every trade is matched before the board shows it, and whose days are these.
    pub(crate) follower: Option<Follower>,
    random: Random,
}

/// Where a walk of prices, and so every board, has its seed from.
pub(crate) fn seed_of(source: &Source) -> u64 {
    if let Source::Walk { seed, .. } = source { *seed } else { 1 }
}

impl Gateway {
    pub(crate) fn new(
        config: Arc<Config>,
        first_of_files: Option<JstDate>,
    ) -> Result<Self, ServerError> {
        let calendar = ExchangeCalendar::default();
        let day = first_day(&config, &calendar, first_of_files)?;
        let start = TradingHours::of(day).start;
        let market_time = match config.source {
            Source::Still => start.plus_nanos(STANDING_TIME),
            _ => start.plus_nanos(MORNING_OPEN),
        };
        let dialect = config.dialect;
        let mut faults = Faults::default();
        for fault in &config.faults {
            faults.add(fault.clone()).map_err(ServerError::Config)?;
        }
        let (orders, positions) = (config.orders.clone(), config.positions.clone());
        let account = Account::new(config.cash, config.margin, orders, positions);
        let account = account.map_err(ServerError::Config)?;
        let mut gateway = Self {
            dialect,
            calendar,
            token: None,
            dead_tokens: VecDeque::new(),
            registered: Vec::new(),
            boards: Vec::new(),
            index: HashMap::new(),
            rates: Rates::new(dialect == Dialect::Kabusapi),
            watch: Stopwatch::start(),
            faults,
            account,
            counts: Counts::default(),
            calls: BTreeMap::new(),
            refusals: BTreeMap::new(),
            seen: VecDeque::new(),
            push: None,
            due: VecDeque::new(),
            effects: Vec::new(),
            http_cut: CancellationToken::new(),
            push_cut: CancellationToken::new(),
            day,
            market_time,
            market_runs: config.begins == FeedStart::AtOnce,
            market_over: false,
            follower: None,
            random: Random::new(&[seed_of(&config.source), 1]),
            config,
        };
        for issue in gateway.config.issues.clone() {
            let symbol = issue.symbol.clone();
            gateway
                .add_issue(issue)
                .map_err(|why| ServerError::Config(format!("{symbol}: {why}")))?;
        }
        gateway.preset()?;
        Ok(gateway)
    }

    /// Registers what the configuration says, for somebody else.
    fn preset(&mut self) -> Result<(), ServerError> {
        for listed in self.config.registered.clone() {
            self.register(std::slice::from_ref(&listed), true).map_err(|_| {
                ServerError::Config(format!(
                    "cannot register {}@{}: it is not an issue at an exchange of the gateway, or \
                     {REGISTERED_MAX} are registered",
                    listed.symbol, listed.exchange
                ))
            })?;
        }
        Ok(())
    }

    /// Whether every call is refused as after the forced logout.
    pub(crate) fn is_logged_out(&self) -> bool {
        self.faults.has(FaultKind::LoggedOut)
    }

    /// Issues a token; the one before dies.
    pub(crate) fn log_in(&mut self, password: &str) -> Result<String, Refusal> {
        if self.is_logged_out() {
            return Err(Refusal::NotLoggedIn);
        }
        if password != self.config.password.expose_secret() {
            self.counts.logins_refused += 1;
            return Err(Refusal::WrongPassword);
        }
        self.end_token();
        let token = Uuid::new_v4().simple().to_string();
        self.token = Some(token.clone());
        self.counts.logins += 1;
        Ok(token)
    }

    /// The token is worth nothing any more.
    pub(crate) fn end_token(&mut self) {
        if let Some(token) = self.token.take() {
            if self.dead_tokens.len() == DEAD_TOKENS_KEPT_MAX {
                self.dead_tokens.pop_front();
            }
            self.dead_tokens.push_back(token);
        }
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a key is the one that lives.
    pub(crate) fn check_key(&self, key: Option<&str>) -> Result<(), Refusal> {
        if self.is_logged_out() {
            return Err(Refusal::NotLoggedIn);
        }
        match key {
            Some(key) if self.token.as_deref() == Some(key) => Ok(()),
            Some(key) if self.dead_tokens.iter().any(|dead| dead == key) => Err(Refusal::DeadToken),
            _ if self.dialect == Dialect::Kabusapi => Err(Refusal::DeadToken),
            _ => Err(Refusal::NotLoggedIn),
        }
    }

    /// A new client of the push. One that is there is ended, or frozen.
    pub(crate) fn connect(&mut self) -> (u64, mpsc::Receiver<Message>, CancellationToken) {
        if let Some(before) = self.push.take()
            && self.faults.has(FaultKind::SecondFreezes)
        {
            before.freeze.cancel();
        }
        // What was due was the other's.
        self.due.clear();
        self.boards.iter_mut().for_each(|board| board.told_unopened = false);
        let (sender, receiver) = mpsc::channel(QUEUE_FRAMES_MAX);
        self.counts.pushes += 1;
        let (id, freeze) = (self.counts.pushes, CancellationToken::new());
        self.push = Some(Push { id, sender, freeze: freeze.clone() });
        (id, receiver, freeze)
    }

    /// The client of the push is gone.
    pub(crate) fn disconnected(&mut self, id: u64) {
        if self.push.as_ref().is_some_and(|push| push.id == id) {
            self.push = None;
            self.due.clear();
        }
    }

    /// Lets the connection of the push stay without another word. Tells whether there was one.
    pub(crate) fn freeze_push(&mut self) -> bool {
        self.due.clear();
        self.push.take().is_some_and(|push| {
            push.freeze.cancel();
            true
        })
    }

    /// Ends the push's connection without a word. Tells whether there was one.
    pub(crate) fn drop_push(&mut self) -> bool {
        let token = std::mem::take(&mut self.push_cut);
        self.due.clear();
        let push = self.push.take();
        let was_open = push.is_some();
        self.effects.push(Effect::Cut(Cut { token, push }));
        was_open
    }

    /// Ends every HTTP connection.
    pub(crate) fn drop_http(&mut self) {
        let token = std::mem::take(&mut self.http_cut);
        self.effects.push(Effect::Cut(Cut { token, push: None }));
    }

    /// The application ends and starts: the token is dead, the list empty, connections end.
    pub(crate) fn restart(&mut self) {
        self.end_token();
        self.registered.clear();
        self.drop_push();
        self.drop_http();
        self.counts.restarts += 1;
    }

    /// A trade of the market, and its frame.
    pub(crate) fn trade(&mut self, place: usize, price: Price, shares: u64, time: TsNanos) {
        self.market_time = self.market_time.max(time);
        if let Some(broker) = &self.follower {
            broker.trade(place, time, price, shares);
        }
        self.boards[place].trade(price, shares, time);
        self.announce(place, true);
    }

    /// A change of a book alone, and its frame.
    pub(crate) fn change_book(&mut self, place: usize, time: TsNanos) {
        self.market_time = self.market_time.max(time);
        self.boards[place].change_book(time);
        self.announce(place, false);
    }

    /// Whether the next frame is one of the book alone.
    pub(crate) fn is_book_next(&mut self) -> bool {
        self.random.permille(u64::from(self.config.board_only_permille))
    }

    /// The market closes for the day.
    pub(crate) fn close_day(&mut self) {
        if let Some(broker) = &self.follower {
            broker.close_day();
        }
    }

    /// Ends the day and begins another one.
    pub(crate) fn begin_day(&mut self, new: &NewDay) {
        if let Some(broker) = &self.follower {
            broker.begin_day(new);
        }
        let previous = self.day;
        self.day = new.date;
        let hours = TradingHours::of(new.date);
        let of_day = match self.config.source {
            Source::Still => STANDING_TIME,
            _ => MORNING_OPEN,
        };
        self.market_time = self.market_time.max(hours.start.plus_nanos(of_day));
        for (place, board) in self.boards.iter_mut().enumerate() {
            board.begin_day(previous, self.market_time, new.split_of(place));
        }
    }

    /// The business day after this one.
    pub(crate) fn next_business_day(&self) -> JstDate {
        let next = self.day.succ_opt().unwrap_or(self.day);
        business_day_from(&self.calendar, next)
    }

    /// Whether the feed may go on; it begins with the first client that waits for something.
    pub(crate) fn lets_feed_run(&mut self) -> bool {
        let waits = self.push.is_some() && self.registered.iter().any(|entry| entry.pushes);
        let begins = self.config.begins == FeedStart::AtPush && !self.has_begun();
        self.market_runs |= waits && begins;
        self.market_runs
    }

    /// Whether anything was traded yet.
    fn has_begun(&self) -> bool {
        self.boards.iter().any(|board| board.truth.trades > 0)
    }

    /// Puts down a request.
    pub(crate) fn see(&mut self, mut seen: Seen) {
        self.counts.requests += 1;
        seen.number = self.counts.requests;
        if let Some(code) = seen.code {
            *self.refusals.entry(format!("{}/{code}", seen.status)).or_default() += 1;
        }
        if self.seen.len() == REQUESTS_KEPT_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
    }
}

/// The date of the first day.
pub(crate) fn first_day(
    config: &Config,
    calendar: &ExchangeCalendar,
    first_of_files: Option<JstDate>,
) -> Result<JstDate, ServerError> {
    match (config.first_day, first_of_files) {
        (FirstDay::On(date), _) => {
            check_day(date).map_err(ServerError::Config)?;
            Ok(date)
        }
        (FirstDay::OfFiles, Some(date)) => Ok(date),
        (FirstDay::OfFiles, None) => Ok(clock::wall_now().jst_date()),
        (FirstDay::Today, _) => Ok(business_day_from(calendar, clock::wall_now().jst_date())),
    }
}

/// Refuses a day whose times make no sense.
pub(crate) fn check_day(date: JstDate) -> Result<(), String> {
    match date.year() {
        YEAR_MIN..=YEAR_MAX => Ok(()),
        _ => Err(format!("{date} is not a day of the years {YEAR_MIN} to {YEAR_MAX}")),
    }
}

/// The first business day that is not before a date.
fn business_day_from(calendar: &ExchangeCalendar, date: JstDate) -> JstDate {
    calendar.business_day_from(date).unwrap_or(date)
}

pub(crate) fn business_day_before(calendar: &ExchangeCalendar, date: JstDate) -> JstDate {
    calendar.business_day_before(date).unwrap_or(date)
}
