//! A command and its answer: which event answers it, and what it means for who asked.

use std::io::{BufRead, IsTerminal, stderr, stdin};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domain::ReasonCode;
use domain::Secret;
use domain::clock::Stopwatch;
use engine::client::{Client, Received};
use ipc::{
    Command, Event, GetVenueState, RequestId, RequestVenueLogin, VenueLifecycle, VenueState,
    error_code,
};
use secrecy::ExposeSecret;

use super::VENUE;
use crate::args::Format;
use crate::hidden;

/// How long an answer is waited for: longer than the 30 s that the engine takes at most.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(40);
/// How long a login is waited for, from its last sign of life: masters are a download of some megabytes.
const LOGIN_TIME: Duration = Duration::from_secs(90);
/// The same where a person at the engine is asked for a password: longer than the engine waits for it.
const TYPING_TIME: Duration = Duration::from_secs(330);
/// How long it is waited for why a login was given up.
const WHY_TIME: Duration = Duration::from_secs(2);
/// How long an event is waited for before it is looked whether to go on.
pub(crate) const LOOK: Duration = Duration::from_millis(40);
/// Bytes of a second password that is typed.
const PASSWORD_BYTES_MAX: usize = 128;

/// What became of a command.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It was done.
    Done(Received),
    /// It was refused.
    Refused(Received),
    /// The engine is busy.
    Busy(Received),
    /// The second password is needed, and nobody can be asked.
    NeedsPassword(Received),
    /// It may have been sent, and nobody knows what became of it.
    Unknown(Option<Received>),
    /// There is no session at the broker.
    NotReady(String),
    /// Nobody waits for it any more.
    Interrupted,
}

/// Who looks on while an answer is waited for.
pub(crate) trait Attendant {
    /// Takes an event, also the answer where it is the one that was hoped for.
    fn hear(&mut self, received: &Received);

    /// Whether to go on; asked before each event, and often while none comes.
    fn goes_on(&mut self, client: &mut Client) -> Result<bool>;
}

/// Nobody: waits as long as it takes.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Attendant for Nobody {
    fn hear(&mut self, _: &Received) {}

    fn goes_on(&mut self, _: &mut Client) -> Result<bool> {
        Ok(true)
    }
}

/// A connection to the engine whose venue is asked.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) client: Client,
    pub(crate) format: Format,
    pub(crate) venue: &'static str,
}

/// The id of the command that an event answers.
fn request_id(received: &Received) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(&received.text).ok()?;
    value.get("request_id")?.as_str().map(str::to_owned)
}

