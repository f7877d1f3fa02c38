//! Subscriptions and the register set: brings the gateway's list into line with what clients want.
//!
//! Specification 1, "States and transitions"; specification 4, P51, P52.

use serde::Deserialize;

use super::super::REGISTER_MAX;
use super::super::event::{ErrorCode, VenueEvent};
use super::super::keys::symbol_of;
use super::super::lanes::Call;
use super::super::lifecycle::State;
use super::super::limits::{LATE_TIME, NAME_TIME, SUBSCRIBERS_WAITING_MAX};
use super::super::register_set::Registration;
use super::super::request::Question;
use super::Gateway;
use super::reads::Read;
use super::requests::Job;
use super::subscribers::Waiting;
use crate::{Now, Recipient, RequestContext};

/// The official answer to a registration: the whole list.
#[derive(Deserialize)]
struct RegisterAnswer {
    #[serde(rename = "RegistList")]
    list: Vec<RegisteredRow>,
}

#[derive(Deserialize)]
struct RegisteredRow {
    #[serde(rename = "Symbol")]
    symbol: String,
    #[serde(rename = "Exchange")]
    exchange: i64,
}

/// The gateway's list of symbols and markets.
pub(super) fn read_list(body: &str) -> Result<Vec<(String, i64)>, String> {
    let read: RegisterAnswer = serde_json::from_str(body)
        .map_err(|_| "the answer to a registration has no RegistList".to_owned())?;
    Ok(read.list.into_iter().map(|row| (row.symbol, row.exchange)).collect())
}

/// The error of a command if the register set is full (specification 1, "Endpoints", rule 1).
pub(super) fn full(foreign: usize) -> String {
    let others = match foreign {
        0 => String::new(),
        REGISTER_MAX.. => {
            ", all of them by other programs or by an engine that was killed".to_owned()
        }
        count => format!(", {count} of them by other programs or by an engine that was killed"),
    };
    let advice = make_room(foreign);
    format!("the register set is full: {REGISTER_MAX} symbols are registered{others}; {advice}")
}

/// The error if the gateway's list is full and ours is not: other programs have registered symbols meanwhile.
pub(super) fn full_there(why: &str, has_ours: bool) -> String {
    let advice = make_room(if has_ours { 1 } else { REGISTER_MAX });
    format!("{why}; the gateway's list of symbols is full: {advice}")
}

const fn make_room(foreign: usize) -> &'static str {
    match foreign {
        0 => "unsubscribe one, or send EvictLru",
        REGISTER_MAX.. => "end the programs that have them, or restart the gateway",
        _ => "unsubscribe one, send EvictLru, or restart the gateway",
    }
}

impl Gateway {
    /// Subscribes a client (P51).
    pub fn subscribe(&mut self, context: RequestContext, ticker: &str, now: Now) {
        let symbol = match symbol_of(ticker) {
            Ok(symbol) => symbol.to_owned(),
            Err(why) => {
                return self.send_error(&context, ErrorCode::ValidationError, &why.to_string());
            }
        };
        if self.state() == State::AppDown
            && let Some((code, why)) = self.why_not_ready()
        {
            return self.send_error(&context, code, &why);
        }
        let waiting = self.subscribers.count(&symbol);
        if waiting >= SUBSCRIBERS_WAITING_MAX {
            let why = format!(
                "{waiting} commands wait for the registration of {symbol} already; wait for their \
                 answers"
            );
            return self.send_error(&context, ErrorCode::RateLimited, &why);
        }
        let was_subscribed = self.registrations.set.is_subscribed(&symbol);
        let is_new =
            self.registrations.set.subscribers(&symbol).all(|client| client != context.client);
        let registration = self.registrations.set.register(context.client, &symbol);
        if !was_subscribed && registration != Registration::Full {
            // A client that only read the board has its place in the set, but its frames were dropped. What was
            // traded meanwhile belongs to no subscription, and the last quote is old.
            self.feed.forget(&symbol);
        }
        match registration {
            Registration::Full => {
                let why = full(self.registrations.foreign());
                self.send_error(&context, ErrorCode::RegisterFull, &why);
            }
            Registration::New if self.state().is_ready() => {
                self.wanted_again(&symbol);
                self.registrations.register(&symbol, now.mono);
                self.subscribers.add(symbol, Waiting { context, is_new });
            }
            Registration::Known if self.subscribers.wait_for(&symbol) => {
                self.subscribers.add(symbol, Waiting { context, is_new });
            }
            // Only its board was read, or its registration failed: now it must be registered.
            Registration::Known
                if self.state().is_ready() && !self.registrations.set.is_listed(&symbol) =>
            {
                self.registrations.register_also(&symbol, now.mono);
                self.subscribers.add(symbol, Waiting { context, is_new });
            }
            // Before a login it is remembered.
            Registration::New | Registration::Known => self.send_subscribed(&context, &symbol),
        }
        self.drive(now);
    }

