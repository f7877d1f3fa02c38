//! `[local_broker]` of the settings: where the gateway is, in which dialect it is spoken to, and how long
//! things may take (specification 4, P43, P44).

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use engine::{ForcedLogout, KeepAlive, LocalBroker, LocalBrokerConfig, StartLine};
use toml::Value;

use crate::dialects::Dialect;
use crate::settings::{self, Taken};

/// What the names of these settings begin with.
pub(crate) const SECTION: &str = "local_broker.";

/// Only both of these together reach the real market; no file can.
const ALLOW_PROD: (&str, &str) = ("LOCALBROKER_ALLOW_PROD", "1");
/// See [`ALLOW_PROD`].
const ENVIRONMENT: (&str, &str) = ("LOCALBROKER_ENV", "prod");
/// What asks for the environment that is used anyway (specification 1, "What the service does").
const VERIFICATION: &str = "verification";
/// The dialect where no other is asked for.
const DIALECT: &str = "local-broker-spec";
/// Where boards are recorded in the cache folder, where no other folder is asked for.
const RECORD_FOLDER: &str = "recordings";

/// Seconds without a message.
const SECS: (i64, i64) = (1, 3_600);
/// Milliseconds of a wait, or of a request.
const MILLIS: (i64, i64) = (1, 600_000);

/// Order-type calls in a second.
const ORDER_CALLS: (i64, i64) = (1, 100);

/// What file, environment and flags say; nothing where they say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LocalBrokerSettings {
    base_url: Option<String>,
    dialect: Option<Dialect>,
    dialects: Option<PathBuf>,
    keep_alive: Option<KeepAlive>,
    read_timeout_secs: Option<u64>,
    forced_logout: Option<ForcedLogout>,
    retry_wait_ms: Option<u64>,
    reconnect_base_ms: Option<u64>,
    request_timeout_ms: Option<u64>,
    order_calls_per_second: Option<u32>,
    login_at_start: Option<bool>,
    record: Option<bool>,
    record_dir: Option<PathBuf>,
}

impl LocalBrokerSettings {
    /// Takes a setting. Paths are relative to `folder`.
    ///
    /// # Errors
    /// What it takes; none where that is what its kind says.
    pub(crate) fn take(&mut self, name: &str, value: &Value, folder: &Path) -> Taken<()> {
        let text = || settings::text(value);
        let named = || settings::name(value);
        let millis = || settings::number(value, MILLIS);
        match name {
            "base_url" => self.base_url = Some(text()?.to_owned()),
            "dialect" => self.dialect = Some(Dialect::of(named()?, folder)),
            "dialects" => self.dialects = Some(folder.join(named()?)),
            "keepalive" => {
                self.keep_alive = Some(match text()? {
                    "ping" => KeepAlive::Ping,
                    "read-timeout" => KeepAlive::ReadTimeout,
                    _ => return Err(Some("ping or read-timeout".to_owned())),
                });
            }
            "read_timeout_secs" => self.read_timeout_secs = Some(settings::number(value, SECS)?),
            "forced_logout" => {
                let window = ForcedLogout::parse(text()?);
                let like = || Some("a time of the day in Japan like 05:00-06:30".to_owned());
                self.forced_logout = Some(window.ok_or_else(like)?);
            }
            "retry_wait_ms" => self.retry_wait_ms = Some(millis()?),
            "reconnect_base_ms" => self.reconnect_base_ms = Some(millis()?),
            "request_timeout_ms" => self.request_timeout_ms = Some(millis()?),
            "order_calls_per_second" => {
                let calls = settings::number(value, ORDER_CALLS)?;
                self.order_calls_per_second = Some(u32::try_from(calls).unwrap_or(u32::MAX));
            }
            "login_at_start" => self.login_at_start = Some(settings::boolean(value)?),
            "record" => self.record = Some(settings::boolean(value)?),
            "record_dir" => self.record_dir = Some(folder.join(named()?)),
            _ => return Err(None),
        }
        Ok(())
    }

