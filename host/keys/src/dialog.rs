//! Asks the person at this machine for a password: in a window of an installed pinentry program, else in the
//! terminal. A dialog waits for somebody, so it runs on a thread of its own, ends in time, and is given up
//! when the program ends; its pinentry program is ended then, too.
//!
//! | what is there | what is asked |
//! |---|---|
//! | `KUMIKI_PINENTRY` names a program | that one |
//! | else that of Gpg4win, on Windows, or one of [`PROGRAMS`] on the path | the first of them |
//! | none, or it fails, and a terminal that may be used | the terminal, which shows nothing of what is typed |
//! | nothing of it | nobody: the error says what to do |

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::KEY_BYTES_MAX;
use crate::pinentry::{NoPin, Program, Talk};

/// Names the pinentry program, by its path or its name on the path.
pub const PINENTRY_VARIABLE: &str = "KUMIKI_PINENTRY";
/// How long a dialog waits for somebody. After so many seconds the pinentry program closes its window.
pub const DIALOG_TIME: Duration = Duration::from_secs(300);
/// Dialogs that were given up and have not ended: a program that was ended may leave others behind, which
/// hold its output. With more nobody is asked any more.
pub const DIALOGS_LEFT_MAX: usize = 4;
/// Programs that speak the pinentry protocol, those with a window first.
pub const PROGRAMS: [&str; 10] = [
    "pinentry",
    "pinentry-gnome3",
    "pinentry-qt",
    "pinentry-qt5",
    "pinentry-gtk-2",
    "pinentry-mac",
    "pinentry-w32",
    "pinentry-basic",
    "pinentry-curses",
    "pinentry-tty",
];
/// Where Windows has installed programs, and where Gpg4win is in there: not on the path.
const GPG4WIN: ([&str; 2], &str) =
    (["ProgramFiles", "ProgramFiles(x86)"], "Gpg4win/bin/pinentry.exe");
/// How often it is looked for whether a program that has answered has ended.
const LOOK: Duration = Duration::from_millis(10);
/// Looks for that; then it is ended.
const LOOKS_MAX: usize = 100;

/// What is asked, in texts of at most 200 bytes and one line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The window's title.
    pub title: &'static str,
    /// Whose password it is, and what for.
    pub description: &'static str,
    /// What stands before the field.
    pub prompt: &'static str,
}

/// Why there is no password. The texts hold no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The person does not want to.
    #[error("the user gave no password")]
    Cancelled,
    /// Nobody answered.
    #[error("no answer came within {} s", .0.as_secs())]
    Late(Duration),
    /// Too many dialogs before it never ended.
    #[error(
        "{DIALOGS_LEFT_MAX} earlier dialogs are still open; end their programs, or name another \
         program with {PINENTRY_VARIABLE}"
    )]
    TooMany,
    /// The program is ending.
    #[error("kumiki is ending")]
    Closed,
    /// Nobody can be asked.
    #[error("{0}")]
    Nowhere(String),
}

/// What came of a question.
type Answer = Result<SecretString, NoAnswer>;

/// Where people are asked; copies are one and the same.
#[derive(Debug, Clone)]
pub struct Dialog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    program: Option<OsString>,
    /// Whether the terminal may be used.
    terminal: bool,
    time: Duration,
    /// Dialogs whose thread has not ended.
    open: AtomicUsize,
    is_closed: AtomicBool,
    /// Who waits for an answer now, by its number.
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    asked: AtomicU64,
    shown: terminal::Shown,
}

/// Who waits for an answer.
#[derive(Debug)]
struct Waiting {
    sender: Sender<Answer>,
    /// The program that asks; it ends when nobody waits any more.
    program: Option<Program>,
}

impl Dialog {
    /// A dialog that asks the program that `KUMIKI_PINENTRY` names, else an installed one, and in the
    /// terminal of this process where that is allowed.
    #[must_use]
    pub fn from_environment(terminal: bool) -> Self {
        let named = env::var_os(PINENTRY_VARIABLE).filter(|name| !name.is_empty());
        Self::new(named, terminal, DIALOG_TIME)
    }

    fn new(program: Option<OsString>, terminal: bool, time: Duration) -> Self {
        Self(Arc::new(Inner {
            program,
            terminal,
            time,
            open: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            waiting: Mutex::default(),
            asked: AtomicU64::new(0),
            shown: terminal::Shown::default(),
        }))
    }

