//! A progress line on a terminal; a plain line now and then elsewhere; nothing when told so.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::clock::Stopwatch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::standard_error;

/// How often a plain line is written where there is no terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(5);

/// Whether the user wants no progress.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Says whether the user wants no progress.
pub(crate) fn set_quiet(is_quiet: bool) {
    QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Whether the user wants no progress.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Progress of one piece of work.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    plain: Option<Plain>,
}

struct Plain {
    what: String,
    since_line: Stopwatch,
}

impl ProgressLine {
    /// Starts a line for `total` units of work (`bytes` or trades).
    pub(crate) fn start(what: &str, total: u64, bytes: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let quiet = is_quiet() || standard_error::is_json();
        let target = if quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = if bytes {
            "{prefix} {percent:>3}% {bar:24} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta} {msg}"
        } else {
            "{prefix} {percent:>3}% {bar:24} {human_pos}/{human_len} {per_sec} ETA {eta} {msg}"
        };
        // The template is a constant; the default style serves if it were wrong.
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        standard_error::set_progress(bar.downgrade());
        let plain = (!quiet && !terminal)
            .then(|| Plain { what: what.to_owned(), since_line: Stopwatch::start() });
        Self { bar, plain }
    }

    /// How much is done, and a word on where.
    pub(crate) fn update(&mut self, done: u64, message: impl FnOnce() -> String) {
        self.bar.set_position(done);
        match &mut self.plain {
            Some(plain) if plain.since_line.elapsed() >= PLAIN_LINE_EVERY => {
                plain.since_line = Stopwatch::start();
                let total = self.bar.length().unwrap_or(0).max(1);
                let eta = humantime::format_duration(Duration::from_secs(self.bar.eta().as_secs()));
                let percent = done * 100 / total;
                eprintln!("{} {percent}% {} ETA {eta}", plain.what, message());
            }
            Some(_) => {}
            None => self.bar.set_message(message()),
        }
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
