//! The terminal while a secret is typed: it shows nothing of it, and shows what is typed again however that
//! ends.
//!
//! | what comes | what happens |
//! |---|---|
//! | Enter, Ctrl-D | the line is taken |
//! | Ctrl-U, Backspace | the line, or its last byte, is taken away |
//! | Ctrl-C, Ctrl-\ | the program ends with 130 |
//! | Ctrl-Z | the program stops; when it goes on, it asks again |
//! | SIGINT, SIGTERM, SIGHUP | the program ends with 130 |

use anyhow::{Context, Result};
use secrecy::SecretString;

#[cfg(unix)]
#[cfg_attr(
    not(feature = "database"),
    allow(unused_imports, reason = "the prompt of SQL needs both")
)]
pub(crate) use unix::{Echo, read_line};

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write, stderr, stdin};
    use std::thread;
    use std::time::Duration;

    use rustix::process::{Signal, kill_current_process_group};
    use rustix::termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
    };

    use super::{Context, Result, SecretString};
    use crate::INTERRUPTED;
    use crate::interrupt::Prompt;

    const CTRL_C: u8 = 0x03;
    const CTRL_D: u8 = 0x04;
    const BACKSPACE: u8 = 0x08;
    const CTRL_U: u8 = 0x15;
    const CTRL_Z: u8 = 0x1a;
    const CTRL_BACKSLASH: u8 = 0x1c;
    const DELETE: u8 = 0x7f;
    /// Until a signal to this program has reached it.
    const SIGNAL_TIME: Duration = Duration::from_millis(50);

    /// How the terminal was; nothing where standard input is none.
    #[derive(Clone)]
    pub(crate) struct Echo(Option<Termios>);

    impl Echo {
        /// As it is now.
        pub(crate) fn now() -> Self {
            Self(tcgetattr(stdin()).ok())
        }

        /// Makes it as it was.
        pub(crate) fn again(&self) {
            if let Some(before) = &self.0 {
                // There is nothing else to do about it.
                let _ = tcsetattr(stdin(), OptionalActions::Flush, before);
            }
        }

        /// The same on a line of its own, and ends the program.
        fn again_and_end(&self) -> ! {
            self.again();
            eprintln!("");
            std::process::exit(i32::from(INTERRUPTED))
        }

        /// Asks, and shows nothing from now on. Keys that send signals come as bytes.
        fn hide(&self, prompt: &str) -> io::Result<()> {
            if let Some(before) = &self.0 {
                let mut hidden = before.clone();
                let shown =
                    LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
                hidden.local_modes.remove(shown);
                hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
                hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
                tcsetattr(stdin(), OptionalActions::Flush, &hidden)?;
            }
            stderr().write_all(prompt.as_bytes())
        }

        /// Stops this program as Ctrl-Z does, until its user lets it go on.
        fn stop(&self) -> io::Result<()> {
            self.again();
            eprintln!("");
            kill_current_process_group(Signal::TSTP)?;
            thread::sleep(SIGNAL_TIME);
            Ok(())
        }
    }

    /// Asks for a line of at most `bytes_max` bytes; of a longer one so many and one more are given.
    pub(crate) fn read_line(prompt: &str, bytes_max: usize) -> Result<SecretString> {
        let echo = Echo::now();
        let on_signal = echo.clone();
        let _prompt = Prompt::begin(move || on_signal.again_and_end())?;
        let line = line(&echo, prompt, bytes_max).context("cannot read the value");
        echo.again();
        eprintln!("");
        // What is no text is no word of ASCII either.
        let text = String::from_utf8(line?).ok().context("the value is no text")?;
        Ok(SecretString::from(text))
    }

    fn line(echo: &Echo, prompt: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        echo.hide(prompt)?;
        // It never grows, which would leave copies behind.
        let mut line = Vec::with_capacity(bytes_max + 1);
        for byte in stdin().lock().bytes() {
            match byte? {
                b'\n' | b'\r' | CTRL_D => break,
                CTRL_C | CTRL_BACKSLASH => echo.again_and_end(),
                CTRL_Z => {
                    echo.stop()?;
                    echo.hide(prompt)?;
                    line.clear();
                }
                CTRL_U => line.clear(),
                BACKSPACE | DELETE => {
                    line.pop();
                }
                byte if line.len() <= bytes_max => line.push(byte),
                _ => {}
            }
        }
        Ok(line)
    }
}

/// How the terminal was; here the system itself shows again what is typed.
#[cfg(not(unix))]
#[derive(Clone)]
pub(crate) struct Echo;

#[cfg(not(unix))]
impl Echo {
    pub(crate) fn now() -> Self {
        Self
    }

    pub(crate) fn again(&self) {}
}

/// Asks for a line.
#[cfg(not(unix))]
pub(crate) fn read_line(prompt: &str, _: usize) -> Result<SecretString> {
    let terminal = console::Term::stderr();
    terminal.write_str(prompt).and_then(|()| terminal.flush())?;
    Ok(SecretString::from(terminal.read_secure_line().context("cannot read the value")?))
}
