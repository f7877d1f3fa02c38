//! The arguments of `kumiki live`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, Subcommand, ValueEnum};
use domain::{InstrumentId, Money, Price, Quantity};
use exchange::Preset;
use replay::instruments::{InstrumentName, TickChoice};

use super::order::{AttachArgs, ConfirmArgs};
use super::parse_param;
use super::replay::{parse_lot, parse_ticks};
use crate::execution::ExecutionArgs;

pub(crate) const LIVE_HELP: &str = "\
Start, with a gateway that is simulated on this machine:
  kumiki sim local-broker &
  export DEV_LOCALBROKER_API_PASSWORD=demo
  kumiki serve --mode live --standalone --dev-login &
  kumiki live run sma-cross --instrument 7203.TSE
  kumiki live status
  kumiki live stop

A run on paper gets the trades of the live market. Its orders go to the simulated exchange of replays, \
so no money is at stake and no broker gets an order. With --real they go to the web broker: read docs/live.md \
first, which says what can go wrong and what the program does then.

Exit codes:
  0    done
  1    refused, or an error
  2    the engine is busy, or the arguments are wrong
  3    the strategy failed
  4    no answer came in time: see `kumiki live status`
  8    the run is over, and orders of it still work or are unknown at the broker
  130  the command left; the strategy may go on";

#[derive(Debug, Subcommand)]
pub(crate) enum LiveRunCommand {
    /// Run a strategy, on paper or with --real, and follow it.
    #[command(
        after_long_help = RUN_HELP,
        mut_args(of_a_live_run),
        mut_arg("execution", |execution| execution.default_value(Preset::Realistic.as_str()))
    )]
    Run(Box<LiveRunArgs>),
    /// Show the strategy that runs, its orders and its position.
    Status(LiveStatusArgs),
    /// Stop the strategy that runs.
    ///
    /// The engine cancels the working orders of the strategy first. The engine itself goes on.
    Stop(LiveStopArgs),
    /// Show what strategies hold at the broker.
    ///
    /// A strategy holds what its own orders bought and did not sell, over all its runs. It finds that at its next
    /// start.
    Positions(LivePositionsArgs),
    /// Correct what a strategy holds, after a split or a sale by hand.
    ///
    /// The strategy must not run. The log of its next run shows the correction.
    Adjust(LiveAdjustArgs),
}

/// Options of a run, with the rare ones only in the long help.
fn of_a_live_run(option: Arg) -> Arg {
    let is_rare = match (option.get_id().as_str(), option.get_help_heading()) {
        ("execution" | "max_qty" | "max_notional" | "config_dir", _) => false,
        ("config" | "production" | "yes", _) => true,
        (_, heading) => {
            matches!(heading, Some("Execution" | "Limits of orders" | "Engine to start"))
        }
    };
    if is_rare { option.hide_short_help(true) } else { option }
}

const RUN_HELP: &str = "\
The command uses the engine that runs with the config folder. If no engine runs, it starts one, which \
writes its log to engine.log in the cache folder. An engine that it started ends with the run.

Ctrl-C stops the strategy and waits for its end. A second Ctrl-C leaves at once. If the terminal closes, \
the strategy and the engine go on: `kumiki live status` shows them, `kumiki live stop` stops the strategy.

The engine logs in at the gateway if there is no login yet. It may ask for the password.

Examples:
  kumiki live run sma-cross --instrument 7203.TSE --param fast=5 --param slow=50
  kumiki live run ./mine.wasm --instrument 7203.TSE --instrument 9984.TSE --granularity minute
  kumiki live run sma-cross --instrument 7203.TSE --max-qty 500 --max-daily-loss 50000
  kumiki live run sma-cross --instrument 7203.TSE --for 1h --format json > events.jsonl
      for scripts: one event of the engine in a line, and the end after an hour
  kumiki live run sma-cross --instrument 7203.TSE --dev-login --local-broker login_at_start=true
      starts an engine with these settings, if none runs
  kumiki live run sma-cross --instrument 7203.TSE --real --max-qty 100 --max-notional 400000
      sends real orders. The command shows where they go, the limits, and what the strategy
      holds. It starts when you type the strategy's id";

