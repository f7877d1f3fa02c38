//! `[local_broker]` of `kumiki.toml` as types, and the allowed addresses of the gateway.
//!
//! Specification 4, P43, P44.

use std::fmt;
use std::time::Duration;

use domain::TsNanos;
use domain::time::NANOS_PER_MINUTE;
use http_client::{Url, is_loopback};
use thiserror::Error;

use super::limits::ORDER_CALLS_PER_SECOND;

/// The port of the verification environment (specification 1, "What the service does").
pub const VERIFICATION_PORT: u16 = 18_081;
/// The port of the real market.
pub const PRODUCTION_PORT: u16 = 18_080;

/// How a dead push connection is found (specification 4, P43).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// By pings without an answer.
    #[default]
    Ping,
    /// By silence in the exchange's sessions.
    ReadTimeout,
}

/// When the gateway logs out all programs, in minutes of the Japanese day (specification 4, P43).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForcedLogout {
    from: u16,
    to: u16,
}

impl Default for ForcedLogout {
    fn default() -> Self {
        Self { from: 5 * 60, to: 6 * 60 + 30 }
    }
}

impl ForcedLogout {
    /// Reads `05:00-06:30`; a window may pass midnight.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let minutes = |text: &str| {
            let (hours, minutes) = text.split_once(':')?;
            let is_number =
                |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
            if !is_number(hours) || !is_number(minutes) {
                return None;
            }
            let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let (from, to) = text.split_once('-')?;
        let window = Self { from: minutes(from)?, to: minutes(to)? };
        (window.from != window.to).then_some(window)
    }

    /// A minute half a day away from a time, for tests: the gateway logs nothing out then.
    #[must_use]
    pub fn away_from(time: TsNanos) -> Self {
        const DAY_MINUTES: u64 = 24 * 60;
        let minute = time.jst_nanos_of_day() / NANOS_PER_MINUTE + DAY_MINUTES / 2;
        // Below 1,440.
        let of_day = |minute: u64| (minute % DAY_MINUTES) as u16;
        Self { from: of_day(minute), to: of_day(minute + 1) }
    }

    /// Whether a time is inside; the end of the window is outside.
    #[must_use]
    pub fn contains(self, time: TsNanos) -> bool {
        let minute = time.jst_nanos_of_day() / NANOS_PER_MINUTE;
        let (from, to) = (u64::from(self.from), u64::from(self.to));
        if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
    }

    /// The gateway's day of a time, in days since 1970 in Japan. It begins with the forced logout.
    #[must_use]
    pub fn gateway_day(self, time: TsNanos) -> u64 {
        let minute = time.jst_nanos_of_day() / NANOS_PER_MINUTE;
        time.jst_day().saturating_sub(u64::from(minute < u64::from(self.to)))
    }
}

/// As [`ForcedLogout::parse`] reads it.
impl fmt::Display for ForcedLogout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

/// The gateway's address and the rules for its connection (specification 4, P43, P44).
#[derive(Debug, Clone)]
pub struct LocalBrokerConfig {
    /// `base_url`: scheme, host and port; `None`: this machine, port 18081, or 18080 in production.
    pub base_url: Option<String>,
    /// `LOCALBROKER_ALLOW_PROD` is `1`.
    pub production_allowed: bool,
    /// `LOCALBROKER_ENV` is `prod`.
    pub production_wanted: bool,
    /// `keepalive`
    pub keep_alive: KeepAlive,
    /// `read_timeout_secs`
    pub read_timeout: Duration,
    /// `forced_logout`
    pub forced_logout: ForcedLogout,
    /// `retry_wait_ms`: between tries to get a token, or after a refused connection.
    pub retry_wait: Duration,
    /// `reconnect_base_ms`: before the first try to open the stream again; it doubles.
    pub reconnect_base: Duration,
    /// `request_timeout_ms`
    pub request_timeout: Duration,
    /// `order_calls_per_second`
    pub order_calls_per_second: u32,
    /// `login_at_start`
    pub login_at_start: bool,
}

impl Default for LocalBrokerConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            production_allowed: false,
            production_wanted: false,
            keep_alive: KeepAlive::default(),
            read_timeout: Duration::from_secs(120),
            forced_logout: ForcedLogout::default(),
            retry_wait: Duration::from_secs(5),
            reconnect_base: Duration::from_secs(5),
            request_timeout: Duration::from_secs(5),
            order_calls_per_second: ORDER_CALLS_PER_SECOND,
            login_at_start: false,
        }
    }
}

/// Why the address is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The production environment is wanted, and not allowed.
    #[error(
        "LOCALBROKER_ENV=prod means the real market; set LOCALBROKER_ALLOW_PROD=1 too, or remove \
         LOCALBROKER_ENV"
    )]
    ProductionNotAllowed,
    /// The address is that of the production environment.
    #[error(
        "port {PRODUCTION_PORT} is the real market's; set LOCALBROKER_ALLOW_PROD=1 and \
         LOCALBROKER_ENV=prod to use it, or take port {VERIFICATION_PORT}"
    )]
    ProductionPort,
    /// The address is not allowed.
    #[error(
        "base_url {0}; write it like http://127.0.0.1:{VERIFICATION_PORT}, on this machine, \
         without a path"
    )]
    Address(String),
}

/// The checked address of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether it is the real market's (specification 1, "Capabilities entry").
    pub is_production: bool,
}

