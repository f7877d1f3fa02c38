//! What a simulated web broker is started with.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use domain::{JstDate, Money, Price, Quantity, TickTable};
use replay::Multiplier;
use secrecy::SecretString;

use super::faults::FaultSetting;

/// Which form of requests and answers the broker speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// `web-broker-spec`: answers are percent-encoded, a wrong second password is `p_errno` 4, stops are told by
    /// `sGyakusasiZyouken` alone, changes and cancels need no business day, frames have `p_evt_cmd` and
    /// `p_eda_no`.
    #[default]
    Spec,
    /// `web-broker-v4r8`: the vendor's form.
    V4r8,
    /// `web-broker-v4r10`: the same with a login by a key, and a question for each master.
    V4r10,
}

impl Form {
    /// Its name, as that of the dialect that speaks it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spec => "web-broker-spec",
            Self::V4r8 => "web-broker-v4r8",
            Self::V4r10 => "web-broker-v4r10",
        }
    }

    /// Whether it is a form of the vendor's.
    pub(crate) const fn is_vendors(self) -> bool {
        !matches!(self, Self::Spec)
    }

    /// The path before each door.
    pub(crate) const fn root(self) -> &'static str {
        match self {
            Self::Spec | Self::V4r8 => "/e_api_v4r8",
            Self::V4r10 => "/e_api_v4r10",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found =
            [Self::Spec, Self::V4r8, Self::V4r10].into_iter().find(|form| form.as_str() == text);
        found.ok_or_else(|| {
            format!(
                "`{text}` is unknown; write web-broker-spec, web-broker-v4r8 or web-broker-v4r10"
            )
        })
    }
}

/// An issue that is traded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// `7203`, `130A`.
    pub symbol: String,
    /// Its name, as the master and notices have it.
    pub name: String,
    /// Shares of one trading unit.
    pub lot: Quantity,
    /// Price steps.
    pub ticks: TickTable,
    /// The last close before the first day: the price range lies around it.
    pub base: Price,
}

/// When trades of files begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MarketStart {
    /// With the first stream of events, so that nothing is missed.
    #[default]
    AtLogin,
    /// At once.
    AtOnce,
    /// When it is told to.
    Held,
}

impl FromStr for MarketStart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "at-login" => Ok(Self::AtLogin),
            "at-once" => Ok(Self::AtOnce),
            "held" => Ok(Self::Held),
            _ => Err(format!("`{text}` is unknown; write at-login, at-once or held")),
        }
    }
}

/// Trade files that feed the market. Their days become the broker's business days from today on.
#[derive(Debug, Clone)]
pub struct MarketData {
    /// Folder with the vendor's files.
    pub folder: PathBuf,
    /// Folder of the cache for decoded data.
    pub cache: PathBuf,
    /// First date of the files; none: the first there is.
    pub start: Option<JstDate>,
    /// Last date, included.
    pub end: Option<JstDate>,
    /// How many times faster than the market.
    pub speed: Multiplier,
    /// When it begins.
    pub begins: MarketStart,
}

/// What a simulated web broker is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The port on this machine; 0 for any.
    pub port: u16,
    /// The form of requests and answers.
    pub form: Form,
    /// User id of the one account.
    pub user: String,
    /// Password of the login.
    pub password: SecretString,
    /// Authentication id of a login with a key.
    pub auth_id: SecretString,
    /// Private key of such a login, PEM in PKCS#8; none: one is made where the form needs it.
    pub private_key: Option<SecretString>,
    /// Password of orders.
    pub second_password: SecretString,
    /// Tax account of the login: `1` specific, `3` general, `5` NISA.
    pub tax_account: char,
    /// Cash of the account.
    pub cash: Money,
    /// Value of margin positions that the account may open.
    pub margin_capacity: Money,
    /// Shares held in the tax account, by symbol.
    pub holdings: Vec<(String, u64)>,
    /// The issues; with trade files those whose trades are played.
    pub issues: Vec<Issue>,
    /// Trade files; none: the market stands still until trades are posted.
    pub data: Option<MarketData>,
    /// The first business day; none: today in Japan, or the business day that follows.
    pub business_day: Option<JstDate>,
    /// Silence on the stream of events after which a keep-alive is sent.
    pub keep_alive: Duration,
    /// How old `p_sd_date` may be; none: it is not checked.
    pub send_date_age_max: Option<Duration>,
    /// Faults from the start on.
    pub faults: Vec<FaultSetting>,
}

impl Default for Config {
    fn default() -> Self {
        let issue = |symbol: &str, name: &str, ticks, base| Issue {
            symbol: symbol.to_owned(),
            name: name.to_owned(),
            lot: Quantity::new(100),
            ticks,
            base: Price::from_yen(base),
        };
        Self {
            port: 0,
            form: Form::default(),
            user: "demo".to_owned(),
            password: SecretString::from("demo"),
            auth_id: SecretString::from("demo"),
            private_key: None,
            second_password: SecretString::from("0000"),
            tax_account: '1',
            cash: Money::from_yen(10_000_000),
            margin_capacity: Money::from_yen(30_000_000),
            holdings: Vec::new(),
            issues: vec![
                issue("7203", "トヨタ自動車", TickTable::Topix500, 2_850),
                issue("130A", "ソ表ニックス", TickTable::Normal, 1_250),
                issue("7261", "マツダ", TickTable::Topix500, 980),
            ],
            data: None,
            business_day: None,
            keep_alive: Duration::from_secs(5),
            send_date_age_max: Some(Duration::from_secs(30)),
            faults: Vec::new(),
        }
    }
}