#[derive(Debug, Args)]
pub(crate) struct LiveRunArgs {
    /// A built-in strategy (`kumiki strategy list`) or a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// Instrument to trade, like 7203.TSE; up to 4.
    #[arg(long = "instrument", value_name = "ID", required = true)]
    pub(crate) instruments: Vec<InstrumentId>,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    /// Cash at the start, in yen.
    #[arg(long, value_name = "YEN", default_value = "10000000", allow_negative_numbers = true)]
    pub(crate) cash: Money,

    /// What the strategy sees.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = LiveGranularity::Trade)]
    pub(crate) granularity: LiveGranularity,

    /// Id of the strategy; default: the file's name.
    #[arg(long, value_name = "NAME", value_parser = parse_id)]
    pub(crate) id: Option<String>,

    /// Stop after this time, like 30s or 2h.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) lasts: Option<Duration>,

    /// Log in again if a venue ended the session.
    #[arg(long)]
    pub(crate) login: bool,

    /// Send real orders to the web broker (docs/live.md).
    ///
    /// The strategy takes over what it holds under its id. --max-qty and --max-notional are needed, and the
    /// options of an exchange that is simulated are refused.
    #[arg(long, conflicts_with_all = [
        "cash", "lot", "ticks", "execution", "latency", "slippage_ticks", "participation", "queue_ahead",
        "commission", "same_day_round_trips",
    ])]
    pub(crate) real: bool,

    /// Say that real orders may go to the real market.
    #[arg(long, requires = "real")]
    pub(crate) production: bool,

    /// Start with real orders without asking.
    #[arg(long, short = 'y', requires = "real")]
    pub(crate) yes: bool,

    /// Shares in a lot, for all instruments.
    ///
    /// Default: instruments.csv of the engine's data folder, else 100.
    #[arg(long, value_name = "SHARES", value_parser = parse_lot_of_all, hide_short_help = true)]
    pub(crate) lot: Option<Quantity>,

    /// Price steps of all instruments, like topix500.
    ///
    /// The tables are those of `kumiki help replay run`. Default: instruments.csv of the engine's data folder,
    /// else the table of the day.
    #[arg(long, value_name = "TABLE", value_parser = parse_ticks_of_all, hide_short_help = true)]
    pub(crate) ticks: Option<TickChoice>,

    #[command(flatten)]
    pub(crate) limits: OrderLimitArgs,

    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,

    #[command(flatten)]
    pub(crate) engine: EngineToStartArgs,
}

/// What the strategy's orders may be. The engine refuses an order beyond a limit, and the run goes on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits of orders")]
pub(crate) struct OrderLimitArgs {
    /// Most shares of one order; on paper 100,000.
    #[arg(long, value_name = "SHARES", value_parser = at_least_one())]
    pub(crate) max_qty: Option<u64>,

    /// Most yen of one order; on paper twice the cash.
    ///
    /// The limit holds for sells too.
    #[arg(long, value_name = "YEN", value_parser = at_least_one())]
    pub(crate) max_notional: Option<u64>,

    /// Most orders sent in 60 seconds; default: no limit, with --real 30.
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    pub(crate) max_orders_per_minute: Option<u64>,

    /// Most orders that work at once; default: no limit, with --real 10.
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    pub(crate) max_open_orders: Option<u64>,

    /// Loss of a day in yen that ends buying; default: no limit.
    #[arg(long, value_name = "YEN", value_parser = at_least_one())]
    pub(crate) max_daily_loss: Option<u64>,

    /// Most shares of a position; default: no limit, with --real --max-qty.
    ///
    /// Working orders that make the position larger count too.
    #[arg(long, value_name = "SHARES", value_parser = at_least_one())]
    pub(crate) max_position: Option<u64>,
}

