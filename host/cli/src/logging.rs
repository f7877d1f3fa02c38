//! The log: events of our crates on standard error, as lines for people or as JSON lines.
//!
//! Libraries below us have events too. They are left out at every level, because they may hold an
//! address, and the web broker's is a secret.

use std::fmt::{self, Write as _};

use anyhow::{Context, Result};
use clap::{ArgAction, Args, ColorChoice, ValueEnum};
use domain::clock::wall_now;
use domain::text::on_one_line;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{self as lines, FmtContext, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::standard_error::{self, StandardError, utc};
use crate::{progress, terminal};

/// The crates whose events are shown: all of host/, as targets name them.
const OWN: [&str; 22] = [
    "atomic_file",
    "cli",
    "domain",
    "engine",
    "exchange",
    "http_client",
    "ipc",
    "keys",
    "live",
    "marketdata",
    "orders",
    "pricestore",
    "ranking",
    "replay",
    "results",
    "sandbox",
    "sim",
    "sweep",
    "trader",
    "update",
    "venues",
    "web_console",
];

/// Where the level may come from, besides the arguments.
const LEVEL_VARIABLE: &str = "KUMIKI_LOG";
/// Where the format may come from, besides the arguments.
pub(crate) const FORMAT_VARIABLE: &str = "KUMIKI_LOG_FORMAT";

/// What is written to standard error, and how; the same under every command.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Every command")]
pub(crate) struct LogArgs {
    /// Log more; twice for details.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,

    /// Show no progress.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Use colors: auto, always or never; auto obeys NO_COLOR.
    #[arg(
        long, value_name = "WHEN", global = true, value_enum, default_value_t = ColorChoice::Auto,
        hide_possible_values = true, hide_default_value = true
    )]
    color: ColorChoice,

    /// Log level: off, error, warn, info, debug or trace.
    ///
    /// Default: warn; info for `serve`, `rank serve`, `data update` and `data boards`.
    #[arg(
        long, value_name = "LEVEL", env = LEVEL_VARIABLE, global = true, hide_possible_values = true,
        hide_env_values = true, hide_short_help = true
    )]
    log: Option<LogLevel>,

    /// Log form: human or json.
    ///
    /// With json each line of standard error is one JSON object.
    #[arg(
        long, value_name = "FORM", env = FORMAT_VARIABLE, global = true, default_value = "human",
        hide_possible_values = true, hide_default_value = true, hide_env_values = true,
        hide_short_help = true
    )]
    log_format: LogFormat,

    /// Show this help; `kumiki help COMMAND` shows more.
    #[arg(long, short, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
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
    /// A job that goes on for a while: also what it does; only errors when it is quiet.
    Job,
    /// A service: as for a job, with the time.
    Service,
}

impl LogDefault {
    /// The level with so many `-v`, or with `-q`.
    fn level(self, verbose: u8, quiet: bool) -> LevelFilter {
        let usual = if self == Self::Command { LevelFilter::WARN } else { LevelFilter::INFO };
        match (self, verbose) {
            (Self::Job, _) if quiet => LevelFilter::ERROR,
            _ if quiet => LevelFilter::WARN,
            (_, 0) => usual,
            (Self::Command, 1) => LevelFilter::INFO,
            (Self::Command, 2) | (_, 1) => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
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
        let usual = || default.level(self.verbose, self.quiet);
        let level = self.log.map_or_else(usual, LevelFilter::from);
        progress::set_quiet(self.quiet);
        terminal::set_color(self.color);
        let own = FilterFn::new(move |one| is_own(one) && (one.is_span() || *one.level() <= level));
        // Spans, which are INFO, stay: they say where a warning belongs.
        let own = own.with_max_level_hint(match level {
            LevelFilter::OFF => level,
            _ => level.max(LevelFilter::INFO),
        });
        let events = lines::layer().with_writer(|| StandardError);
        standard_error::set_json(self.log_format == LogFormat::Json);
        let started = match self.log_format {
            LogFormat::Human => {
                let human = Human { with_time: default == LogDefault::Service };
                subscriber::set_global_default(
                    Registry::default().with(events.event_format(human).with_filter(own)),
                )
            }
            LogFormat::Json => {
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
        let text = on_one_line(&text);
        writeln!(out, "{word}: {text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_flags() {
        for (default, verbose, quiet, level) in [
            (LogDefault::Command, 0, false, LevelFilter::WARN),
            (LogDefault::Command, 1, false, LevelFilter::INFO),
            (LogDefault::Command, 2, false, LevelFilter::DEBUG),
            (LogDefault::Command, 9, false, LevelFilter::TRACE),
            (LogDefault::Command, 0, true, LevelFilter::WARN),
            (LogDefault::Job, 0, false, LevelFilter::INFO),
            (LogDefault::Job, 1, false, LevelFilter::DEBUG),
            (LogDefault::Job, 0, true, LevelFilter::ERROR),
            (LogDefault::Service, 0, true, LevelFilter::WARN),
        ] {
            assert_eq!(default.level(verbose, quiet), level, "{default:?} {verbose} {quiet}");
        }
    }

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