impl Endpoint {
    /// Checks the address of the gateway.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn of(config: &LocalBrokerConfig) -> Result<Self, ConfigError> {
        if config.production_wanted && !config.production_allowed {
            return Err(ConfigError::ProductionNotAllowed);
        }
        let is_production = config.production_wanted && config.production_allowed;
        let usual = if is_production { PRODUCTION_PORT } else { VERIFICATION_PORT };
        let Some(text) = &config.base_url else {
            return Ok(Self { host: "localhost".to_owned(), port: usual, is_production });
        };
        let wrong = |what: &str| Err(ConfigError::Address(what.to_owned()));
        let Ok(url) = Url::parse(text) else { return wrong("is not an address") };
        if url.scheme() != "http" {
            return wrong("does not begin with http://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("holds a name or a password");
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return wrong("has a path");
        }
        if !is_loopback(&url) {
            return wrong("is not on this machine");
        }
        // The parser leaves the scheme's own port out.
        let has_port = text.trim_end_matches('/').ends_with(":80");
        let port = url.port().or_else(|| has_port.then_some(80)).unwrap_or(usual);
        if port == 0 {
            return wrong("has port 0, on which no program can listen");
        }
        if port == PRODUCTION_PORT && !is_production {
            return Err(ConfigError::ProductionPort);
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Ok(Self { host, port, is_production })
    }

    /// The host as it is written in an address.
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use domain::JstDate;

    use super::*;

    fn endpoint(
        base_url: Option<&str>,
        allowed: bool,
        wanted: bool,
    ) -> Result<Endpoint, ConfigError> {
        Endpoint::of(&LocalBrokerConfig {
            base_url: base_url.map(str::to_owned),
            production_allowed: allowed,
            production_wanted: wanted,
            ..LocalBrokerConfig::default()
        })
    }

    /// P44: production needs both variables.
    #[test]
    fn p44_production_takes_both_variables() {
        assert_eq!(endpoint(None, false, true), Err(ConfigError::ProductionNotAllowed));
        for (allowed, port, is_production) in
            [(false, VERIFICATION_PORT, false), (true, VERIFICATION_PORT, false)]
        {
            let found = endpoint(None, allowed, false).unwrap();
            assert_eq!((found.port, found.is_production), (port, is_production));
        }
        let found = endpoint(None, true, true).unwrap();
        assert_eq!((found.port, found.is_production), (PRODUCTION_PORT, true));
        for (allowed, wanted) in [(false, false), (true, false)] {
            let found = endpoint(Some("http://127.0.0.1:18080"), allowed, wanted);
            assert_eq!(found, Err(ConfigError::ProductionPort));
        }
        assert!(endpoint(Some("http://127.0.0.1:18080"), true, true).unwrap().is_production);
    }

    /// P43: scheme, host and port of this machine, and nothing else.
    #[test]
    fn p43_the_address_is_of_this_machine_and_has_no_path() {
        for (text, host, port) in [
            ("http://127.0.0.1:9", "127.0.0.1", 9),
            ("http://127.9.8.7:80/", "127.9.8.7", 80),
            ("http://localhost", "localhost", VERIFICATION_PORT),
            ("http://[::1]:7", "::1", 7),
        ] {
            let found = endpoint(Some(text), false, false).unwrap();
            assert_eq!((found.host.as_str(), found.port), (host, port), "{text}");
        }
        for (text, why) in [
            ("https://127.0.0.1", "http://"),
            ("http://192.168.0.2:18081", "not on this machine"),
            ("http://127.0.0.1.example.com", "not on this machine"),
            ("http://127.0.0.1:1/kabusapi", "has a path"),
            ("http://127.0.0.1:1/?a", "has a path"),
            ("http://me:word@127.0.0.1:1", "holds a name"),
            ("http://127.0.0.1:0", "has port 0"),
            ("127.0.0.1:1", "is not an address"),
        ] {
            let reported = endpoint(Some(text), false, false).unwrap_err().to_string();
            assert!(reported.contains(why) && !reported.contains("word@"), "{text}: {reported}");
        }
    }

    #[test]
    fn a_window_can_be_half_a_day_away() {
        for (hour, minute, window) in
            [(8, 30, "20:30-20:31"), (11, 59, "23:59-00:00"), (12, 0, "00:00-00:01")]
        {
            let date = JstDate::from_ymd_opt(2026, 11, 24).unwrap();
            let now = TsNanos::from_jst(date, (hour * 60 + minute) * NANOS_PER_MINUTE).unwrap();
            let away = ForcedLogout::away_from(now);
            assert_eq!((away.to_string().as_str(), away.contains(now)), (window, false));
            assert_eq!(ForcedLogout::parse(window), Some(away));
        }
    }

    #[test]
    fn p43_the_window_of_the_forced_logout() {
        let at = |hour: u64, minute: u64| {
            let date = JstDate::from_ymd_opt(2026, 11, 24).unwrap();
            TsNanos::from_jst(date, (hour * 60 + minute) * NANOS_PER_MINUTE).unwrap()
        };
        let usual = ForcedLogout::default();
        assert_eq!(ForcedLogout::parse("05:00-06:30"), Some(usual));
        let inside = [(4, 59), (5, 0), (6, 29), (6, 30)].map(|(h, m)| usual.contains(at(h, m)));
        assert_eq!(inside, [false, true, true, false]);
        let night = ForcedLogout::parse("23:30-00:15").unwrap();
        let inside = [(23, 29), (23, 30), (0, 0), (0, 15)].map(|(h, m)| night.contains(at(h, m)));
        assert_eq!(inside, [false, true, true, false]);
        for wrong in
            ["", "5:00-6:30", "05:00", "05:00-05:00", "24:00-01:00", "05:60-06:00", "+5:00-06:00"]
        {
            assert_eq!(ForcedLogout::parse(wrong), None, "{wrong}");
        }
    }
}
