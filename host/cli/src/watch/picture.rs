//! The board in the terminal, while events come and keys are pressed.

use std::fmt;
use std::mem::ManuallyDrop;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::clock::Stopwatch;
use engine::client::{Client, Received};
use ipc::{Command, Event as Told, GetVenueState, RequestVenueLogin, Subscribe};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use super::keys::{Keys, has_terminal};
use super::{VENUE, Watch, screen};
use crate::interrupt::Interrupt;
use crate::order::asked::Attendant;

/// How often keys are looked at, and a picture is drawn.
const TURN_EVERY: Duration = Duration::from_millis(50);
/// How often it is asked where the venue stands.
const STATE_EVERY: Duration = Duration::from_secs(2);

/// How long no answer is only a late one: after two that did not come it is not known where the venue stands.
const SILENT_AFTER: Duration = STATE_EVERY.saturating_mul(2);

/// When it is asked where the venue stands, and since when nobody answers.
#[derive(Debug, Default)]
struct Asking {
    last: Option<Duration>,
    unanswered_since: Option<Duration>,
}

impl Asking {
    fn is_due(&self, now: Duration) -> bool {
        is_due(self.last, STATE_EVERY, now)
    }

    fn ask(&mut self, now: Duration) {
        self.last = Some(now);
        self.unanswered_since.get_or_insert(now);
    }

    fn is_silent(&self, now: Duration) -> bool {
        self.unanswered_since.is_some_and(|since| now - since >= SILENT_AFTER)
    }

    /// Takes what the engine tells of the venue.
    fn hear(&mut self, event: &Told<'_>) {
        match event {
            Told::VenueState(state) if state.venue == VENUE => self.unanswered_since = None,
            // It stands elsewhere now.
            Told::VenueReady(_) | Told::VenueError(_) | Told::VenueLoginCancelled(_) => {
                self.last = None;
            }
            _ => {}
        }
    }
}

fn is_due(last: Option<Duration>, every: Duration, now: Duration) -> bool {
    last.is_none_or(|last| now - last >= every)
}

/// The terminal while it shows the board; however that ends, it is as it was. Not dropped by itself: it would tell
/// on standard error that it cannot show its cursor, and panic where that is the terminal that went away.
struct Screen(ManuallyDrop<DefaultTerminal>);

impl Screen {
    fn open() -> Result<Self> {
        // It is given back when the program panics, too.
        let terminal = ratatui::try_init();
        let terminal =
            terminal.context("the terminal cannot show the board; give --format json")?;
        Ok(Self(ManuallyDrop::new(terminal)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Of one that went away nothing is left to give back; `restore` would tell that there, and panic, too.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Quit,
    Next,
    Previous,
    LogIn,
}

fn wish(code: KeyCode, modifiers: KeyModifiers) -> Option<Wish> {
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Tab | KeyCode::Right | KeyCode::Down | KeyCode::Char('n') => Wish::Next,
        KeyCode::BackTab | KeyCode::Left | KeyCode::Up | KeyCode::Char('p') => Wish::Previous,
        KeyCode::Char('l') => Wish::LogIn,
        _ => return None,
    })
}

/// Shows the board until q or Ctrl-C, or until its terminal goes away.
pub(super) struct Picture<'a> {
    watch: Watch,
    screen: Screen,
    keys: Keys,
    interrupt: &'a Interrupt,
    clock: Stopwatch,
    /// When keys were looked at and the picture was drawn, since it is shown.
    turned: Option<Duration>,
    asking: Asking,
}

