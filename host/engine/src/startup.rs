//! How the engine is started: its configuration, and why it does not start.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use domain::Secret;
use ipc::EngineMode;
use sandbox::Limits;
use serde::Deserialize;
use thiserror::Error;
use trader::Strategies;

use crate::limits::{START_LINE_BYTES_MAX, START_LINE_TIME, TOKEN_CHARS};
use crate::live::{LocalBroker, WebBroker};

/// What a program that starts the engine writes on its standard input: one line of JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartLine {
    /// The port, 0 for any that is free.
    #[serde(default)]
    pub port: Option<u16>,
    /// What both sides of a connection have to know, 16 to 1,024 characters.
    pub token: Secret,
    /// Where `engine-session.json` goes; made when it is missing.
    pub config_dir: PathBuf,
    /// Where runs, decoded data and compiled strategies go; made when it is missing.
    pub cache_dir: PathBuf,
    /// Whether a login without a window is allowed; for venues.
    #[serde(default)]
    pub dev_login_allowed: bool,
}

/// Why the engine does not start. Each has an exit code of its own.
#[derive(Debug, Error)]
pub enum StartError {
    /// Nobody wrote the line.
    #[error(
        "no line came on standard input: it ended, or {} s passed; write one line of JSON with \
         port, token, config_dir and cache_dir, or start with --standalone",
        START_LINE_TIME.as_secs()
    )]
    NoLine,
    /// The line is something else.
    #[error(
        "the line on standard input cannot start the engine: {0}; write one line of JSON like \
         {{\"port\":19876,\"token\":\"...\",\"config_dir\":\"...\",\"cache_dir\":\"...\"}}"
    )]
    BadLine(String),
    /// The port is somebody's.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}; choose another --port, or --port 0 for any free one"
    )]
    Port {
        /// The port.
        port: u16,
        /// What the system said of it.
        source: io::Error,
    },
    /// A folder cannot be written.
    #[error("cannot write the {what} folder {folder}: {source}; Kumiki has to write there")]
    Folder {
        /// `config` or `cache`.
        what: &'static str,
        /// The folder.
        folder: PathBuf,
        /// What the system said of it.
        source: io::Error,
    },
    /// There are no data.
    #[error(
        "there is no data folder{}; name the folder of the vendor's files with --data DIR or \
         KUMIKI_DATA",
        .0.as_ref().map_or(String::new(), |folder| format!(" {}", folder.display()))
    )]
    NoData(Option<PathBuf>),
    /// Another engine has the config folder.
    #[error(
        "another engine has the config folder {folder}{}; end it, or name another config folder",
        .port.map_or(String::new(), |port| format!(" and listens on port {port}"))
    )]
    Running {
        /// Its port, if its session file has one.
        port: Option<u16>,
        /// The config folder.
        folder: PathBuf,
    },
    /// Another program writes the log of the orders.
    #[error(
        "another program writes {}; end that one, or name another config folder",
        .0.display()
    )]
    LogLocked(PathBuf),
    /// The order desk cannot start.
    #[error("the order desk of web_broker does not start: {0}")]
    Desk(String),
    /// The dialect cannot be used.
    #[error(
        "the dialect {} of {venue} cannot be used: {why}; name a built-in one, {}, or the path of a .wasm file, \
         with dialect in [{venue}] or --{} dialect=NAME",
        path.display(), built_in.join(" or "), venue.replace('_', "-")
    )]
    Dialect {
        /// The venue whose dialect it is.
        venue: &'static str,
        /// The dialects that come with the program.
        built_in: &'static [&'static str],
        /// Its file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The dialect is not made for the host that orders would go to.
    #[error(
        "{0}; name one that is made for it with dialect in [web_broker] or --web-broker dialect=NAME, or leave \
         dialect out"
    )]
    DialectHost(String),
    /// The real market is set for the local broker, and not allowed.
    #[error("[local_broker] {0}")]
    Production(String),
    /// The local broker's venue cannot start.
    #[error("the venue local_broker does not start: {0}")]
    Gateway(String),
    /// Boards cannot be recorded.
    #[error(
        "cannot record boards in {}: {why}; correct that, name another folder with record_dir in \
         [local_broker] or --local-broker record_dir=DIR, or set record=false",
        folder.display()
    )]
    Recorder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        why: String,
    },
    /// The system cannot do it.
    #[error("the engine cannot run: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// The exit code of the program.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NoLine => 10,
            Self::BadLine(_) => 11,
            Self::Port { .. } => 12,
            Self::Folder { .. } => 13,
            Self::NoData(_) => 14,
            Self::Running { .. } => 15,
            Self::LogLocked(_) => 16,
            Self::Desk(_) => 17,
            Self::Dialect { .. } => 18,
            Self::Production(_) => 19,
            Self::Gateway(_) => 20,
            Self::Recorder { .. } => 21,
            Self::DialectHost(_) => 22,
            Self::System(_) => 1,
        }
    }
}

