//! The commands of `live.rs` in a program without the engine: they are known, so that each can say what is
//! missing.

use clap::Subcommand;

use super::AnyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Not in this program, which was built for replays alone: serve a GUI or a script over a WebSocket.
    #[command(disable_help_flag = true)]
    Serve(AnyArgs),
    /// Not in this program, which was built for replays alone: send and follow orders at the web broker.
    #[command(disable_help_flag = true)]
    Order(AnyArgs),
    /// Not in this program, which was built for replays alone: show the live board of symbols.
    #[command(disable_help_flag = true)]
    Watch(AnyArgs),
    /// Not in this program, which was built for replays alone: simulate a venue on this machine.
    #[command(disable_help_flag = true)]
    Sim(AnyArgs),
    /// Not in this program, which was built for replays alone: keep keys in the system's own store.
    #[command(disable_help_flag = true)]
    Key(AnyArgs),
}
