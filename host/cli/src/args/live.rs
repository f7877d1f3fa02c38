//! The commands around the engine: itself, simulated venues, and what speaks with it.

use clap::Subcommand;

use super::engine::{ENGINE_HELP, EngineArgs};
use super::key::{KEY_HELP, KeyCommand};
use super::live_run::{LIVE_HELP, LiveRunCommand};
use super::open_console::{CONSOLE_HELP, ConsoleArgs};
use super::order::{ORDER_HELP, OrderCommand};
use super::sim::SimCommand;
use super::watch::{WATCH_HELP, WatchArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Serve programs over a WebSocket: orders at a broker, or replays.
    #[command(after_long_help = ENGINE_HELP)]
    Serve(Box<EngineArgs>),
    /// Run a strategy on the live market, on paper or with real orders.
    #[command(subcommand, after_long_help = LIVE_HELP)]
    Live(LiveRunCommand),
    /// Send and follow orders through the running engine.
    #[command(subcommand, after_long_help = ORDER_HELP)]
    Order(OrderCommand),
    /// Show live boards and trades.
    ///
    /// They come from the local broker's gateway.
    #[command(after_long_help = WATCH_HELP)]
    Watch(WatchArgs),
    /// Open the engine's page in the browser.
    #[command(after_long_help = CONSOLE_HELP)]
    Console(Box<ConsoleArgs>),
    /// Simulate a broker on this machine, for tests.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Keep keys of vendors and brokers in the system's store.
    #[command(subcommand, after_long_help = KEY_HELP)]
    Key(KeyCommand),
}