/// Everything that the engine is started with.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Whether it trades or replays.
    pub mode: EngineMode,
    /// The port, 0 for any that is free.
    pub port: u16,
    /// What both sides of a connection have to know.
    pub token: Secret,
    /// Where `engine-session.json` goes.
    pub config_dir: PathBuf,
    /// Where runs go, in `runs/`.
    pub cache_dir: PathBuf,
    /// The folder with the vendor's files; needed for replays.
    pub data: Option<PathBuf>,
    /// Where strategies are, and where decoded data and compiled strategies are stored.
    pub strategies: Strategies,
    /// Whether runs go on when all clients have left.
    pub standalone: bool,
    /// Pages in browsers that may connect, by their `Origin`.
    pub allowed_origins: Vec<String>,
    /// Folders of runs that stay.
    pub runs_kept: usize,
    /// What strategies may take.
    pub limits: Limits,
    /// The web broker; needed to trade.
    pub web_broker: Option<WebBroker>,
    /// The local broker's gateway; needed for live market data.
    pub local_broker: Option<LocalBroker>,
    /// Whether a live engine runs strategies (specification 4, P81).
    pub live_engine: bool,
    /// What happens to orders and runs of strategies with real orders (specification 4, P81).
    pub strategy_rules: StrategyRules,
    /// The program that is started on what a person has to know, and its arguments; empty where there is none.
    pub notify_command: Vec<String>,
    /// The port of pages in the browser, 0 for any that is free.
    pub console_port: u16,
    /// The value of an order in yen above which a page asks for its quantity again.
    pub confirm_above_jpy: u64,
}

/// What happens to orders and runs of strategies with real orders (specification 4, P81).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyRules {
    /// What becomes of a strategy's working orders when its run is stopped (specification 4, P86).
    pub on_stop: OwnOrdersAtEnd,
    /// What becomes of them when the strategy fails (specification 4, P110).
    pub on_failure: OwnOrdersAtEnd,
    /// What happens where the account holds fewer shares than the strategy (specification 4, P107).
    pub on_position_mismatch: OnPositionMismatch,
}

impl Default for StrategyRules {
    fn default() -> Self {
        Self {
            on_stop: OwnOrdersAtEnd::CancelAll,
            on_failure: OwnOrdersAtEnd::Keep,
            on_position_mismatch: OnPositionMismatch::Stop,
        }
    }
}

/// What becomes of a strategy's working orders at the end of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnOrdersAtEnd {
    /// They are cancelled.
    CancelAll,
    /// They go on working.
    Keep,
}

/// What happens where the account holds fewer shares than a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPositionMismatch {
    /// The run does not begin, or ends.
    Stop,
    /// Clients are told, and the run goes on.
    Warn,
}

