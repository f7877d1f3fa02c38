//! `kumiki strategy`: what there is, and what a component is.

use std::collections::BTreeMap;

use anyhow::Result;
use domain::strategy::StrategyRuntime;
use domain::{Instrument, Price, Quantity, TickTable};
use sandbox::{CacheOutcome, Limits, Sandbox, SandboxConfig, StrategyModule};
use serde_json::{Value, json};

use crate::Ending;
use crate::args::{FolderArgs, Format, StrategyCheckArgs, StrategyListArgs};
use crate::paths;
use crate::terminal::pairs;

/// Finds a strategy and makes it ready to run, through the cache of compiled strategies.
pub(crate) fn load(given: &str, folders: &FolderArgs) -> Result<StrategyModule> {
    let path = paths::find_strategy(given, folders)?;
    let cache = paths::cache_folder(folders)?.join("components");
    let config = SandboxConfig { cache_folder: Some(cache), ..SandboxConfig::default() };
    let module = Sandbox::new(config)?.load(&path)?;
    if let CacheOutcome::NotKept(reason) = module.cache_outcome() {
        eprintln!("note: the compiled strategy could not be kept: {reason}");
    }
    Ok(module)
}

/// The parameters as the JSON object that a strategy's init gets; the last of a name counts.
pub(crate) fn config_json(params: &[(String, Value)]) -> String {
    let params: BTreeMap<_, _> = params.iter().cloned().collect();
    json!(params).to_string()
}

/// Lists the built-in strategies.
pub(crate) fn list(args: &StrategyListArgs) -> Result<Ending> {
    let folder = paths::strategies_folder(&args.folders)?;
    let names = paths::strategy_names(&folder);
    if names.is_empty() {
        eprintln!("there are none in {}; build them with `cargo xtask guests`", folder.display());
        return Ok(Ending::Problems);
    }
    for name in names {
        println!("{name}");
    }
    Ok(Ending::Done)
}

/// Shows what a strategy is, what it imports, and whether it starts with the parameters given.
pub(crate) fn check(args: &StrategyCheckArgs) -> Result<Ending> {
    let module = load(&args.strategy, &args.folders)?;
    let artefact = module.artefact();
    let mut instance = module.instantiate(Limits::default())?;
    let instrument = Instrument {
        id: "7203.TSE".parse()?,
        lot: Quantity::new(100),
        ticks: TickTable::Fixed(Price::from_yen(1)),
    };
    let started = instance.init(&config_json(&args.params), &[instrument]);
    let init = match &started {
        Ok(()) => "starts".to_owned(),
        Err(fault) => fault.to_string(),
    };
    match args.format {
        Format::Table => print!(
            "{}",
            pairs(&[
                ("name", artefact.name().to_owned()),
                ("sha256", artefact.sha256().to_owned()),
                ("imports", artefact.imports().join(", ")),
                (
                    "aggressor side",
                    if module.capabilities().aggressor {
                        "used; replay never knows it, so what depends on it cannot be tested"
                            .to_owned()
                    } else {
                        "not used".to_owned()
                    }
                ),
                ("fuel of init", instance.fuel_used().to_string()),
                ("init", init),
            ])
        ),
        Format::Json => println!(
            "{:#}",
            json!({
                "name": artefact.name(),
                "sha256": artefact.sha256(),
                "imports": artefact.imports(),
                "uses_aggressor": module.capabilities().aggressor,
                "init_fuel": instance.fuel_used(),
                "init_error": started.as_ref().err().map(ToString::to_string),
            })
        ),
    }
    Ok(if started.is_ok() { Ending::Done } else { Ending::StrategyFailed })
}