    /// What the engine is started with; `standalone`: a person may sit at the terminal of this process.
    ///
    /// # Errors
    /// It cannot be found out where this program is.
    pub(crate) fn local_broker(&self, start: &StartLine, standalone: bool) -> Result<LocalBroker> {
        let is_set =
            |(name, wanted): (&str, &str)| env::var_os(name).is_some_and(|value| value == wanted);
        let (name, prod) = ENVIRONMENT;
        if let Some(value) = env::var_os(name).filter(|value| is_misspelt(value)) {
            tracing::warn!(
                ?value,
                "{name} is neither {prod} nor {VERIFICATION}; the gateway's verification environment is used"
            );
        }
        self.local_broker_with(start, standalone, is_set)
    }

    fn local_broker_with(
        &self,
        start: &StartLine,
        standalone: bool,
        is_set: impl Fn((&str, &str)) -> bool,
    ) -> Result<LocalBroker> {
        let usual = LocalBrokerConfig::default();
        let millis =
            |given: Option<u64>, usual: Duration| given.map_or(usual, Duration::from_millis);
        let config = LocalBrokerConfig {
            base_url: self.base_url.clone(),
            production_allowed: is_set(ALLOW_PROD),
            production_wanted: is_set(ENVIRONMENT),
            keep_alive: self.keep_alive.unwrap_or(usual.keep_alive),
            read_timeout: self.read_timeout_secs.map_or(usual.read_timeout, Duration::from_secs),
            forced_logout: self.forced_logout.unwrap_or(usual.forced_logout),
            retry_wait: millis(self.retry_wait_ms, usual.retry_wait),
            reconnect_base: millis(self.reconnect_base_ms, usual.reconnect_base),
            request_timeout: millis(self.request_timeout_ms, usual.request_timeout),
            order_calls_per_second: self
                .order_calls_per_second
                .unwrap_or(usual.order_calls_per_second),
            login_at_start: self.login_at_start.unwrap_or(usual.login_at_start),
        };
        let in_cache = || start.cache_dir.join(RECORD_FOLDER);
        let record = self.record.unwrap_or(false);
        Ok(LocalBroker {
            config,
            dialect: Dialect::file(self.dialect.as_ref(), DIALECT, self.dialects.as_deref())?,
            dev_login_allowed: start.dev_login_allowed,
            asks_in_terminal: standalone,
            record: record.then(|| self.record_dir.clone().unwrap_or_else(in_cache)),
        })
    }
}

/// Whether a value of [`ENVIRONMENT`] may be meant otherwise than it is taken: all but one are the verification
/// environment (specification 1, "Capabilities entry").
fn is_misspelt(value: &OsStr) -> bool {
    !value.is_empty() && value != ENVIRONMENT.1 && value != VERIFICATION
}

#[cfg(test)]
pub(crate) mod tests {
    use domain::Secret;

    use super::*;

    pub(crate) const EVERY_KEY: &str = "[local_broker]\nbase_url = \"http://127.0.0.1:9\"\n\
        dialect = \"local-broker-kabusapi\"\ndialects = \"ds\"\nkeepalive = \"read-timeout\"\n\
        read_timeout_secs = 60\nforced_logout = \"04:00-07:00\"\nretry_wait_ms = 10\n\
        reconnect_base_ms = 20\nrequest_timeout_ms = 30\norder_calls_per_second = 7\n\
        login_at_start = true\nrecord = true\nrecord_dir = \"boards\"\n";

    pub(crate) fn every_key(folder: &Path) -> LocalBrokerSettings {
        LocalBrokerSettings {
            base_url: Some("http://127.0.0.1:9".to_owned()),
            dialect: Some(Dialect::BuiltIn("local-broker-kabusapi".to_owned())),
            dialects: Some(folder.join("ds")),
            keep_alive: Some(KeepAlive::ReadTimeout),
            read_timeout_secs: Some(60),
            forced_logout: ForcedLogout::parse("04:00-07:00"),
            retry_wait_ms: Some(10),
            reconnect_base_ms: Some(20),
            request_timeout_ms: Some(30),
            order_calls_per_second: Some(7),
            login_at_start: Some(true),
            record: Some(true),
            record_dir: Some(folder.join("boards")),
        }
    }