    /// Releases a client's subscription; without one the client gets the same reply.
    pub fn unsubscribe(&mut self, context: &RequestContext, ticker: &str, now: Now) {
        let symbol = match symbol_of(ticker) {
            Ok(symbol) => symbol.to_owned(),
            Err(why) => {
                return self.send_error(context, ErrorCode::ValidationError, &why.to_string());
            }
        };
        // Commands that wait for the same registration get their replies first.
        for waiting in self.subscribers.take_of(&symbol, context.client) {
            self.send_subscribed(&waiting.context, &symbol);
        }
        if self.registrations.set.release(context.client, &symbol) {
            self.no_longer_wanted(&symbol);
        }
        let event = VenueEvent::Unsubscribed { request_id: context.request_id.clone(), symbol };
        self.send(Recipient::Client(context.client), event);
        self.drive(now);
    }

    /// Removes a client that has left, with its subscriptions and its reads.
    pub fn client_left(&mut self, client: u64, now: Now) {
        self.left_out.client_left(client);
        self.requests.client_left(client);
        for symbol in self.subscribers.client_left(client) {
            self.named(&symbol);
        }
        for symbol in self.registrations.set.client_left(client) {
            self.no_longer_wanted(&symbol);
        }
        self.drive(now);
    }

    pub(super) fn no_longer_wanted(&mut self, symbol: &str) {
        self.feed.forget(symbol);
        self.subscribers.take(symbol);
        self.end_naming(symbol);
        self.registrations.forget(symbol);
        self.requests.drop_symbol(symbol, |job| matches!(job, Job::Register));
    }

    /// A client wants a symbol again: queued requests must not unregister it.
    pub(super) fn wanted_again(&mut self, symbol: &str) {
        self.requests.drop_symbol(symbol, |job| matches!(job, Job::Unregister));
    }

    /// Evicts the least recently used symbol (specification 1, "States and transitions").
    pub fn evict_lru(&mut self, context: &RequestContext, now: Now) {
        let Some(symbol) = self.registrations.set.evict_lru() else {
            let why = match self.registrations.set.is_held_by_strategy() {
                true => {
                    "the running strategy holds every symbol that the engine has registered; stop it first"
                }
                false => "the engine has no registered symbol to remove",
            };
            return self.send_error(context, ErrorCode::ValidationError, why);
        };
        for Waiting { context, .. } in self.subscribers.take(&symbol) {
            let why = format!("the engine took {symbol} out of the register set");
            self.send_error(&context, ErrorCode::RegisterFull, &why);
        }
        self.no_longer_wanted(&symbol);
        let event = VenueEvent::Evicted { request_id: context.request_id.clone(), symbol };
        self.send(Recipient::All, event);
        self.drive(now);
    }

    fn send_subscribed(&mut self, context: &RequestContext, symbol: &str) {
        let event = VenueEvent::Subscribed {
            request_id: context.request_id.clone(),
            symbol: symbol.to_owned(),
            name: self.subscribers.name(symbol).cloned(),
        };
        self.send(Recipient::Client(context.client), event);
    }

    /// A symbol is registered: the clients that wait for it get `Subscribed`, with the name. If it is
    /// unknown, it comes from the gateway's board or the first frame (P51).
    fn send_named(&mut self, symbol: &str, now: Now) {
        let may_request = !self.requests.is_in_outage();
        let client = self.subscribers.first_without_name(symbol, now.mono).filter(|_| may_request);
        let (Some(client), Ok((_, question))) = (client, Question::board(symbol)) else {
            return self.send_to_waiting(symbol);
        };
        if self.subscribers.begin_naming(symbol, now.mono) {
            let job = Job::Name(client, symbol.to_owned());
            let call = Call { yields: true, ..Call::new(job, question) };
            self.requests.push_fair(call);
        }
    }

