//! Subscriptions and the register set: what clients want, what the gateway has, and how the one becomes the
//! other (specification 1, "States and transitions"; specification 4, P51, P52).

use std::time::Duration;

use serde::Deserialize;

use super::super::REGISTER_MAX;
use super::super::event::{ErrorCode, VenueEvent};
use super::super::keys::{TOKYO, symbol_of};
use super::super::lanes::Call;
use super::super::lifecycle::State;
use super::super::limits::{
    LATE_MAX, LATE_TIME, NAME_TIME, REGISTER_BATCH_MAX, RELEASED_MAX, RETRIES,
    SUBSCRIBERS_WAITING_MAX,
};
use super::super::register_set::Registration;
use super::super::request::Question;
use super::reads::Read;
use super::{Gateway, Job};
use crate::{Now, Recipient, RequestContext};

/// A symbol that is to be registered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: Duration,
    /// Times that the gateway has left it out.
    tries: u32,
    /// In a request of its own, because one with others was refused.
    is_single: bool,
    /// It is on its way.
    is_sent: bool,
    /// Whoever is subscribed knows that it could not be registered.
    was_reported: bool,
}

impl Due {
    const fn at(at: Duration) -> Self {
        Self { at, tries: 0, is_single: false, is_sent: false, was_reported: false }
    }
}

/// A command that waits for the registration of a symbol.
#[derive(Debug)]
pub(crate) struct Waiting {
    asked: RequestContext,
    /// The client was not subscribed before: where nothing comes of it, it has the symbol not.
    is_new: bool,
}

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

/// What a full register set says to whoever wants one more (specification 1, "Endpoints", rule 1).
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

