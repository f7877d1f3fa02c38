//! The arguments of `kumiki sim market`.

use std::path::PathBuf;

use clap::Args;
use domain::Money;
use sim::{local_broker, web_broker};

use super::Format;
use super::sim::{Traded, parse_holding, parse_traded};
use super::sim_local_broker::FeedArgs;

pub(super) const HELP: &str = "\
Examples:
  kumiki sim market --speed 60
      a walk of prices of 7203, 130A and 7261: boards at http://127.0.0.1:18081, orders at port
      19877; user demo, passwords demo, second password 0000; the account has 10,000,000 yen,
      and 300 shares of 7203 that somebody bought by hand
  kumiki sim market --seed 7 --instrument 6758=3200 --holding 6758=100
      another walk, of one issue
  kumiki data sample --out data --instrument 7203.TSE
  kumiki sim market --data data --instrument 7203 --speed 60
      the trades of files
  kumiki sim market --still
  curl -d '{\"do\":\"trade\",\"symbol\":\"7203\",\"price\":\"2850\",\"quantity\":100}' \\
      http://127.0.0.1:18081/control
      a trade: the broker fills orders by it, then the board shows it

When clients can connect, the command says what an engine needs. With --format json that is one \
line. Only this machine can connect. Ctrl-C ends it.

Each trade is matched at the broker first and shown on the board after that. A limit order fills \
at a touch, a market order at the next trade, and both never by more shares than the trade has.

Both servers have their own /control: see `kumiki help sim local-broker` and `kumiki help sim \
web-broker`. The market is the gateway's: at the broker, trade, market and next-day are refused. \
What a test of orders needs:
  gateway: trade, market {run}, day {date?, splits?}   trades, and the next day of both
           drop-push, half-open, restart, log-out      boards go away
  broker:  fault drop-answer, delay-answer=MS          an answer is lost, or late
           fault late-lists=MS                         lists show what was some time ago
           fault hold-notices, release-notices         notices come after the lists
           fault hold-changes, release-changes         a trade meets a cancel
           late-fill {number, price, quantity?}        a fill after the order's end
           order {issue, side, quantity, price?}       somebody else's order on the account
           end-session, disconnect-events {errno?}     the login is over, the stream breaks";

#[derive(Debug, Args)]
pub(crate) struct MarketArgs {
    /// Port of the gateway on this machine, 0 for any.
    #[arg(long, value_name = "PORT", default_value_t = 18081)]
    pub(crate) gateway_port: u16,

    /// Port of the broker on this machine, 0 for any.
    #[arg(long, value_name = "PORT", default_value_t = 19877)]
    pub(crate) broker_port: u16,

    /// Issue, like 7203=2850; may be given many times.
    ///
    /// Without --data with the last close. Default: 7203=2850, 130A=1250 and 7261=980, or 7203 with --data.
    #[arg(long = "instrument", value_name = "CODE[=PRICE]", value_parser = parse_traded)]
    pub(crate) instruments: Vec<Traded>,

    #[command(flatten)]
    pub(crate) feed: FeedArgs,

    /// Cash of the account, in yen.
    #[arg(long, value_name = "YEN", default_value = "10000000")]
    pub(crate) cash: Money,

    /// Value of margin positions that it may open, in yen.
    #[arg(hide_short_help = true, long, value_name = "YEN", default_value = "30000000")]
    pub(crate) margin: Money,

    /// Shares from the start; may be given many times.
    ///
    /// Default: 7203=300 where that is an issue. 7203=0 is none.
    #[arg(long = "holding", value_name = "CODE=SHARES", value_parser = parse_holding)]
    pub(crate) holdings: Vec<(String, u64)>,

    /// The gateway's API password.
    #[arg(hide_short_help = true, long, value_name = "TEXT", default_value = "demo")]
    pub(crate) gateway_password: String,

    /// User id of the broker's account.
    #[arg(hide_short_help = true, long, value_name = "TEXT", default_value = "demo")]
    pub(crate) user: String,

    /// Password of the broker's login.
    #[arg(hide_short_help = true, long, value_name = "TEXT", default_value = "demo")]
    pub(crate) password: String,

    /// Password of orders.
    #[arg(hide_short_help = true, long, value_name = "TEXT", default_value = "0000")]
    pub(crate) second_password: String,

    /// Paths and codes of the gateway, as of the dialect.
    #[arg(hide_short_help = true, long, value_name = "NAME", default_value_t = local_broker::Dialect::Spec)]
    pub(crate) gateway_dialect: local_broker::Dialect,

    /// Form of the broker's requests and answers.
    #[arg(hide_short_help = true, long, value_name = "NAME", default_value_t = web_broker::Form::Spec)]
    pub(crate) broker_dialect: web_broker::Form,

    /// Authentication id of a login with a key.
    #[arg(hide_short_help = true, long, value_name = "TEXT", default_value = "demo")]
    pub(crate) auth_id: String,

    /// PEM file with the private key of a login with a key.
    ///
    /// The command makes a missing file. With web-broker-v4r10.
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub(crate) private_key: Option<PathBuf>,

    /// A fault of the gateway from the start on; may be given many times.
    #[arg(hide_short_help = true, long = "gateway-fault", value_name = "FAULT")]
    pub(crate) gateway_faults: Vec<local_broker::FaultSetting>,

    /// A fault of the broker from the start on; may be given many times.
    #[arg(hide_short_help = true, long = "broker-fault", value_name = "FAULT")]
    pub(crate) broker_faults: Vec<web_broker::FaultSetting>,

    /// How the addresses are printed.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,

    /// End when standard input closes.
    #[arg(hide_short_help = true, long)]
    pub(crate) until_stdin_closes: bool,
}
