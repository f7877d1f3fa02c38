//! What clients are told: answers, errors, and why something cannot be done now.

use ipc::{Event, VenueError, error_code};

use super::super::VENUE;
use super::super::lanes::Call;
use super::super::lifecycle::State;
use super::super::limits::{CALLS_WAITING_MAX, CLIENT_CALLS_WAITING_MAX};
use super::{Gateway, Job, Out};
use crate::{Asked, Now, Recipient};

impl Gateway {
    pub(super) fn tell(&mut self, to: Recipient, event: Event<'static>) {
        self.out.push_back(Out::Tell(to, Box::new(event)));
    }

    /// Tells a client that its command failed.
    pub(super) fn tell_error(&mut self, asked: &Asked, code: &'static str, message: &str) {
        self.tell_error_of(asked.client, Some(&asked.request_id), code, message);
    }

    /// Tells a client what went wrong; with its command, where it is one's.
    pub(super) fn tell_error_of(
        &mut self,
        client: u64,
        request: Option<&str>,
        code: &'static str,
        message: &str,
    ) {
        let error = ipc::Error {
            request_id: request.map(|id| id.to_owned().into()),
            code: code.into(),
            message: message.to_owned().into(),
            venue_order_id: None,
        };
        self.tell(Recipient::Client(client), Event::Error(error));
    }

    /// Tells everybody that the venue cannot be used (specification 1, "Events").
    pub(super) fn venue_error(&mut self, code: &'static str, message: String, now: Now) {
        self.life.fail(code);
        // The gateway logs everybody out then: whoever asks is told that it is down, or that nobody is
        // logged in.
        let is_of_logout = [error_code::LOCAL_APP_DOWN, error_code::TOKEN_EXPIRED].contains(&code);
        let is_expected = is_of_logout && self.rules.forced_logout.contains(now.wall);
        if is_expected {
            tracing::info!(code, message, "the local broker has an error");
        } else {
            tracing::error!(code, message, "the local broker has an error");
        }
        let event = VenueError { venue: VENUE.into(), code: code.into(), message: message.into() };
        self.tell(Recipient::All, Event::VenueError(event));
    }

    /// Why a client's command cannot be done in the present state.
    pub(super) fn why_not_ready(&self) -> Option<(&'static str, String)> {
        match self.state() {
            State::Ready(_) => None,
            State::AppDown => Some((error_code::LOCAL_APP_DOWN, self.is_down(""))),
            State::LoggingIn(_) => Some((
                error_code::TOKEN_EXPIRED,
                "the login at the gateway is under way; wait for VenueReady".to_owned(),
            )),
            State::Disconnected | State::TokenExpired => Some((
                error_code::TOKEN_EXPIRED,
                "the engine is not logged in at the gateway; send RequestVenueLogin".to_owned(),
            )),
        }
    }

    /// Whether one more request of a client may wait; tells it else.
    pub(super) fn has_room(&mut self, asked: &Asked) -> bool {
        let all = self.lanes.waiting().count();
        let is_own =
            |call: &&Call<Job>| matches!(&call.job, Job::Read(of, _) if of.client == asked.client);
        let own = self.lanes.waiting().filter(is_own).count();
        let whose = if own >= CLIENT_CALLS_WAITING_MAX {
            format!("{own} requests of this client")
        } else if all >= CALLS_WAITING_MAX {
            format!("{all} requests")
        } else {
            return true;
        };
        let why = format!("{whose} wait for the gateway already; wait for their answers");
        self.tell_error(asked, error_code::RATE_LIMITED, &why);
        false
    }
}
