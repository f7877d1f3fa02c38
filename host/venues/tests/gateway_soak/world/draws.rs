//! Random steps of the market, commands of clients, and faults.

use std::time::Duration;

use venues::local_broker::VenueEvent;
use venues::local_broker::gateway::Out;
use venues::local_broker::lifecycle::State;
use venues::local_broker::{KeepAlive, REGISTER_MAX};
use venues::{OrderQuery, RequestContext};

use super::{Delivery, Waiting, World, at};
use crate::model::{AnswerFault, SYMBOLS};

/// Bytes of a frame that is too long.
const GIANT: usize = 70_000;

impl World {
    /// One random step, and some time after it.
    pub(super) fn step(&mut self) {
        match self.random.below(1_000) {
            0..700 => self.market(),
            700..860 => self.command(),
            860..870 => self.fault(),
            _ => {}
        }
        let odds = match self.gateway.state() {
            State::Disconnected | State::TokenExpired => 100,
            State::AppDown => 10,
            _ => 2,
        };
        if self.random.permille(odds) {
            self.log_in();
        }
        let millis = match self.random.below(100) {
            0..60 => 1 + self.random.below(50),
            60..88 => 50 + self.random.below(1_000),
            88..98 => 1_000 + self.random.below(5_000),
            _ => 10_000 + self.random.below(50_000),
        };
        self.advance(Duration::from_millis(millis));
    }

    /// From the end of a day to the next morning: the gateway logs out all programs.
    pub(super) fn night(&mut self) {
        let today = self.now().wall.jst_date();
        let mut date = today.succ_opt().unwrap();
        while !domain::session::is_weekday(date) {
            date = date.succ_opt().unwrap();
        }
        let from = |random: &mut domain::Random, from: u64, minutes: u64| {
            at(date, from * 60 + random.below(minutes))
        };
        let out = from(&mut self.random, 5, 15);
        let reset = from(&mut self.random, 7, 30);
        let open = from(&mut self.random, 6, 150);
        let morning = at(date, 8 * 60 + 50);
        let (mut is_out, mut is_reset, mut is_open) = (false, false, false);
        while self.now().wall < morning {
            let now = self.now().wall;
            if now >= out && !is_out {
                (self.model.is_logged_in, is_out) = (false, true);
                self.model.end_token();
            }
            if now >= reset && !is_reset {
                self.model.begin_day();
                is_reset = true;
            }
            if now >= open && !is_open {
                (self.model.is_logged_in, is_open) = (true, true);
            }
            if self.random.permille(300) {
                let place = self.random.place(SYMBOLS);
                self.push(place);
            }
            let next = self.mono + Duration::from_secs(30 + self.random.below(900));
            self.advance_to(next);
        }
    }

    /// A trade, or a change of a book, and its frame.
    pub(super) fn market(&mut self) {
        // Most of the trades are of subscribed symbols.
        let wanted = self.oracle.wanted.len();
        let place = if wanted > 0 && self.random.permille(800) {
            let wanted = self.oracle.wanted.keys().nth(self.random.place(wanted));
            wanted.and_then(|symbol| self.model.issue(symbol)).unwrap_or(0)
        } else {
            self.random.place(SYMBOLS)
        };
        if self.random.permille(600) {
            self.model.trade(place);
        }
        // Some are lost.
        if !self.random.permille(30) {
            self.push(place);
        }
    }