impl Desk {
    /// Sends a command and waits for its answer: the event that `is_done` names, which is also told
    /// whether it has the command's id.
    pub(crate) fn ask(
        &mut self,
        command: &Command,
        is_done: impl FnMut(&Event<'static>, bool) -> bool,
    ) -> Result<Answer> {
        self.ask_before(&mut Nobody, command, is_done)
    }

    /// The same before an attendant.
    pub(crate) fn ask_before(
        &mut self,
        attendant: &mut impl Attendant,
        command: &Command,
        is_done: impl FnMut(&Event<'static>, bool) -> bool,
    ) -> Result<Answer> {
        self.ask_within(ANSWER_TIME, attendant, command, is_done)
    }

    /// The same for a command that may take another time.
    pub(crate) fn ask_within(
        &mut self,
        time: Duration,
        attendant: &mut impl Attendant,
        command: &Command,
        is_done: impl FnMut(&Event<'static>, bool) -> bool,
    ) -> Result<Answer> {
        let id = command.request_id().map(|id| id.as_text().into_owned()).unwrap_or_default();
        let is_of_many = matches!(command, Command::CancelAllOrders(_));
        self.client.send(command)?;
        self.answer(time, attendant, (&id, is_of_many), is_done)
    }

    /// Waits for the answer to a command that was sent, which may be one about many orders.
    fn answer(
        &mut self,
        time: Duration,
        attendant: &mut impl Attendant,
        (id, is_of_many): (&str, bool),
        mut is_done: impl FnMut(&Event<'static>, bool) -> bool,
    ) -> Result<Answer> {
        let watch = Stopwatch::start();
        while watch.elapsed() < time {
            if !attendant.goes_on(&mut self.client)? {
                return Ok(Answer::Interrupted);
            }
            let Some(received) = self.client.next(LOOK)? else { continue };
            let is_ours = request_id(&received).as_deref() == Some(id);
            if is_done(&received.event, is_ours) {
                attendant.hear(&received);
                return Ok(Answer::Done(received));
            }
            if !is_ours {
                attendant.hear(&received);
                continue;
            }
            match &received.event {
                // Of a cancel of many it may be about one of the orders, also one placed elsewhere.
                Event::OrderRejected(rejected)
                    if is_of_many
                        && (rejected.client_order_id.is_some()
                            || rejected.context.instrument_id.is_some()) => {}
                Event::OrderRejected(rejected)
                    if rejected.reason_code == ReasonCode::SecondPasswordRequired =>
                {
                    return Ok(Answer::NeedsPassword(received));
                }
                Event::OrderRejected(_) => return Ok(Answer::Refused(received)),
                Event::SecondPasswordRequired(_) => return Ok(Answer::NeedsPassword(received)),
                Event::EngineBusy(_) => return Ok(Answer::Busy(received)),
                // After it was sent the engine does not know either (specification 4, P18).
                Event::Error(error) if error.code == ReasonCode::InternalError.as_str() => {
                    return Ok(Answer::Unknown(Some(received)));
                }
                Event::Error(_) | Event::EngineError(_) => return Ok(Answer::Refused(received)),
                _ => {}
            }
            attendant.hear(&received);
        }
        Ok(Answer::Unknown(None))
    }

    /// The same for a command that may need the second password: the person is asked for it, and the
    /// command sent once more. Logs in first where nobody has.
    pub(crate) fn ask_with_password(
        &mut self,
        command: impl Fn(RequestId) -> Command,
        mut is_done: impl FnMut(&Event<'static>, bool) -> bool,
    ) -> Result<Answer> {
        if let Some(not_ready) = self.make_ready()? {
            return Ok(not_ready);
        }
        let first = command(self.client.request_id()?);
        let answer = self.ask(&first, &mut is_done)?;
        let Answer::NeedsPassword(_) = &answer else { return Ok(answer) };
        if !stdin().is_terminal() || !stderr().is_terminal() {
            return Ok(answer);
        }
        let value = second_password()?;
        if value.expose().is_empty() {
            return Ok(answer);
        }
        let request_id = self.client.request_id()?;
        self.client.send_second_password(&request_id, &value)?;
        drop(value);
        // Commands of one connection take effect in order.
        let again = command(self.client.request_id()?);
        self.ask(&again, &mut is_done)
    }

    /// Gives the engine the second password, and waits until it holds it.
    pub(crate) fn set_second_password(&mut self, value: &Secret) -> Result<Answer> {
        let request_id = self.client.request_id()?;
        self.client.send_second_password(&request_id, value)?;
        let id = request_id.as_text();
        self.answer(ANSWER_TIME, &mut Nobody, (&id, false), |event, is_ours| {
            is_ours && matches!(event, Event::SecondPasswordSet(_))
        })
    }

    /// Logs in where nobody has. None: orders can be sent.
    pub(crate) fn make_ready(&mut self) -> Result<Option<Answer>> {
        let Some(state) = self.venue_state(&mut Nobody)? else {
            return Ok(Some(Answer::Interrupted));
        };
        Ok(match state.state {
            VenueLifecycle::Ready => None,
            VenueLifecycle::Disconnected | VenueLifecycle::LoggingIn => {
                match self.login(&mut Nobody)? {
                    Answer::Done(_) => None,
                    other => Some(other),
                }
            }
            VenueLifecycle::TokenExpired | VenueLifecycle::AppDown => {
                // The account may be used elsewhere now; to take it back is the person's decision.
                let why =
                    "the broker has ended the session; log in again with `kumiki order login`";
                Some(Answer::NotReady(why.to_owned()))
            }
        })
    }

    /// Logs in, and waits until the venue is ready.
    pub(crate) fn login(&mut self, attendant: &mut impl Attendant) -> Result<Answer> {
        let request_id = self.client.request_id()?;
        let id = request_id.as_text().into_owned();
        let venue = self.venue;
        let login = RequestVenueLogin { request_id: Some(request_id), venue: venue.to_owned() };
        self.client.send(&Command::RequestVenueLogin(login))?;
        let mut heard = Stopwatch::start();
        let mut cancelled = None;
        let mut patience = if venue == VENUE { LOGIN_TIME } else { TYPING_TIME };
        while heard.elapsed() < patience {
            if !attendant.goes_on(&mut self.client)? {
                return Ok(Answer::Interrupted);
            }
            let Some(received) = self.client.next(LOOK)? else { continue };
            let of = match &received.event {
                Event::VenueReady(ready) => &ready.venue,
                Event::VenueError(error) => &error.venue,
                Event::VenueLoginCancelled(login) => &login.venue,
                Event::VenueLoginStarted(login) => &login.venue,
                Event::VenueCredentialsRefreshed(refreshed) => &refreshed.venue,
                Event::Error(_) | Event::EngineBusy(_) if request_id_is(&received, &id) => {
                    let is_busy = matches!(received.event, Event::EngineBusy(_));
                    let answer = if is_busy { Answer::Busy } else { Answer::Refused };
                    return Ok(answer(received));
                }
                _ => {
                    attendant.hear(&received);
                    continue;
                }
            };
            if of != venue {
                attendant.hear(&received);
                continue;
            }
            heard = Stopwatch::start();
            match &received.event {
                Event::VenueReady(_) => {
                    attendant.hear(&received);
                    return Ok(Answer::Done(received));
                }
                // Why follows, where there is more to say.
                Event::VenueLoginCancelled(_) => {
                    cancelled = Some(received);
                    patience = WHY_TIME;
                }
                Event::VenueError(_) => {
                    if let Some(cancelled) = cancelled {
                        attendant.hear(&cancelled);
                    }
                    return Ok(Answer::Refused(received));
                }
                _ => attendant.hear(&received),
            }
        }
        Ok(match cancelled {
            Some(received) => Answer::Refused(received),
            None => Answer::NotReady(format!(
                "{venue} was not ready within {} s after its last word; is the broker reachable?",
                patience.as_secs()
            )),
        })
    }

    /// Where the venue stands; none where the attendant does not go on.
    pub(crate) fn venue_state(
        &mut self,
        attendant: &mut impl Attendant,
    ) -> Result<Option<VenueState<'static>>> {
        let request_id = self.client.request_id()?;
        let id = request_id.as_text().into_owned();
        let venue = Some(self.venue.to_owned());
        self.client.send(&Command::GetVenueState(GetVenueState { request_id, venue }))?;
        let watch = Stopwatch::start();
        while watch.elapsed() < ANSWER_TIME {
            if !attendant.goes_on(&mut self.client)? {
                return Ok(None);
            }
            let Some(received) = self.client.next(LOOK)? else { continue };
            match &received.event {
                Event::VenueState(state) if state.request_id.as_deref() == Some(&*id) => {
                    return Ok(Some(state.clone()));
                }
                Event::Error(error) if request_id_is(&received, &id) => {
                    let what = if error.code == error_code::VENUE_NOT_AVAILABLE {
                        "the engine has no such venue"
                    } else {
                        "the engine does not say where the venue stands"
                    };
                    bail!("{what}: {}", error.message);
                }
                _ => attendant.hear(&received),
            }
        }
        let venue = self.venue;
        bail!("the engine did not report on {venue} within {} s; try again", ANSWER_TIME.as_secs())
    }
}

/// The second password: typed where somebody sits at a terminal, without showing it; else a line of standard input.
pub(crate) fn second_password() -> Result<Secret> {
    if stdin().is_terminal() {
        let question = "second password of the web broker (is not shown): ";
        let typed = hidden::read_line(question, PASSWORD_BYTES_MAX)?;
        return Ok(Secret::from(typed.expose_secret().to_owned()));
    }
    password_line(stdin().lock())
}

/// The first line of an input, without its end.
fn password_line(from: impl BufRead) -> Result<Secret> {
    // Room for the end of the line. It does not grow, so that nothing of it stays elsewhere in memory.
    let most = PASSWORD_BYTES_MAX + 2;
    let mut line = Vec::with_capacity(most);
    let mut from = from.take(most as u64);
    from.read_until(b'\n', &mut line).context("cannot read the second password")?;
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    if line.len() > PASSWORD_BYTES_MAX {
        bail!("the second password is longer than {PASSWORD_BYTES_MAX} bytes");
    }
    // What the error would show may be a password.
    let text = String::from_utf8(line).ok().context("the second password is no text")?;
    Ok(Secret::from(text))
}

fn request_id_is(received: &Received, id: &str) -> bool {
    request_id(received).as_deref() == Some(id)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// P122: a script gives the second password as a line, and no error repeats it.
    #[test]
    fn p122_a_second_password_is_the_first_line_of_the_input() {
        let read = |text: &[u8]| password_line(Cursor::new(text.to_vec()));
        for text in ["hunter2\n", "hunter2", "hunter2\r\n", "hunter2\nmore\n"] {
            assert_eq!(read(text.as_bytes()).unwrap().expose(), "hunter2", "{text:?}");
        }
        assert_eq!(read(b"").unwrap().expose(), "");
        let long = "x".repeat(PASSWORD_BYTES_MAX);
        assert_eq!(read(format!("{long}\n").as_bytes()).unwrap().expose(), long);
        for wrong in [format!("{long}x\n").into_bytes(), vec![b'h', b'u', 0xff]] {
            let error = format!("{:#}", read(&wrong).unwrap_err());
            assert!(!error.contains("xx") && !error.contains("hu"), "{error}");
        }
    }
}