/// What a gateway says whose list is full, though ours is not: others have registered symbols meanwhile.
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
    pub fn subscribe(&mut self, asked: RequestContext, ticker: &str, now: Now) {
        let symbol = match symbol_of(ticker) {
            Ok(symbol) => symbol.to_owned(),
            Err(why) => {
                return self.send_error(&asked, ErrorCode::ValidationError, &why.to_string());
            }
        };
        if self.state() == State::AppDown
            && let Some((code, why)) = self.why_not_ready()
        {
            return self.send_error(&asked, code, &why);
        }
        let waiting = self.subscribers.get(&symbol).map_or(0, Vec::len);
        if waiting >= SUBSCRIBERS_WAITING_MAX {
            let why = format!(
                "{waiting} commands wait for the registration of {symbol} already; wait for their \
                 answers"
            );
            return self.send_error(&asked, ErrorCode::RateLimited, &why);
        }
        let was_subscribed = self.set.is_subscribed(&symbol);
        let is_new = self.set.subscribers(&symbol).all(|client| client != asked.client);
        let registration = self.set.register(asked.client, &symbol);
        if !was_subscribed && registration != Registration::Full {
            // One that only read its board keeps a symbol in the set, and its frames were not taken: what was
            // traded meanwhile is nobody's, and the last quote is old.
            self.feed.forget(&symbol);
        }
        match registration {
            Registration::Full => {
                let why = full(self.foreign);
                self.send_error(&asked, ErrorCode::RegisterFull, &why);
            }
            Registration::New if self.state().is_ready() => {
                self.wanted_again(&symbol);
                self.to_register.insert(symbol.clone(), Due::at(now.mono));
                self.subscribers.entry(symbol).or_default().push(Waiting { asked, is_new });
            }
            Registration::Known if self.subscribers.contains_key(&symbol) => {
                self.subscribers.entry(symbol).or_default().push(Waiting { asked, is_new });
            }
            // Only its board was read, or it could not be registered: now it has to be.
            Registration::Known if self.state().is_ready() && !self.set.is_listed(&symbol) => {
                self.register_also(&symbol, now);
                self.subscribers.entry(symbol).or_default().push(Waiting { asked, is_new });
            }
            // Before a login it is remembered.
            Registration::New | Registration::Known => self.send_subscribed(&asked, &symbol),
        }
        self.drive(now);
    }

    /// Releases a client's subscription; without one it is answered all the same.
    pub fn unsubscribe(&mut self, asked: &RequestContext, ticker: &str, now: Now) {
        let symbol = match symbol_of(ticker) {
            Ok(symbol) => symbol.to_owned(),
            Err(why) => {
                return self.send_error(asked, ErrorCode::ValidationError, &why.to_string());
            }
        };
        // What waits for the same registration is answered first.
        let mut waiting = Vec::new();
        if let Some(all) = self.subscribers.get_mut(&symbol) {
            waiting.extend(all.extract_if(.., |waiting| waiting.asked.client == asked.client));
        }
        for waiting in waiting {
            self.send_subscribed(&waiting.asked, &symbol);
        }
        if self.set.release(asked.client, &symbol) {
            self.no_longer_wanted(&symbol);
        }
        let event = VenueEvent::Unsubscribed { request_id: asked.request_id.clone(), symbol };
        self.send(Recipient::Client(asked.client), event);
        self.drive(now);
    }

    /// A client is gone, and with it its subscriptions and what it wanted to know.
    pub fn client_left(&mut self, client: u64, now: Now) {
        self.left_out.client_left(client);
        for lane in self.lanes.all() {
            // Others may wait for the same name.
            lane.waiting.retain(|call| {
                call.job.client() != Some(client) || matches!(call.job, Job::Name(..))
            });
        }
        for waiting in self.subscribers.values_mut() {
            waiting.retain(|waiting| waiting.asked.client != client);
        }
        let is_unasked = |symbol: &String| self.subscribers.get(symbol).is_none_or(Vec::is_empty);
        let unasked: Vec<_> = self.naming.keys().filter(|one| is_unasked(one)).cloned().collect();
        for symbol in unasked {
            self.named(&symbol);
        }
        for symbol in self.set.client_left(client) {
            self.no_longer_wanted(&symbol);
        }
        self.drive(now);
    }

    pub(super) fn no_longer_wanted(&mut self, symbol: &str) {
        self.feed.forget(symbol);
        self.subscribers.remove(symbol);
        self.end_naming(symbol);
        self.to_register.remove(symbol);
        self.unregister_after.remove(symbol);
        self.drop_waiting(symbol, |job| matches!(job, Job::Register));
    }

    /// A symbol that nobody wanted is wanted again: what waits to take it out must not.
    pub(super) fn wanted_again(&mut self, symbol: &str) {
        self.drop_waiting(symbol, |job| matches!(job, Job::Unregister));
    }

    /// Takes a symbol out of the requests for some job that wait, and those that are empty then with it.
    fn drop_waiting(&mut self, symbol: &str, is_of: impl Fn(&Job) -> bool) {
        self.lanes.information.waiting.retain_mut(|call| {
            let (Question::Register(symbols) | Question::Unregister(symbols)) = &mut call.question
            else {
                return true;
            };
            if !is_of(&call.job) {
                return true;
            }
            symbols.retain(|waiting| waiting != symbol);
            !symbols.is_empty()
        });
    }

    /// Takes out the symbol that was used longest ago (specification 1, "States and transitions").
    pub fn evict_lru(&mut self, asked: &RequestContext, now: Now) {
        let Some(symbol) = self.set.evict_lru() else {
            let why = "the engine has no registered symbol to remove";
            return self.send_error(asked, ErrorCode::ValidationError, why);
        };
        let waiting = self.subscribers.remove(&symbol).unwrap_or_default();
        for Waiting { asked, .. } in waiting {
            let why = format!("the engine took {symbol} out of the register set");
            self.send_error(&asked, ErrorCode::RegisterFull, &why);
        }
        self.no_longer_wanted(&symbol);
        let event = VenueEvent::Evicted { request_id: asked.request_id.clone(), symbol };
        self.send(Recipient::All, event);
        self.drive(now);
    }

    fn send_subscribed(&mut self, asked: &RequestContext, symbol: &str) {
        let event = VenueEvent::Subscribed {
            request_id: asked.request_id.clone(),
            symbol: symbol.to_owned(),
            name: self.names.get(symbol).cloned(),
        };
        self.send(Recipient::Client(asked.client), event);
    }

    /// A symbol is registered: whoever waits for that is told, with the name. Where that is not known yet,
    /// the gateway's board tells it, or the first frame (P51).
    fn send_named(&mut self, symbol: &str, now: Now) {
        let first = self.subscribers.get(symbol).and_then(|waiting| waiting.first());
        let client = first.map(|waiting| waiting.asked.client);
        let may_ask = self.names_after <= now.mono && self.outage.is_none();
        let is_wanted = may_ask && !self.names.contains_key(symbol);
        let (Some(client), Ok((_, question)), true) = (client, Question::board(symbol), is_wanted)
        else {
            return self.send_to_waiting(symbol);
        };
        if self.naming.insert(symbol.to_owned(), now.mono).is_none() {
            let job = Job::Name(client, symbol.to_owned());
            let call = Call { yields: true, ..Call::new(job, question) };
            self.lanes.information.push_fair(call, Job::client);
        }
    }

    fn send_to_waiting(&mut self, symbol: &str) {
        for waiting in self.subscribers.remove(symbol).unwrap_or_default() {
            self.send_subscribed(&waiting.asked, symbol);
        }
    }

    /// Tells whoever waits for a symbol's name that it is registered, with the name as far as it is known. An answer
    /// that comes when nobody waits any more says nothing of whoever waits for the registration by then.
    pub(super) fn named(&mut self, symbol: &str) {
        if self.end_naming(symbol) {
            self.send_to_waiting(symbol);
        }
    }

    /// The gateway has something better to do than to tell names, or does not tell them: nobody waits for one.
    pub(super) fn stop_naming(&mut self, now: Now) {
        self.names_after = now.mono + self.rules.long_wait();
        for symbol in self.naming.keys().cloned().collect::<Vec<_>>() {
            self.named(&symbol);
        }
    }

    /// Nobody waits for a name any more; tells whether somebody did.
    fn end_naming(&mut self, symbol: &str) -> bool {
        let is_of = |job: &Job| matches!(job, Job::Name(_, named) if named == symbol);
        self.lanes.information.waiting.retain(|call| !is_of(&call.job));
        self.naming.remove(symbol).is_some()
    }

    /// A name is worth no long wait: its gateway is slow, or its client asks for so much else.
    pub(super) fn tick_names(&mut self, now: Now) {
        let is_late = |since: &Duration| now.mono.saturating_sub(*since) >= NAME_TIME;
        let late = self.naming.iter().filter(|(_, since)| is_late(since));
        let late: Vec<String> = late.map(|(symbol, _)| symbol.clone()).collect();
        // One that answers meanwhile is asked for so much else by whoever waits: others need not do without.
        if self.answered_at.is_some_and(|at| now.mono.saturating_sub(at) < NAME_TIME) {
            late.iter().for_each(|symbol| self.named(symbol));
        } else if !late.is_empty() {
            self.stop_naming(now);
        }
    }

    /// A board was read for the name that it has.
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

    /// Whether whoever is subscribed knows that a symbol could not be registered.
    pub(super) fn was_reported(&self, symbol: &str) -> bool {
        self.to_register.get(symbol).is_some_and(|due| due.was_reported)
    }

    pub(super) fn all_symbols(&self) -> Vec<String> {
        self.set.batches().concat()
    }

    /// Asks for the registration of all symbols, to see whether the gateway still has them.
    pub(super) fn register_all_again(&mut self, now: Now) {
        for symbol in self.all_symbols() {
            self.to_register.entry(symbol).or_insert(Due::at(now.mono));
        }
    }

    /// Registers one symbol, beside what is registered.
    pub(super) fn register_also(&mut self, symbol: &str, now: Now) {
        let due = self.to_register.entry(symbol.to_owned()).or_insert(Due::at(now.mono));
        due.at = due.at.min(now.mono);
    }

    /// Makes a request of the registrations that are due, once one could leave: those that come together go in
    /// one, in turn with what clients read, and what leaves goes before what comes. Until then they wait as
    /// symbols, of which there are few, however many commands there are.
    pub(super) fn register_due(&mut self, now: Now) {
        let lane = &self.lanes.information;
        let mut due = lane.waiting.iter().filter(|call| call.not_before <= now.mono);
        // Whoever changes symbols all the time keeps nobody's reads up: they take turns.
        let is_next = |call: &Call<Job>| call.job.client().is_none() || self.changed_last;
        if self.lists_first() || !lane.is_free(now.mono) || due.any(is_next) {
            return;
        }
        let mut calls = Vec::new();
        // A stream that is opened again brings a list by itself.
        let may_look = self.is_trusted();
        if may_look && self.look_again.take_if(|at| *at <= now.mono).is_some() {
            calls.push(Call::new(Job::List, Question::Register(self.all_symbols())));
            let again = self.look_last.min(now.mono + LATE_MAX / 2);
            self.look_again = Some(again).filter(|at| *at > now.mono);
        }
        // The one used last comes first, and of those that go alone one in each turn.
        let (mut together, mut single) = (Vec::new(), None);
        for symbol in self.all_symbols() {
            let Some(due) = self.to_register.get_mut(&symbol) else { continue };
            if due.is_sent || due.at > now.mono || due.is_single && single.is_some() {
                continue;
            }
            due.is_sent = true;
            if due.is_single {
                single = Some(symbol);
            } else {
                together.push(symbol);
            }
        }
        let together = together.chunks(REGISTER_BATCH_MAX).map(<[String]>::to_vec);
        for symbols in together.chain(single.into_iter().map(|symbol| vec![symbol])) {
            calls.push(Call::new(Job::Register, Question::Register(symbols)));
        }
        for call in calls.into_iter().rev() {
            self.lanes.information.waiting.push_front(call);
        }
        self.unregister_due(now);
    }

    /// Nothing came of a request that may register symbols: the gateway may do it late, when nobody wants them any
    /// more, or take out late what is wanted again.
    pub(super) fn doubt(&mut self, call: &Call<Job>, now: Now) {
        let symbols: &[String] = match (&call.job, &call.question) {
            (_, Question::Register(symbols)) => symbols,
            (Job::Read(_, Read::Board(symbol)) | Job::Name(_, symbol), _)
                if self.mapping.description().board_read_registers =>
            {
                std::slice::from_ref(symbol)
            }
            // Late it may take out what is wanted by then: a look at the list registers that again.
            (_, Question::Unregister(_)) => &[],
            _ => return,
        };
        self.doubt_symbols(symbols, LATE_TIME, now);
    }

    /// The gateway may register these for so long.
    pub(super) fn doubt_symbols(&mut self, symbols: &[String], time: Duration, now: Now) {
        let until = now.mono + time;
        self.in_doubt.extend(symbols.iter().map(|symbol| (symbol.clone(), until)));
        while self.in_doubt.len() > RELEASED_MAX {
            self.in_doubt.pop_first();
        }
        self.look_again.get_or_insert(now.mono + LATE_MAX / 2);
        self.look_last = now.mono + LATE_MAX;
    }

    /// Makes a request, before all others, of what is to leave.
    pub(super) fn unregister_due(&mut self, now: Now) {
        let mut leaving = self.set.unwanted();
        self.unregister_after.retain(|symbol, _| leaving.binary_search(symbol).is_ok());
        leaving.retain(|symbol| self.unregister_after.get(symbol).is_none_or(|at| *at <= now.mono));
        let again = now.mono + self.rules.long_wait();
        self.unregister_after.extend(leaving.iter().map(|symbol| (symbol.clone(), again)));
        for batch in leaving.chunks(REGISTER_BATCH_MAX) {
            let call = Call::new(Job::Unregister, Question::Unregister(batch.to_vec()));
            self.lanes.information.waiting.push_front(call);
        }
    }

    /// The gateway has answered a registration with its whole list (P52).
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
        self.in_doubt.retain(|_, until| *until > now.mono);
        let in_doubt = list.iter().filter(|(symbol, market)| {
            *market == TOKYO && self.in_doubt.contains_key(symbol) && !self.set.knows(symbol)
        });
        let in_doubt: Vec<String> = in_doubt.map(|(symbol, _)| symbol.clone()).collect();
        self.set.left_over(in_doubt);
        let found = self.set.apply_list(&list, taken_out);
        self.foreign = found.foreign;
        self.write_registered(now);
        match (&call.job, &call.question) {
            (Job::Register, Question::Register(symbols)) => {
                // The one used last stands first; whoever asked first is told first.
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
            // Nothing of it was pushed since, or will be until it is registered again.
            self.feed.gap_of(&symbol);
            let again = Due { at: now.mono + self.rules.retry_wait, ..Due::at(now.mono) };
            self.to_register.entry(symbol).or_insert(again);
        }
        Ok(())
    }

    /// What the gateway's list says of a symbol that was to be registered.
    fn registered(&mut self, symbol: &str, is_listed: bool, now: Now) {
        let due = self.to_register.remove(symbol);
        let was_reported = due.is_some_and(|due| due.was_reported);
        if is_listed {
            if was_reported {
                tracing::info!(symbol, "a symbol of the local broker is registered again");
            }
            return self.send_named(symbol, now);
        }
        self.end_naming(symbol);
        let tries = due.map_or(0, |due| due.tries) + 1;
        if tries <= RETRIES && self.set.contains(symbol) {
            let at = now.mono + self.rules.retry_wait;
            self.to_register.insert(symbol.to_owned(), Due { tries, was_reported, ..Due::at(at) });
            return;
        }
        let why = format!("the gateway leaves {symbol} out of its list, {tries} times in a row");
        self.not_registered(symbol, was_reported, ErrorCode::GatewayError, &why, now);
    }

    /// The gateway refuses a registration.
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
            // Some of them may be there no longer: the gateway's list says which.
            let call = Call::new(Job::List, Question::Register(self.all_symbols()));
            return self.lanes.information.waiting.push_back(call);
        };
        if matches!(job, Job::List) {
            return;
        }
        // One symbol that is refused keeps no other one out.
        let one_by_one = symbols.len() > 1;
        for symbol in symbols {
            let was_reported = self.to_register.remove(&symbol).is_some_and(|due| due.was_reported);
            self.set.refused(&symbol);
            self.feed.gap_of(&symbol);
            if one_by_one || !matches!(job, Job::Register) {
                let due = Due { is_single: true, was_reported, ..Due::at(now.mono) };
                self.to_register.insert(symbol, due);
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

    /// A symbol cannot be registered: whoever waits for it is told, and has it not. Whoever had it before keeps
    /// it and is told once that nothing comes of it; it is tried again later.
    fn not_registered(
        &mut self,
        symbol: &str,
        was_reported: bool,
        code: ErrorCode,
        why: &str,
        now: Now,
    ) {
        let told = format!("{symbol} is not registered at the gateway: {why}");
        for waiting in self.subscribers.remove(symbol).unwrap_or_default() {
            self.turn_away(&waiting, symbol, code, &told);
        }
        if !self.set.contains(symbol) {
            return;
        }
        let pause = self.rules.long_wait();
        let due = Due { is_single: true, was_reported: true, ..Due::at(now.mono + pause) };
        self.to_register.insert(symbol.to_owned(), due);
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
        let holders: Vec<u64> = self.set.subscribers(symbol).collect();
        for client in holders {
            self.send_error_to(client, None, code, &message);
        }
    }

    /// Tells a command that nothing comes of its subscription. What the client had before it keeps.
    fn turn_away(&mut self, waiting: &Waiting, symbol: &str, code: ErrorCode, why: &str) {
        self.send_error(&waiting.asked, code, why);
        if waiting.is_new {
            self.set.unsubscribed(waiting.asked.client, symbol);
            self.give_back(waiting.asked.client, symbol);
        }
    }

    /// Whoever waits for a registration is told that it does not come.
    pub(super) fn fail_subscribers(&mut self, code: ErrorCode, why: &str) {
        for (symbol, waiting) in std::mem::take(&mut self.subscribers) {
            for waiting in waiting {
                self.turn_away(&waiting, &symbol, code, why);
            }
        }
        self.naming.clear();
        // All that is left is registered with the next stream; what is to leave leaves then.
        self.to_register.clear();
        self.unregister_after.clear();
    }
}
