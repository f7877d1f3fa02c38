//! Prints to standard output and standard error, whether or not somebody still reads.
//!
//! A reader may go away before the end, as `head` does. The standard macros end the program with a
//! panic then. Here what nobody reads is dropped, and the command goes on: what it writes to files is
//! complete, and its exit code tells how the work itself went. Every other trouble, as a full disk
//! behind standard output, is told on standard error and makes the exit code 1.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use domain::text::for_terminal;
use tracing::Level;

use crate::standard_error;

/// Nobody reads standard output any more.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Something could not be printed though somebody reads.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Like the macro of the standard library, but see the module.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::to_stdout(format_args!($($text)*), "") };
}

/// Like the macro of the standard library, but see the module.
macro_rules! println {
    ($($text:tt)*) => { $crate::output::to_stdout(format_args!($($text)*), "\n") };
}

/// Like the macro of the standard library, but see the module.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::to_stderr(format_args!($($text)*)) };
}

/// Prints a text and what ends it.
pub(crate) fn to_stdout(text: Arguments<'_>, end: &str) {
    if CLOSED.load(Ordering::Relaxed) {
        return;
    }
    match write(&mut io::stdout().lock(), text, end) {
        Ok(()) => {}
        Err(error) if is_closed(&error) => CLOSED.store(true, Ordering::Relaxed),
        Err(error) => fail(&error),
    }
}

/// Whether nothing printed to standard output arrives any more: nobody reads it, or it takes nothing.
pub(crate) fn is_over() -> bool {
    CLOSED.load(Ordering::Relaxed) || FAILED.load(Ordering::Relaxed)
}

/// Prints a line of text, as a line of the log where that is for scripts; where it cannot be printed
/// there is nobody left to tell.
pub(crate) fn to_stderr(text: Arguments<'_>) {
    if standard_error::is_json() {
        return standard_error::write_json(Level::INFO, text);
    }
    standard_error::suspended(|| {
        let _ = write(&mut io::stderr().lock(), text, "\n");
    });
}

/// Prints why the command failed.
pub(crate) fn failure(text: &str) {
    if standard_error::is_json() {
        return standard_error::write_json(Level::ERROR, format_args!("{text}"));
    }
    to_stderr(format_args!("error: {text}"));
}

/// Prints what standard output still holds; `false` where something could not be printed.
pub(crate) fn finish() -> bool {
    match io::stdout().lock().flush() {
        Err(error) if !is_closed(&error) => fail(&error),
        _ => {}
    }
    !FAILED.load(Ordering::Relaxed)
}

fn write(out: &mut impl Write, text: Arguments<'_>, end: &str) -> io::Result<()> {
    // Whatever a guest or a file says in it: nothing steers the terminal.
    let text = text.to_string();
    out.write_all(for_terminal(&text).as_bytes())?;
    out.write_all(end.as_bytes())
}

fn fail(error: &io::Error) {
    if !FAILED.swap(true, Ordering::Relaxed) {
        failure(&format!("cannot print to standard output: {error}"));
    }
}

/// Whether the reader went away. Windows has two words more for it: `ERROR_NO_DATA` and `ERROR_PIPE_NOT_CONNECTED`.
fn is_closed(error: &io::Error) -> bool {
    const CLOSED: [i32; 2] = [232, 233];
    let is_of_windows = || error.raw_os_error().is_some_and(|code| CLOSED.contains(&code));
    error.kind() == ErrorKind::BrokenPipe || cfg!(windows) && is_of_windows()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_told_from_other_trouble() {
        for (kind, closed) in [(ErrorKind::BrokenPipe, true), (ErrorKind::StorageFull, false)] {
            let error = write(&mut Broken(kind), format_args!("text"), "\n").unwrap_err();
            assert_eq!(is_closed(&error), closed, "{kind}");
        }
        let mut text = Vec::new();
        write(&mut text, format_args!("{}\u{1b}[2J", 7), "\n").unwrap();
        assert_eq!(text, b"7\\u001b[2J\n");
    }
}
