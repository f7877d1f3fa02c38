//! The log: events of our crates on standard error, as lines for people or as JSON lines.
//!
//! Libraries below us have events too. They are left out at every level, because they may hold an
//! address, and the web broker's is a secret.

use std::fmt::{self, Arguments, Write as _};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use domain::clock::wall_now;
use serde_json::json;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{self as lines, FmtContext, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::progress;

/// The crates whose events are shown: all of host/, as targets name them.
const OWN: [&str; 15] = [
    "atomic_file",
    "cli",
    "domain",
    "exchange",
    "http_client",
    "ipc",
    "keys",
    "marketdata",
    "pricestore",
    "ranking",
    "replay",
    "results",
    "sandbox",
    "sweep",
    "update",
];

/// Whether standard error is for scripts.
static JSON: AtomicBool = AtomicBool::new(false);

/// What is logged, and how; the same under every command.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Log (standard error)")]
pub(crate) struct LogArgs {
    /// What is logged. Default: warn; info for `rank serve` and `update`.
    #[arg(long, value_name = "LEVEL", env = "KUMIKI_LOG", global = true)]
    log: Option<LogLevel>,

    /// How it is written; json makes one object a line of everything on standard error.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "KUMIKI_LOG_FORMAT",
        global = true,
        default_value = "human"
    )]
    log_format: LogFormat,
}

/// The least urgent events that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Human,
    Json,
}

/// What a command logs when nobody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDefault {
    /// A command that answers: warnings.
    Command,
    /// A job that goes on for a while: also what it does.
    Job,
    /// A job that was told to be quiet.
    QuietJob,
    /// A service: as for a job, with the time.
    Service,
}

impl LogDefault {
    const fn level(self) -> LevelFilter {
        match self {
            Self::Command => LevelFilter::WARN,
            Self::Job | Self::Service => LevelFilter::INFO,
            Self::QuietJob => LevelFilter::ERROR,
        }
    }
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

impl LogArgs {
    /// Starts the log of this process. Once.
    ///
    /// # Errors
    /// When there is one already.
    pub(crate) fn start(self, default: LogDefault) -> Result<()> {
        let level = self.log.map_or(default.level(), LevelFilter::from);
        let own = FilterFn::new(move |one| is_own(one) && (one.is_span() || *one.level() <= level));
        // Spans, which are INFO, stay: they say where a warning belongs.
        let own = own.with_max_level_hint(match level {
            LevelFilter::OFF => level,
            _ => level.max(LevelFilter::INFO),
        });
        let events = lines::layer().with_writer(|| StandardError);
        let started = match self.log_format {
            LogFormat::Human => {
                let human = Human { with_time: default == LogDefault::Service };
                subscriber::set_global_default(
                    Registry::default().with(events.event_format(human).with_filter(own)),
                )
            }
            LogFormat::Json => {
                JSON.store(true, Ordering::Relaxed);
                let json = events.json().flatten_event(true).with_current_span(false);
                subscriber::set_global_default(
                    Registry::default().with(json.with_timer(Utc).with_filter(own)),
                )
            }
        };
        started.context("cannot start the log")
    }
}

fn is_own(one: &Metadata<'_>) -> bool {
    let target = one.target();
    OWN.contains(&target.split_once("::").map_or(target, |(name, _)| name))
}

/// Whether standard error is for scripts, so that nothing but JSON belongs there.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes a text of the command itself as a line of the log, whatever the level. Where it cannot be
/// written there is nobody left to tell.
pub(crate) fn write_json(level: Level, text: Arguments<'_>) {
    let mut line = json!({
        "timestamp": utc().to_string(),
        "level": level.as_str(),
        "message": text.to_string(),
        "target": "cli",
    })
    .to_string();
    line.push('\n');
    let _ = StandardError.write_all(line.as_bytes());
}

/// Now, as JSON logs have it.
fn utc() -> impl fmt::Display {
    let now: SystemTime = UNIX_EPOCH + Duration::from_nanos(wall_now().nanos());
    humantime::format_rfc3339_micros(now)
}

struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{}", utc())
    }
}

/// `warning: the text field=value [request id=7]`, one line for each event.
struct Human {
    with_time: bool,
}

impl<S, N> FormatEvent<S, N> for Human
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.with_time {
            write!(out, "{} ", wall_now())?;
        }
        let word = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "note",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let mut text = String::new();
        context.field_format().format_fields(Writer::new(&mut text), event)?;
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let kept = span.extensions();
            let fields = kept.get::<FormattedFields<N>>().map_or("", |fields| fields.as_str());
            write!(text, " [{}", span.name())?;
            write!(text, "{}{fields}]", if fields.is_empty() { "" } else { " " })?;
        }
        // What comes from outside must not look like a line of its own.
        let text = text.replace(char::is_control, "␣");
        writeln!(out, "{word}: {text}")
    }
}

/// Standard error below the progress line. A closed one does not end a service.
struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        progress::suspended(|| {
            let _ = io::stderr().lock().write_all(bytes);
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_the_host_is_shown() {
        let host = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let folders = std::fs::read_dir(host).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<String> = folders
            .filter(|entry| entry.path().join("Cargo.toml").is_file())
            .map(|entry| entry.file_name().to_string_lossy().replace('-', "_"))
            .collect();
        names.sort();
        assert_eq!(names, OWN, "OWN lists the crates of host/");
    }
}