    /// Asks, and waits for the answer, for [`DIALOG_TIME`] at most.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn ask(&self, question: Question) -> Result<SecretString, NoAnswer> {
        let inner = &self.0;
        let number = inner.asked.fetch_add(1, Ordering::SeqCst);
        let (sender, answer) = channel();
        inner.waiting().insert(number, Waiting { sender: sender.clone(), program: None });
        // After the line above: whoever closes sees this one, or this one sees that it is closed.
        let answered = if inner.is_closed.load(Ordering::SeqCst) {
            Err(NoAnswer::Closed)
        } else {
            self.begin(number, question, sender).and_then(|()| self.wait(&answer))
        };
        let waited = inner.waiting().remove(&number);
        // Its program is ended while others may ask.
        drop(waited);
        answered
    }

    /// Asks on a thread of its own.
    fn begin(
        &self,
        number: u64,
        question: Question,
        sender: Sender<Answer>,
    ) -> Result<(), NoAnswer> {
        let inner = Arc::clone(&self.0);
        let open = Open::one_more(&inner)?;
        let spawned = thread::Builder::new().name("dialog".to_owned()).spawn(move || {
            // Whoever asked may have given up.
            let _ = sender.send(inner.answer(number, question));
            drop(open);
        });
        spawned
            .map(drop)
            .map_err(|error| NoAnswer::Nowhere(format!("the system gives no thread: {error}")))
    }

    fn wait(&self, answer: &Receiver<Answer>) -> Answer {
        match answer.recv_timeout(self.0.time) {
            Ok(answered) => answered,
            Err(RecvTimeoutError::Timeout) => {
                self.0.shown.again();
                Err(NoAnswer::Late(self.0.time))
            }
            // The thread has ended by a panic.
            Err(RecvTimeoutError::Disconnected) => {
                Err(NoAnswer::Nowhere("the dialog has failed".to_owned()))
            }
        }
    }

    /// Gives all dialogs up; nobody is asked any more, and no program that asks is left. The terminal shows
    /// again what is typed.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        for one in self.0.waiting().values_mut() {
            // Its answer may have come at the same moment.
            let _ = one.sender.send(Err(NoAnswer::Closed));
            one.program = None;
        }
        self.0.shown.again();
    }
}

