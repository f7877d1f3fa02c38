//! Replies and errors to clients, and why a command cannot be executed now.

use super::super::event::{ErrorCode, VenueEvent};
use super::super::lifecycle::State;
use super::super::limits::{CALLS_WAITING_MAX, CLIENT_CALLS_WAITING_MAX};
use super::{Gateway, Out};
use crate::{Now, Recipient, RequestContext};

impl Gateway {
    pub(super) fn send(&mut self, to: Recipient, event: VenueEvent) {
        self.out.push_back(Out::Send(to, Box::new(event)));
    }

    /// Reports to a client that its command failed.
    pub(super) fn send_error(&mut self, context: &RequestContext, code: ErrorCode, message: &str) {
        self.send_error_to(context.client, Some(&context.request_id), code, message);
    }

    /// Reports an error to a client, with the id of its command if there is one.
    pub(super) fn send_error_to(
        &mut self,
        client: u64,
        request: Option<&str>,
        code: ErrorCode,
        message: &str,
    ) {
        let event = VenueEvent::Error {
            request_id: request.map(str::to_owned),
            code,
            message: message.to_owned(),
        };
        self.send(Recipient::Client(client), event);
    }

    /// Broadcasts that the venue cannot be used (specification 1, "Events").
    pub(super) fn venue_error(&mut self, code: ErrorCode, message: String, now: Now) {
        self.life.fail(code);
        // The gateway logs out all programs then. A client that sends a command gets the state by its answer.
        let is_of_logout = [ErrorCode::LocalAppDown, ErrorCode::TokenExpired].contains(&code);
        let is_expected = is_of_logout && self.rules.forced_logout.contains(now.wall);
        if is_expected {
            tracing::info!(code = code.name(), message, "the local broker has an error");
        } else {
            tracing::error!(code = code.name(), message, "the local broker has an error");
        }
        self.send(Recipient::All, VenueEvent::Unusable { code, message });
    }

    /// Why a client's command cannot be executed in the present state.
    pub(super) fn why_not_ready(&self) -> Option<(ErrorCode, String)> {
        match self.state() {
            State::Ready(_) => None,
            State::AppDown => Some((ErrorCode::LocalAppDown, self.is_down(""))),
            State::LoggingIn(_) => Some((
                ErrorCode::TokenExpired,
                "the login at the gateway is under way; wait for VenueReady".to_owned(),
            )),
            State::Disconnected | State::TokenExpired => Some((
                ErrorCode::TokenExpired,
                "the engine is not logged in at the gateway; send RequestVenueLogin".to_owned(),
            )),
        }
    }

    /// Whether one more request of a client may be queued; if not, the client gets an error.
    pub(super) fn has_room(&mut self, context: &RequestContext) -> bool {
        let (all, own) = self.requests.waiting(context.client);
        let whose = if own >= CLIENT_CALLS_WAITING_MAX {
            format!("{own} requests of this client")
        } else if all >= CALLS_WAITING_MAX {
            format!("{all} requests")
        } else {
            return true;
        };
        let why = format!("{whose} wait for the gateway already; wait for their answers");
        self.send_error(context, ErrorCode::RateLimited, &why);
        false
    }
}
