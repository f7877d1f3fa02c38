//! Symbols that outlive an engine: what is written down for the one after it, and what leaves at the end
//! (specification 4, P50, P52).

use super::super::keys::TOKYO;
use super::super::registration_file::LeftOver;
use super::super::request::{Question, Request};
use super::{Gateway, Out, symbols};
use crate::Now;

impl Gateway {
    /// An engine before this one has left these registered. Where the first login is on the same day of the
    /// gateway's, they are ours, and to be taken out.
    pub fn left_over(&mut self, left: LeftOver) {
        self.registrations.left_over(left);
    }

    /// Writes down what the gateway has registered for us on its day, where that has changed.
    pub(super) fn write_registered(&mut self, now: Now) {
        let gateway_day = self.rules.forced_logout.gateway_day(now.wall);
        if let Some(symbols) = self.registrations.take_unwritten(gateway_day) {
            self.out.push_back(Out::WriteRegistered { gateway_day, symbols });
        }
    }

    /// The program ends. Says whether a request is on its way that may register something: before its answer
    /// nothing can be taken out for good.
    pub fn end(&mut self) -> bool {
        self.is_ending = true;
        self.requests.is_registering()
    }

    /// Takes our symbols out, at the end of the program (P50); also where only the stream is lost.
    pub fn last_unregister(&mut self) -> Option<Request> {
        self.unregister(self.registrations.to_take_out())
    }

    /// What the gateway may register still when our symbols were taken out, because a request for that has no
    /// answer: the next engine takes it out. What others had registered by the last list is theirs.
    pub fn left_at_the_end(&mut self, now: Now) -> LeftOver {
        if let Some(call) = self.requests.take_unanswered() {
            self.doubt(&call, now);
        }
        let gateway_day = self.rules.forced_logout.gateway_day(now.wall);
        self.registrations.left_at_the_end(gateway_day, now)
    }

    /// Asks for the gateway's list, where it has refused that: some of them may be there no longer.
    pub fn last_list(&mut self) -> Option<Request> {
        let secret = self.session.token().cloned()?;
        Some(Request { question: Question::Register(Vec::new()), secret })
    }

    /// Takes out what the list still has of ours.
    ///
    /// # Errors
    /// It is no list.
    pub fn last_unregister_of_list(&mut self, list: &str) -> Result<Option<Request>, String> {
        let listed = symbols::read_list(list)?;
        let mut symbols = self.registrations.to_take_out();
        symbols
            .retain(|symbol| listed.iter().any(|(one, market)| one == symbol && *market == TOKYO));
        Ok(self.unregister(symbols))
    }

    fn unregister(&self, symbols: Vec<String>) -> Option<Request> {
        let secret = self.session.token().cloned().filter(|_| !symbols.is_empty())?;
        Some(Request { question: Question::Unregister(symbols), secret })
    }
}
