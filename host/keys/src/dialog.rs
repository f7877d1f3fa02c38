//! Asks the person at this machine for a password: in a window of an installed pinentry program, else in the
//! terminal. A dialog waits for somebody, so it runs on a thread of its own, ends in time, and is given up
//! when the program ends.
//!
//! | what is there | what is asked |
//! |---|---|
//! | `KUMIKI_PINENTRY` names a program | that one |
//! | else one of [`PROGRAMS`] on the path | the first of them |
//! | none, or it fails, and a terminal that may be used | the terminal, which shows nothing of what is typed |
//! | nothing of it | nobody: the error says what to do |

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pinentry::PassphraseInput;
use secrecy::{ExposeSecret, SecretString};

use crate::KEY_BYTES_MAX;

/// Names the pinentry program, by its path or its name on the path.
pub const PINENTRY_VARIABLE: &str = "KUMIKI_PINENTRY";
/// How long a dialog waits for somebody. After so many seconds the pinentry program closes its window.
pub const DIALOG_TIME: Duration = Duration::from_secs(300);
/// Dialogs that were given up and whose program has not ended; with more nobody is asked any more.
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
/// Characters of what a program says that are told.
const WHY_CHARS_MAX: usize = 200;

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
    #[error("it was cancelled")]
    Cancelled,
    /// Nobody answered.
    #[error("nobody answered within {} s", .0.as_secs())]
    Late(Duration),
    /// Too many dialogs before it never ended.
    #[error(
        "{DIALOGS_LEFT_MAX} dialogs before it have not ended; end their programs, or name another one with \
         {PINENTRY_VARIABLE}"
    )]
    TooMany,
    /// The program is ending.
    #[error("the program ends")]
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
    waiting: Mutex<BTreeMap<u64, Sender<Answer>>>,
    asked: AtomicU64,
    shown: terminal::Shown,
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
        inner.waiting().insert(number, sender.clone());
        // After the line above: whoever closes sees this one, or this one sees that it is closed.
        let answered = if inner.is_closed.load(Ordering::SeqCst) {
            Err(NoAnswer::Closed)
        } else {
            self.begin(question, sender).and_then(|()| self.wait(&answer))
        };
        inner.waiting().remove(&number);
        answered
    }

    /// Asks on a thread of its own.
    fn begin(&self, question: Question, sender: Sender<Answer>) -> Result<(), NoAnswer> {
        let inner = Arc::clone(&self.0);
        let open = Open::one_more(&inner)?;
        let spawned = thread::Builder::new().name("dialog".to_owned()).spawn(move || {
            // Whoever asked may have given up.
            let _ = sender.send(inner.answer(question));
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

    /// Gives all dialogs up; nobody is asked any more. The terminal shows again what is typed.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        for one in self.0.waiting().values() {
            // Its answer may have come at the same moment.
            let _ = one.send(Err(NoAnswer::Closed));
        }
        self.0.shown.again();
    }
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
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks in one way after the other, until one of them works.
    fn answer(&self, question: Question) -> Answer {
        let mut why = match self.in_window(question) {
            Ok(Some(answered)) => return checked(answered?),
            Ok(None) => "no pinentry program is installed".to_owned(),
            Err(why) => why,
        };
        if !self.terminal {
            why.push_str(", and the terminal is not asked");
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

    /// Asks in a window. None: there is no program for that; an error: it cannot.
    fn in_window(&self, question: Question) -> Result<Option<Answer>, String> {
        let found = match &self.program {
            Some(named) => {
                let found = PassphraseInput::with_binary(named);
                let missing = || format!("{PINENTRY_VARIABLE} names no program that can be run");
                Some(found.ok_or_else(missing)?)
            }
            None => PROGRAMS.into_iter().find_map(PassphraseInput::with_binary),
        };
        let Some(mut input) = found else { return Ok(None) };
        let seconds = u16::try_from(self.time.as_secs()).unwrap_or(u16::MAX);
        input
            .with_title(question.title)
            .with_description(question.description)
            .with_prompt(question.prompt)
            .with_timeout(seconds.max(1));
        Ok(Some(match input.interact() {
            Ok(password) => Ok(password),
            Err(pinentry::Error::Cancelled) => Err(NoAnswer::Cancelled),
            Err(pinentry::Error::Timeout) => Err(NoAnswer::Late(self.time)),
            // What it said may hold what was typed, so only its kind is told.
            Err(pinentry::Error::Io(error)) => {
                return Err(format!(
                    "the pinentry program does not speak the protocol ({})",
                    error.kind()
                ));
            }
            Err(pinentry::Error::Encoding(_)) => {
                return Err(
                    "the pinentry program answered with something that is no text".to_owned()
                );
            }
            Err(pinentry::Error::Gpg(error)) => {
                let said = error.to_string();
                let said: String = said.chars().take(WHY_CHARS_MAX).collect();
                return Err(format!("the pinentry program refuses: {}", said.escape_debug()));
            }
        }))
    }
}

/// A password that can be one.
fn checked(answered: SecretString) -> Answer {
    match answered.expose_secret().len() {
        0 => Err(NoAnswer::Cancelled),
        bytes if bytes > KEY_BYTES_MAX => {
            Err(NoAnswer::Nowhere(format!("it has more than {KEY_BYTES_MAX} bytes")))
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
            Err("the program is in the background of its terminal")
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
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    const QUESTION: Question = Question {
        title: "Kumiki",
        description: "API password of the local broker's gateway",
        prompt: "password",
    };
    /// Long enough for a script on a machine that is busy.
    const LONG: Duration = Duration::from_secs(60);
    const SECRET: &str = "marker 100% 4711";

    /// A pinentry program that answers GETPIN so.
    fn fake(folder: &Path, getpin: &str) -> OsString {
        let path = folder.join("fake-pinentry");
        let script = format!(
            "#!/bin/sh\necho 'OK Pleased to meet you'\nwhile read -r line; do\n  echo \"$line\" >> \"{}\"\n\
             case \"$line\" in\n  GETPIN) {getpin};;\n  BYE) echo 'OK closing'; exit 0;;\n  *) echo OK;;\n  esac\ndone\n",
            folder.join("heard").display()
        );
        write_program(&path, &script);
        path.into()
    }

    fn write_program(path: &Path, script: &str) {
        fs::write(path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    fn asked(getpin: &str) -> (Answer, String) {
        let folder = tempfile::tempdir().unwrap();
        let dialog = Dialog::new(Some(fake(folder.path(), getpin)), false, LONG);
        let answered = dialog.ask(QUESTION);
        let heard = fs::read_to_string(folder.path().join("heard")).unwrap();
        (answered, heard)
    }

    #[test]
    fn a_password_is_asked_for_in_a_window() {
        let (answered, heard) = asked("echo 'D marker 100%25 4711'; echo OK");
        assert_eq!(answered.unwrap().expose_secret(), SECRET);
        let description = format!("SETDESC {}", QUESTION.description);
        for line in ["SETTITLE Kumiki", &description, "SETPROMPT password", "SETTIMEOUT 60"] {
            assert!(heard.contains(line), "{line}: {heard}");
        }
    }

    #[test]
    fn who_does_not_want_to_gives_none() {
        for getpin in ["echo 'ERR 83886179 Operation cancelled <Pinentry>'", "echo OK"] {
            assert_eq!(asked(getpin).0.unwrap_err(), NoAnswer::Cancelled, "{getpin}");
        }
        let (answered, _) = asked("echo 'ERR 83886142 Timeout <Pinentry>'");
        assert_eq!(answered.unwrap_err(), NoAnswer::Late(LONG));
    }

    #[test]
    fn a_program_that_is_none_is_told_without_what_it_said() {
        let told = |getpin: &str| asked(getpin).0.unwrap_err().to_string();
        let text = told("echo 'D marker 4711 is no line of the protocol'; echo 'marker'");
        assert!(text.contains("does not speak the protocol") && !text.contains("marker"), "{text}");
        let text = told("printf 'ERR 83886254 no display\\033[2J\\n'");
        assert!(
            text.contains("refuses: Code 174: no display") && !text.contains('\u{1b}'),
            "{text}"
        );
        let text = told(&format!("echo 'D {}'; echo OK", "x".repeat(KEY_BYTES_MAX + 1)));
        assert!(text.contains("more than 2048 bytes"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        let ends = folder.path().join("ends");
        write_program(&ends, "#!/bin/sh\nexit 0\n");
        for (program, why) in [
            (ends.into_os_string(), "does not speak the protocol"),
            ("/nowhere/pinentry".into(), "KUMIKI_PINENTRY names no program that can be run"),
        ] {
            let text =
                Dialog::new(Some(program), false, LONG).ask(QUESTION).unwrap_err().to_string();
            assert!(text.contains(why), "{text}");
            for words in ["the terminal is not asked", "name one with KUMIKI_PINENTRY"] {
                assert!(text.contains(words), "{text}");
            }
        }
    }

    #[test]
    fn a_program_that_hangs_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let hangs = fake(folder.path(), &hang(folder.path()));
        let dialog = Dialog::new(Some(hangs), false, Duration::from_millis(50));
        for _ in 0..DIALOGS_LEFT_MAX {
            let late = dialog.ask(QUESTION).unwrap_err();
            assert_eq!(late, NoAnswer::Late(Duration::from_millis(50)));
        }
        assert_eq!(dialog.ask(QUESTION).unwrap_err(), NoAnswer::TooMany);
        assert!(dialog.0.waiting().is_empty(), "nobody waits any more");
        end_children(folder.path());
    }

    #[test]
    fn the_end_of_the_program_waits_for_no_dialog() {
        let folder = tempfile::tempdir().unwrap();
        let dialog = Dialog::new(Some(fake(folder.path(), &hang(folder.path()))), false, LONG);
        let asking = dialog.clone();
        let asked = thread::spawn(move || asking.ask(QUESTION));
        // It hears the question before it hangs.
        let heard = folder.path().join("heard");
        while !fs::read_to_string(&heard).unwrap_or_default().contains("GETPIN") {
            thread::sleep(Duration::from_millis(5));
        }
        dialog.close();
        assert_eq!(asked.join().unwrap().unwrap_err(), NoAnswer::Closed);
        assert_eq!(
            dialog.ask(QUESTION).unwrap_err(),
            NoAnswer::Closed,
            "and nobody is asked again"
        );
        end_children(folder.path());
    }

    /// What a script does that hangs, and tells its process number before.
    fn hang(folder: &Path) -> String {
        format!("echo $$ >> \"{}\"; exec sleep 600", folder.join("numbers").display())
    }

    /// The scripts that hang are those whose process numbers stand in the folder.
    fn end_children(folder: &Path) {
        let numbers = fs::read_to_string(folder.join("numbers")).unwrap_or_default();
        for number in numbers.lines() {
            let _ = std::process::Command::new("kill").arg(number).status();
        }
    }

    #[test]
    fn an_error_and_an_answer_show_no_password() {
        let (answered, _) = asked("echo 'D marker'; echo OK");
        assert!(!format!("{answered:?}").contains("marker"), "{answered:?}");
    }
}
