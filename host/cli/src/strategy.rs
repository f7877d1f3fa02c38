//! `kumiki strategy`: what there is, and what a component is.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use domain::GuestLimit;
use domain::fault::Fault;
use domain::text::on_one_line;
use replay::json_values;
use results::output::json;
use sandbox::{Limits, StrategyModule};
use serde_json::{Value, json};
use trader::trial::{EventCost, Trial, trial};
use trader::{Loading, config_json};

use crate::Ending;
use crate::args::{Format, StrategyCheckArgs, StrategyLimitsArgs, StrategyListArgs, refuse};
use crate::paths;
use crate::table::{Align, plain};
use crate::terminal::pairs;

/// The parameters by their names, each given once.
pub(crate) fn parameters(params: &[(String, Value)]) -> BTreeMap<String, Value> {
    let mut named = BTreeMap::new();
    for (name, value) in params {
        if named.insert(name.clone(), value.clone()).is_some() {
            refuse(&format!("the parameter `{name}` is given twice; give it once"));
        }
    }
    named
}

/// Lists the built-in strategies.
pub(crate) fn list(args: &StrategyListArgs) -> Result<Ending> {
    let strategies = paths::strategies(&args.folders)?;
    let names = strategies.names();
    if names.is_empty() {
        let folder = strategies.folder.display();
        eprintln!("there are no strategies in {folder}; build them with `cargo xtask guests`");
        return Ok(Ending::Problems);
    }
    for name in names {
        println!("{name}");
    }
    Ok(Ending::Done)
}

/// Shows what a strategy is, what it imports, how it is called and at which cost, and whether it
/// starts with the parameters given.
pub(crate) fn check(args: &StrategyCheckArgs) -> Result<Ending> {
    let limits = args.limits.of_strategy()?;
    let loading = Loading { limits, ..Loading::default() };
    let module = paths::strategies(&args.folders)?.load_with(&args.strategy, &loading)?;
    let config = config_json(&parameters(&args.params));
    let Trial { init_fuel, parameters: in_effect, defaults, cost } =
        trial(&module, limits, &config, &[trader::trial::instrument()])?;
    match args.format {
        Format::Table => {
            let parameters = parameters_shown(&in_effect, defaults.as_ref());
            print_check(&module, init_fuel, parameters, &cost);
        }
        Format::Json => {
            let artefact = module.artefact();
            let measured = cost.as_ref().ok();
            let told = json!({
                "name": artefact.name(),
                "sha256": artefact.sha256(),
                "imports": artefact.imports(),
                "aggressor_side": Aggressor::of(&module).as_str(),
                "call_path": module.call_path().as_str(),
                "call_path_reason": module.call_path_reason(),
                "parameters_effective": json_values(&in_effect),
                "parameter_defaults": defaults.as_ref().map(json_values),
                "init_fuel": init_fuel,
                "init_error": fault_in(&cost, true),
                "event_ns": measured.map(|cost| cost.nanoseconds),
                "event_fuel": measured.map(|cost| cost.fuel),
                "event_error": fault_in(&cost, false),
            });
            print!("{}", json::text(&told));
        }
    }
    Ok(if cost.is_ok() { Ending::Done } else { Ending::StrategyFailed })
}

/// `fast=5 (default 20), slow=100`: the parameters in effect, and the defaults of the others.
fn parameters_shown(
    in_effect: &BTreeMap<String, String>,
    defaults: Option<&BTreeMap<String, String>>,
) -> String {
    let known = defaults.into_iter().flatten().chain(in_effect).map(|(name, _)| name);
    let names: BTreeSet<&String> = known.collect();
    let one = |name: &String| {
        let default = defaults.and_then(|defaults| defaults.get(name));
        let text = match (in_effect.get(name), default) {
            (Some(value), Some(default)) if value != default => {
                format!("{name}={value} (default {default})")
            }
            (Some(value), _) | (None, Some(value)) => format!("{name}={value}"),
            (None, None) => name.clone(),
        };
        // A guest's own words.
        on_one_line(&text).into_owned()
    };
    match names.is_empty() {
        true => "none reported".to_owned(),
        false => names.into_iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// What is known of a strategy's use of the aggressor side.
#[derive(Debug, Clone, Copy)]
enum Aggressor {
    /// It is proven that its program calls the import.
    Used,
    /// Toolchains of languages that are interpreted import the whole contract.
    Imported,
    NotImported,
}

impl Aggressor {
    fn of(module: &StrategyModule) -> Self {
        match (module.capabilities().aggressor, module.asks_aggressor()) {
            (true, true) => Self::Used,
            (true, false) => Self::Imported,
            (false, _) => Self::NotImported,
        }
    }

    /// For scripts.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Imported => "imported",
            Self::NotImported => "not imported",
        }
    }
}

