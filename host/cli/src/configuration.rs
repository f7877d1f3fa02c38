//! `--config kumiki.toml`: settings of `kumiki serve` in a file. The environment comes before the file,
//! and flags before both.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use domain::guest_limit::LimitChange;
use engine::{OnPositionMismatch, OwnOrdersAtEnd, StrategyRules};
use toml::{Table, Value};

use crate::local_broker::{self, LocalBrokerSettings};
use crate::web_broker::{self, WebBrokerSettings};
use crate::wrong_arguments;

/// Bytes of a file of settings.
const BYTES_MAX: u64 = 1 << 20;

/// A setting.
struct Key {
    name: &'static str,
    kind: &'static str,
    default: &'static str,
    flag: &'static str,
    variable: &'static str,
    meaning: &'static str,
}

/// Every setting, in the order of the table.
const KEYS: [Key; 40] = [
    Key {
        name: "engine.port",
        kind: "whole number",
        default: "19876",
        flag: "--port",
        variable: "KUMIKI_PORT",
        meaning: "the port on this machine, 0 for any; the line on standard input comes before file and environment",
    },
    Key {
        name: "engine.config_dir",
        kind: "path",
        default: "where the system keeps settings",
        flag: "--config-dir",
        variable: "KUMIKI_CONFIG_DIR",
        meaning: "where engine-session.json goes; with --standalone",
    },
    Key {
        name: "engine.cache_dir",
        kind: "path",
        default: "where the system keeps caches",
        flag: "--cache-dir",
        variable: "KUMIKI_CACHE",
        meaning: "where runs, decoded data and compiled strategies go; with --standalone",
    },
    Key {
        name: "engine.allow_origins",
        kind: "list of texts",
        default: "[]",
        flag: "--allow-origin",
        variable: "KUMIKI_ALLOW_ORIGINS",
        meaning: "pages in browsers that may connect, by their origin",
    },
    Key {
        name: "engine.runs_kept",
        kind: "whole number",
        default: "20",
        flag: "--runs-kept",
        variable: "KUMIKI_RUNS_KEPT",
        meaning: "folders of runs that are kept",
    },
    Key {
        name: "engine.live_engine",
        kind: "boolean",
        default: "true",
        flag: "",
        variable: "KUMIKI_LIVE_ENGINE",
        meaning: "whether strategies may run live; with --mode live",
    },
    Key {
        name: "engine.on_strategy_stop",
        kind: "text",
        default: "cancel-all",
        flag: "",
        variable: "KUMIKI_ON_STRATEGY_STOP",
        meaning: "what becomes of the working orders of a strategy with real orders when its run is stopped: cancel-all or keep",
    },
    Key {
        name: "engine.on_strategy_failure",
        kind: "text",
        default: "keep",
        flag: "",
        variable: "KUMIKI_ON_STRATEGY_FAILURE",
        meaning: "the same when the strategy fails: keep or cancel-all",
    },
    Key {
        name: "engine.on_position_mismatch",
        kind: "text",
        default: "stop",
        flag: "",
        variable: "KUMIKI_ON_POSITION_MISMATCH",
        meaning: "what happens to a run with real orders when the account holds fewer shares than the strategy: stop or warn",
    },
    Key {
        name: "engine.notify_command",
        kind: "list of texts",
        default: "[]",
        flag: "",
        variable: "KUMIKI_NOTIFY_COMMAND",
        meaning: "a program and its arguments, started with a line of JSON on its input when a live run is filled, fails \
                  or ends, loses market data, or a venue needs a login; see docs/howto/notifications.md",
    },
    Key {
        name: "engine.strategies",
        kind: "path",
        default: "beside the program",
        flag: "--strategies",
        variable: "KUMIKI_STRATEGIES",
        meaning: "where the built-in strategies are",
    },
    Key {
        name: "engine.limits",
        kind: "list of texts",
        default: "[]",
        flag: "--guest-limit",
        variable: "KUMIKI_LIMITS",
        meaning: "other limits for strategies, like `memory=128MiB`; `kumiki strategy limits` lists them",
    },
    Key {
        name: "console.port",
        kind: "whole number",
        default: "19875",
        flag: "--console-port",
        variable: "KUMIKI_CONSOLE_PORT",
        meaning: "the port of pages in the browser, 0 for any; it is used from the first page on",
    },
    Key {
        name: "console.confirm_above_jpy",
        kind: "whole number",
        default: "3000000",
        flag: "",
        variable: "KUMIKI_CONSOLE_CONFIRM_ABOVE_JPY",
        meaning: "the value of an order in yen above which a page asks for its quantity again",
    },
    Key {
        name: "replay.data",
        kind: "path",
        default: "none",
        flag: "--data",
        variable: "KUMIKI_DATA",
        meaning: "folder with the vendor's files",
    },
    Key {
        name: "web_broker.environment",
        kind: "text",
        default: "demo",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_ENVIRONMENT",
        meaning: "demo or prod; prod needs WEBBROKER_ALLOW_PROD=1 in the environment besides",
    },
    Key {
        name: "web_broker.base_url",
        kind: "text",
        default: "the broker's",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_BASE_URL",
        meaning: "the broker's address: that of the environment, or one of this machine",
    },
    Key {
        name: "web_broker.dialect",
        kind: "text",
        default: "as the host needs",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_DIALECT",
        meaning: "the component that knows the broker's words: web-broker-spec (the default of this machine, and for it only), web-broker-v4r10 (its present version, the default of the broker's hosts), web-broker-v4r8, or the path of a .wasm file",
    },
    Key {
        name: "web_broker.dialects",
        kind: "path",
        default: "beside the program",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_DIALECTS",
        meaning: "where the built-in dialects are",
    },
    Key {
        name: "web_broker.order_phase",
        kind: "text",
        default: "O3",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_ORDER_PHASE",
        meaning: "how far orders are taken: O0, O1, O2 or O3",
    },
    Key {
        name: "web_broker.second_password_lockout_secs",
        kind: "whole number",
        default: "1800",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_SECOND_PASSWORD_LOCKOUT_SECS",
        meaning: "how long wrong second passwords lock orders, in seconds",
    },
    Key {
        name: "web_broker.second_password_max_failures",
        kind: "whole number",
        default: "3",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_SECOND_PASSWORD_MAX_FAILURES",
        meaning: "wrong second passwords in a row that lock",
    },
    Key {
        name: "web_broker.second_password_idle_secs",
        kind: "whole number",
        default: "1800",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_SECOND_PASSWORD_IDLE_SECS",
        meaning: "seconds without use after which the engine forgets the second password",
    },
    Key {
        name: "web_broker.unknown_settle_secs",
        kind: "whole number",
        default: "5",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_UNKNOWN_SETTLE_SECS",
        meaning: "seconds after which an order that no list has is not at the broker",
    },
    Key {
        name: "web_broker.connect_timeout_ms",
        kind: "whole number",
        default: "10000",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_CONNECT_TIMEOUT_MS",
        meaning: "how long a connection to the broker may take, in milliseconds",
    },
    Key {
        name: "web_broker.answer_timeout_ms",
        kind: "whole number",
        default: "40000",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_ANSWER_TIMEOUT_MS",
        meaning: "how long its answer may take, in milliseconds; longer than the 30 s of a command, so that a late answer still counts",
    },
    Key {
        name: "web_broker.daily_history",
        kind: "boolean",
        default: "false",
        flag: "--web-broker",
        variable: "KUMIKI_WEB_BROKER_DAILY_HISTORY",
        meaning: "whether `kumiki data update` logs in for daily prices that the vendor does not give",
    },
    Key {
        name: "local_broker.base_url",
        kind: "text",
        default: "this machine's port 18081",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_BASE_URL",
        meaning: "the gateway's address on this machine: scheme, host and port; in production port 18080",
    },
    Key {
        name: "local_broker.dialect",
        kind: "text",
        default: "local-broker-spec",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_DIALECT",
        meaning: "the component that knows the gateway's words: local-broker-spec, local-broker-kabusapi, or the path of a .wasm file",
    },
    Key {
        name: "local_broker.dialects",
        kind: "path",
        default: "beside the program",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_DIALECTS",
        meaning: "where the built-in dialects are",
    },
    Key {
        name: "local_broker.keepalive",
        kind: "text",
        default: "ping",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_KEEPALIVE",
        meaning: "how a push connection is known to live: ping, or read-timeout in the exchange's sessions",
    },
    Key {
        name: "local_broker.read_timeout_secs",
        kind: "whole number",
        default: "120",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_READ_TIMEOUT_SECS",
        meaning: "with read-timeout: seconds without a message after which the engine opens it again",
    },
    Key {
        name: "local_broker.forced_logout",
        kind: "text",
        default: "05:00-06:30",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_FORCED_LOGOUT",
        meaning: "when the gateway logs everybody out, in Japan: no boards are shown then, and its silence is no fault",
    },
    Key {
        name: "local_broker.retry_wait_ms",
        kind: "whole number",
        default: "5000",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_RETRY_WAIT_MS",
        meaning: "between tries to reach the gateway, in milliseconds",
    },
    Key {
        name: "local_broker.reconnect_base_ms",
        kind: "whole number",
        default: "5000",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_RECONNECT_BASE_MS",
        meaning: "before the first try to open the push connection again, in milliseconds; it doubles",
    },
    Key {
        name: "local_broker.request_timeout_ms",
        kind: "whole number",
        default: "5000",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_REQUEST_TIMEOUT_MS",
        meaning: "how long an answer may take, in milliseconds",
    },
    Key {
        name: "local_broker.order_calls_per_second",
        kind: "whole number",
        default: "5",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_ORDER_CALLS_PER_SECOND",
        meaning: "calls of the order kind in a second: 10 for a gateway from version 5.44 on; none is made so far",
    },
    Key {
        name: "local_broker.login_at_start",
        kind: "boolean",
        default: "false",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_LOGIN_AT_START",
        meaning: "whether the engine logs in when it starts",
    },
    Key {
        name: "local_broker.record",
        kind: "boolean",
        default: "false",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_RECORD",
        meaning: "whether the engine keeps subscribed boards and trades in files",
    },
    Key {
        name: "local_broker.record_dir",
        kind: "path",
        default: "recordings in the cache folder",
        flag: "--local-broker",
        variable: "KUMIKI_LOCAL_BROKER_RECORD_DIR",
        meaning: "where they are kept",
    },
];

