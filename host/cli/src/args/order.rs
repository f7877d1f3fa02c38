//! The arguments of `kumiki order`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domain::{JstDate, OrderSide, TimeInForce};

use super::Format;

pub(crate) const ORDER_HELP: &str = "\
Start, with a broker that is simulated on this machine:
  kumiki sim web-broker &
  export DEV_WEBBROKER_USER_ID=demo DEV_WEBBROKER_PASSWORD=demo
  kumiki serve --mode live --standalone --dev-login \\
      --web-broker base_url=http://127.0.0.1:19877 &
  kumiki order login
  kumiki order submit 7203.TSE BUY 100 --price 2850
  kumiki order list
  kumiki order watch

Orders go to the engine that runs with the config folder. The command shows the order and sends it \
after y, or at once with --yes. It asks for the second password when the engine needs it. Without a terminal \
it ends with 3 then, and sends nothing.

The same --id with the same order never makes a second order. After a lost answer send it again: the answer \
says what became of the first.

Exit codes:
  0    done
  1    refused, or an error before anything was sent
  2    the engine is busy, or the arguments are wrong; nothing was sent
  3    the second password is needed, and there is no terminal to ask at
  4    sent, with an unknown result: read `kumiki order list`
  130  interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum OrderCommand {
    /// Log in at the broker.
    ///
    /// The command waits until orders can be sent. A login during a session begins a new one, and the second
    /// password is needed again.
    Login(OrderLoginArgs),
    /// Send an order.
    #[command(after_long_help = SUBMIT_HELP)]
    Submit(Box<OrderSubmitArgs>),
    /// Change an order.
    Modify(OrderModifyArgs),
    /// Cancel an order and wait for the broker's word.
    Cancel(OrderCancelArgs),
    /// Cancel all open orders, also those placed elsewhere.
    CancelAll(OrderCancelAllArgs),
    /// Show the broker's list of orders.
    List(OrderListArgs),
    /// Decide an order whose answer was lost.
    ///
    /// Read the broker's own pages first: what you say here is written into the log of the orders. The engine refuses
    /// it while a list of the broker can still decide the order.
    #[command(after_long_help = SETTLE_HELP)]
    Settle(OrderSettleArgs),
    /// Give the engine the second password.
    ///
    /// The command asks for it in the terminal, and shows nothing of it. Without a terminal it reads a line from
    /// standard input. The engine keeps the password in memory only.
    Password(OrderPasswordArgs),
    /// Print what happens to orders, until Ctrl-C.
    Watch(OrderWatchArgs),
}

const SUBMIT_HELP: &str = "\
Examples:
  kumiki order submit 7203.TSE BUY 100
      a market order of the day
  kumiki order submit 7203.TSE SELL 100 --price 2900 --expire 2026-12-01
      a limit order that lasts until that day
  kumiki order submit 7203.TSE SELL 100 --trigger 2700
      a market order as soon as the price falls to 2700
  kumiki order submit 7203.TSE BUY 100 --time-in-force AT_THE_CLOSE --price 2850
  kumiki order submit 7203.TSE BUY 100 --tag cash_margin=margin_credit_new
  kumiki order submit 7203.TSE BUY 100 --price 2850 --id my-order-1 --yes --format json
      for scripts: nothing is asked, and the answer is a line of JSON";

const SETTLE_HELP: &str = "\
Examples:
  kumiki order settle my-order-1 --number 12345
      the broker has the order, with this number
  kumiki order settle my-order-1 --not-at-broker
      it does not have the order; the same id may send it again
  kumiki order settle 3f2a-O-7 --strategy --not-at-broker
      an order of a strategy, by the id that `kumiki live run` printed";

/// Which engine.
#[derive(Debug, Args)]
pub(crate) struct EngineFolderArgs {
    /// File of the engine's settings.
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub(crate) config: Option<PathBuf>,

    /// Config folder of the engine.
    ///
    /// Default: where the system keeps settings. Environment: KUMIKI_CONFIG_DIR.
    #[arg(long, value_name = "DIR", help_heading = "Engine")]
    pub(crate) config_dir: Option<PathBuf>,
}

/// Which engine, and the form of its answers.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) engine: EngineFolderArgs,

    /// Form of answers.
    ///
    /// json prints the engine's own events, one in a line.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// Whether the command asks first.
#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Send without asking.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// An order that there is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichArgs {
    /// Id of the order, as `order submit` printed it.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Number of the broker (`kumiki order list`).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) number: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OrderLoginArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

/// `BUY` or `SELL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// Buy.
    #[value(name = "BUY", alias = "buy")]
    Buy,
    /// Sell.
    #[value(name = "SELL", alias = "sell")]
    Sell,
}

impl From<Side> for OrderSide {
    fn from(side: Side) -> Self {
        match side {
            Side::Buy => Self::Buy,
            Side::Sell => Self::Sell,
        }
    }
}

/// How long an order lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lasting {
    /// Today.
    #[value(name = "DAY")]
    Day,
    /// In the next opening auction.
    #[value(name = "AT_THE_OPEN")]
    AtTheOpen,
    /// In the next closing auction.
    #[value(name = "AT_THE_CLOSE")]
    AtTheClose,
    /// Until a day, which `--expire` gives.
    #[value(name = "GTD", hide = true)]
    Gtd,
}

