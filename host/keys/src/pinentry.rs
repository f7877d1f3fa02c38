//! A pinentry program and the words spoken with it, one line each (the Assuan protocol). Who starts it holds its
//! process, so it can be ended at any time, whatever it does; the crate `pinentry` keeps the process to itself, and
//! nobody could end one that hangs.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use secrecy::SecretString;
use zeroize::{Zeroize, Zeroizing};

use crate::KEY_BYTES_MAX;
use crate::dialog::Question;

/// Bytes of a line: more than a password whose every byte is written as three.
const LINE_BYTES_MAX: usize = 3 * KEY_BYTES_MAX + 64;
/// Lines of an answer.
const ANSWER_LINES_MAX: usize = 64;
/// How often it is looked for whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);
/// Looks after a program was asked to end; then it is killed.
const LOOKS_MAX: usize = 20;
/// Codes of libgpg-error; the upper bits of what is told say where it comes from.
const TIMEOUT: u16 = 62;
/// See [`TIMEOUT`].
const CANCELED: u16 = 99;

/// Why there is no password. The texts hold no part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoPin {
    /// The person does not want to.
    Cancelled,
    /// Nobody answered, the program says.
    Late,
    /// It refuses, with this code. What it says besides may hold what was typed.
    Refused(u16),
    /// It ended.
    Ended,
    /// It says something else than the protocol has.
    Garbage,
    /// The password is no text.
    NoText,
}

/// Whether a variable of the environment may hold a secret, by its name.
fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    ["PASSWORD", "TOKEN", "SECRET", "API_KEY"].iter().any(|word| name.contains(word))
}

/// A pinentry program that runs, and ends with this value.
#[derive(Debug)]
pub(crate) struct Program(Child);

impl Program {
    /// Starts one, of a path or of a name on the path.
    pub(crate) fn start(name: &OsStr) -> io::Result<(Self, Talk)> {
        let mut command = Command::new(name);
        // What it says there would be torn into the log.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // It asks for one secret and needs none.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_secret(name)) {
            command.env_remove(name);
        }
        let mut child = command.spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let program = Self(child);
        match (to, from) {
            (Some(to), Some(from)) => Ok((program, Talk { to, from })),
            _ => Err(io::Error::other("it has no standard input and output")),
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        // Nothing can be known of it after an error.
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits a moment for its end.
    fn ends_in_time(&mut self) -> bool {
        for _ in 0..LOOKS_MAX {
            if self.has_ended() {
                return true;
            }
            thread::sleep(LOOK);
        }
        false
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        // One that draws in a terminal makes it as it was.
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process};
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
            if self.ends_in_time() {
                return;
            }
        }
        // It may have ended at the same moment.
        let _ = self.0.kill();
        self.ends_in_time();
    }
}

/// What is spoken with a program.
#[derive(Debug)]
pub(crate) struct Talk {
    to: ChildStdin,
    from: ChildStdout,
}

impl Talk {
    /// Asks for a password; after so many seconds the program closes its window.
    pub(crate) fn ask(&mut self, question: Question, seconds: u16) -> Result<SecretString, NoPin> {
        self.answer()?;
        #[cfg(unix)]
        for (option, value) in [("ttyname", "/dev/tty".to_owned()), ("ttytype", terminal_type())] {
            match self.say("OPTION", &format!("{option}={value}")) {
                // One with a window alone needs none.
                Ok(_) | Err(NoPin::Refused(_)) => {}
                Err(other) => return Err(other),
            }
        }
        self.say("SETTITLE", question.title)?;
        self.say("SETDESC", question.description)?;
        self.say("SETPROMPT", question.prompt)?;
        self.say("SETTIMEOUT", &seconds.to_string())?;
        let pin = self.say("GETPIN", "")?;
        // It has done what it is for.
        let _ = self.to.write_all(b"BYE\n");
        let text = str::from_utf8(&pin).map_err(|_| NoPin::NoText)?;
        Ok(SecretString::from(text.to_owned()))
    }