/// Where Gpg4win's program is, if it is installed.
fn of_gpg4win(variable: impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = OsString> {
    let (folders, program) = GPG4WIN;
    let folders = folders.into_iter().filter(|_| cfg!(windows));
    folders.filter_map(variable).map(move |folder| Path::new(&folder).join(program).into())
}

/// A dialog whose thread has not ended.
#[derive(Debug)]
struct Open(Arc<Inner>);

impl Open {
    fn one_more(inner: &Arc<Inner>) -> Result<Self, NoAnswer> {
        let open = Self(Arc::clone(inner));
        match inner.open.fetch_add(1, Ordering::SeqCst) {
            before if before < DIALOGS_LEFT_MAX => Ok(open),
            _ => Err(NoAnswer::TooMany),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks in one way after the other, until one of them works.
    fn answer(&self, number: u64, question: Question) -> Answer {
        let mut why = match self.in_window(number, question) {
            Ok(answered) => return checked(answered?),
            Err(why) => why,
        };
        if !self.terminal {
            why.push_str(", and this command does not ask on the terminal");
        } else if let Err(not) = terminal::is_usable() {
            // Writing to a text never fails.
            let _ = write!(why, ", and {not}");
        } else {
            return match self.shown.read_line(question) {
                Ok(answered) => checked(answered),
                Err(error) => Err(NoAnswer::Nowhere(format!("{why}, and the terminal: {error}"))),
            };
        }
        Err(NoAnswer::Nowhere(format!(
            "{why}; install a pinentry program, or name one with {PINENTRY_VARIABLE}"
        )))
    }

    /// Asks in a window. An error: there is no program for that, or it cannot.
    fn in_window(&self, number: u64, question: Question) -> Result<Answer, String> {
        let Some((name, mut talk)) = self.started(number)? else {
            return Ok(Err(NoAnswer::Closed));
        };
        let seconds = u16::try_from(self.time.as_secs()).unwrap_or(u16::MAX);
        let asked = talk.ask(question, seconds.max(1));
        // The end of what it hears.
        drop(talk);
        self.end(number);
        Ok(match asked {
            Ok(password) => Ok(password),
            Err(NoPin::Cancelled) => Err(NoAnswer::Cancelled),
            Err(NoPin::Late) => Err(NoAnswer::Late(self.time)),
            Err(NoPin::Refused(code)) => {
                return Err(format!("{name} refused with code {code} of libgpg-error"));
            }
            Err(NoPin::Ended) => return Err(format!("{name} ended before it had an answer")),
            // What it said may hold what was typed.
            Err(NoPin::Garbage) => {
                return Err(format!("{name} does not speak the protocol of pinentry programs"));
            }
            Err(NoPin::NoText) => {
                return Err(format!("{name} gave an answer that is not text"));
            }
        })
    }

    /// Starts a program. None: nobody waits for it any more; an error: there is none that runs.
    fn started(&self, number: u64) -> Result<Option<(String, Talk)>, String> {
        if let Some(named) = &self.program {
            let shown = format!("the program {named:?} that {PINENTRY_VARIABLE} names");
            return match self.start(number, named) {
                Ok(talk) => Ok(talk.map(|talk| (shown, talk))),
                Err(error) => Err(format!("{shown} cannot be run ({error})")),
            };
        }
        let on_path = PROGRAMS.into_iter().map(OsString::from);
        for name in of_gpg4win(|name| env::var_os(name)).chain(on_path) {
            let shown = || name.display().to_string();
            match self.start(number, &name) {
                Ok(talk) => return Ok(talk.map(|talk| (shown(), talk))),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(format!("{} cannot be run ({error})", shown())),
            }
        }
        Err(format!(
            "no pinentry program is installed (none of {} is on the path)",
            PROGRAMS.join(", ")
        ))
    }

    /// Starts a program for who waits; none where nobody does any more.
    fn start(&self, number: u64, name: &OsStr) -> io::Result<Option<Talk>> {
        // Whoever gives it up ends the program that is here then.
        let mut waiting = self.waiting();
        let Some(one) = waiting.get_mut(&number) else { return Ok(None) };
        if self.is_closed.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let (program, talk) = Program::start(name)?;
        one.program = Some(program);
        Ok(Some(talk))
    }

    /// Waits a moment for the end of a program that hears no more, and ends it then.
    fn end(&self, number: u64) {
        for _ in 0..LOOKS_MAX {
            let mut waiting = self.waiting();
            let program = waiting.get_mut(&number).and_then(|one| one.program.as_mut());
            if program.is_none_or(Program::has_ended) {
                break;
            }
            drop(waiting);
            thread::sleep(LOOK);
        }
        let program = self.waiting().get_mut(&number).and_then(|one| one.program.take());
        drop(program);
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// A password that can be one.
fn checked(answered: SecretString) -> Answer {
    match answered.expose_secret().len() {
        0 => Err(NoAnswer::Cancelled),
        bytes if bytes > KEY_BYTES_MAX => {
            Err(NoAnswer::Nowhere(format!("the password has more than {KEY_BYTES_MAX} bytes")))
        }
        _ => Ok(answered),
    }
}

/// The terminal of this process.
mod terminal {
    use std::io::{self, IsTerminal, stderr, stdin};

    use console::Term;
    use secrecy::SecretString;

    use super::Question;

    /// Whether somebody can be asked there.
    pub(super) fn is_usable() -> Result<(), &'static str> {
        if !stdin().is_terminal() || !stderr().is_terminal() {
            return Err("there is no terminal");
        }
        is_in_front()
    }

    /// The system stops a program in the background that reads its terminal.
    #[cfg(unix)]
    fn is_in_front() -> Result<(), &'static str> {
        let front = rustix::termios::tcgetpgrp(stdin());
        if front.is_ok_and(|front| front == rustix::process::getpgrp()) {
            Ok(())
        } else {
            Err("kumiki runs in the background of its terminal")
        }
    }

    #[cfg(not(unix))]
    fn is_in_front() -> Result<(), &'static str> {
        Ok(())
    }

    /// How the terminal was before a password is typed.
    #[derive(Debug, Default)]
    pub(super) struct Shown {
        #[cfg(unix)]
        before: std::sync::Mutex<Option<rustix::termios::Termios>>,
    }

    impl Shown {
        pub(super) fn read_line(&self, question: Question) -> io::Result<SecretString> {
            self.remember();
            let terminal = Term::stderr();
            let Question { description, prompt, .. } = question;
            let asked = terminal.write_str(&format!("{description}\n{prompt} (is not shown): "));
            let line =
                asked.and_then(|()| terminal.flush()).and_then(|()| terminal.read_secure_line());
            self.forget();
            line.map(SecretString::from)
        }

        #[cfg(unix)]
        fn before(&self) -> std::sync::MutexGuard<'_, Option<rustix::termios::Termios>> {
            self.before.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        #[cfg(unix)]
        fn remember(&self) {
            *self.before() = rustix::termios::tcgetattr(stdin()).ok();
        }

        #[cfg(unix)]
        fn forget(&self) {
            *self.before() = None;
        }

        /// Makes the terminal as it was, where somebody is being asked.
        #[cfg(unix)]
        pub(super) fn again(&self) {
            use rustix::termios::{OptionalActions, tcsetattr};
            if let Some(before) = self.before().take() {
                // There is nothing else to do about it.
                let _ = tcsetattr(stdin(), OptionalActions::Flush, &before);
                let _ = Term::stderr().write_line("");
            }
        }

        #[cfg(not(unix))]
        fn remember(&self) {}

        #[cfg(not(unix))]
        fn forget(&self) {}

        #[cfg(not(unix))]
        pub(super) fn again(&self) {}
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;

#[cfg(test)]
#[cfg(windows)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_gpg4win_is_looked_for_where_programs_are() {
        let variable = |name: &str| (name == "ProgramFiles").then(|| r"C:\Programs".into());
        let found: Vec<OsString> = of_gpg4win(variable).collect();
        assert_eq!(found, [Path::new(r"C:\Programs").join("Gpg4win/bin/pinentry.exe")]);
    }
}