/// The table of all settings, for people.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Settings of `kumiki serve`\n\nGenerated from `host/cli/src/configuration.rs` by `cargo xtask schemas`. \
         `kumiki serve --config kumiki.toml` reads them; paths are relative to that file. The environment comes \
         before the file, flags before both; a list in the environment has commas. A key that is not listed here \
         is an error.\n\n| key | value | default | environment | flag | meaning |\n|---|---|---|---|---|---|\n",
    );
    for Key { name, kind, default, variable, flag, meaning } in &KEYS {
        let flag = if flag.is_empty() { "none".to_owned() } else { format!("`{flag}`") };
        text.push_str(&format!(
            "| `{name}` | {kind} | {default} | `{variable}` | {flag} | {meaning} |\n"
        ));
    }
    #[cfg(feature = "database")]
    text.push_str(&crate::args::settings_markdown());
    text
}

/// Reads a file of settings.
///
/// # Errors
/// A file that cannot be read; wrong arguments where it is too large or no TOML.
pub(crate) fn read_table(path: &Path) -> Result<Table> {
    let shown = path.display();
    let bytes = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
    if bytes > BYTES_MAX {
        return Err(wrong_arguments(format!(
            "{shown} has {bytes} bytes; a file of settings has at most {BYTES_MAX}"
        )));
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    text.parse().map_err(|error: toml::de::Error| wrong_arguments(format!("{shown}: {error}")))
}

/// What a file says; nothing where it says nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub(crate) port: Option<u16>,
    pub(crate) config_dir: Option<PathBuf>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) allow_origins: Option<Vec<String>>,
    pub(crate) runs_kept: Option<usize>,
    pub(crate) live_engine: Option<bool>,
    pub(crate) on_strategy_stop: Option<OwnOrdersAtEnd>,
    pub(crate) on_strategy_failure: Option<OwnOrdersAtEnd>,
    pub(crate) on_position_mismatch: Option<OnPositionMismatch>,
    pub(crate) notify_command: Option<Vec<String>>,
    pub(crate) strategies: Option<PathBuf>,
    pub(crate) console_port: Option<u16>,
    pub(crate) confirm_above_jpy: Option<u64>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) limits: Option<Vec<LimitChange>>,
    pub(crate) web_broker: WebBrokerSettings,
    pub(crate) local_broker: LocalBrokerSettings,
}

