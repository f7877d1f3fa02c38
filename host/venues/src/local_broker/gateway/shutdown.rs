//! Symbols that outlive an engine: what is written down for the one after it, and what leaves at the end
//! (specification 4, P50, P52).

use std::time::Duration;

use super::super::keys::TOKYO;
use super::super::lanes::Call;
use super::super::limits::{LATE_TIME, REGISTRATION_FILE_SYMBOLS_MAX};
use super::super::registration_file::LeftOver;
use super::super::request::{Question, Request};
use super::{Gateway, Job, Out, symbols};
use crate::Now;

impl Gateway {
    /// An engine before this one has left these registered. Where the first login is on the same day of the
    /// gateway's, they are ours, and to be taken out.
    pub fn left_over(&mut self, left: LeftOver) {
        self.left = Some(left);
    }

    /// Somebody has logged in.
    pub(super) fn take_left_over(&mut self, now: Now) {
        let today = self.rules.forced_logout.gateway_day(now.wall);
        let Some(LeftOver { gateway_day, symbols, late_until_ms }) = self.left.take() else {
            return;
        };
        let late = late_until_ms.map(|until| until.saturating_sub(now.wall.millis()));
        if gateway_day != today || late == Some(0) {
            return;
        }
        if let Some(late) = late {
            // They may also come only now.
            self.doubt_symbols(&symbols, Duration::from_millis(late).min(LATE_TIME), now);
        }
        self.set.left_over(symbols);
    }

    /// Writes down what the gateway has registered for us on its day, where that has changed.
    pub(super) fn write_registered(&mut self, now: Now) {
        let registered = (self.rules.forced_logout.gateway_day(now.wall), self.set.ours());
        if registered != self.written && (registered.1.len(), self.written.1.len()) != (0, 0) {
            let (gateway_day, symbols) = registered.clone();
            self.out.push_back(Out::WriteRegistered { gateway_day, symbols });
        }
        self.written = registered;
    }

    /// The program ends. Says whether a request is on its way that may register something: before its answer
    /// nothing can be taken out for good.
    pub fn end(&mut self) -> bool {
        self.is_ending = true;
        let registers = |call: &Call<Job>| match call.question {
            // A name is read of what is registered.
            Question::Board(_) => !matches!(call.job, Job::Name(..)),
            Question::Register(ref symbols) => !symbols.is_empty(),
            _ => false,
        };
        self.lanes.information.sent.as_ref().is_some_and(|sent| registers(&sent.call))
    }

    /// Takes our symbols out, at the end of the program (P50); also where only the stream is lost.
    pub fn last_unregister(&mut self) -> Option<Request> {
        self.unregister(self.to_take_out())
    }

    /// What the gateway may register still when our symbols were taken out, because it was asked and has not
    /// answered: the next engine takes it out. What others had registered by the last list is theirs.
    pub fn left_at_the_end(&mut self, now: Now) -> LeftOver {
        if let Some(sent) = self.lanes.information.sent.take() {
            self.doubt(&sent.call, now);
        }
        let late = |(symbol, until): &(&String, &Duration)| {
            **until > now.mono && !self.set.is_foreign(symbol)
        };
        let late: Vec<_> =
            self.in_doubt.iter().filter(late).take(REGISTRATION_FILE_SYMBOLS_MAX).collect();
        let until = late.iter().map(|(_, until)| **until - now.mono).max();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        LeftOver {
            gateway_day: self.rules.forced_logout.gateway_day(now.wall),
            symbols: late.iter().map(|(symbol, _)| (*symbol).clone()).collect(),
            late_until_ms: until.map(|time| now.wall.millis().saturating_add(millis(time))),
        }
    }

    /// Asks for the gateway's list, where it has refused that: some of them may be there no longer.
    pub fn last_list(&mut self) -> Option<Request> {
        let secret = self.token.clone()?;
        Some(Request { question: Question::Register(Vec::new()), secret })
    }

    /// Takes out what the list still has of ours.
    ///
    /// # Errors
    /// It is no list.
    pub fn last_unregister_of_list(&mut self, list: &str) -> Result<Option<Request>, String> {
        let listed = symbols::read_list(list)?;
        let mut symbols = self.to_take_out();
        symbols
            .retain(|symbol| listed.iter().any(|(one, market)| one == symbol && *market == TOKYO));
        Ok(self.unregister(symbols))
    }

    /// What we have registered, and what may be: not what others have.
    fn to_take_out(&self) -> Vec<String> {
        let mut symbols = self.set.ours();
        symbols.extend(self.in_doubt.keys().filter(|symbol| !self.set.knows(symbol)).cloned());
        symbols
    }

    fn unregister(&self, symbols: Vec<String>) -> Option<Request> {
        let secret = self.token.clone().filter(|_| !symbols.is_empty())?;
        Some(Request { question: Question::Unregister(symbols), secret })
    }
}
