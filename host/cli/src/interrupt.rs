//! Ctrl-C: the first asks the work to end cleanly, a second one ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::time::Duration;

use anyhow::{Context, Result};
use domain::clock::Stopwatch;

/// Signals within this time are one request to end.
const ONE_REQUEST: Duration = Duration::from_millis(300);

/// Tells whether the user wants the work to end.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening. Once for each process.
    pub(crate) fn listen() -> Result<Self> {
        Self::listen_and(|| {})
    }

    /// Starts listening; the first Ctrl-C does `action` besides.
    pub(crate) fn listen_and(action: impl Fn() + Send + 'static) -> Result<Self> {
        let wanted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&wanted);
        let mut asked = Stopwatch::start();
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                // A terminal and a supervisor may both say it at once; a person takes longer.
                if asked.elapsed() >= ONE_REQUEST {
                    std::process::exit(i32::from(crate::INTERRUPTED));
                }
                return;
            }
            asked = Stopwatch::start();
            action();
        })
        .context("cannot listen to Ctrl-C")?;
        Ok(Self(wanted))
    }

    /// Starts listening; each Ctrl-C does `action`, and none ends the program. For prompts.
    pub(crate) fn listen_each(action: impl Fn() + Send + 'static) -> Result<Self> {
        ctrlc::set_handler(action).context("cannot listen to Ctrl-C")?;
        Ok(Self(Arc::new(AtomicBool::new(false))))
    }

    /// The flag itself, for work on several threads.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the user wants the work to end.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