impl Configuration {
    /// Reads a file, and the environment, which comes before it; no file says nothing.
    ///
    /// # Errors
    /// A file that cannot be read, a key that is none, or a value of another kind: wrong arguments.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self> {
        let mut found = path.map_or_else(|| Ok(Self::default()), Self::read_file)?;
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        found.take_environment(variable).map_err(wrong_arguments)?;
        Ok(found)
    }

    /// What happens to orders and runs of strategies with real orders (specification 4, P81).
    pub(crate) fn strategy_rules(&self) -> StrategyRules {
        let usual = StrategyRules::default();
        StrategyRules {
            on_stop: self.on_strategy_stop.unwrap_or(usual.on_stop),
            on_failure: self.on_strategy_failure.unwrap_or(usual.on_failure),
            on_position_mismatch: self.on_position_mismatch.unwrap_or(usual.on_position_mismatch),
        }
    }

    fn read_file(path: &Path) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let found = Self::of_table(&read_table(path)?, folder);
        found.map_err(|why| wrong_arguments(format!("{}: {why}", path.display())))
    }

    /// Takes what the environment says in place of what the file says.
    fn take_environment(
        &mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), String> {
        for Key { name, variable: from, kind, .. } in &KEYS {
            let Some(text) = variable(from) else { continue };
            let Some(text) = text.to_str() else {
                return Err(format!("{from} is no text; it takes a {kind}"));
            };
            let value = value_of(kind, text);
            // Paths of the environment are relative to where the program is started.
            let taken = self.take(name, &value, Path::new(""));
            taken.map_err(|why| format!("{from}: {why}"))?;
        }
        Ok(())
    }

    /// Takes what `--web-broker NAME=VALUE` and `--local-broker NAME=VALUE` say in place of what environment
    /// and file say.
    ///
    /// # Errors
    /// Wrong arguments: a name that is none, or a value of another kind.
    pub(crate) fn take_brokers(&mut self, web: &[String], local: &[String]) -> Result<()> {
        self.take_section(web, ("--web-broker", web_broker::SECTION, "web-broker-v4r10"))?;
        self.take_section(local, ("--local-broker", local_broker::SECTION, "local-broker-kabusapi"))
    }

    fn take_section(
        &mut self,
        given: &[String],
        (flag, section, example): (&str, &str, &str),
    ) -> Result<()> {
        for text in given {
            let wrong = |why: String| wrong_arguments(format!("{flag} {text}: {why}"));
            let Some((field, value)) = text.split_once('=') else {
                return Err(wrong(format!("write NAME=VALUE, like dialect={example}")));
            };
            let name = format!("{section}{field}");
            let kind = KEYS.iter().find(|key| key.name == name).map_or("text", |key| key.kind);
            self.take(&name, &value_of(kind, value), Path::new("")).map_err(wrong)?;
        }
        Ok(())
    }

    fn of_table(table: &Table, folder: &Path) -> Result<Self, String> {
        let mut found = Self::default();
        // That of rankings is read by their service.
        for (section, values) in table.iter().filter(|(section, _)| *section != "rank") {
            let Value::Table(values) = values else { return Err(no_key(section)) };
            if values.is_empty()
                && !KEYS.iter().any(|key| key.name.starts_with(&format!("{section}.")))
            {
                return Err(no_key(section));
            }
            for (name, value) in values {
                found.take(&format!("{section}.{name}"), value, folder)?;
            }
        }
        Ok(found)
    }

    fn take(&mut self, name: &str, value: &Value, folder: &Path) -> Result<(), String> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else { return Err(no_key(name)) };
        let wrong = || format!("{name} is {value}; it takes a {}", key.kind);
        let number = || value.as_integer().ok_or_else(wrong);
        let texts = || -> Result<Vec<String>, String> {
            let texts = value.as_array().ok_or_else(wrong)?.iter();
            texts
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(wrong)
        };
        let path = || value.as_str().map(|path| folder.join(path)).ok_or_else(wrong);
        match name {
            "engine.port" => self.port = Some(number()?.try_into().map_err(|_| wrong())?),
            "engine.config_dir" => self.config_dir = Some(path()?),
            "engine.cache_dir" => self.cache_dir = Some(path()?),
            "engine.allow_origins" => self.allow_origins = Some(texts()?),
            "engine.limits" => {
                let texts: Vec<String> = texts()?;
                let changes: Result<_, _> = texts.iter().map(|text| text.parse()).collect();
                self.limits = Some(changes.map_err(|why| format!("{name}: {why}"))?);
            }
            "engine.runs_kept" => self.runs_kept = Some(number()?.try_into().map_err(|_| wrong())?),
            "engine.live_engine" => self.live_engine = Some(value.as_bool().ok_or_else(wrong)?),
            "engine.on_strategy_stop" => self.on_strategy_stop = Some(one_of(name, value, AT_END)?),
            "engine.on_strategy_failure" => {
                self.on_strategy_failure = Some(one_of(name, value, AT_END)?);
            }
            "engine.on_position_mismatch" => {
                self.on_position_mismatch = Some(one_of(name, value, ON_MISMATCH)?);
            }
            "engine.notify_command" => self.notify_command = Some(texts()?),
            "engine.strategies" => self.strategies = Some(path()?),
            "console.port" => self.console_port = Some(number()?.try_into().map_err(|_| wrong())?),
            "console.confirm_above_jpy" => {
                self.confirm_above_jpy = Some(number()?.try_into().map_err(|_| wrong())?);
            }
            "replay.data" => self.data = Some(path()?),
            other => {
                let taken = if let Some(field) = other.strip_prefix(web_broker::SECTION) {
                    self.web_broker.take(field, value, folder)
                } else if let Some(field) = other.strip_prefix(local_broker::SECTION) {
                    self.local_broker.take(field, value, folder)
                } else {
                    return Err(no_key(other));
                };
                taken.map_err(|what| {
                    let what = what.unwrap_or_else(|| format!("a {}", key.kind));
                    format!("{name} is {value}; it takes {what}")
                })?;
            }
        }
        Ok(())
    }
}

