//! `kumiki strategy`: what there is, and what a component is.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use domain::strategy::StrategyRuntime;
use domain::{GuestLimit, Instrument, Price, Quantity, TickTable};
use replay::request::config_json;
use serde_json::{Value, json};

use crate::Ending;
use crate::args::{Format, StrategyCheckArgs, StrategyLimitsArgs, StrategyListArgs};
use crate::paths;
use crate::table::{Align, plain};
use crate::terminal::pairs;

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

/// Lists the built-in strategies.
pub(crate) fn list(args: &StrategyListArgs) -> Result<Ending> {
    let strategies = paths::strategies(&args.folders)?;
    let names = strategies.names();
    if names.is_empty() {
        let folder = strategies.folder.display();
        eprintln!("there are none in {folder}; build them with `cargo xtask guests`");
        return Ok(Ending::Problems);
    }
    for name in names {
        println!("{name}");
    }
    Ok(Ending::Done)
}

/// Shows what a strategy is, what it imports, and whether it starts with the parameters given.
pub(crate) fn check(args: &StrategyCheckArgs) -> Result<Ending> {
    let module = paths::strategies(&args.folders)?.load(&args.strategy)?;
    let artefact = module.artefact();
    let config = config_json(&parameters(&args.params)?);
    let mut instance = module.instantiate(args.limits.of_strategy()?)?;
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

/// Lists the limits of guests.
pub(crate) fn limits(args: &StrategyLimitsArgs) -> Result<Ending> {
    let all = GuestLimit::ALL.iter().copied();
    match args.format {
        Format::Table => {
            let head = ["name", "default", "unit", "reason"].map(str::to_owned).to_vec();
            let row = |limit: GuestLimit| {
                vec![
                    limit.name().to_owned(),
                    limit.show(limit.default_value()),
                    limit.unit().as_str().to_owned(),
                    limit.reason().to_owned(),
                ]
            };
            print!("{}", plain(std::iter::once(head).chain(all.map(row)), Align::Left));
        }
        Format::Json => {
            let one = |limit: GuestLimit| {
                json!({
                    "name": limit.name(),
                    "default": limit.default_value(),
                    "unit": limit.unit().as_str(),
                    "reason": limit.reason(),
                })
            };
            println!("{:#}", Value::Array(all.map(one).collect()));
        }
    }
    Ok(Ending::Done)
}
