//! Symbols that outlive an engine: what is written down for the one after it, and what leaves at the end
//! (specification 4, P50, P52).

use super::super::keys::TOKYO;
use super::super::lanes::Call;
use super::super::limits::KEPT_SYMBOLS_MAX;
use super::super::request::{Question, Request};
use super::{Gateway, Job, Out, symbols};
use crate::Now;

impl Gateway {
    /// An engine before this one has left these registered on a day of the gateway's. Where the first login is on
    /// the same day, they are ours, and to be taken out.
    pub fn left_over(&mut self, gateway_day: u64, symbols: Vec<String>) {
        self.left = Some((gateway_day, symbols));
    }

    /// Somebody has logged in.
    pub(super) fn take_left_over(&mut self, now: Now) {
        let today = self.rules.forced_logout.gateway_day(now.wall);
        if let Some((_, symbols)) = self.left.take_if(|(day, _)| *day == today) {
            self.set.left_over(symbols);
        }
        self.left = None;
    }

    /// Writes down what the gateway has registered for us on its day, where that has changed.
    pub(super) fn keep(&mut self, now: Now) {
        let kept = (self.rules.forced_logout.gateway_day(now.wall), self.set.ours());
        if kept != self.kept && (kept.1.len(), self.kept.1.len()) != (0, 0) {
            let (gateway_day, symbols) = kept.clone();
            self.out.push_back(Out::Keep { gateway_day, symbols });
        }
        self.kept = kept;
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
    pub fn farewell(&mut self) -> Option<Request> {
        let mut symbols = self.set.ours();
        symbols.extend(self.in_doubt.keys().filter(|symbol| !self.set.knows(symbol)).cloned());
        self.unregister(symbols)
    }

    /// What the gateway may register still when our symbols were taken out, because it was asked and has not
    /// answered, with its day: the next engine takes it out.
    pub fn left_at_the_end(&mut self, now: Now) -> (u64, Vec<String>) {
        if let Some(sent) = self.lanes.information.sent.take() {
            self.doubt(&sent.call, now);
        }
        self.in_doubt.retain(|_, until| *until > now.mono);
        let symbols = self.in_doubt.keys().take(KEPT_SYMBOLS_MAX).cloned().collect();
        (self.rules.forced_logout.gateway_day(now.wall), symbols)
    }

    /// Asks for the gateway's list, where it has refused that: some of them may be there no longer.
    pub fn farewell_list(&mut self) -> Option<Request> {
        let secret = self.token.clone()?;
        Some(Request { question: Question::Register(Vec::new()), secret })
    }

    /// Takes out what the list still has of ours.
    pub fn farewell_of_list(&mut self, list: &str) -> Option<Request> {
        let listed = symbols::read_list(list).ok()?;
        let mut symbols = self.set.ours();
        symbols
            .retain(|symbol| listed.iter().any(|(one, market)| one == symbol && *market == TOKYO));
        self.unregister(symbols)
    }

    fn unregister(&self, symbols: Vec<String>) -> Option<Request> {
        let secret = self.token.clone().filter(|_| !symbols.is_empty())?;
        Some(Request { question: Question::Unregister(symbols), secret })
    }
}