    fn start() -> StartLine {
        StartLine {
            port: None,
            token: Secret::from("0123456789abcdef".to_owned()),
            config_dir: "c".into(),
            cache_dir: "d".into(),
            dev_login_allowed: true,
        }
    }

    #[test]
    fn settings_become_what_the_venue_is_started_with() {
        let made = every_key(Path::new("/f")).local_broker_with(&start(), true, |_| false).unwrap();
        assert_eq!(made.dialect, Path::new("/f/ds/local-broker-kabusapi.wasm"));
        let config = made.config;
        assert_eq!(config.base_url.as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(config.keep_alive, KeepAlive::ReadTimeout);
        assert_eq!(config.read_timeout, Duration::from_secs(60));
        assert_eq!(Some(config.forced_logout), ForcedLogout::parse("04:00-07:00"));
        let waits = [config.retry_wait, config.reconnect_base, config.request_timeout];
        assert_eq!(waits, [10, 20, 30].map(Duration::from_millis));
        assert_eq!(config.order_calls_per_second, 7);
        assert!(config.login_at_start && made.dev_login_allowed && made.asks_in_terminal);
        assert_eq!(made.record.as_deref(), Some(Path::new("/f/boards")));
    }

    /// P43: the defaults; nothing is recorded, and nobody logs in at start (P45).
    #[test]
    fn p43_without_settings_it_is_the_verification_port_in_the_specs_dialect() {
        let settings = LocalBrokerSettings::default();
        let made = settings.local_broker_with(&start(), false, |_| false).unwrap();
        assert!(made.dialect.ends_with("dialects/local-broker-spec.wasm"), "{:?}", made.dialect);
        let config = made.config;
        assert_eq!((config.base_url, config.keep_alive), (None, KeepAlive::Ping));
        assert_eq!(config.read_timeout, Duration::from_secs(120));
        assert_eq!(Some(config.forced_logout), ForcedLogout::parse("05:00-06:30"));
        let waits = [config.retry_wait, config.reconnect_base, config.request_timeout];
        assert_eq!(waits, [Duration::from_secs(5); 3]);
        assert_eq!(config.order_calls_per_second, 5);
        assert!(!config.login_at_start && !made.asks_in_terminal);
        assert_eq!(made.record, None);
        let records = LocalBrokerSettings { record: Some(true), ..LocalBrokerSettings::default() };
        let made = records.local_broker_with(&start(), false, |_| false).unwrap();
        assert_eq!(made.record.as_deref(), Some(Path::new("d/recordings")));
    }

    /// P44: two variables, each with one value, and no key of the file.
    #[test]
    fn p44_only_the_environment_asks_for_production() {
        let made = |set: &'static [(&str, &str)]| {
            let settings = every_key(Path::new("/f"));
            let is_set = |wanted: (&str, &str)| set.contains(&wanted);
            let config = settings.local_broker_with(&start(), false, is_set).unwrap().config;
            (config.production_allowed, config.production_wanted)
        };
        let (allow, prod) = (("LOCALBROKER_ALLOW_PROD", "1"), ("LOCALBROKER_ENV", "prod"));
        assert_eq!(made(&[]), (false, false));
        const ALLOW: &[(&str, &str)] = &[("LOCALBROKER_ALLOW_PROD", "1")];
        const BOTH: &[(&str, &str)] =
            &[("LOCALBROKER_ALLOW_PROD", "1"), ("LOCALBROKER_ENV", "prod")];
        assert_eq!((ALLOW_PROD, ENVIRONMENT), (allow, prod));
        assert_eq!(made(ALLOW), (true, false));
        assert_eq!(made(BOTH), (true, true));
        let misspelt = ["", "prod", "verification", "PROD", "production", "x", " prod"];
        let misspelt = misspelt.map(|value| is_misspelt(OsStr::new(value)));
        assert_eq!(misspelt, [false, false, false, true, true, true, true]);
        for name in ["environment", "env", "allow_prod", "production"] {
            let taken = LocalBrokerSettings::default().take(name, &"prod".into(), Path::new(""));
            assert_eq!(taken, Err(None), "{name}");
        }
    }
}