    fn say(&mut self, word: &str, rest: &str) -> Result<Zeroizing<Vec<u8>>, NoPin> {
        let rest = rest.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D");
        let line = format!("{word} {rest}");
        let line = [line.trim_end(), "\n"].concat();
        self.to.write_all(line.as_bytes()).map_err(|_| NoPin::Ended)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Zeroizing<Vec<u8>>, NoPin> {
        answer(&mut self.from)
    }
}

#[cfg(unix)]
fn terminal_type() -> String {
    std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".to_owned())
}

/// An answer up to its OK, and the data in it; of more than a password may have, one byte more.
fn answer(from: &mut impl Read) -> Result<Zeroizing<Vec<u8>>, NoPin> {
    // Neither grows, which would leave copies behind.
    let mut data = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX + 1));
    let mut line = Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX));
    for _ in 0..ANSWER_LINES_MAX {
        read_line(from, &mut line)?;
        let (word, rest) = match line.iter().position(|byte| *byte == b' ') {
            Some(space) => (&line[..space], &line[space + 1..]),
            None => (&line[..], &[][..]),
        };
        match word {
            b"OK" => return Ok(data),
            b"ERR" => return Err(refused(rest)),
            b"D" => decode(rest, &mut data)?,
            b"S" => {}
            _ if word.starts_with(b"#") => {}
            _ => return Err(NoPin::Garbage),
        }
    }
    Err(NoPin::Garbage)
}

fn read_line(from: &mut impl Read, line: &mut Vec<u8>) -> Result<(), NoPin> {
    line.zeroize();
    let mut byte = [0];
    loop {
        match from.read(&mut byte) {
            Ok(0) => return Err(NoPin::Ended),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if line.len() == LINE_BYTES_MAX => return Err(NoPin::Garbage),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(NoPin::Ended),
        }
    }
    byte.zeroize();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(())
}

/// Data in which a percent sign and two digits may stand for a byte.
fn decode(text: &[u8], data: &mut Vec<u8>) -> Result<(), NoPin> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => match (digit(bytes.next()), digit(bytes.next())) {
                (Some(high), Some(low)) => u8::try_from(16 * high + low).unwrap_or(u8::MAX),
                _ => return Err(NoPin::Garbage),
            },
            byte => *byte,
        };
        if data.len() <= KEY_BYTES_MAX {
            data.push(byte);
        }
    }
    Ok(())
}

fn refused(rest: &[u8]) -> NoPin {
    let rest = String::from_utf8_lossy(rest);
    let code = rest.split(' ').next().unwrap_or_default();
    let Ok(code) = code.parse::<u32>() else { return NoPin::Garbage };
    match u16::try_from(code & 0xffff) {
        Ok(TIMEOUT) => NoPin::Late,
        Ok(CANCELED) => NoPin::Cancelled,
        code => NoPin::Refused(code.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(said: &str) -> Result<Vec<u8>, NoPin> {
        answer(&mut said.as_bytes()).map(|data| data.to_vec())
    }

    #[test]
    fn an_answer_ends_with_its_ok() {
        assert_eq!(data("OK Pleased to meet you\nrest").unwrap(), b"");
        assert_eq!(data("# note\r\nS STATUS 1\r\nD a%25b%0a\nD c d\nOK\n").unwrap(), b"a%b\nc d");
        assert_eq!(data("D a\n").unwrap_err(), NoPin::Ended);
        for garbage in ["hello\n", "\n", "D a%2\nOK\n", "D %zz\nOK\n", "ERR x y\n", "OKAY\n"] {
            assert_eq!(data(garbage).unwrap_err(), NoPin::Garbage, "{garbage:?}");
        }
    }

    #[test]
    fn errors_have_their_kind() {
        assert_eq!(data("ERR 83886179 Operation cancelled\n").unwrap_err(), NoPin::Cancelled);
        assert_eq!(data("ERR 62\n").unwrap_err(), NoPin::Late);
        for said in ["ERR 83886254\n", "ERR 83886254 no display <Pinentry>\n"] {
            assert_eq!(data(said).unwrap_err(), NoPin::Refused(174), "{said:?}");
        }
    }

    #[test]
    fn what_a_program_says_has_limits() {
        let long = |bytes: usize| format!("D {}\nOK\n", "x".repeat(bytes));
        assert_eq!(data(&long(KEY_BYTES_MAX)).unwrap().len(), KEY_BYTES_MAX);
        assert_eq!(data(&long(KEY_BYTES_MAX + 9)).unwrap().len(), KEY_BYTES_MAX + 1);
        assert_eq!(data(&long(LINE_BYTES_MAX - 2)).unwrap().len(), KEY_BYTES_MAX + 1);
        assert_eq!(data(&long(LINE_BYTES_MAX - 1)).unwrap_err(), NoPin::Garbage);
        let lines = |count: usize| format!("{}OK\n", "S on\n".repeat(count));
        assert!(data(&lines(ANSWER_LINES_MAX - 1)).is_ok());
        assert_eq!(data(&lines(ANSWER_LINES_MAX)).unwrap_err(), NoPin::Garbage);
    }
}