/// Reads the line that starts the engine. When the input ends after it, `ended` is called: the program
/// that started the engine is gone.
///
/// # Errors
/// [`StartError::NoLine`] when none comes in time, [`StartError::BadLine`].
pub fn read_start_line(
    input: impl Read + Send + 'static,
    ended: impl FnOnce() + Send + 'static,
) -> Result<StartLine, StartError> {
    let (sender, lines) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut input = io::BufReader::new(input);
        let mut line = Vec::new();
        let read = input.by_ref().take(START_LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
        let was_taken = sender.send(read.map(|_| line)).is_ok();
        // What follows has no meaning; its end has.
        if was_taken && io::copy(&mut input, &mut io::sink()).is_ok() {
            ended();
        }
    });
    let line = lines.recv_timeout(START_LINE_TIME).map_err(|_| StartError::NoLine)??;
    if line.is_empty() {
        return Err(StartError::NoLine);
    }
    if line.len() as u64 > START_LINE_BYTES_MAX {
        let text = format!("it is longer than {START_LINE_BYTES_MAX} bytes");
        return Err(StartError::BadLine(text));
    }
    // The parser's own words may repeat a value, and one of them is the token.
    let mut json = serde_json::Deserializer::from_slice(&line);
    let start: StartLine = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let inner = error.inner();
        if !inner.is_data() {
            return StartError::BadLine(format!("it is not JSON (column {})", inner.column()));
        }
        // The error has names of fields, never values.
        let words = inner.to_string();
        let missing = words.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
        let path = error.path();
        StartError::BadLine(match missing {
            Some((name, _)) => format!("the field {name} is missing"),
            None if path.iter().next().is_none() => {
                "it is not a JSON object with these fields".to_owned()
            }
            None => format!(
                "the field {} is unknown or its value wrong (column {})",
                path,
                inner.column()
            ),
        })
    })?;
    for (name, folder) in [("config_dir", &start.config_dir), ("cache_dir", &start.cache_dir)] {
        if folder.as_os_str().is_empty() {
            return Err(StartError::BadLine(format!("the field {name} is empty")));
        }
    }
    if !TOKEN_CHARS.contains(&start.token.expose().chars().count()) {
        let (low, high) = (TOKEN_CHARS.start(), TOKEN_CHARS.end());
        return Err(StartError::BadLine(format!("the token must have {low} to {high} characters")));
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::mpsc::channel;

    use super::*;

    const LINE: &str = r#"{"port":0,"token":"0123456789abcdef","config_dir":"c","cache_dir":"d"}"#;

    fn refused(line: &str) -> String {
        read_start_line(Cursor::new(line.to_owned()), || {}).unwrap_err().to_string()
    }

    #[test]
    fn a_line_is_read_and_the_end_is_heard() {
        let (sender, ended) = channel();
        let line = format!("{LINE}\nmore\n");
        let start = read_start_line(Cursor::new(line), move || sender.send(()).unwrap()).unwrap();
        assert_eq!((start.port, start.dev_login_allowed), (Some(0), false));
        assert_eq!(start.token.expose(), "0123456789abcdef");
        ended.recv().unwrap();
        assert!(!format!("{start:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn a_bad_start_line_is_refused_without_the_token() {
        assert!(refused("").contains("no line"));
        assert!(refused("hello\n").contains("not JSON"));
        for (wrong, why) in [
            (LINE.replace("port", "prot"), "the field prot is unknown or its value wrong"),
            (LINE.replace("0,", "\"0\","), "the field port is unknown or its value wrong"),
            (LINE.replace(r#""token":"0123456789abcdef","#, ""), "the field token is missing"),
            (
                LINE.replace(r#""0123456789abcdef""#, "1234567890123456"),
                "the field token is unknown",
            ),
            (LINE.replace(r#","cache_dir":"d""#, ""), "the field cache_dir is missing"),
            (
                LINE.replace(r#""cache_dir":"d""#, r#""cache_dir":"""#),
                "the field cache_dir is empty",
            ),
            ("{}".to_owned(), "the field token is missing"),
            ("[]".to_owned(), "it is not a JSON object"),
            ("7".to_owned(), "it is not a JSON object"),
        ] {
            let error = refused(&wrong);
            assert!(error.contains(why), "{wrong}: {error}");
            assert!(!error.contains("0123456789abcdef") && !error.contains("12345678"), "{error}");
        }
        assert!(refused(&LINE.replace("0123456789abcdef", "short")).contains("16 to 1024"));
        assert!(refused(&format!("{}{LINE}", " ".repeat(70_000))).contains("longer than 65536"));
    }

    #[test]
    fn each_failure_has_a_code() {
        let io = || io::Error::other("no");
        let folder = PathBuf::from("f");
        let codes = [
            StartError::NoLine,
            StartError::BadLine(String::new()),
            StartError::Port { port: 1, source: io() },
            StartError::Folder { what: "cache", folder, source: io() },
            StartError::NoData(None),
            StartError::Running { port: Some(1), folder: PathBuf::from("f") },
            StartError::LogLocked(PathBuf::from("f")),
            StartError::Desk(String::new()),
            StartError::Dialect {
                venue: "web_broker",
                built_in: &["a", "b"],
                path: PathBuf::from("d"),
                why: String::new(),
            },
            StartError::Production(String::new()),
            StartError::Gateway(String::new()),
            StartError::Recorder { folder: PathBuf::from("r"), why: String::new() },
            StartError::DialectHost(String::new()),
        ]
        .map(|error| error.exit_code());
        assert_eq!(codes, [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]);
    }
}
