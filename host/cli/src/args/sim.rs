//! The arguments of `kumiki sim`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use domain::{InstrumentId, JstDate, Money, Price};
use replay::Multiplier;
use sim::web_broker::{FaultSetting, Form, MarketStart};

use super::sim_local_broker::{HELP as LOCAL_BROKER_HELP, LocalBrokerArgs};
use super::sim_market::{HELP as MARKET_HELP, MarketArgs};

pub(super) const WEB_BROKER_HELP: &str = "\
Examples:
  kumiki sim web-broker
      a market that stands still: the broker's address is http://127.0.0.1:19877/e_api_v4r8/,
      user demo, password demo, second password 0000
  curl -d '{\"do\":\"trade\",\"issue\":\"7203\",\"price\":\"2850\",\"quantity\":100}' \\
      http://127.0.0.1:19877/control
      a trade of the market, which fills orders
  curl http://127.0.0.1:19877/control
      everything that it holds: orders, the account, requests that it saw, events
  kumiki data sample --out data --instrument 7203.TSE
  kumiki sim web-broker --data data --instrument 7203 --speed 60
      trades of files, 60 times as fast, from the first stream of events on
  kumiki sim web-broker --dialect web-broker-v4r10 --private-key sim.pem
      the login with a key of the vendor's present version; clients take the id demo and sim.pem
  kumiki sim web-broker --fault drop-answer@CLMKabuNewOrder*1 --fault gzip

When clients can connect, the command prints one line: {\"listening\": PORT, \"base_url\": URL}. Only this machine can connect.

/control takes one command or a list of them, as JSON objects with `do`:
  trade {issue, price, quantity, time?, count?}     trades of the market
  order {issue, side, quantity, price?, trigger?, condition?, credit?, expires?}
                                                    an order placed elsewhere
  cancel {number}                                   cancels an order elsewhere
  late-fill {number, price, quantity?}              fills an order that has ended
  fault {name, value?, request?, times?}            switches a fault on
  clear-faults {name?}                              switches faults off
  release-notices, release-changes {refuse?}        ends hold-notices, hold-changes
  disconnect-events {errno?}, frame {text}          the stream of events
  end-day, next-day {keep_session?, splits?}, clock {ahead_ms}
  end-session, market {run}, forget-requests, view

Faults of requests, used up one by one: delay-request=MS, delay-answer=MS, drop-before, \
drop-answer, half-answer, garbage, huge-answer, errno=N, errno-after=N, result=CODE, \
http-status=N, notices-first; of notices: duplicate-notices, reorder-notices; \
of orders that are taken and then refused by a notice: refuse-later.

Faults that stand until they are cleared: refuse-login=CODE, unread-documents, \
production-host, offline, venue-closed=PHASE, hold-notices, late-lists=MS, hold-changes, silent, \
refuse-events, truncated-master, no-date-master, gzip, trailing-separator.";

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Simulate the web broker, with faults on request.
    #[command(after_long_help = WEB_BROKER_HELP)]
    WebBroker(Box<WebBrokerArgs>),
    /// Simulate the local gateway, with faults on request.
    #[command(after_long_help = LOCAL_BROKER_HELP)]
    LocalBroker(Box<LocalBrokerArgs>),
    /// Simulate both over one market: trades on the gateway's boards fill orders at the broker.
    #[command(after_long_help = MARKET_HELP)]
    Market(Box<MarketArgs>),
}

/// Tax account of the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaxAccount {
    /// Tax is taken by the broker.
    Specific,
    /// Tax is declared by oneself.
    General,
    /// Free of tax; sells only.
    Nisa,
}

/// An instrument, and the close before the first day.
#[derive(Debug, Clone)]
pub(crate) struct Traded {
    /// `7203`.
    pub(crate) symbol: String,
    /// Its base price.
    pub(crate) base: Option<Price>,
}

/// Reads `7203`, `7203.TSE`, `7203=2850`.
pub(super) fn parse_traded(text: &str) -> Result<Traded, String> {
    let (code, base) = match text.split_once('=') {
        None => (text, None),
        Some((code, base)) => {
            (code, Some(base.parse().map_err(|error| format!("`{base}`: {error}"))?))
        }
    };
    let id = if code.contains('.') { code.to_owned() } else { format!("{code}.TSE") };
    let id: InstrumentId = id.parse().map_err(|error| format!("{error}"))?;
    Ok(Traded { symbol: id.symbol().to_owned(), base })
}

