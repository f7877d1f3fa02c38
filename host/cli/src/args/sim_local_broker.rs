//! The arguments of `kumiki sim local-broker`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use domain::{JstDate, Money};
use replay::Multiplier;
use sim::local_broker;

use super::sim::{Traded, parse_traded};

pub(super) const HELP: &str = "\
Examples:
  kumiki sim local-broker
      http://127.0.0.1:18081, API password demo: a walk of prices, from the first client of the
      push that has registered a symbol; every code of 4 to 9 digits and capitals is an issue
      (--instrument takes codes of the exchange, of 4 or 5)
  curl -H 'Content-Type: application/json' -d '{\"APIPassword\":\"demo\"}' \\
      http://127.0.0.1:18081/token
      a token, for the header X-API-KEY of every other call
  curl http://127.0.0.1:18081/control/state
      everything that it holds: calls, registrations, what was traded and pushed, faults
  curl -d '{\"do\":\"restart\",\"down_ms\":3000}' http://127.0.0.1:18081/control
      the application ends, and is back after 3 s with an empty list
  kumiki data sample --out data --instrument 7203.TSE
  kumiki sim local-broker --data data --instrument 7203 --speed 60
      boards around the trades of files, 60 times as fast
  kumiki sim local-broker --dialect local-broker-kabusapi --fault empty-pong

When clients can connect, the command prints one line: {\"listening\": PORT, \"base_url\": URL, \
\"push_url\": URL}. Only this machine can connect.

/control takes one command or a list of them, as JSON objects with `do`; POST /control/NAME \
takes the other fields alone:
  trade {symbol, price, quantity, time?, count?}, book {symbol, count?}     the market
  boards, frame {text | json}                      pushes boards as they are, any frame
  fault {name, value?, call?, times?}              switches a fault on
  clear-faults {name?}                             switches faults off
  refuse {ms?}, accept                             connections are refused, and taken again
  restart {down_ms?}                               token dead, list empty, connections end
  end-token, log-out, login-open                   the token dies, the forced logout and its end
  drop-push, half-open                             the push's connection ends, or says no more
  register {symbols}, unregister {symbols}         somebody else's registrations
  day {date?, splits?}, volume-reset {symbol?}     volumes begin again
  account {cash?, margin?, orders?, positions?}    sets the account
  market {run}, forget-requests, state

Faults of calls, used up one by one: delay-answer=MS, drop-before, drop-answer, half-answer, \
garbage, empty-answer, unauthorized[=CODE], too-many[=CODE], server-error[=STATUS], \
bad-request=CODE, register-full, missing-entries[=N]. Calls are called by their paths: token, \
wallet/cash, wallet/margin, orders, positions, board, symbol, apisoftlimit, register, \
unregister, unregister/all, sendorder, cancelorder, websocket, unknown.

Faults of frames, used up likewise: duplicate-frames, lost-frames; an extra frame before each: \
wrong-utf8, binary-frames, malformed-frames, giant-frames[=BYTES], unregistered-frames, \
foreign-exchange-frames[=EXCHANGE]; another book: crossed-book, one-sided-book, \
unordered-levels, null-levels.

Faults that stand until they are cleared: empty-pong, second-freezes, silent-push, logged-out.";

// What moves the market of a gateway. A doc comment would be that of the command.
#[derive(Debug, Args)]
pub(crate) struct FeedArgs {
    /// Folder with trades files that feed the market.
    ///
    /// Default: a walk of prices.
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

    /// Stop the market until /control posts trades.
    #[arg(long, conflicts_with = "data")]
    pub(crate) still: bool,

    /// Seed of the walk of prices.
    ///
    /// The same seed and issues make the same trades.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["data", "still"])]
    pub(crate) seed: u64,

    /// Business days of the walk.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, conflicts_with_all = ["data", "still"])]
    pub(crate) days: u32,

    /// Mean time between two frames of an issue of the walk.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration, conflicts_with_all = ["data", "still"])]
    pub(crate) mean_gap: Duration,

    /// Times faster than the market, or max.
    ///
    /// The lunch break takes its time too.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) speed: Multiplier,

    /// When the feed begins: at-push, at-once or held.
    ///
    /// at-push begins with the first client of the push and a registered symbol. held waits for /control.
    #[arg(hide_short_help = true, long, value_name = "WHEN", default_value = "at-push")]
    pub(crate) market_begins: local_broker::FeedStart,

    /// Hold the feed after each day until /control says `market`.
    #[arg(hide_short_help = true, long)]
    pub(crate) hold_each_day: bool,

    /// First day: today, of-files, or a date of 1990 to 2200.
    ///
    /// today is the business day that follows, if today is none.
    #[arg(hide_short_help = true, long, value_name = "WHEN", default_value = "today")]
    pub(crate) first_day: local_broker::FirstDay,
}

#[derive(Debug, Args)]
pub(crate) struct LocalBrokerArgs {
    /// Port on this machine, 0 for any.
    #[arg(long, value_name = "PORT", default_value_t = 18081)]
    pub(crate) port: u16,

    /// Paths and codes, as of the dialect.
    ///
    /// local-broker-spec (at the root) or local-broker-kabusapi (of the vendor, below /kabusapi).
    #[arg(long, value_name = "NAME", default_value_t = local_broker::Dialect::Spec)]
    pub(crate) dialect: local_broker::Dialect,

    /// The API password.
    #[arg(long, value_name = "TEXT", default_value = "demo")]
    pub(crate) password: String,

    /// Cash for shares, in yen.
    #[arg(long, value_name = "YEN", default_value = "1234567")]
    pub(crate) cash: Money,

    /// Value of margin positions that it may open, in yen.
    #[arg(long, value_name = "YEN", default_value = "3000000")]
    pub(crate) margin: Money,

    /// A registration of another program; may be given many times.
    #[arg(hide_short_help = true, long = "registered", value_name = "CODE[@EXCHANGE]")]
    pub(crate) registered: Vec<local_broker::Listed>,

    /// Only this issue; may be given many times.
    ///
    /// Without --data with the last close. Default: every code that is asked for, or 7203 with --data.
    #[arg(long = "instrument", value_name = "CODE[=PRICE]", value_parser = parse_traded)]
    pub(crate) instruments: Vec<Traded>,

    #[command(flatten)]
    pub(crate) feed: FeedArgs,

    /// Frames of a thousand that change only the book.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(0..=990))]
    pub(crate) board_only: u32,

    /// Meaning of BidPrice: vendor (Sell1) or usual (Buy1).
    #[arg(hide_short_help = true, long, value_name = "NAMES", default_value = "vendor")]
    pub(crate) quote_names: local_broker::QuoteNames,

    /// Accept any number of calls.
    #[arg(hide_short_help = true, long)]
    pub(crate) no_rate_limit: bool,

    /// A fault from the start on; may be given many times.
    ///
    /// NAME, NAME=VALUE, or NAME@CALL=VALUE*TIMES.
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<local_broker::FaultSetting>,

    /// End when standard input closes.
    #[arg(hide_short_help = true, long)]
    pub(crate) until_stdin_closes: bool,
}
