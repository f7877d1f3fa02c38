//! `kumiki strategy`: what there is, and what a component is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::strategy::StrategyRuntime;
use domain::{Instrument, Price, Quantity, TickTable};
use sandbox::{Limits, Sandbox, SandboxConfig, StrategyModule};
use serde_json::{Value, json};

use crate::Ending;
use crate::args::{FolderArgs, Format, StrategyCheckArgs, StrategyListArgs};
use crate::paths;
use crate::terminal::pairs;

/// Finds a strategy and makes it ready to run, through the cache of compiled strategies.
pub(crate) fn load(given: &str, folders: &FolderArgs) -> Result<StrategyModule> {
    let path = paths::find_strategy(given, folders)?;
    check_magic(&path)?;
    let cache = paths::cache_folder(folders)?.join("components");
    let config = SandboxConfig { cache_folder: Some(cache), ..SandboxConfig::default() };
    Ok(Sandbox::new(config)?.load(&path)?)
}

/// The parameters by their names, each given once.
pub(crate) fn parameters(params: &[(String, Value)]) -> Result<BTreeMap<String, Value>> {
    let mut named = BTreeMap::new();
    for (name, value) in params {
        if named.insert(name.clone(), value.clone()).is_some() {
            bail!("the parameter `{name}` is given twice; give it once");
        }
    }
    Ok(named)
}

/// The parameters as the JSON object that a strategy's init gets.
pub(crate) fn config_json(params: &[(String, Value)]) -> Result<String> {
    Ok(json!(parameters(params)?).to_string())
}

/// Refuses a file that is no WebAssembly at all, in plain words.
fn check_magic(path: &Path) -> Result<()> {
    const MAGIC: [u8; 4] = *b"\0asm";
    let unreadable = || format!("cannot read {}", path.display());
    let mut begin = Vec::new();
    let file = File::open(path).with_context(unreadable)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).with_context(unreadable)?;
    if begin != MAGIC {
        bail!(
            "{} is no WebAssembly file (it does not begin with `\\0asm`); give the .wasm file that \
             `cargo build --release --target wasm32-unknown-unknown` writes",
            path.display()
        );
    }
    Ok(())
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
    let config = config_json(&args.params)?;
    let mut instance = module.instantiate(Limits::default())?;
    let instrument = Instrument {
        id: "7203.TSE".parse()?,
        lot: Quantity::new(100),
        ticks: TickTable::Fixed(Price::from_yen(1)),
    };
    let started = instance.init(&config, &[instrument]);
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