/// What becomes of a strategy's working orders, by its name.
const AT_END: [(&str, OwnOrdersAtEnd); 2] =
    [("cancel-all", OwnOrdersAtEnd::CancelAll), ("keep", OwnOrdersAtEnd::Keep)];
/// What happens where the account holds fewer shares than a strategy, by its name.
const ON_MISMATCH: [(&str, OnPositionMismatch); 2] =
    [("stop", OnPositionMismatch::Stop), ("warn", OnPositionMismatch::Warn)];

/// A setting that is one of two words.
fn one_of<T: Copy>(name: &str, value: &Value, words: [(&str, T); 2]) -> Result<T, String> {
    let found = words.into_iter().find(|(word, _)| value.as_str() == Some(word));
    found.map(|(_, meant)| meant).ok_or_else(|| {
        let [(first, _), (second, _)] = words;
        format!("{name} is {value}; it takes {first} or {second}")
    })
}

/// A text of the environment or a flag as a value of this kind.
fn value_of(kind: &str, text: &str) -> Value {
    match kind {
        // A number that is none is told as one that is not taken.
        "whole number" => text.parse().map_or_else(|_| text.into(), Value::Integer),
        "boolean" => text.parse().map_or_else(|_| text.into(), Value::Boolean),
        "list of texts" => text.split(',').map(str::trim).collect::<Vec<_>>().into(),
        _ => text.into(),
    }
}

