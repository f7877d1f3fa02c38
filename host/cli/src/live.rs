//! The commands around the engine: itself, simulated venues, strategies, orders, the live board, keys.

use anyhow::Result;

use crate::args::{LiveCommand, SimCommand};
use crate::logging::LogDefault;
use crate::{
    Ending, engine_serve, key, live_run, open_console, order, sim_local_broker, sim_market,
    sim_web_broker, watch,
};

/// What a command logs when nobody says otherwise.
pub(crate) const fn default_log(command: &LiveCommand) -> LogDefault {
    match command {
        LiveCommand::Serve(_) => LogDefault::Service,
        _ => LogDefault::Command,
    }
}

/// Runs a command.
pub(crate) fn run(command: &LiveCommand) -> Result<Ending> {
    match command {
        LiveCommand::Serve(serve) => engine_serve::run(serve),
        LiveCommand::Live(live) => live_run::run(live),
        LiveCommand::Order(order) => order::run(order),
        LiveCommand::Watch(watch) => watch::run(watch),
        LiveCommand::Console(console) => open_console::run(console),
        LiveCommand::Sim(SimCommand::WebBroker(broker)) => sim_web_broker::run(broker),
        LiveCommand::Sim(SimCommand::LocalBroker(gateway)) => sim_local_broker::run(gateway),
        LiveCommand::Sim(SimCommand::Market(market)) => sim_market::run(market),
        LiveCommand::Key(command) => key::run(command),
    }
}

/// The exit code of an engine that did not start.
pub(crate) fn exit_code(error: &anyhow::Error) -> Option<u8> {
    error.downcast_ref::<engine::StartError>().map(engine::StartError::exit_code)
}