/// Settings of the engine that the command starts if none runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine to start")]
pub(crate) struct EngineToStartArgs {
    /// Port on this machine, 0 for any; default: 19876.
    ///
    /// Environment: KUMIKI_PORT.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Port of pages in the browser, 0 for any; default: 19875.
    ///
    /// Environment: KUMIKI_CONSOLE_PORT.
    #[arg(long, value_name = "PORT")]
    pub(crate) console_port: Option<u16>,

    /// Folder of runs and compiled strategies.
    ///
    /// Default: where the system keeps caches. Environment: KUMIKI_CACHE.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Folder with instruments.csv and past prices.
    ///
    /// The engine takes lots, price steps and the last close from it. Environment: KUMIKI_DATA.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// A setting of the local gateway, like login_at_start=true.
    ///
    /// May be given many times. docs/reference/configuration.md lists the settings.
    #[arg(long = "local-broker", value_name = "NAME=VALUE")]
    pub(crate) local_broker: Vec<String>,

    /// A setting of the web broker, like base_url=http://127.0.0.1:19877.
    ///
    /// May be given many times. docs/reference/configuration.md lists the settings.
    #[arg(long = "web-broker", value_name = "NAME=VALUE")]
    pub(crate) web_broker: Vec<String>,

    /// Log in with DEV_... of the environment.
    ///
    /// `kumiki help serve` names the variables.
    #[arg(long)]
    pub(crate) dev_login: bool,
}

impl EngineToStartArgs {
    /// The flags that were given, which say nothing to an engine that runs already.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("--port", self.port.is_some()),
            ("--console-port", self.console_port.is_some()),
            ("--cache-dir", self.cache_dir.is_some()),
            ("--data", self.data.is_some()),
            ("--local-broker", !self.local_broker.is_empty()),
            ("--web-broker", !self.web_broker.is_empty()),
            ("--dev-login", self.dev_login),
        ];
        flags.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct LiveStatusArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LiveStopArgs {
    /// End the engine too.
    #[arg(long)]
    pub(crate) engine: bool,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LivePositionsArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LiveAdjustArgs {
    /// Id of the strategy.
    #[arg(value_name = "ID", value_parser = parse_id)]
    pub(crate) strategy_id: String,

    /// The instrument, like 7203.TSE.
    #[arg(value_name = "INSTRUMENT")]
    pub(crate) instrument: InstrumentId,

    /// Shares that it holds from now on, bought with cash.
    #[arg(value_name = "QUANTITY")]
    pub(crate) quantity: u64,

    /// What one of them cost in yen; 0 for no shares.
    #[arg(value_name = "AVG_PRICE")]
    pub(crate) average_price: Price,

    /// Why, for the log, like 'split 1 to 2'.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

/// What a strategy sees of the live market.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiveGranularity {
    /// Every trade.
    Trade,
    /// Minute bars.
    Minute,
}

impl From<LiveGranularity> for ipc::Granularity {
    fn from(granularity: LiveGranularity) -> Self {
        match granularity {
            LiveGranularity::Trade => Self::Trade,
            LiveGranularity::Minute => Self::Minute,
        }
    }
}

fn at_least_one() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

/// A name of 1 to 64 characters.
fn parse_id(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=64 => Ok(text.to_owned()),
        count => Err(format!("a name has 1 to 64 characters, this one has {count}")),
    }
}

fn parse_lot_of_all(text: &str) -> Result<Quantity, String> {
    of_all(parse_lot(text)?)
}

fn parse_ticks_of_all(text: &str) -> Result<TickChoice, String> {
    of_all(parse_ticks(text)?)
}

/// A choice that names no instrument.
fn of_all<T>((id, choice): (Option<InstrumentName>, T)) -> Result<T, String> {
    match id {
        None => Ok(choice),
        Some(_) => Err("the choice holds for all instruments; for one of several write it into \
                        instruments.csv of the engine's data folder"
            .to_owned()),
    }
}
