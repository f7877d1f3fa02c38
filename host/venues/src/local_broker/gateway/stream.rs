//! The stream of boards: when it is opened, when its frames are trusted, and when it is dead.
//!
//! Specification 1, "States and transitions"; specification 4, P43, P47, P49, P52, P53.

use std::time::Duration;

use domain::TsNanos;
use domain::calendar::ExchangeCalendar;
use domain::gateway_mapping::GatewayBoard;
use domain::market_update::MarketUpdate;
use domain::session::{self, TradingHours};

use super::super::config::KeepAlive;
use super::super::drops::{DropReason, Dropped, Report, accepts};
use super::super::event::VenueEvent;
use super::super::lanes::Call;
use super::super::lifecycle::{State, Trigger};
use super::super::limits::{FRAME_BYTES_MAX, PING_EVERY, PING_TIME, STREAM_LASTS};
use super::super::request::Question;
use super::{Gateway, Job, Out};
use crate::{Now, Recipient};

/// State of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stand {
    /// There is none.
    #[default]
    Closed,
    /// Symbols are registered first.
    Registering,
    /// It is being opened.
    Opening,
    /// It is open, and symbols are registered again.
    Checking,
    /// Its frames are trusted.
    Trusted,
}

/// The stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    stand: Stand,
    /// Identifies the present connection; data of others are discarded.
    connection: u64,
    /// Number of the try to open it again; 0 for the first connection.
    attempt: u32,
    next: Option<Duration>,
    /// Whether a valid frame has come over the present connection.
    has_frame: bool,
    last_frame: Option<Now>,
    /// Since when the frames of the present connection are trusted.
    trusted_since: Option<Duration>,
    /// When data last came over a trusted stream: the gateway lives.
    alive_at: Option<Duration>,
    ping: Option<Duration>,
    pong: Option<Duration>,
    is_logged_out: bool,
    /// The gateway's list has not been read since the login.
    lists_first: bool,
    /// Frames that were dropped.
    pub(super) dropped: Dropped,
    malformed: Report,
}

/// What is due for pings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ping {
    Nothing,
    /// One is to be sent.
    Send,
    /// One was not answered in time.
    Unanswered,
}

impl Stream {
    /// A new connection: data of the one before are discarded from now on.
    const fn renew(&mut self) {
        self.connection += 1;
        self.next = None;
        (self.ping, self.pong, self.alive_at) = (None, None, None);
    }

    /// Begins to open a connection, or to register symbols first.
    const fn begin(&mut self) {
        self.renew();
        (self.has_frame, self.trusted_since) = (false, None);
        // The first frame of this connection is still awaited.
        self.last_frame = None;
    }

    /// Closes the connection. Returns whether one was there.
    const fn close(&mut self) -> bool {
        let is_there = matches!(self.stand, Stand::Opening | Stand::Checking | Stand::Trusted);
        self.stand = Stand::Closed;
        self.renew();
        is_there
    }

    /// Notes that the connection is open.
    fn opened(&mut self, now: Duration) {
        self.stand = Stand::Checking;
        (self.ping, self.pong) = (Some(now + PING_EVERY), None);
    }

    const fn is_open(&self) -> bool {
        matches!(self.stand, Stand::Checking | Stand::Trusted)
    }

    /// Notes that data came over the connection.
    fn note_alive(&mut self, now: Duration) {
        self.pong = None;
        self.alive_at = Some(now).filter(|_| self.stand == Stand::Trusted);
    }

    /// Notes that the connection is lost. Returns the number of tries in a row that have failed; 0 after a good
    /// one.
    fn lost(&mut self, trusted_since: Option<Duration>, now: Duration) -> u32 {
        // Without trades no frame comes for hours, and failures are hours apart.
        let has_lasted = trusted_since.is_some_and(|since| now - since >= STREAM_LASTS);
        if self.has_frame || has_lasted {
            self.attempt = 0;
        }
        self.attempt
    }