/// Calls before the first event: what fails in them keeps a strategy from starting.
const BEFORE_START: [&str; 3] = ["instantiation", "_initialize", "init"];

/// The fault, if it came before the start, or else after.
fn fault_in(cost: &Result<EventCost, Box<Fault>>, before_start: bool) -> Option<String> {
    let fault = cost.as_ref().err()?;
    (BEFORE_START.contains(&fault.export) == before_start).then(|| fault.to_string())
}

fn print_check(
    module: &StrategyModule,
    init_fuel: u64,
    parameters: String,
    cost: &Result<EventCost, Box<Fault>>,
) {
    let artefact = module.artefact();
    let aggressor = match Aggressor::of(module) {
        Aggressor::Used => "used; replay never knows it, so what depends on it cannot be tested",
        Aggressor::Imported => {
            "imported (may be used); replay never knows it, so what depends on it cannot be tested"
        }
        Aggressor::NotImported => "not used",
    };
    let event = match cost {
        Ok(EventCost { trades, nanoseconds, fuel }) => {
            format!(
                "{nanoseconds} ns and {fuel} units of fuel, the mean of {trades} trades one by one"
            )
        }
        Err(_) => fault_in(cost, false).unwrap_or_else(|| "not measured".to_owned()),
    };
    print!(
        "{}",
        pairs(&[
            ("name", artefact.name().to_owned()),
            ("sha256", artefact.sha256().to_owned()),
            ("imports", artefact.imports().join(", ")),
            ("aggressor side", aggressor.to_owned()),
            ("calls", format!("{}: {}", module.call_path().as_str(), module.call_path_reason())),
            ("parameters", parameters),
            ("fuel of init", init_fuel.to_string()),
            ("init", fault_in(cost, true).unwrap_or_else(|| "starts".to_owned())),
            ("an event", event),
        ])
    );
}

/// A guest whose limits have other defaults than those of a strategy.
struct OtherGuest {
    column: &'static str,
    words: &'static str,
    limits: Limits,
}

/// Formula modules and dialects. A dialect comes from the broker's side of a desk and runs where orders go: what
/// it may use is fixed.
fn other_guests() -> [OtherGuest; 3] {
    let guest = |column, words, limits| OtherGuest { column, words, limits };
    [
        guest("default_of_formula", "a formula module", Limits::formula()),
        guest("of_broker_dialect", "a broker's dialect (fixed)", Limits::dialect()),
        guest("of_gateway_dialect", "a local gateway's dialect (fixed)", Limits::gateway()),
    ]
}

/// Lists the limits of guests.
pub(crate) fn limits(args: &StrategyLimitsArgs) -> Result<Ending> {
    let all = || GuestLimit::ALL.iter().copied();
    let others = other_guests();
    match args.format {
        Format::Table => {
            let head = ["name", "default", "at most", "unit", "reason"].map(str::to_owned).to_vec();
            let row = |limit: GuestLimit| {
                vec![
                    limit.name().to_owned(),
                    limit.show(limit.default_value()),
                    limit.show(limit.most()),
                    limit.unit().as_str().to_owned(),
                    limit.reason().to_owned(),
                ]
            };
            print!("{}", plain(std::iter::once(head).chain(all().map(row)), Align::Left));
            println!("\nguests that are no strategies have others by default:");
            for OtherGuest { words, limits, .. } in others {
                let differs = |limit: &GuestLimit| limits.get(*limit) != limit.default_value();
                let own = |limit: GuestLimit| format!("{limit} {}", limit.show(limits.get(limit)));
                let own: Vec<String> = all().filter(differs).map(own).collect();
                println!("  {words}: {}", own.join(", "));
            }
        }
        Format::Json => {
            let one = |limit: GuestLimit| {
                let mut row = json!({
                    "name": limit.name(),
                    "default": limit.default_value(),
                    "most": limit.most(),
                    "unit": limit.unit().as_str(),
                    "reason": limit.reason(),
                });
                for guest in &others {
                    row[guest.column] = guest.limits.get(limit).into();
                }
                row
            };
            println!("{:#}", Value::Array(all().map(one).collect()));
        }
    }
    Ok(Ending::Done)
}