impl From<Lasting> for TimeInForce {
    fn from(lasting: Lasting) -> Self {
        match lasting {
            Lasting::Day => Self::Day,
            Lasting::AtTheOpen => Self::AtTheOpen,
            Lasting::AtTheClose => Self::AtTheClose,
            Lasting::Gtd => Self::Gtd,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OrderSubmitArgs {
    /// The instrument, like 7203.TSE.
    #[arg(value_name = "INSTRUMENT")]
    pub(crate) instrument: String,

    /// BUY or SELL.
    #[arg(value_enum, value_name = "SIDE")]
    pub(crate) side: Side,

    /// Shares.
    #[arg(value_name = "QUANTITY", allow_negative_numbers = true)]
    pub(crate) quantity: String,

    /// Limit in yen; without it a market order.
    #[arg(long, value_name = "YEN", allow_negative_numbers = true)]
    pub(crate) price: Option<String>,

    /// Price in yen that makes the order active.
    #[arg(long, value_name = "YEN", allow_negative_numbers = true)]
    pub(crate) trigger: Option<String>,

    /// How long the order lives.
    #[arg(
        long, value_name = "WHEN", value_enum, default_value_t = Lasting::Day, conflicts_with = "expire"
    )]
    pub(crate) time_in_force: Lasting,

    /// Last day of the order in Japan, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) expire: Option<JstDate>,

    /// A tag, like account_type=general; may be given many times.
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    pub(crate) tags: Vec<String>,

    /// Your id of the order, 1 to 36 characters; default: a UUID.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderModifyArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// New quantity, with shares that are filled already.
    #[arg(long, value_name = "SHARES", allow_negative_numbers = true)]
    pub(crate) quantity: Option<String>,

    /// New limit in yen.
    #[arg(long, value_name = "YEN", allow_negative_numbers = true)]
    pub(crate) price: Option<String>,

    /// New trigger in yen.
    #[arg(long, value_name = "YEN", allow_negative_numbers = true)]
    pub(crate) trigger: Option<String>,

    /// New last day in Japan, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) expire: Option<JstDate>,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderCancelArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderCancelAllArgs {
    /// Only those of this instrument.
    #[arg(long, value_name = "INSTRUMENT")]
    pub(crate) instrument: Option<String>,

    /// Only those of this side.
    #[arg(long, value_enum, value_name = "SIDE")]
    pub(crate) side: Option<Side>,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderListArgs {
    /// Only orders of this status, like ACCEPTED.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,

    /// Only those of this instrument.
    #[arg(long, value_name = "INSTRUMENT")]
    pub(crate) instrument: Option<String>,

    /// Day in Japan, YYYY-MM-DD; default: today.
    #[arg(long, value_name = "DATE")]
    pub(crate) date: Option<JstDate>,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderSettleArgs {
    /// Id of the order.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) found: FoundArgs,

    /// The order is one of a strategy, not of a person.
    #[arg(long)]
    pub(crate) strategy: bool,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

/// What the broker's own pages say of an order.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct FoundArgs {
    /// The broker has it, with this number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) number: Option<String>,

    /// The broker does not have it.
    #[arg(long)]
    pub(crate) not_at_broker: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OrderPasswordArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OrderWatchArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(subcommand)]
        order: OrderCommand,
    }

    fn parsed(line: &str) -> Result<OrderCommand, String> {
        let found = Only::try_parse_from(std::iter::once("x").chain(line.split(' ')));
        found.map(|only| only.order).map_err(|error| error.to_string())
    }

    #[test]
    fn an_order_is_named_by_one_of_its_ids() {
        for right in ["cancel my-order", "cancel --number 77", "modify my-order --price 2850"] {
            assert!(parsed(right).is_ok(), "{right}");
        }
        for wrong in ["cancel", "cancel my-order --number 77", "modify --price 1"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    /// P124: who settles an order says one of two things.
    #[test]
    fn p124_an_order_is_settled_with_a_number_or_as_not_at_the_broker() {
        let Ok(OrderCommand::Settle(settle)) = parsed("settle o-1 --number 77") else { panic!() };
        assert_eq!((settle.found.number.as_deref(), settle.strategy), (Some("77"), false));
        let line = "settle o-1 --not-at-broker --strategy --yes";
        let Ok(OrderCommand::Settle(settle)) = parsed(line) else { panic!() };
        assert!(settle.found.not_at_broker && settle.strategy && settle.confirm.yes);
        for wrong in ["settle o-1", "settle --number 77", "settle o-1 --number 77 --not-at-broker"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    /// P122: arguments can be read by everybody on the machine.
    #[test]
    fn p122_the_second_password_is_no_argument() {
        assert!(parsed("password --config-dir c").is_ok());
        assert!(parsed("password hunter2").is_err());
    }

    #[test]
    fn an_order_lasts_a_day_or_until_a_day() {
        let Ok(OrderCommand::Submit(order)) = parsed("submit 7203.TSE buy 100") else { panic!() };
        assert_eq!((order.side, order.time_in_force), (Side::Buy, Lasting::Day));
        assert!(parsed("submit 7203.TSE BUY 100 --expire 2026-12-01").is_ok());
        assert!(parsed("submit 7203.TSE BUY 100 --expire 2026-12-01 --time-in-force DAY").is_err());
        assert!(parsed("submit 7203.TSE HOLD 100").is_err());
    }
}
