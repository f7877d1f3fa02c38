//! Symbols that outlive an engine: which are written down, and which are unregistered at the end.
//!
//! Specification 4, P50, P52.

use super::super::keys::TOKYO;
use super::super::registration_file::LeftOver;
use super::super::request::{Question, Request};
use super::{Gateway, Out, symbols};
use crate::Now;

impl Gateway {
    /// Notes the symbols that an engine before this one left registered. If the first login is on the same
    /// gateway day, they are ours and are unregistered.
    pub fn left_over(&mut self, left: LeftOver) {
        self.registrations.left_over(left);
    }

    /// Writes down the symbols that are registered for us on the gateway day, if they have changed.
    pub(super) fn write_registered(&mut self, now: Now) {
        let gateway_day = self.rules.forced_logout.gateway_day(now.wall);
        if let Some(symbols) = self.registrations.take_unwritten(gateway_day) {
            self.out.push_back(Out::WriteRegistered { gateway_day, symbols });
        }
    }

    /// Begins the end of the program. Returns whether a request is under way that may register something. Until
    /// its answer an unregistration is not final.
    pub fn end(&mut self) -> bool {
        self.is_ending = true;
        self.requests.is_registering()
    }

    /// The request that unregisters our symbols at the end of the program, also if only the stream is lost
    /// (P50).
    pub fn last_unregister(&mut self) -> Option<Request> {
        self.unregister(self.registrations.to_take_out())
    }

    /// The symbols that the gateway may still register, because a request for them has no answer. The next
    /// engine unregisters them. Those that other programs had in the last list are theirs.
    pub fn left_at_the_end(&mut self, now: Now) -> LeftOver {
        if let Some(call) = self.requests.take_unanswered() {
            self.doubt(&call, now);
        }
        let gateway_day = self.rules.forced_logout.gateway_day(now.wall);
        self.registrations.left_at_the_end(gateway_day, now)
    }

    /// Requests the gateway's list if it refused to unregister: it may have lost some of the symbols.
    pub fn last_list(&mut self) -> Option<Request> {
        let secret = self.session.token().cloned()?;
        Some(Request { question: Question::Register(Vec::new()), secret })
    }

    /// Unregisters our symbols that are still in the list.
    ///
    /// # Errors
    /// The answer is not a list.
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