    fn send_to_waiting(&mut self, symbol: &str) {
        for waiting in self.subscribers.take(symbol) {
            self.send_subscribed(&waiting.context, symbol);
        }
    }

    /// Sends `Subscribed` to the clients that wait for a symbol's name, with the name if it is known. A late
    /// answer is ignored if no client waits for the name: other clients may wait for the registration by then.
    pub(super) fn named(&mut self, symbol: &str) {
        if self.end_naming(symbol) {
            self.send_to_waiting(symbol);
        }
    }

    /// The gateway is busy with more important requests, or gives no names: clients get `Subscribed` without
    /// one.
    pub(super) fn stop_naming(&mut self, now: Now) {
        for symbol in self.subscribers.hold_names(now.mono + self.rules.long_wait()) {
            self.named(&symbol);
        }
    }

    /// Ends the read of a name. Returns whether a client waited for it.
    fn end_naming(&mut self, symbol: &str) -> bool {
        self.requests.drop_name(symbol);
        self.subscribers.end_naming(symbol)
    }

    /// Ends reads of names that take too long, because the gateway is slow or the client has many other
    /// requests.
    pub(super) fn tick_names(&mut self, now: Now) {
        let late = self.subscribers.late_names(now.mono);
        // If the gateway answers meanwhile, only this client has too many requests: other clients still get
        // names.
        if self.requests.has_answered_within(NAME_TIME, now.mono) {
            late.iter().for_each(|symbol| self.named(symbol));
        } else if !late.is_empty() {
            self.stop_naming(now);
        }
    }

    /// Takes the board that was read for its name.
    pub(super) fn name_read(&mut self, symbol: &str, body: &str) {
        match self.read_answer(symbol, body) {
            Ok(board) => {
                if let Some(name) = &board.name {
                    self.learn_name(body.as_bytes(), symbol, name);
                }
            }
            Err(why) => tracing::debug!(symbol, why, "the engine cannot read the name of an issue"),
        }
        self.named(symbol);
    }

    /// Sends the registrations that are due, once a request could leave. Symbols that go together are one
    /// request, in turn with reads, and unregistrations go first. Until then only symbols wait, of which there
    /// are few, however many commands there are.
    pub(super) fn register_due(&mut self, now: Now) {
        if self.lists_first() || !self.requests.may_register(now.mono) {
            return;
        }
        // A stream that is opened again brings a list by itself.
        let calls = self.registrations.take_due(now.mono, self.is_trusted());
        for call in calls.into_iter().rev() {
            self.requests.push_first(call);
        }
        self.unregister_due(now);
    }

    /// Handles the failure of a request that may register symbols. The gateway may register them late, when no
    /// client wants them, or unregister late what a client wants again.
    pub(super) fn doubt(&mut self, call: &Call<Job>, now: Now) {
        let symbols: &[String] = match (&call.job, &call.question) {
            (_, Question::Register(symbols)) => symbols,
            (Job::Read(_, Read::Board(symbol)) | Job::Name(_, symbol), _)
                if self.mapping.description().board_read_registers =>
            {
                std::slice::from_ref(symbol)
            }
            // It may unregister late what a client wants by then: a read of the list registers that again.
            (_, Question::Unregister(_)) => &[],
            _ => return,
        };
        self.registrations.doubt(symbols, LATE_TIME, now.mono);
    }

    /// Sends the unregistrations, before all other requests.
    pub(super) fn unregister_due(&mut self, now: Now) {
        let again = now.mono + self.rules.long_wait();
        for call in self.registrations.take_leaving(now.mono, again) {
            self.requests.push_first(call);
        }
    }

    /// Takes the answer to a registration, which is the gateway's whole list (P52).
    pub(super) fn registration_done(
        &mut self,
        call: &Call<Job>,
        body: &str,
        now: Now,
    ) -> Result<(), String> {
        let list = read_list(body)?;
        let taken_out: &[String] = match &call.question {
            Question::Unregister(symbols) => symbols,
            _ => &[],
        };
        let found = self.registrations.apply_list(&list, taken_out, now.mono);
        self.write_registered(now);
        match (&call.job, &call.question) {
            (Job::Register, Question::Register(symbols)) => {
                // The most recently used symbol is first; the client that subscribed first gets its reply
                // first.
                for symbol in symbols.iter().rev() {
                    self.registered(symbol, !found.missing.contains(symbol), now);
                }
            }
            (Job::BeforeOpening, _) => self.may_open(now),
            (Job::AfterOpening, Question::Register(symbols)) => {
                let listed = symbols.iter().rev().filter(|symbol| !found.missing.contains(*symbol));
                for symbol in listed {
                    self.registered(symbol, true, now);
                }
                self.trust_if_registered(now);
            }
            _ => {}
        }
        for symbol in found.missing {
            // The gateway has not pushed it since, and will not until it is registered again.
            self.feed.gap_of(&symbol);
            self.registrations.register_again(symbol, now.mono + self.rules.retry_wait);
        }
        Ok(())
    }

