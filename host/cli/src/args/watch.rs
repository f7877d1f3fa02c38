//! The arguments of `kumiki watch`.

use clap::Args;

use super::order::AttachArgs;

/// Tickers that are watched at once: as many as the gateway pushes (specification 1, "Limits").
pub(crate) const WATCH_TICKERS_MAX: usize = 50;

pub(crate) const WATCH_HELP: &str = "\
Start, with a gateway that is simulated on this machine:
  kumiki sim local-broker &
  export DEV_LOCALBROKER_API_PASSWORD=demo
  kumiki serve --mode live --standalone --dev-login &
  kumiki watch 7203 9984 --login

Boards come from the engine that runs with the config folder; it gets them from the gateway of \
[local_broker]. Those who sell stand above, those who buy below, the best next to the middle.

A board that is no longer pushed is dim, and has `stale` beside its time. A narrow terminal shows less: \
the trades go first.

Keys:
  Tab, arrows  another ticker
  l            log in at the gateway; the engine asks for the password
  q, Ctrl-C    end

Without a terminal, and with --format json, the command prints the engine's events as JSON, one in a \
line: Subscribed, DepthSnapshot, Trades and what happens to the venue. A gap \
in sequence_id is a board that was left out because this program was too slow; no trade is left out.

  kumiki watch 7203 --once
      one board, as it is now
  kumiki watch 7203 --format json | head -3

Exit codes:
  0    done
  1    refused: the gateway has no login, its register set is full, or no engine runs
  2    the engine is busy, or the arguments are wrong
  4    no answer came, or the engine does not know the gateway's answer
  130  ended by q, Ctrl-C or a signal before all tickers were subscribed; or its terminal
       went away";

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Symbols like 7203 or 7203.TSE; at most 50.
    #[arg(value_name = "TICKER", required = true, num_args = 1..)]
    pub(crate) tickers: Vec<String>,

    /// Print each board once and end.
    ///
    /// This works without pushed boards too.
    #[arg(long)]
    pub(crate) once: bool,

    /// Log in at the gateway first, if needed.
    #[arg(long)]
    pub(crate) login: bool,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}