impl fmt::Debug for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Picture").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl<'a> Picture<'a> {
    /// Takes the terminal.
    pub(super) fn open(watch: Watch, interrupt: &'a Interrupt) -> Result<Self> {
        let screen = Screen::open()?;
        let (keys, clock) = (Keys::of_terminal()?, Stopwatch::start());
        Ok(Self { watch, screen, keys, interrupt, clock, turned: None, asking: Asking::default() })
    }

    /// Does what keys ask for; false: the user has enough.
    fn keys(&mut self, client: &mut Client) -> Result<bool> {
        let watch = &mut self.watch;
        while let Some(event) = self.keys.next()? {
            let Event::Key(key) = event else { continue };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            watch.note = None;
            match wish(key.code, key.modifiers) {
                Some(Wish::Quit) => return Ok(false),
                Some(Wish::Next) => watch.select(1),
                Some(Wish::Previous) => watch.select(watch.books.len() - 1),
                Some(Wish::LogIn) => {
                    let request_id = Some(client.request_id()?);
                    let login = RequestVenueLogin { request_id, venue: VENUE.to_owned() };
                    client.send(&Command::RequestVenueLogin(login))?;
                }
                None => {}
            }
        }
        Ok(true)
    }

    /// Subscribes tickers whose name is not known yet once more: that changes nothing, and the answer has it.
    fn ask_for_names(&mut self, client: &mut Client) -> Result<()> {
        for book in self.watch.books.iter_mut().filter(|book| book.wants_name()) {
            let request_id = client.request_id()?;
            book.name_asked = Some(request_id.as_text().into_owned());
            let (venue, ticker) = (VENUE.to_owned(), book.ticker.clone());
            client.send(&Command::Subscribe(Subscribe { request_id, venue, ticker }))?;
        }
        Ok(())
    }

    /// Does what keys ask for and draws the picture; false: the user has enough.
    fn turn(&mut self, client: &mut Client) -> Result<bool> {
        if !self.keys(client)? {
            return Ok(false);
        }
        let watch = &self.watch;
        self.screen.0.draw(|frame| screen::draw(watch, frame))?;
        Ok(true)
    }
}

impl Attendant for Picture<'_> {
    fn hear(&mut self, received: &Received) {
        self.asking.hear(&received.event);
        self.watch.take(received.event.clone());
    }

    fn goes_on(&mut self, client: &mut Client) -> Result<bool> {
        if self.interrupt.is_wanted() {
            return Ok(false);
        }
        let now = self.clock.elapsed();
        if !is_due(self.turned, TURN_EVERY, now) {
            return Ok(true);
        }
        self.turned = Some(now);
        if self.asking.is_due(now) {
            let request_id = client.request_id()?;
            let venue = Some(VENUE.to_owned());
            client.send(&Command::GetVenueState(GetVenueState { request_id, venue }))?;
            self.asking.ask(now);
        }
        self.watch.is_silent = self.asking.is_silent(now);
        self.ask_for_names(client)?;
        if !has_terminal() {
            return Ok(false);
        }
        let turned = self.turn(client);
        // It may go away at any time: that is no error of the keys or of the picture.
        if turned.is_err() && !has_terminal() { Ok(false) } else { turned }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_of(venue: &'static str) -> Told<'static> {
        Told::VenueState(ipc::VenueState {
            request_id: Some("id".into()),
            venue: venue.into(),
            state: ipc::VenueLifecycle::Ready,
            push: None,
            code: None,
            since_ms: 1,
            second_password: None,
            locked_until_ms: None,
        })
    }

    #[test]
    fn an_engine_that_gives_no_answer_two_times_is_silent() {
        let (mut asking, at) = (Asking::default(), Duration::from_secs);
        assert!(asking.is_due(at(1)));
        asking.ask(at(1));
        assert!(!asking.is_due(at(2)) && asking.is_due(at(3)));
        asking.hear(&state_of(VENUE));
        for second in [3, 5] {
            asking.ask(at(second));
            assert!(!asking.is_silent(at(second + 1)), "{second}");
        }
        assert!(asking.is_silent(at(7)), "those of 3 and 5 have no answer");
        asking.hear(&state_of("web_broker"));
        assert!(asking.is_silent(at(7)));
        asking.hear(&state_of(VENUE));
        assert!(!asking.is_silent(at(8)));
    }

    #[test]
    fn where_the_venue_stands_is_asked_at_once_when_that_changes() {
        let (mut asking, at) = (Asking::default(), Duration::from_secs);
        asking.ask(at(1));
        asking.hear(&Told::VenueError(ipc::VenueError {
            venue: VENUE.into(),
            code: "local_app_down".into(),
            message: "it is away".into(),
        }));
        assert!(asking.is_due(at(1)));
        asking.ask(at(2));
        assert!(asking.is_silent(at(5)), "that is no answer");
    }

    #[test]
    fn keys_have_their_meaning() {
        let plain = |code| wish(code, KeyModifiers::NONE);
        for quits in [KeyCode::Char('q'), KeyCode::Esc] {
            assert_eq!(plain(quits), Some(Wish::Quit));
        }
        assert_eq!(wish(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Quit));
        assert_eq!(plain(KeyCode::Char('c')), None, "only with Ctrl");
        assert_eq!(plain(KeyCode::Tab), Some(Wish::Next));
        assert_eq!(plain(KeyCode::BackTab), Some(Wish::Previous));
        assert_eq!(plain(KeyCode::Char('l')), Some(Wish::LogIn));
    }
}
