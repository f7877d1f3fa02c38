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

Orders go to the engine that runs with the config folder, as those of a GUI or a script do. The \
order's text is shown first, and sent after y, or at once with --yes. The second password is \
asked for when the engine needs it; without a terminal the command ends with 3 and sends nothing.

The same --id with the same order never makes a second order, however often it is sent: after a \
lost answer send it again, and it tells what became of the first.

Exit codes:
  0    done
  1    refused, or an error before anything was sent
  2    the engine is busy, or the arguments are wrong; nothing was sent
  3    the second password is needed, and there is no terminal to ask at
  4    sent, and it is not known what became of it: read `kumiki order list`
  130  interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum OrderCommand {
    /// Log in at the broker, and wait until orders can be sent. A login while there is a session begins a
    /// new one, and the second password is asked for again.
    Login(OrderLoginArgs),
    /// Send an order.
    #[command(after_help = SUBMIT_HELP)]
    Submit(Box<OrderSubmitArgs>),
    /// Change an order.
    Modify(OrderModifyArgs),
    /// Cancel an order, and wait until the broker says that it is cancelled.
    Cancel(OrderCancelArgs),
    /// Cancel all open orders of the account, also those placed elsewhere.
    CancelAll(OrderCancelAllArgs),
    /// Show the broker's list of orders.
    List(OrderListArgs),
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

/// Which engine, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Read the engine's settings from this file, as `kumiki serve --config` does.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The engine's config folder. Default: where the system keeps settings. Environment:
    /// KUMIKI_CONFIG_DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,

    /// How answers are printed: for people, or the engine's own events as JSON, one in a line.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// Whether somebody is asked.
#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Send it without asking.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// An order that there is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichArgs {
    /// The id that the order was given: --id of submit, which prints it.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// The broker's number, as `kumiki order list` shows it; for orders placed elsewhere.
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

/// When an order counts.
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
}

impl From<Lasting> for TimeInForce {
    fn from(lasting: Lasting) -> Self {
        match lasting {
            Lasting::Day => Self::Day,
            Lasting::AtTheOpen => Self::AtTheOpen,
            Lasting::AtTheClose => Self::AtTheClose,
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
    #[arg(value_name = "QUANTITY")]
    pub(crate) quantity: String,

    /// The limit in yen; without it the order takes the market's price.
    #[arg(long, value_name = "YEN")]
    pub(crate) price: Option<String>,

    /// The order counts when the price reaches this, in yen.
    #[arg(long, value_name = "YEN")]
    pub(crate) trigger: Option<String>,

    /// When it counts.
    #[arg(long, value_enum, default_value_t = Lasting::Day, conflicts_with = "expire")]
    pub(crate) time_in_force: Lasting,

    /// The order lasts until the end of this day in Japan, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) expire: Option<JstDate>,

    /// A tag, like cash_margin=margin_credit_new or account_type=general; may be given many times.
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    pub(crate) tags: Vec<String>,

    /// Your id of the order, 1 to 36 characters. Default: a new UUID.
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

    /// Shares in all, those filled already too.
    #[arg(long, value_name = "SHARES")]
    pub(crate) quantity: Option<String>,

    /// The new limit in yen.
    #[arg(long, value_name = "YEN")]
    pub(crate) price: Option<String>,

    /// The new trigger in yen.
    #[arg(long, value_name = "YEN")]
    pub(crate) trigger: Option<String>,

    /// It lasts until the end of this day in Japan, YYYY-MM-DD.
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

    /// Orders of this day in Japan, YYYY-MM-DD. Default: today.
    #[arg(long, value_name = "DATE")]
    pub(crate) date: Option<JstDate>,

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

    #[test]
    fn an_order_lasts_a_day_or_until_a_day() {
        let Ok(OrderCommand::Submit(order)) = parsed("submit 7203.TSE buy 100") else { panic!() };
        assert_eq!((order.side, order.time_in_force), (Side::Buy, Lasting::Day));
        assert!(parsed("submit 7203.TSE BUY 100 --expire 2026-12-01").is_ok());
        assert!(parsed("submit 7203.TSE BUY 100 --expire 2026-12-01 --time-in-force DAY").is_err());
        assert!(parsed("submit 7203.TSE HOLD 100").is_err());
    }
}
