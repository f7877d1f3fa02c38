//! `kumiki serve`: the engine that a GUI or a script drives, until it is told to end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use domain::Secret;
use engine::limits::{DEFAULT_CONFIRM_ABOVE_JPY, DEFAULT_CONSOLE_PORT, DEFAULT_PORT, RUNS_KEPT};
use engine::{CancellationToken, EngineConfig, StartLine, read_start_line};
use sandbox::Limits;
use trader::Strategies;

use crate::Ending;
use crate::args::{EngineArgs, EngineMode};
use crate::configuration::Configuration;
use crate::interrupt::Interrupt;
use crate::{paths, standard_error, wrong_arguments};

/// Runs the command.
pub(crate) fn run(args: &EngineArgs) -> Result<Ending> {
    let names_broker = !args.web_broker.is_empty() || !args.local_broker.is_empty();
    if args.mode == EngineMode::Replay && (args.dev_login || names_broker) {
        return Err(wrong_arguments(
            "--web-broker, --local-broker and --dev-login need --mode live, because a replay has no broker; leave them out",
        ));
    }
    #[cfg(unix)]
    if args.detached {
        // A process that leads its group already cannot, and needs it no more.
        let _ = rustix::process::setsid();
    }
    keys::hide_memory();
    standard_error::write_aside()?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let _interrupt = Interrupt::listen_and(move || stop.cancel())?;
    let mut file = Configuration::read(args.config.as_deref())?;
    file.take_brokers(&args.web_broker, &args.local_broker)?;
    let listens = Arc::new(AtomicBool::new(false));
    let start = if args.standalone {
        standalone(args, &file)?
    } else {
        let (gone, listens) = (shutdown.clone(), Arc::clone(&listens));
        read_start_line(io::stdin(), move || {
            // What does not start says why, and nothing else.
            if listens.load(Ordering::Relaxed) {
                tracing::info!("standard input was closed: whoever started the engine is gone");
            }
            gone.cancel();
        })?
    };
    let asked = args.strategies.as_ref().or(file.strategies.as_ref());
    let strategies = paths::strategies_folder(asked.map(PathBuf::as_path))?;
    let shipped = asked.is_none().then(|| paths::compiled_folder(&strategies));
    let (web_broker, local_broker) = match args.mode {
        EngineMode::Live => (
            Some(file.web_broker.web_broker(&start)?),
            Some(file.local_broker.local_broker(&start, args.standalone)?),
        ),
        EngineMode::Replay => (None, None),
    };
    let config = EngineConfig {
        web_broker,
        local_broker,
        live_engine: file.live_engine.unwrap_or(true),
        strategy_rules: file.strategy_rules(),
        notify_command: file.notify_command.unwrap_or_default(),
        console_port: args.console_port.or(file.console_port).unwrap_or(DEFAULT_CONSOLE_PORT),
        confirm_above_jpy: file.confirm_above_jpy.unwrap_or(DEFAULT_CONFIRM_ABOVE_JPY),
        mode: match args.mode {
            EngineMode::Live => ipc::EngineMode::Live,
            EngineMode::Replay => ipc::EngineMode::Replay,
        },
        port: args.port.or(start.port).or(file.port).unwrap_or(DEFAULT_PORT),
        token: start.token,
        config_dir: start.config_dir,
        strategies: Strategies { folder: strategies, cache: start.cache_dir.clone(), shipped },
        cache_dir: start.cache_dir,
        data: args.data.clone().or(file.data),
        standalone: args.standalone,
        allowed_origins: match args.allow_origins.as_slice() {
            [] => file.allow_origins.unwrap_or_default(),
            given => given.to_vec(),
        },
        runs_kept: args.runs_kept.or(file.runs_kept).unwrap_or(RUNS_KEPT),
        limits: {
            let limits = Limits::default().changed(&file.limits.unwrap_or_default())?;
            limits.changed(&args.limits)?
        },
    };
    let places = args.standalone.then(|| {
        let file = config.config_dir.join(engine::session_file::SESSION_FILE);
        (file, config.cache_dir.join("runs"))
    });
    engine::serve(config, shutdown, |listening| {
        listens.store(true, Ordering::Relaxed);
        if let Some((file, runs)) = &places {
            eprintln!("clients find port and token in {}", file.display());
            eprintln!("runs are kept in {}", runs.display());
        }
        println!("{{\"listening\": {}}}", listening.port);
    })?;
    Ok(Ending::Done)
}

/// What a program would have written on standard input.
fn standalone(args: &EngineArgs, file: &Configuration) -> Result<StartLine> {
    let or_systems = |asked: Option<&PathBuf>, system: Option<PathBuf>, flag: &str| {
        let folder = asked.cloned().or(system);
        folder.with_context(|| {
            format!("this system has no folder for settings or caches; give one with {flag}")
        })
    };
    let config = paths::system_config();
    Ok(StartLine {
        port: None,
        token: Secret::from(engine::random_token()),
        config_dir: or_systems(
            args.config_dir.as_ref().or(file.config_dir.as_ref()),
            config,
            "--config-dir DIR",
        )?,
        cache_dir: or_systems(
            args.cache_dir.as_ref().or(file.cache_dir.as_ref()),
            paths::system_cache(),
            "--cache-dir DIR",
        )?,
        dev_login_allowed: args.dev_login,
    })
}
