//! `kumiki rank formulas`, and what else concerns formula modules.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::formula::FormulaParameter;
use ranking::{BoundFormula, FormulaListing, FormulaRegistry, Ranking};
use sandbox::Limits;
use serde_json::{Value, json};

use crate::Ending;
use crate::args::{Format, FormulasArgs, RegistryArgs};
use crate::paths::system_cache;
use crate::terminal::{grouped, pairs};

/// The folder's name in the data folder.
const FOLDER: &str = "formulas";

/// Opens the registry in the folder that the arguments name.
pub(super) fn registry(
    args: &RegistryArgs,
    limits: Limits,
    data_dir: &Path,
) -> Result<FormulaRegistry> {
    let folder = args.formulas.clone().unwrap_or_else(|| data_dir.join(FOLDER));
    let cache =
        args.cache_dir.clone().or_else(system_cache).map(|folder| folder.join("components"));
    Ok(FormulaRegistry::open_limited(&folder, cache.as_deref(), limits)?)
}

/// Lists the modules, or adds one.
pub(super) fn run(args: &FormulasArgs) -> Result<Ending> {
    let registry = registry(&args.registry, args.limits.of_formula()?, &args.data.prices)?;
    let listings = match &args.add {
        Some(path) => {
            let added = registry.add(path).with_context(|| format!("--add {}", path.display()))?;
            eprintln!("{} is listed in {}", added.listed.name, registry.folder().display());
            vec![added]
        }
        None => registry.list()?,
    };
    if listings.is_empty() {
        eprintln!(
            "{} lists no formula modules; add one with --add FILE.wasm",
            registry.folder().join(ranking::LIST_FILE).display()
        );
    }
    match args.format {
        Format::Table => {
            let shown: Vec<String> = listings.iter().map(table).collect();
            print!("{}", shown.join("\n"));
        }
        Format::Json => {
            println!("{:#}", Value::from(listings.iter().map(value).collect::<Vec<_>>()));
        }
    }
    let all_good = listings.iter().all(|listing| listing.details.is_ok());
    Ok(if all_good { Ending::Done } else { Ending::Problems })
}

fn range(parameter: &FormulaParameter) -> String {
    let FormulaParameter { name, description, default, minimum, maximum } = parameter;
    format!("{name}={default} ({minimum} to {maximum}): {description}")
}

fn table(listing: &FormulaListing) -> String {
    let mut rows =
        vec![("name", listing.listed.name.clone()), ("sha256", listing.listed.sha256.clone())];
    match &listing.details {
        Ok(details) => {
            let description = &details.description;
            rows.push(("version", description.version.clone()));
            rows.push(("computes", description.summary.clone()));
            rows.extend(description.parameters.iter().map(|one| ("parameter", range(one))));
            let inputs: Vec<String> = details.inputs.iter().map(ToString::to_string).collect();
            rows.push(("reads", inputs.join(", ")));
        }
        Err(why) => rows.push(("refused", why.clone())),
    }
    pairs(&rows)
}

fn value(listing: &FormulaListing) -> Value {
    let parameter = |one: &FormulaParameter| {
        json!({
            "name": one.name, "description": one.description, "default": one.default,
            "minimum": one.minimum, "maximum": one.maximum,
        })
    };
    let mut value = json!({
        "name": listing.listed.name, "file": listing.listed.file, "sha256": listing.listed.sha256,
    });
    match &listing.details {
        Ok(details) => {
            let description = &details.description;
            value["version"] = json!(description.version);
            value["description"] = json!(description.summary);
            value["parameters"] = description.parameters.iter().map(parameter).collect();
            value["inputs"] = details.inputs.iter().map(ToString::to_string).collect();
        }
        Err(why) => value["refused"] = json!(why),
    }
    value
}

/// Shows what a module reads and how long it takes; it has no tree and no statement.
pub(super) fn explain(
    ranking: &Ranking,
    elapsed: Duration,
    bound: &BoundFormula,
    adjusted: bool,
) -> Result<Ending> {
    let inputs: Vec<String> = bound.inputs().iter().map(ToString::to_string).collect();
    let mut rows = vec![
        ("module", bound.name().to_owned()),
        ("sha256", bound.sha256().to_owned()),
        ("version", bound.description().version.clone()),
        ("computes", bound.description().summary.clone()),
    ];
    rows.extend(bound.parameters().map(|(name, value)| ("parameter", format!("{name}={value}"))));
    let adjusted = if adjusted { ", earlier values adjusted for splits" } else { "" };
    rows.push(("reads", format!("{}{adjusted}", inputs.join(", "))));
    rows.push(("rows", grouped(&ranking.rows.len().to_string())));
    rows.push(("time", format!("{:.3} ms", elapsed.as_secs_f64() * 1e3)));
    print!("{}", pairs(&rows));
    Ok(Ending::Done)
}