/// A key that is none, with the one that is most like it.
fn no_key(name: &str) -> String {
    let likeness = |key: &&Key| (strsim::jaro_winkler(name, key.name) * 1e9) as u64;
    let nearest = KEYS.iter().max_by_key(likeness).map_or("", |key| key.name);
    format!(
        "there is no setting `{name}`; did you mean `{nearest}`? docs/reference/configuration.md lists them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Configuration, String> {
        let table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        Configuration::of_table(&table, Path::new("/home/me"))
    }

    /// The value of a setting in a section of a file, as a text.
    fn value_in(section: &'static str, name: &str) -> &'static str {
        let line = section.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        line.unwrap().trim_matches('"')
    }

    #[test]
    fn every_key_is_read() {
        let text = "[engine]\nport = 0\nconfig_dir = \"c\"\ncache_dir = \"/d\"\nruns_kept = 5\n\
                    allow_origins = [\"http://localhost:5173\"]\nstrategies = \"s\"\n\
                    live_engine = false\non_strategy_stop = \"keep\"\n\
                    on_strategy_failure = \"cancel-all\"\non_position_mismatch = \"warn\"\n\
                    notify_command = [\"n\", \"-q\"]\n\
                    limits = [\"fuel=5\"]\n[console]\nport = 1\nconfirm_above_jpy = 5\n[replay]\ndata = \"../data\"\n";
        let brokers = [web_broker::tests::EVERY_KEY, local_broker::tests::EVERY_KEY];
        let text = format!("{text}{}", brokers.concat());
        let text = text.as_str();
        let path = |text: &str| Some(PathBuf::from(text));
        let expected = Configuration {
            port: Some(0),
            config_dir: path("/home/me/c"),
            cache_dir: path("/d"),
            allow_origins: Some(vec!["http://localhost:5173".to_owned()]),
            runs_kept: Some(5),
            live_engine: Some(false),
            on_strategy_stop: Some(OwnOrdersAtEnd::Keep),
            on_strategy_failure: Some(OwnOrdersAtEnd::CancelAll),
            on_position_mismatch: Some(OnPositionMismatch::Warn),
            notify_command: Some(vec!["n".to_owned(), "-q".to_owned()]),
            strategies: path("/home/me/s"),
            console_port: Some(1),
            confirm_above_jpy: Some(5),
            data: path("/home/me/../data"),
            limits: Some(vec!["fuel=5".parse().unwrap()]),
            web_broker: web_broker::tests::every_key(Path::new("/home/me")),
            local_broker: local_broker::tests::every_key(Path::new("/home/me")),
        };
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse("[rank]\ntimeout = \"5s\""), Ok(Configuration::default()));
        assert_eq!(text.matches(" = ").count(), KEYS.len(), "the text above has every key");
        assert!(KEYS.iter().all(|key| markdown().contains(key.name)));
    }

    #[test]
    fn every_key_has_a_variable_that_comes_before_the_file() {
        let set = |name: &str| {
            let text = match name {
                "KUMIKI_PORT" => "0",
                "KUMIKI_RUNS_KEPT" => "7",
                "KUMIKI_LIVE_ENGINE" => "false",
                "KUMIKI_ON_STRATEGY_STOP" => "keep",
                "KUMIKI_ON_STRATEGY_FAILURE" => "cancel-all",
                "KUMIKI_ON_POSITION_MISMATCH" => "warn",
                "KUMIKI_NOTIFY_COMMAND" => "n,-q",
                "KUMIKI_CONSOLE_PORT" => "0",
                "KUMIKI_CONSOLE_CONFIRM_ABOVE_JPY" => "5",
                "KUMIKI_LIMITS" => "fuel=5,log=1MiB",
                "KUMIKI_ALLOW_ORIGINS" => "http://a:1, http://b:2",
                _ => {
                    let name = name.strip_prefix("KUMIKI_").unwrap();
                    let of = |section: &str, keys| {
                        Some(value_in(keys, &name.strip_prefix(section)?.to_ascii_lowercase()))
                    };
                    of("WEB_BROKER_", web_broker::tests::EVERY_KEY)
                        .or_else(|| of("LOCAL_BROKER_", local_broker::tests::EVERY_KEY))
                        .unwrap_or(name)
                }
            };
            Some(OsString::from(text))
        };
        let mut found = parse("[engine]\nport = 5\nruns_kept = 5\n[replay]\ndata = \"d\"").unwrap();
        found.take_environment(set).unwrap();
        let path = |text: &str| Some(PathBuf::from(text));
        let expected = Configuration {
            port: Some(0),
            config_dir: path("CONFIG_DIR"),
            cache_dir: path("CACHE"),
            allow_origins: Some(vec!["http://a:1".to_owned(), "http://b:2".to_owned()]),
            runs_kept: Some(7),
            live_engine: Some(false),
            on_strategy_stop: Some(OwnOrdersAtEnd::Keep),
            on_strategy_failure: Some(OwnOrdersAtEnd::CancelAll),
            on_position_mismatch: Some(OnPositionMismatch::Warn),
            notify_command: Some(vec!["n".to_owned(), "-q".to_owned()]),
            strategies: path("STRATEGIES"),
            console_port: Some(0),
            confirm_above_jpy: Some(5),
            data: path("DATA"),
            limits: Some(vec!["fuel=5".parse().unwrap(), "log=1MiB".parse().unwrap()]),
            web_broker: web_broker::tests::every_key(Path::new("")),
            local_broker: local_broker::tests::every_key(Path::new("")),
        };
        assert_eq!(found, expected);
        assert!(KEYS.iter().all(|key| markdown().contains(key.variable)));
        let wrong = |name: &str| (name == "KUMIKI_PORT").then(|| OsString::from("many"));
        let told = found.take_environment(wrong).unwrap_err();
        assert!(told.contains("KUMIKI_PORT: engine.port is \"many\"; it takes a whole"), "{told}");
    }

    #[test]
    fn p81_a_stop_cancels_a_failure_keeps_and_a_mismatch_stops() {
        let rules = parse("").unwrap().strategy_rules();
        assert_eq!(rules, StrategyRules::default());
        assert_eq!(
            (rules.on_stop, rules.on_failure),
            (OwnOrdersAtEnd::CancelAll, OwnOrdersAtEnd::Keep)
        );
        assert_eq!(rules.on_position_mismatch, OnPositionMismatch::Stop);
        let text = "[engine]\non_strategy_stop = \"keep\"\non_strategy_failure = \"cancel-all\"\n\
                    on_position_mismatch = \"warn\"";
        let rules = parse(text).unwrap().strategy_rules();
        assert_eq!(
            (rules.on_stop, rules.on_failure),
            (OwnOrdersAtEnd::Keep, OwnOrdersAtEnd::CancelAll)
        );
        assert_eq!(rules.on_position_mismatch, OnPositionMismatch::Warn);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        for (text, why) in [
            ("[engine]\nprot = 1", "no setting `engine.prot`; did you mean `engine.port`?"),
            ("[replays]\ndata = \"d\"", "no setting `replays.data`; did you mean `replay.data`?"),
            ("port = 1", "no setting `port`"),
            ("[nothing]", "no setting `nothing`"),
            ("[engine]\nport = \"1\"", "engine.port is \"1\"; it takes a whole number"),
            ("[engine]\nport = 65536", "engine.port is 65536"),
            ("[engine]\nruns_kept = -1", "engine.runs_kept is -1"),
            ("[engine]\nallow_origins = [1]", "it takes a list of texts"),
            ("[engine]\non_strategy_stop = \"cancel\"", "it takes cancel-all or keep"),
            ("[engine]\non_position_mismatch = true", "it takes stop or warn"),
            ("[engine", "TOML"),
            (
                "[web_broker]\norder_phase = \"O4\"",
                "web_broker.order_phase is \"O4\"; it takes O0, O1, O2 or O3",
            ),
            ("[web_broker]\nconnect_timeout_ms = 1", "it takes a whole number from 100 to 600000"),
            ("[web_broker]\nenvironment = \"test\"", "it takes demo or prod"),
            ("[web_broker]\nbase_uri = \"x\"", "did you mean `web_broker.base_url`?"),
            ("[local_broker]\nbase_uri = \"x\"", "did you mean `local_broker.base_url`?"),
            ("[local_broker]\nkeepalive = \"pong\"", "it takes ping or read-timeout"),
            ("[local_broker]\nforced_logout = \"5-6\"", "it takes a time of the day in Japan like"),
            ("[local_broker]\nretry_wait_ms = 0", "it takes a whole number from 1 to 600000"),
            ("[local_broker]\nrecord = 1", "local_broker.record is 1; it takes true or false"),
            ("[local_broker]\ndialects = 1", "local_broker.dialects is 1; it takes a path"),
            (
                "[local_broker]\nrecord_dir = \"\"",
                "local_broker.record_dir is \"\"; it takes a name or a path that is not empty; leave it out",
            ),
            (
                "[local_broker]\ndialect = \" \"",
                "local_broker.dialect is \" \"; it takes a name or a path",
            ),
            ("[local_broker]\ndialects = \"\"", "local_broker.dialects is \"\"; it takes a name"),
            (
                "[web_broker]\ndialect = \"\"",
                "web_broker.dialect is \"\"; it takes a name or a path",
            ),
            ("[web_broker]\ndialects = \"\"", "web_broker.dialects is \"\"; it takes a name"),
            // P44: production is no matter of a file.
            ("[local_broker]\nenvironment = \"prod\"", "no setting `local_broker.environment`"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
