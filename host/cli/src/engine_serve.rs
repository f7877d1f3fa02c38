//! `kumiki serve`: the engine that a GUI or a script drives, until it is told to end.

use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use engine::limits::DEFAULT_PORT;
use engine::{CancellationToken, EngineConfig, StartLine, read_start_line};
use ipc::Secret;
use replay::strategies::Strategies;

use crate::Ending;
use crate::args::{EngineArgs, EngineMode};
use crate::interrupt::Interrupt;
use crate::paths;

/// Runs the command.
pub(crate) fn run(args: &EngineArgs) -> Result<Ending> {
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let _interrupt = Interrupt::listen_and(move || stop.cancel())?;
    let start = if args.standalone {
        standalone(args)?
    } else {
        let gone = shutdown.clone();
        read_start_line(io::stdin(), move || {
            tracing::info!("standard input was closed: whoever started the engine is gone");
            gone.cancel();
        })?
    };
    let strategies = paths::strategies_folder(args.strategies.as_deref())?;
    let shipped = args.strategies.is_none().then(|| paths::compiled_folder(&strategies));
    let config = EngineConfig {
        mode: match args.mode {
            EngineMode::Live => ipc::EngineMode::Live,
            EngineMode::Replay => ipc::EngineMode::Replay,
        },
        port: args.port.unwrap_or(start.port),
        token: start.token,
        config_dir: start.config_dir,
        strategies: Strategies { folder: strategies, cache: start.cache_dir.clone(), shipped },
        cache_dir: start.cache_dir,
        data: args.data.clone(),
        standalone: args.standalone,
        allowed_origins: args.allow_origins.clone(),
        runs_kept: args.runs_kept,
    };
    if args.standalone {
        let file = config.config_dir.join(engine::session_file::SESSION_FILE);
        eprintln!("clients find port and token in {}", file.display());
        eprintln!("runs are kept in {}", config.cache_dir.join("runs").display());
    }
    engine::serve(config, shutdown, |listening| println!("{{\"listening\": {}}}", listening.port))?;
    Ok(Ending::Done)
}

/// What a program would have written on standard input.
fn standalone(args: &EngineArgs) -> Result<StartLine> {
    let or_systems = |asked: &Option<PathBuf>, system: Option<PathBuf>, flag: &str| {
        let folder = asked.clone().or(system);
        folder
            .with_context(|| format!("this system names no folder for that; give one with {flag}"))
    };
    let config = paths::system_config();
    Ok(StartLine {
        port: DEFAULT_PORT,
        token: Secret::from(engine::random_token()),
        config_dir: or_systems(&args.config_dir, config, "--config-dir DIR")?,
        cache_dir: or_systems(&args.cache_dir, paths::system_cache(), "--cache-dir DIR")?,
        dev_login_allowed: false,
    })
}
