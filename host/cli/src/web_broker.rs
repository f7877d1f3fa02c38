//! `[web_broker]` of the settings: where the broker is, in which dialect it is spoken to, and how orders
//! are handled (specification 4, P1).

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use engine::{
    DeskRules, Environment, OrderPhase, PasswordRules, StartLine, WebBroker, WebBrokerConfig,
    usual_dialect,
};
use toml::Value;

use crate::dialects::Dialect;
use crate::settings::{self, Taken};

/// What the names of these settings begin with.
pub(crate) const SECTION: &str = "web_broker.";

/// The variable without which no order reaches the market (specification 2, "What the service does").
const ALLOW_PROD: &str = "WEBBROKER_ALLOW_PROD";

/// Seconds of a lock, or of idleness.
const SECS: (i64, i64) = (1, 86_400);
/// Wrong passwords in a row.
const FAILURES: (i64, i64) = (1, 100);
/// Seconds until what no list has is not at the broker.
const SETTLE_SECS: (i64, i64) = (1, 3_600);
/// Milliseconds of a connection, or of an answer.
const MILLIS: (i64, i64) = (100, 600_000);

/// What file, environment and flags say; nothing where they say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WebBrokerSettings {
    environment: Option<Environment>,
    base_url: Option<String>,
    dialect: Option<Dialect>,
    dialects: Option<PathBuf>,
    order_phase: Option<OrderPhase>,
    lockout_secs: Option<u64>,
    max_failures: Option<u32>,
    idle_secs: Option<u64>,
    settle_secs: Option<u64>,
    connect_ms: Option<u64>,
    answer_ms: Option<u64>,
    daily_history: Option<bool>,
}

impl WebBrokerSettings {
    /// Takes a setting. Paths are relative to `folder`.
    ///
    /// # Errors
    /// What it takes; none where that is what its kind says.
    pub(crate) fn take(&mut self, name: &str, value: &Value, folder: &Path) -> Taken<()> {
        let text = || settings::text(value);
        let number = |limits| settings::number(value, limits);
        match name {
            "environment" => {
                self.environment = Some(match text()? {
                    "demo" => Environment::Demo,
                    "prod" => Environment::Prod,
                    _ => return Err(Some("demo or prod".to_owned())),
                });
            }
            "base_url" => self.base_url = Some(text()?.to_owned()),
            "dialect" => self.dialect = Some(Dialect::of(settings::name(value)?, folder)),
            "dialects" => self.dialects = Some(folder.join(settings::name(value)?)),
            "order_phase" => {
                let phase = text()?.parse();
                self.order_phase = Some(phase.map_err(|_| Some("O0, O1, O2 or O3".to_owned()))?);
            }
            "second_password_lockout_secs" => self.lockout_secs = Some(number(SECS)?),
            "second_password_max_failures" => {
                self.max_failures = Some(u32::try_from(number(FAILURES)?).unwrap_or(u32::MAX));
            }
            "second_password_idle_secs" => self.idle_secs = Some(number(SECS)?),
            "unknown_settle_secs" => self.settle_secs = Some(number(SETTLE_SECS)?),
            "connect_timeout_ms" => self.connect_ms = Some(number(MILLIS)?),
            "daily_history" => self.daily_history = Some(settings::boolean(value)?),
            "answer_timeout_ms" => self.answer_ms = Some(number(MILLIS)?),
            _ => return Err(None),
        }
        Ok(())
    }

    /// What the engine is started with.
    ///
    /// # Errors
    /// It cannot be found out where this program is.
    pub(crate) fn web_broker(&self, start: &StartLine) -> Result<WebBroker> {
        let usual = DeskRules::default();
        let secs = |given: Option<u64>, usual: Duration| given.map_or(usual, Duration::from_secs);
        let password = PasswordRules {
            idle: secs(self.idle_secs, usual.password.idle),
            max_failures: self.max_failures.unwrap_or(usual.password.max_failures),
            lockout: secs(self.lockout_secs, usual.password.lockout),
        };
        let rules = DeskRules {
            phase: self.order_phase.unwrap_or_default(),
            password,
            unknown_settle: secs(self.settle_secs, usual.unknown_settle),
        };
        let broker = self.connection(&start.config_dir, &start.cache_dir);
        let dev_login_allowed = start.dev_login_allowed;
        let usual = self.usual_dialect();
        let dialect = Dialect::file(self.dialect.as_ref(), usual, self.dialects.as_deref())?;
        Ok(WebBroker { broker, rules, dialect, dev_login_allowed })
    }