    /// What is due for pings now.
    fn ping(&mut self, now: Duration) -> Ping {
        if self.pong.is_some_and(|due| due <= now) {
            return Ping::Unanswered;
        }
        if self.ping.is_none_or(|due| due > now) {
            return Ping::Nothing;
        }
        (self.ping, self.pong) = (Some(now + PING_EVERY), Some(now + PING_TIME));
        Ping::Send
    }

    /// How long no frame has come although one should: in the session that began then, after its first frame.
    fn silence(&self, session_began: TsNanos, now: Duration) -> Option<Duration> {
        let last = self.last_frame.filter(|last| last.wall >= session_began)?;
        Some(now.saturating_sub(last.mono))
    }
}

impl Gateway {
    /// Opens the stream after a login.
    pub(super) fn begin_stream(&mut self, now: Now) {
        self.close_stream();
        self.stream.attempt = 0;
        self.stream.lists_first = true;
        self.open_stream(now);
    }

    /// Whether the gateway's list must be read before anything is registered. Symbols in it that we never
    /// registered belong to another program, whichever client wants them here (P52).
    pub(super) fn lists_first(&self) -> bool {
        self.stream.lists_first && self.state().is_ready()
    }

    /// Whether the gateway was down and its stream is open again.
    pub(super) const fn is_healing(&self) -> bool {
        matches!((self.life.state(), self.stream.stand), (State::AppDown, Stand::Checking))
    }

    /// Whether the stream is open and its frames are trusted.
    pub(super) fn is_trusted(&self) -> bool {
        self.stream.stand == Stand::Trusted
    }