    /// Pushes an issue's frame, if it is registered, with others around it that must not be broadcast.
    fn push(&mut self, place: usize) {
        let symbol = self.model.issues[place].symbol.clone();
        if !self.model.pushes(&symbol) {
            return;
        }
        let text = self.model.board(place, 1);
        match self.random.below(40) {
            0 => self.frame(text.replace(&symbol, "9999").into_bytes()),
            1 => self.frame(text.as_bytes()[..text.len() / 2].to_vec()),
            2 => self.frame([text.as_bytes(), &[0xff]].concat()),
            3 => self.frame(format!("{text}{}", " ".repeat(GIANT)).into_bytes()),
            4 => self.frame(self.model.board(place, 3).into_bytes()),
            5 => self.frame(text.replace(r#""Exchange":1,"#, "").into_bytes()),
            6 if self.model.issues[place].sides != (false, false) => {
                self.frame(text.replace(r#""Price":"#, r#""Price":-"#).into_bytes())
            }
            7 => self.frame_of(place, 1),
            _ => {}
        }
        self.frame_of(place, 1);
    }

    /// Pushes a frame that must not be broadcast.
    fn frame(&mut self, message: Vec<u8>) {
        let Some(link) = &mut self.model.link else { return };
        let connection = link.connection;
        let after = link.last.saturating_sub(self.mono);
        self.deliver(after, Delivery::Frame(connection, message, None));
    }

    /// Pushes an issue's frame, so many times.
    pub(super) fn frame_of(&mut self, place: usize, times: usize) {
        let (message, issue) = (self.model.board(place, 1), self.model.issues[place].clone());
        let travels = Duration::from_millis(1 + self.random.below(60));
        for _ in 0..times {
            let Some(link) = &mut self.model.link else { return };
            link.last = link.last.max(self.mono + travels);
            let (connection, after) = (link.connection, link.last - self.mono);
            let message = message.clone().into_bytes();
            self.deliver(after, Delivery::Frame(connection, message, Some(issue.clone())));
        }
    }

    /// The push ends at the gateway; frames that are under way arrive.
    pub(super) fn cut(&mut self, why: &'static str) {
        let Some(link) = self.model.link.take() else { return };
        let after = link.last.saturating_sub(self.mono) + Duration::from_millis(1);
        self.deliver(after, Delivery::Closed(link.connection, why));
    }

    fn seconds(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.random.below(below * 1_000))
    }

    fn fault(&mut self) {
        let name = match self.random.below(22) {
            0 | 1 => {
                let below = if self.random.permille(200) { 900 } else { 60 };
                self.model.down_until = Some(self.mono + self.seconds(below));
                self.cut("the gateway is gone");
                "Down"
            }
            2 | 3 => {
                self.model.down_until = Some(self.mono + self.seconds(60));
                self.model.end_token();
                self.model.registered.clear();
                self.model.foreign.clear();
                self.cut("the gateway ends");
                "Restart"
            }
            4 | 5 => {
                self.model.end_token();
                "EndToken"
            }
            6..=9 => {
                self.cut("dropped");
                "DropPush"
            }
            10 | 11 => {
                // Frames detect silence only if some came before.
                if self.keep_alive == KeepAlive::Ping
                    && let Some(link) = &mut self.model.link
                {
                    link.is_frozen = true;
                }
                "HalfOpen"
            }
            12..=16 => {
                let first = self.answer_fault();
                // Often the same fault again, for all tries of a request.
                let is_one_kind = self.random.permille(300);
                let count = self.random.below(6) + if is_one_kind { 5 } else { 1 };
                for _ in 0..count {
                    let fault = if is_one_kind { first } else { self.answer_fault() };
                    self.model.faults.push_back(fault);
                }
                "Answers"
            }
            17 => {
                let missing = 1 + self.random.place(4);
                self.model.faults.push_back(AnswerFault::Short(missing));
                "Deaf"
            }
            18 => {
                self.model.out_until = Some(self.mono + self.seconds(120));
                self.model.end_token();
                "LogOut"
            }
            19 | 20 => {
                self.add_foreign();
                "Foreign"
            }
            _ => {
                for issue in &mut self.model.issues {
                    issue.volume = Some(0);
                }
                "VolumeReset"
            }
        };
        self.count(format!("fault {name}"));
    }

    fn answer_fault(&mut self) -> AnswerFault {
        const CODES: [i64; 6] = [4_001_001, 4_001_003, 4_001_005, 4_001_017, 4_002_006, 0];
        match self.random.below(9) {
            0 | 1 => AnswerFault::Status(401, CODES[self.random.place(CODES.len())]),
            2 => AnswerFault::Status(429, 4_002_006),
            3 => AnswerFault::Status(500 + u16::try_from(self.random.below(5)).unwrap(), 0),
            4 => AnswerFault::Garbage,
            5 => AnswerFault::Silence(self.random.permille(500)),
            6 => AnswerFault::Refused,
            7 => AnswerFault::Status(400, 4_002_001),
            _ => AnswerFault::Status(400, 4_001_018),
        }
    }

    /// Another program registers something, as long as there is room for all that clients here want.
    fn add_foreign(&mut self) {
        let ours = self.gateway.symbols().len() + 1;
        let held = self.model.registered.len();
        if ours.max(held) + self.model.foreign.len() < REGISTER_MAX {
            let entry = (format!("{}", 9_000 + self.random.below(100)), 1);
            if self.model.foreign.insert(entry.clone()) {
                self.model.registered.push(entry);
            }
        }
    }

    pub(super) fn log_in(&mut self) {
        self.serials += 1;
        let client = self.clients[self.random.place(self.clients.len())];
        let context = RequestContext { client, request_id: format!("login-{}", self.serials) };
        let now = self.now();
        self.gateway.login(Some(context), now);
        self.settle();
    }

    /// A client sends a command.
    fn command(&mut self) {
        self.serials += 1;
        let (now, id) = (self.now(), format!("c-{}", self.serials));
        let place = self.random.place(self.clients.len());
        let client = self.clients[place];
        let context = RequestContext { client, request_id: id.clone() };
        let symbol = self.model.issues[self.random.place(SYMBOLS)].symbol.clone();
        let ticker = match self.random.below(20) {
            0 => "130a".to_owned(),
            1..6 => format!("{symbol}.TSE"),
            _ => symbol.clone(),
        };
        let is_subscribe = match self.random.below(100) {
            0..40 => {
                self.gateway.subscribe(context, &ticker, now);
                true
            }
            40..62 => {
                let was_reported = ticker != "130a";
                self.gateway.unsubscribe(&context, &ticker, now);
                if was_reported {
                    self.oracle.released(client, &symbol);
                }
                false
            }
            62..76 => {
                self.gateway.board(context, &ticker, now);
                false
            }
            76..80 => {
                if self.gateway.symbols().is_empty() {
                    return;
                }
                // Its answer has no id.
                self.gateway.evict_lru(&context, now);
                return self.settle();
            }
            80..83 => {
                self.gateway.client_left(client, now);
                self.oracle.left(client);
                self.waiting.retain(|_, waiting| waiting.client != client);
                self.clients[place] = self.serials;
                return self.settle();
            }
            83..90 => {
                self.gateway.buying_power(context, now);
                false
            }
            90..93 => {
                self.gateway.order_list(context, &OrderQuery::default(), now);
                false
            }
            93..97 => {
                self.gateway.positions(context, now);
                false
            }
            _ => {
                self.gateway.venue_state(context, now);
                false
            }
        };
        let outs = self.gateway.take_out();
        let refuses = |out: &Out| {
            let Out::Send(_, event) = out else { return false };
            matches!(event.as_ref(), VenueEvent::Error { request_id, .. }
                if request_id.as_deref() == Some(id.as_str()))
        };
        let is_taken = is_subscribe && !outs.iter().any(refuses);
        let is_new = is_taken && self.oracle.wants(client, &symbol);
        let symbol = is_new.then_some(symbol);
        self.waiting.insert(id, Waiting { client, symbol });
        outs.into_iter().for_each(|out| self.does(out));
        self.settle();
    }
}