    /// The dialect where no other is asked for (specification 4, P1).
    fn usual_dialect(&self) -> &'static str {
        usual_dialect(self.base_url.as_deref())
    }

    /// Where the broker is, with the folder of the account's lock and that of the cache.
    pub(crate) fn connection(&self, config_dir: &Path, cache_dir: &Path) -> WebBrokerConfig {
        WebBrokerConfig {
            environment: self.environment.unwrap_or_default(),
            base_url: self.base_url.clone(),
            dialect: self.dialect.as_ref().map_or(self.usual_dialect(), Dialect::name).to_owned(),
            production_allowed: env::var_os(ALLOW_PROD).is_some_and(|value| value == "1"),
            connect_timeout: Duration::from_millis(self.connect_ms.unwrap_or(10_000)),
            answer_timeout: Duration::from_millis(self.answer_ms.unwrap_or(40_000)),
            state_dir: config_dir.to_owned(),
            cache_dir: cache_dir.to_owned(),
        }
    }

    /// Whether the daily job asks the broker for history.
    #[cfg(feature = "database")]
    pub(crate) fn daily_history(&self) -> bool {
        self.daily_history.unwrap_or(false)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use domain::Secret;

    use super::*;

    pub(crate) const EVERY_KEY: &str = "[web_broker]\nenvironment = \"prod\"\nbase_url = \"https://a/\"\n\
        dialect = \"d/mine.wasm\"\ndialects = \"ds\"\norder_phase = \"O1\"\n\
        second_password_lockout_secs = 60\nsecond_password_max_failures = 5\n\
        second_password_idle_secs = 90\nunknown_settle_secs = 7\nconnect_timeout_ms = 1000\n\
        answer_timeout_ms = 2000\ndaily_history = true\n";

    pub(crate) fn every_key(folder: &Path) -> WebBrokerSettings {
        WebBrokerSettings {
            environment: Some(Environment::Prod),
            base_url: Some("https://a/".to_owned()),
            dialect: Some(Dialect::File(folder.join("d/mine.wasm"))),
            dialects: Some(folder.join("ds")),
            order_phase: Some(OrderPhase::O1),
            lockout_secs: Some(60),
            max_failures: Some(5),
            idle_secs: Some(90),
            settle_secs: Some(7),
            connect_ms: Some(1_000),
            answer_ms: Some(2_000),
            daily_history: Some(true),
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
    fn settings_become_what_the_desk_is_started_with() {
        let made = every_key(Path::new("/f")).web_broker(&start()).unwrap();
        assert_eq!(made.dialect, Path::new("/f/d/mine.wasm"));
        assert_eq!(made.rules.phase, OrderPhase::O1);
        let secs = |secs| Duration::from_secs(secs);
        let password = PasswordRules { idle: secs(90), max_failures: 5, lockout: secs(60) };
        assert_eq!((made.rules.password, made.rules.unknown_settle), (password, secs(7)));
        assert_eq!((made.broker.connect_timeout, made.broker.answer_timeout), (secs(1), secs(2)));
        assert_eq!(made.broker.state_dir, Path::new("c"));
        assert_eq!(made.broker.cache_dir, Path::new("d"));
        assert!(made.dev_login_allowed);
    }

    /// P1: without `dialect` the host decides; the vendor's own hosts never get the spec's.
    #[test]
    fn the_host_decides_the_dialect() {
        let dialect = |environment, base_url: Option<&str>| {
            let base_url = base_url.map(str::to_owned);
            let settings =
                WebBrokerSettings { environment, base_url, ..WebBrokerSettings::default() };
            let made = settings.web_broker(&start()).unwrap();
            made.dialect.file_name().unwrap().to_string_lossy().into_owned()
        };
        for url in ["http://127.0.0.1:9000/e/", "http://localhost/", "https://[::1]:9/"] {
            assert_eq!(dialect(None, Some(url)), "web-broker-spec.wasm", "{url}");
        }
        let (demo, prod) = (Some(Environment::Demo), Some(Environment::Prod));
        for (environment, url) in [
            (None, None),
            (demo, Some("https://demo-kabuka.e-shiten.jp/e_api_v4r8/")),
            (prod, None),
            (prod, Some("https://kabuka.e-shiten.jp/e_api_v4r8/")),
            (None, Some("https://localhost.example.com/")),
        ] {
            let found = dialect(environment, url);
            assert!(found.starts_with("web-broker-v"), "{environment:?} {url:?}: {found}");
        }
    }

    /// P1: the defaults.
    #[test]
    fn without_settings_it_is_the_demo_in_the_vendors_newest_dialect() {
        let made = WebBrokerSettings::default().web_broker(&start()).unwrap();
        assert!(made.dialect.ends_with("dialects/web-broker-v4r10.wasm"), "{:?}", made.dialect);
        assert_eq!(made.broker.dialect, "web-broker-v4r10");
        assert_eq!((made.broker.environment, made.broker.base_url), (Environment::Demo, None));
        assert_eq!(made.rules.phase, OrderPhase::O3);
        let password = made.rules.password;
        assert_eq!((password.idle.as_secs(), password.lockout.as_secs()), (1_800, 1_800));
        assert_eq!((password.max_failures, made.rules.unknown_settle.as_secs()), (3, 5));
        assert_eq!(made.broker.answer_timeout, Duration::from_secs(40));
    }

    /// P1: a server on this machine is spoken to in the dialect of the specification.
    #[test]
    fn on_this_machine_it_is_the_specs_dialect() {
        for base_url in ["http://127.0.0.1:1", "https://localhost/x/", "http://[::1]:5/"] {
            let base_url = Some(base_url.to_owned());
            let settings = WebBrokerSettings { base_url, ..WebBrokerSettings::default() };
            let made = settings.web_broker(&start()).unwrap();
            assert!(made.dialect.ends_with("web-broker-spec.wasm"), "{:?}", made.dialect);
        }
    }
}