    /// Whether market data come: the stream counts, and the gateway is not in its forced logout.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.is_trusted() && self.state().is_ready() && !self.stream.is_logged_out
    }

    fn open_stream(&mut self, now: Now) {
        self.stream.begin();
        let lists_first = self.lists_first();
        let symbols = if lists_first { Vec::new() } else { self.registrations.symbols() };
        if symbols.is_empty() && !lists_first || self.state() == State::AppDown {
            return self.connect();
        }
        self.stream.stand = Stand::Registering;
        let call = Call::new(Job::BeforeOpening, Question::Register(symbols));
        self.requests.push_first(call);
        if !lists_first {
            // Unregistrations make room first.
            self.unregister_due(now);
        }
        self.drive(now);
    }

    fn connect(&mut self) {
        self.stream.stand = Stand::Opening;
        self.out.push_back(Out::OpenPush { connection: self.stream.connection });
    }

    /// Opens the stream, once the symbols are registered. After the list of a login they come next.
    pub(super) fn may_open(&mut self, now: Now) {
        if self.stream.stand != Stand::Registering {
            return;
        }
        if std::mem::take(&mut self.stream.lists_first) {
            self.open_stream(now);
        } else {
            self.connect();
        }
    }

    /// The stream is open. Its frames are trusted once the symbols are registered again (P49).
    pub fn push_opened(&mut self, connection: u64, now: Now) {
        if connection != self.stream.connection || self.stream.stand != Stand::Opening {
            return;
        }
        self.stream.opened(now.mono);
        if self.session.token().is_none() {
            self.renew_token(now);
            if self.stream.stand != Stand::Checking {
                return;
            }
        }
        let symbols = self.registrations.symbols();
        // A gateway that was down must answer, with a token that it accepts. If there are no symbols, its list
        // is requested.
        if !symbols.is_empty() || self.state() == State::AppDown {
            let call = Call::new(Job::AfterOpening, Question::Register(symbols));
            self.requests.push_first(call);
        }
        self.trust_if_registered(now);
        self.drive(now);
    }

    /// Trusts a stream that waits for nothing.
    pub(super) fn trust_if_registered(&mut self, now: Now) {
        let waits = self.requests.is_checking_stream();
        if self.stream.stand == Stand::Checking && !waits && self.session.token().is_some() {
            self.trust(now);
        }
    }

    fn trust(&mut self, now: Now) {
        self.stream.stand = Stand::Trusted;
        self.stream.lists_first = false;
        let was_down = self.state() == State::AppDown;
        self.stream.trusted_since = Some(now.mono);
        self.life.step(Trigger::PushOpened, now.wall);
        self.feed.gap();
        if was_down {
            // A failure from here on is another outage.
            self.stream.attempt = 0;
            tracing::info!("the local broker is back");
            self.send(Recipient::All, VenueEvent::Ready { request_id: None });
        }
    }

    /// The stream has ended, or could not be opened.
    pub fn push_closed(&mut self, connection: u64, why: &str, now: Now) {
        if connection == self.stream.connection && self.stream.stand != Stand::Closed {
            self.stream_lost(why, now);
            self.drive(now);
        }
    }

    pub(super) fn stream_lost(&mut self, why: &str, now: Now) {
        let is_silent = self.state() == State::AppDown;
        let trusted_since = self.stream.trusted_since.take();
        self.close_stream();
        if is_silent {
            return self.try_silently_later(now);
        }
        let failed = self.stream.lost(trusted_since, now.mono);
        tracing::warn!(why, failed, "the local broker's stream is down");
        if !self.life.step(Trigger::PushLost(failed), now.wall) {
            return;
        }
        if self.state() == State::AppDown {
            // A gateway that answers registrations is running, even without its stream.
            let recent = now.mono.saturating_sub(self.rules.long_wait());
            let answers = self.requests.has_answered_since(recent);
            return self.went_down(why, answers, now);
        }
        self.stream.next = Some(now.mono + self.rules.reconnect_base * 2_u32.pow(failed));
        self.stream.attempt += 1;
    }

    /// While the gateway is down it is tried without reports (P49).
    pub(super) fn try_silently_later(&mut self, now: Now) {
        self.stream.next = Some(now.mono + self.rules.long_wait());
    }

    pub(super) fn close_stream(&mut self) {
        if self.stream.close() {
            self.out.push_back(Out::ClosePush);
        }
        self.requests.drop_of_stream();
    }

    pub(super) fn tick_stream(&mut self, now: Now) {
        let may_try = self.state().is_ready() || self.state() == State::AppDown;
        if may_try && self.stream.next.is_some_and(|next| next <= now.mono) {
            self.open_stream(now);
        }
        if self.stream.is_open() {
            match self.rules.keep_alive {
                KeepAlive::Ping => self.keep_alive_by_pings(now),
                KeepAlive::ReadTimeout => self.keep_alive_by_frames(now),
            }
        }
        let is_logged_out = self.rules.forced_logout.contains(now.wall);
        match (self.stream.is_logged_out, is_logged_out) {
            (false, true) => tracing::info!(
                "the local broker's gateway logs out; the engine shows no boards until the logout \
                 ends"
            ),
            (true, false) => {
                tracing::info!("the forced logout of the local broker's gateway is over")
            }
            _ => {}
        }
        if self.stream.is_logged_out && !is_logged_out && self.stream.stand == Stand::Trusted {
            // A gateway that has logged out answers so here, and a new token is requested.
            self.feed.gap();
            self.registrations.register_all_again(now.mono);
        }
        self.stream.is_logged_out = is_logged_out;
    }

    fn keep_alive_by_pings(&mut self, now: Now) {
        match self.stream.ping(now.mono) {
            Ping::Nothing => {}
            Ping::Send => self.out.push_back(Out::Ping),
            Ping::Unanswered => {
                let why = format!("no answer to a ping came within {} s", PING_TIME.as_secs());
                self.stream_lost(&why, now);
            }
        }
    }

    /// Checks for silence, which is a fault in the exchange's sessions after a session's first frame (P43). It
    /// needs a subscribed client.
    fn keep_alive_by_frames(&mut self, now: Now) {
        if !self.registrations.set.has_subscribers() {
            self.stream.last_frame = None;
        }
        let silence =
            session_began(now.wall).and_then(|began| self.stream.silence(began, now.mono));
        if let Some(silence) = silence.filter(|silence| *silence > self.rules.read_timeout) {
            let why = format!("nothing came for {} s", silence.as_secs());
            self.stream_lost(&why, now);
        }
    }

    /// Takes a pong, which shows that the connection lives.
    pub fn push_lives(&mut self, connection: u64, now: Now) {
        if connection == self.stream.connection {
            self.stream.note_alive(now.mono);
        }
    }

    /// Whether the stream shows that the gateway has lived since then.
    pub(super) fn was_alive_since(&self, then: Duration) -> bool {
        self.stream.alive_at.is_some_and(|at| at > then)
    }

    /// Takes a frame. Returns its market data if it is trusted, for all subscribed clients, in the order of
    /// frames. The outputs that are due now come first.
    pub fn frame(&mut self, connection: u64, message: &[u8], now: Now) -> Option<MarketUpdate> {
        if connection != self.stream.connection {
            return None;
        }
        self.stream.note_alive(now.mono);
        let board = match self.take_frame(message, now) {
            Ok(board) => board,
            Err(reason) => {
                self.stream.dropped.count(reason, now.wall);
                return None;
            }
        };
        // A client that waits for the name gets `Subscribed` before the first frame.
        if self.subscribers.is_naming(&board.symbol) {
            self.named(&board.symbol);
        }
        self.feed.frame(board, now.wall)
    }

    /// Reads a frame that is trusted.
    fn take_frame(&mut self, message: &[u8], now: Now) -> Result<GatewayBoard, DropReason> {
        if self.stream.stand != Stand::Trusted || !self.state().is_ready() {
            return Err(DropReason::Untrusted);
        }
        if self.rules.forced_logout.contains(now.wall) {
            return Err(DropReason::LoggedOut);
        }
        let mut board = self.read_frame(message).map_err(|why| {
            if self.stream.malformed.count(now.wall).is_some() {
                let given = String::from_utf8_lossy(message);
                let why = self.secrets.words_about(&given, &why);
                tracing::warn!(why, "the engine cannot read a frame of the local broker");
            }
            DropReason::Malformed
        })?;
        self.stream.has_frame = true;
        self.stream.last_frame = Some(now);
        accepts(&board, self.registrations.set.is_subscribed(&board.symbol))?;
        if let Some(name) = board.name.take() {
            self.learn_name(message, &board.symbol, &name);
        }
        Ok(board)
    }

    fn read_frame(&mut self, message: &[u8]) -> Result<GatewayBoard, String> {
        if message.len() > FRAME_BYTES_MAX {
            return Err(format!(
                "it has {} bytes; the engine reads at most {FRAME_BYTES_MAX}",
                message.len()
            ));
        }
        let text = std::str::from_utf8(message).map_err(|_| "it is not UTF-8".to_owned())?;
        // A fault explains more than "no board", and does not end the connection either.
        self.mapping.read_board(text).unwrap_or_else(|fault| Err(fault.to_string()))
    }

    /// Stores the name of an issue that a dialect found in a message. If there are too many, some names that no
    /// client wants are discarded.
    pub(super) fn learn_name(&mut self, message: &[u8], symbol: &str, name: &str) {
        if self.subscribers.name(symbol).is_some_and(|known| known == name) {
            return;
        }
        self.subscribers.make_room(symbol, |symbol| self.registrations.set.contains(symbol));
        if let Some(name) = self.secrets.name(&String::from_utf8_lossy(message), name) {
            self.subscribers.set_name(symbol, name);
        }
    }
}

/// When the exchange's session of a time began; `None` outside sessions.
fn session_began(time: TsNanos) -> Option<TsNanos> {
    let date = time.jst_date();
    if !ExchangeCalendar::default().is_business_day(date) {
        return None;
    }
    let hours = TradingHours::of(date);
    let sessions = [
        (hours.morning_open, hours.morning_close),
        (hours.afternoon_open, session::close_after(time)),
    ];
    sessions.into_iter().find(|(open, close)| (*open..*close).contains(&time)).map(|(open, _)| open)
}
