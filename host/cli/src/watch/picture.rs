//! The board in the terminal, while events come and keys are pressed.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::clock::Stopwatch;
use engine::client::{Client, Received};
use ipc::{Command, GetVenueState, RequestVenueLogin};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self as keys, KeyCode, KeyEventKind, KeyModifiers};

use super::{VENUE, Watch, screen};
use crate::interrupt::Interrupt;
use crate::order::asked::Attendant;

/// How often keys are looked at, and a picture is drawn.
const TURN_EVERY: Duration = Duration::from_millis(50);
/// How often it is asked where the venue stands.
const STATE_EVERY: Duration = Duration::from_secs(2);

/// The terminal while it shows the board; however that ends, it is as it was.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self> {
        // It is given back when the program panics, too.
        Ok(Self(
            ratatui::try_init()
                .context("the terminal cannot show the board; give --format json")?,
        ))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
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

/// Shows the board until q or Ctrl-C.
pub(super) struct Picture<'a> {
    watch: Watch,
    screen: Screen,
    interrupt: &'a Interrupt,
    clock: Stopwatch,
    /// When keys were looked at and the picture was drawn, since it is shown.
    turned: Option<Duration>,
    /// When it was asked where the venue stands.
    asked: Option<Duration>,
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
        Ok(Self { watch, screen, interrupt, clock: Stopwatch::start(), turned: None, asked: None })
    }

    /// Does what keys ask for; false: the user has enough.
    fn keys(&mut self, client: &mut Client) -> Result<bool> {
        let watch = &mut self.watch;
        while keys::poll(Duration::ZERO)? {
            let keys::Event::Key(key) = keys::read()? else { continue };
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
}

impl Attendant for Picture<'_> {
    fn hear(&mut self, received: &Received) {
        self.watch.take(received.event.clone());
    }

    fn goes_on(&mut self, client: &mut Client) -> Result<bool> {
        if self.interrupt.is_wanted() {
            return Ok(false);
        }
        let now = self.clock.elapsed();
        let is_due = |last: Option<Duration>, every| last.is_none_or(|last| now - last >= every);
        if !is_due(self.turned, TURN_EVERY) {
            return Ok(true);
        }
        self.turned = Some(now);
        if is_due(self.asked, STATE_EVERY) {
            let request_id = client.request_id()?;
            let venue = Some(VENUE.to_owned());
            client.send(&Command::GetVenueState(GetVenueState { request_id, venue }))?;
            self.asked = Some(now);
        }
        if !self.keys(client)? {
            return Ok(false);
        }
        let watch = &self.watch;
        self.screen.0.draw(|frame| screen::draw(watch, frame))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