    /// Takes what the gateway's list shows about a symbol to be registered.
    fn registered(&mut self, symbol: &str, is_listed: bool, now: Now) {
        if is_listed {
            if self.registrations.settled(symbol) {
                tracing::info!(symbol, "a symbol of the local broker is registered again");
            }
            return self.send_named(symbol, now);
        }
        self.end_naming(symbol);
        let again = now.mono + self.rules.retry_wait;
        if let Err((tries, was_reported)) = self.registrations.missed(symbol, again) {
            let why =
                format!("the gateway leaves {symbol} out of its list, {tries} times in a row");
            self.not_registered(symbol, was_reported, ErrorCode::GatewayError, &why, now);
        }
    }

    /// Handles a refused registration.
    pub(super) fn registration_failed(
        &mut self,
        job: Job,
        question: Question,
        code: ErrorCode,
        why: &str,
        now: Now,
    ) {
        tracing::warn!(
            ?question,
            code = code.name(),
            why,
            "the local broker refuses a registration"
        );
        let Question::Register(symbols) = question else {
            // The gateway may have lost some of them: its list shows which.
            let call = Call::new(Job::List, Question::Register(self.registrations.symbols()));
            return self.requests.push_last(call);
        };
        if matches!(job, Job::List) {
            return;
        }
        // A refused symbol must not block the others.
        let one_by_one = symbols.len() > 1;
        for symbol in symbols {
            let was_reported = self.registrations.settled(&symbol);
            self.registrations.set.refused(&symbol);
            self.feed.gap_of(&symbol);
            if one_by_one || !matches!(job, Job::Register) {
                self.registrations.register_alone(&symbol, now.mono, was_reported);
            } else {
                self.not_registered(&symbol, was_reported, code, why, now);
            }
        }
        match job {
            Job::BeforeOpening => self.may_open(now),
            Job::AfterOpening => self.trust_if_registered(now),
            _ => {}
        }
    }

    /// Handles a symbol that cannot be registered. Commands that wait for it fail, and their clients do not
    /// have it. Clients that had it before stay subscribed and get one error; it is tried again later.
    fn not_registered(
        &mut self,
        symbol: &str,
        was_reported: bool,
        code: ErrorCode,
        why: &str,
        now: Now,
    ) {
        let message = format!("{symbol} is not registered at the gateway: {why}");
        for waiting in self.subscribers.take(symbol) {
            self.turn_away(&waiting, symbol, code, &message);
        }
        if !self.registrations.set.contains(symbol) {
            return;
        }
        let pause = self.rules.long_wait();
        self.registrations.register_alone(symbol, now.mono + pause, true);
        if was_reported {
            return;
        }
        tracing::error!(
            symbol,
            code = code.name(),
            why,
            "a symbol of the local broker is not registered"
        );
        let pause = pause.as_secs();
        let message = format!(
            "{symbol} is no longer registered at the gateway and gets no frames ({why}); the \
             engine tries again every {pause} s"
        );
        let holders: Vec<u64> = self.registrations.set.subscribers(symbol).collect();
        for client in holders {
            self.send_error_to(client, None, code, &message);
        }
    }

    /// Reports to a command that its subscription failed. The client's earlier subscription stays.
    fn turn_away(&mut self, waiting: &Waiting, symbol: &str, code: ErrorCode, why: &str) {
        self.send_error(&waiting.context, code, why);
        if waiting.is_new {
            self.registrations.set.unsubscribed(waiting.context.client, symbol);
            self.give_back(waiting.context.client, symbol);
        }
    }

    /// Fails all commands that wait for a registration.
    pub(super) fn fail_subscribers(&mut self, code: ErrorCode, why: &str) {
        for (symbol, waiting) in self.subscribers.take_all() {
            for waiting in waiting {
                self.turn_away(&waiting, &symbol, code, why);
            }
        }
        self.registrations.end_session();
    }
}
