//! `kumiki sql`: one statement, or a prompt.

mod folders;
mod left_out;
mod prompt;
mod show;
mod stored;
mod sweeps;

use std::io::{self, IsTerminal, Read};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pricestore::DataDir;
use ranking::CancelToken;
use ranking::console::{Console, ConsoleError, ConsoleOptions, ROWS_HELD, SQL_BYTES_MAX};

use crate::args::{SqlArgs, SqlFormat};
use crate::interrupt::Interrupt;
use crate::rank::{cores, is_broken_pipe};
use crate::{Ending, INTERRUPTED};
use left_out::LeftOut;

/// How long a statement that was interrupted may take to end by itself. Nothing is lost with it: all is
/// read-only.
const GRACE: Duration = Duration::from_millis(500);

/// Memory of the program itself, with the columns in which the engine hands rows over, and of each thread, besides that
/// of the engine and of an answer.
#[cfg(target_os = "linux")]
const PROGRAM_BYTES: u64 = 512 << 20;
/// See [`PROGRAM_BYTES`].
#[cfg(target_os = "linux")]
const THREAD_BYTES: u64 = 64 << 20;

/// Limits the memory of this process. The engine counts what it stores, but not the values that it works on,
/// and one of these may have gigabytes.
#[cfg(target_os = "linux")]
fn limit_memory(options: &ConsoleOptions) {
    use ranking::console::ANSWER_BYTES_MAX;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Half as much again for what is lost between blocks; a table has four forms of its answer.
    let engine = options.memory_bytes.saturating_add(options.memory_bytes / 2);
    let threads = THREAD_BYTES.saturating_mul(options.threads as u64);
    let bytes = engine.saturating_add(threads) + PROGRAM_BYTES + 4 * ANSWER_BYTES_MAX as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Data);
    let least = [current, maximum].into_iter().flatten().fold(bytes, u64::min);
    // Where the system has no such limit, the engine's own is all there is.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(least), maximum });
}

#[cfg(not(target_os = "linux"))]
const fn limit_memory(_: &ConsoleOptions) {}

/// Runs the command.
pub(crate) fn run(args: &SqlArgs) -> Result<Ending> {
    let mut left_out = LeftOut::default();
    let stored = stored::views(args, &mut left_out);
    // Where nothing is left, that says why.
    left_out.tell();
    let options = ConsoleOptions {
        threads: args.jobs.unwrap_or_else(cores),
        memory_bytes: args.memory.saturating_mul(1 << 20),
        rows: rows(args)?,
        stored: stored?,
    };
    limit_memory(&options);
    let console = Console::open(&DataDir::new(&args.prices.prices), &options)?;
    let sql = match &args.sql {
        Some(sql) => sql.clone(),
        None if io::stdin().is_terminal() => return prompt::run(&console, args.format),
        None => from_stdin()?,
    };
    let running = Running::default();
    let stop = running.clone();
    // The statement may end while its time is up.
    let interrupted = Arc::new(Once::new());
    let tell = |told: &Once| told.call_once(|| eprintln!("interrupted"));
    let told = Arc::clone(&interrupted);
    // It may be making a table, or wait for a reader that does not read.
    let _interrupt = Interrupt::listen_and(move || {
        stop.cancel();
        thread::sleep(GRACE);
        tell(&told);
        std::process::exit(i32::from(INTERRUPTED));
    })?;
    match show::answer(&console, &sql, &running.next(), args.format) {
        Ok(()) => Ok(Ending::Done),
        Err(error) if is_broken_pipe(&error) => Ok(Ending::Done),
        Err(error) if is_cancelled(&error) => {
            tell(&interrupted);
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error),
    }
}

/// How many rows an answer may have: lines for programs are written as they come, and all of them.
fn rows(args: &SqlArgs) -> Result<Option<usize>> {
    Ok(match (args.limit, args.format) {
        (Some(rows), _) => Some(usize::try_from(rows)?),
        (None, SqlFormat::Table) => Some(ROWS_HELD),
        (None, SqlFormat::Csv | SqlFormat::Jsonl) => None,
    })
}

/// Whether a statement was ended by its user.
fn is_cancelled(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ConsoleError::Cancelled))
}

/// The token of the statement that runs now; Ctrl-C takes it from another thread.
#[derive(Debug, Clone, Default)]
struct Running(Arc<Mutex<CancelToken>>);

impl Running {
    /// A fresh token, for the next statement.
    fn next(&self) -> CancelToken {
        let token = CancelToken::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }

    fn cancel(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }
}

fn from_stdin() -> Result<String> {
    let mut sql = String::new();
    let most = u64::try_from(SQL_BYTES_MAX)? + 1;
    io::stdin().lock().take(most).read_to_string(&mut sql).context("cannot read standard input")?;
    if sql.len() > SQL_BYTES_MAX {
        bail!("standard input holds more than {SQL_BYTES_MAX} bytes; give a shorter statement");
    }
    Ok(sql)
}
