//! What the simulated venues share: they go on until they are told to end.

use std::io::{self, Read as _};
use std::sync::mpsc;

use anyhow::{Context as _, Result};
use domain::JstDate;

use crate::interrupt::Interrupt;
use crate::wrong_arguments;

/// The wish to end: Ctrl-C, or standard input that closes.
pub(crate) struct End {
    end: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
    _interrupt: Interrupt,
}

impl End {
    /// Listens for Ctrl-C.
    pub(crate) fn listen() -> Result<Self> {
        let (end, ended) = mpsc::channel();
        let interrupted = end.clone();
        let interrupt = Interrupt::listen_and(move || {
            // Whoever waits has gone already.
            interrupted.send(()).ok();
        })?;
        Ok(Self { end, ended, _interrupt: interrupt })
    }

    /// Waits for it.
    pub(crate) fn wait(self, until_stdin_closes: bool) -> Result<()> {
        let Self { end, ended, _interrupt } = self;
        if until_stdin_closes {
            std::thread::spawn(move || {
                let mut nothing = [0; 1_024];
                while io::stdin().read(&mut nothing).is_ok_and(|count| count > 0) {}
                end.send(()).ok();
            });
        }
        // Without that the sender lives in the handler of Ctrl-C.
        ended.recv().context("the simulator lost its end signal")
    }
}

/// First and last date of the files: one date, or a range.
pub(crate) fn dates(
    date: Option<JstDate>,
    from: Option<JstDate>,
    to: Option<JstDate>,
) -> Result<(Option<JstDate>, Option<JstDate>)> {
    match (from, to) {
        (Some(from), Some(to)) if from > to => Err(wrong_arguments(format!(
            "--from {from} is after --to {to}; give an earlier --from"
        ))),
        _ => Ok((date.or(from), date.or(to))),
    }
}