/// Reads `7203=300`.
pub(super) fn parse_holding(text: &str) -> Result<(String, u64), String> {
    let (code, shares) = text.split_once('=').ok_or("write a code and shares, like 7203=300")?;
    let shares = shares.parse().map_err(|_| format!("`{shares}` is no number of shares"))?;
    Ok((parse_traded(code)?.symbol, shares))
}

#[derive(Debug, Args)]
pub(crate) struct WebBrokerArgs {
    /// Port on this machine, 0 for any.
    #[arg(long, value_name = "PORT", default_value_t = 19877)]
    pub(crate) port: u16,

    /// Form of requests and answers.
    ///
    /// web-broker-spec, web-broker-v4r8 or web-broker-v4r10, as the dialects are called.
    #[arg(long, value_name = "NAME", default_value_t = Form::Spec)]
    pub(crate) dialect: Form,

    /// User id of the account.
    #[arg(long, value_name = "TEXT", default_value = "demo")]
    pub(crate) user: String,

    /// Password of the login.
    #[arg(long, value_name = "TEXT", default_value = "demo")]
    pub(crate) password: String,

    /// Authentication id of a login with a key.
    #[arg(hide_short_help = true, long, value_name = "TEXT", default_value = "demo")]
    pub(crate) auth_id: String,

    /// PEM file with the private key of a login with a key.
    ///
    /// The command makes a missing file. With web-broker-v4r10.
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub(crate) private_key: Option<PathBuf>,

    /// Password of orders.
    #[arg(long, value_name = "TEXT", default_value = "0000")]
    pub(crate) second_password: String,

    /// Tax account of the login.
    #[arg(hide_short_help = true, long, value_enum, default_value_t = TaxAccount::Specific)]
    pub(crate) account: TaxAccount,

    /// Cash of the account, in yen.
    #[arg(long, value_name = "YEN", default_value = "10000000")]
    pub(crate) cash: Money,

    /// Value of margin positions that it may open, in yen.
    #[arg(long, value_name = "YEN", default_value = "30000000")]
    pub(crate) margin: Money,

    /// Shares from the start; may be given many times.
    #[arg(long = "holding", value_name = "CODE=SHARES", value_parser = parse_holding)]
    pub(crate) holdings: Vec<(String, u64)>,

    /// Issue, like 7203=2850; may be given many times.
    ///
    /// Without --data with the last close. Default: 7203=2850, 130A=1250 and 7261=980, or 7203 with --data.
    #[arg(long = "instrument", value_name = "CODE[=PRICE]", value_parser = parse_traded)]
    pub(crate) instruments: Vec<Traded>,

    /// Folder with trades files that feed the market.
    ///
    /// Their days become business days from today on. Without this the market stands until /control posts trades.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Only this date of the files.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = super::parse_date, requires = "data", conflicts_with_all = ["from", "to"])]
    pub(crate) date: Option<JstDate>,

    /// First date of the files.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = super::parse_date, requires = "data")]
    pub(crate) from: Option<JstDate>,

    /// Last date of the files, included.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = super::parse_date, requires = "data")]
    pub(crate) to: Option<JstDate>,

    /// Times faster than the market, or max.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) speed: Multiplier,

    /// When trades of files begin: at-login, at-once or held.
    ///
    /// at-login begins with the first stream of events. held waits for /control.
    #[arg(hide_short_help = true, long, value_name = "WHEN", default_value = "at-login")]
    pub(crate) market_begins: MarketStart,

    /// Folder of decoded data.
    #[arg(
        hide_short_help = true,
        long,
        alias = "cache",
        value_name = "DIR",
        env = "KUMIKI_CACHE",
        help_heading = "Market"
    )]
    pub(crate) cache_dir: Option<PathBuf>,

    /// First business day.
    ///
    /// Default: today in Japan, or the next business day.
    #[arg(hide_short_help = true, long, value_name = "YYYY-MM-DD", value_parser = super::parse_date)]
    pub(crate) business_day: Option<JstDate>,

    /// Silence of the event stream before a keep-alive.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    pub(crate) keep_alive: Duration,

    /// Accept requests of any p_sd_date.
    ///
    /// Without this only those of the last 30 s.
    #[arg(hide_short_help = true, long)]
    pub(crate) any_send_date: bool,

    /// A fault from the start on; may be given many times.
    ///
    /// NAME, NAME=VALUE, or NAME@REQUEST=VALUE*TIMES.
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<FaultSetting>,

    /// End when standard input closes.
    #[arg(hide_short_help = true, long)]
    pub(crate) until_stdin_closes: bool,
}
