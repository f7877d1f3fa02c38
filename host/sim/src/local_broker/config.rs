//! What a simulated gateway is started with.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use domain::{JstDate, Money, Price, Quantity, TickTable};
use replay::Multiplier;
use secrecy::SecretString;
use serde_json::Value;

use super::account;
use super::faults::FaultSetting;
use crate::web_broker::Issue;

/// Which form of paths and codes the gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `local-broker-spec`: paths at the root, the push at `/brokerapi/websocket`, the specification's codes; a
    /// board that was read is pushed.
    #[default]
    Spec,
    /// `local-broker-kabusapi`: everything below `/kabusapi`, the vendor's codes; a board that was read takes
    /// a slot and is pushed after a registration only.
    Kabusapi,
}

impl Dialect {
    /// Its name, as that of the dialect component that speaks it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spec => "local-broker-spec",
            Self::Kabusapi => "local-broker-kabusapi",
        }
    }

    /// What stands before every path of a request.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Spec => "",
            Self::Kabusapi => "/kabusapi",
        }
    }

    /// Path of the push.
    pub(crate) const fn push_path(self) -> &'static str {
        match self {
            Self::Spec => "/brokerapi/websocket",
            Self::Kabusapi => "/kabusapi/websocket",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = [Self::Spec, Self::Kabusapi].into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| {
            format!("`{text}` is neither local-broker-spec nor local-broker-kabusapi")
        })
    }
}

/// When the feed begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeedStart {
    /// As soon as a client is connected to the push and a symbol is registered.
    #[default]
    AtPush,
    /// At once.
    AtOnce,
    /// When it is told to.
    Held,
}

impl FromStr for FeedStart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "at-push" => Ok(Self::AtPush),
            "at-once" => Ok(Self::AtOnce),
            "held" => Ok(Self::Held),
            _ => Err(format!("`{text}` is unknown; write at-push, at-once or held")),
        }
    }
}

/// Where the market's trades come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The market stands at 09:30 of the first day until trades are posted.
    Still,
    /// A walk of prices: the same trades for the same seed, issues and days.
    Walk {
        /// Its seed.
        seed: u64,
        /// How many business days.
        days: u32,
        /// Mean time between two frames of an issue in the market's time, in milliseconds.
        mean_gap_ms: u32,
    },
    /// The vendor's trade files.
    Files {
        /// Folder with the files.
        folder: PathBuf,
        /// Folder of the cache for decoded data.
        cache: PathBuf,
        /// First date of the files; none: the first there is.
        start: Option<JstDate>,
        /// Last date, included.
        end: Option<JstDate>,
    },
}

/// Which date the first day has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstDay {
    /// Today in Japan, or the business day that follows.
    #[default]
    Today,
    /// This date.
    On(JstDate),
    /// Dates are those of the trade files.
    OfFiles,
}

impl FromStr for FirstDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "today" => Ok(Self::Today),
            "of-files" => Ok(Self::OfFiles),
            date => date.parse().map(Self::On).map_err(|_| {
                format!("`{date}` is unknown; write today, of-files or a date like 2026-05-11")
            }),
        }
    }
}

/// What `BidPrice` and `AskPrice` mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuoteNames {
    /// As at the vendor: `BidPrice` is the best price of those who sell, `AskPrice` of those who buy.
    #[default]
    Vendor,
    /// As everywhere else: `BidPrice` is the best price of those who buy.
    Usual,
}

impl FromStr for QuoteNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "vendor" => Ok(Self::Vendor),
            "usual" => Ok(Self::Usual),
            _ => Err(format!("`{text}` is neither vendor nor usual")),
        }
    }
}

/// A symbol on an exchange, as registrations name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// `7203`.
    pub symbol: String,
    /// The gateway's code of the exchange: 1 is Tokyo.
    pub exchange: i64,
}

/// Reads `9984`, `9984@3`.
impl FromStr for Listed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (symbol, exchange) = text.split_once('@').unwrap_or((text, "1"));
        let exchange = exchange.parse();
        let exchange = exchange.map_err(|_| format!("`{text}`: write it like 9984 or 9984@1"))?;
        Ok(Self { symbol: symbol.to_owned(), exchange })
    }
}

/// What a simulated gateway is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The port on this machine; 0 for any.
    pub port: u16,
    /// The form of paths and codes.
    pub dialect: Dialect,
    /// The API password.
    pub password: SecretString,
    /// Issues that are known from the start; with trade files those whose trades are played.
    pub issues: Vec<Issue>,
    /// Whether every other well-formed code is an issue too, from when it is first named. Not with trade
    /// files.
    pub any_symbol: bool,
    /// Where trades come from.
    pub source: Source,
    /// How many times faster than the market.
    pub speed: Multiplier,
    /// When the feed begins.
    pub begins: FeedStart,
    /// Whether the feed is held after each day until it is told to go on.
    pub holds_each_day: bool,
    /// The date of the first day.
    pub first_day: FirstDay,
    /// How many of a thousand frames change the book only.
    pub board_only_permille: u32,
    /// What `BidPrice` and `AskPrice` mean.
    pub quote_names: QuoteNames,
    /// What is registered from the start, by somebody else.
    pub registered: Vec<Listed>,
    /// Whether calls are counted against the limits of their class.
    pub has_rate_limit: bool,
    /// Cash that shares can be bought for.
    pub cash: Money,
    /// Value of margin positions that can be opened.
    pub margin: Money,
    /// Rows of `/orders`, in the vendor's layout.
    pub orders: Vec<Value>,
    /// Rows of `/positions`, in the vendor's layout.
    pub positions: Vec<Value>,
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
            dialect: Dialect::default(),
            password: SecretString::from("demo"),
            issues: vec![
                issue("7203", "トヨタ自動車", TickTable::Topix500, 2_850),
                issue("130A", "ソ表ニックス", TickTable::Normal, 1_250),
                issue("7261", "マツダ", TickTable::Topix500, 980),
            ],
            any_symbol: true,
            source: Source::Still,
            speed: Multiplier::REAL_TIME,
            begins: FeedStart::default(),
            holds_each_day: false,
            first_day: FirstDay::default(),
            board_only_permille: 400,
            quote_names: QuoteNames::default(),
            registered: Vec::new(),
            has_rate_limit: true,
            cash: Money::from_yen(1_234_567),
            margin: Money::from_yen(3_000_000),
            orders: account::sample_orders(),
            positions: account::sample_positions(),
            faults: Vec::new(),
        }
    }
}
