//! The commands around the engine: itself, simulated venues, and what speaks with it.

use clap::Subcommand;

use super::engine::{ENGINE_HELP, EngineArgs};
use super::key::{KEY_HELP, KeyCommand};
use super::order::{ORDER_HELP, OrderCommand};
use super::sim::SimCommand;
use super::watch::{WATCH_HELP, WatchArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Serve a GUI or a script over a WebSocket: orders at a broker, or replays with people's orders.
    #[command(after_help = ENGINE_HELP)]
    Serve(Box<EngineArgs>),
    /// Send, change, cancel and follow orders at the web broker, through the engine that runs.
    #[command(subcommand, after_help = ORDER_HELP)]
    Order(OrderCommand),
    /// Show the live board and the trades of symbols at the local broker's gateway.
    #[command(after_help = WATCH_HELP)]
    Watch(WatchArgs),
    /// Simulate a venue on this machine, for trying out and for tests.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Keep the keys of data vendors and of the broker in the system's own store.
    #[command(subcommand, after_help = KEY_HELP)]
    Key(KeyCommand),
}
