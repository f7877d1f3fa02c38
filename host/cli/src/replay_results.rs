//! `kumiki replay report`, `compare` and `narrative`: what a run's folder tells afterwards.

use std::path::Path;

use anyhow::{Result, bail};
use domain::TsNanos;
use domain::text::on_one_line;
use results::output::json;
use results::output::narrative::{Decision, OrderKnown, decisions, order_known};
use results::output::{FolderError, REPORT_FILE};
use results::report::{self, Comparison, RunOverview};
use results::summary::{DEFINITIONS, Unit};
use serde_json::Value;

use crate::Ending;
use crate::args::{CompareArgs, Format, NarrativeArgs, ReportArgs};
use crate::terminal::{columns, grouped, not_modelled, percent};

/// Makes the report of a run's folder again.
pub(crate) fn report(args: &ReportArgs) -> Result<Ending> {
    let page = args.out.clone().unwrap_or_else(|| args.folder.join(REPORT_FILE));
    report::write(&args.folder, &page)?;
    println!("report: {}", page.display());
    Ok(Ending::Done)
}

/// Puts runs side by side.
pub(crate) fn compare(args: &CompareArgs) -> Result<Ending> {
    let folders: Vec<&Path> = args.folders.iter().map(AsRef::as_ref).collect();
    let comparison = Comparison::read(&folders)?;
    match args.format {
        Format::Table => print_comparison(&comparison),
        Format::Json => print!("{}", json::text(&serde_json::to_value(&comparison)?)),
    }
    if let Some(page) = &args.out {
        comparison.write_page(page)?;
        if args.format == Format::Table {
            println!("\npage: {}", page.display());
        }
    }
    Ok(Ending::Done)
}

fn print_comparison(comparison: &Comparison) {
    let name = |run: &RunOverview| run.folder.clone();
    let head: Vec<String> =
        std::iter::once(String::new()).chain(comparison.runs.iter().map(name)).collect();
    let mut rows = vec![head];
    rows.push(
        std::iter::once("strategy".to_owned())
            .chain(comparison.runs.iter().map(|run| run.strategy.clone()))
            .collect(),
    );
    for line in &comparison.differences {
        let values = line.values.iter().map(|value| match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => shortened(text),
            other => shortened(&other.to_string()),
        });
        rows.push(std::iter::once(line.name.clone()).chain(values).collect());
    }
    rows.push(Vec::new());
    for (line, definition) in comparison.statistics.iter().zip(DEFINITIONS) {
        let values = line.values.iter().map(|value| shown(value, definition.unit));
        rows.push(std::iter::once(definition.title.to_owned()).chain(values).collect());
    }
    print!("{}", columns(&rows));
    for run in &comparison.runs {
        if let Some(warning) = &run.warning {
            println!("\n{}: {warning}", run.folder);
        }
    }
    for text in comparison.not_modelled() {
        println!("\n{}", not_modelled(text));
    }
}

/// A text that leaves room for the other columns; JSON and the page hold all of it.
fn shortened(text: &str) -> String {
    const LETTERS_MAX: usize = 40;
    if text.chars().count() <= LETTERS_MAX {
        return on_one_line(text).into_owned();
    }
    let short: String = text.chars().take(LETTERS_MAX - 3).chain("...".chars()).collect();
    on_one_line(&short).into_owned()
}

/// A number of the summary for people.
fn shown(value: &Value, unit: Unit) -> String {
    match (value, unit) {
        (Value::Null, _) => "-".to_owned(),
        (value, Unit::Ratio) => value.as_f64().map_or("-".to_owned(), percent),
        (value, Unit::Number) => value.as_f64().map_or("-".to_owned(), |one| format!("{one:.3}")),
        (Value::String(text), Unit::Yen | Unit::Shares) => grouped(text),
        (Value::String(text), _) => text.clone(),
        (other, _) => grouped(&other.to_string()),
    }
}

/// Shows decisions with the orders they explain.
pub(crate) fn narrative(args: &NarrativeArgs) -> Result<Ending> {
    let found = decisions(&args.folder, args.id.as_deref()).map_err(FolderError::from)?;
    if let Some(id) = args.id.as_ref().filter(|_| found.is_empty()) {
        match order_known(&args.folder, id).map_err(FolderError::from)? {
            OrderKnown::Yes => {}
            OrderKnown::Not(first, last) if first == last => {
                bail!("the run has no order `{id}`; it has one, {first}")
            }
            OrderKnown::Not(first, last) => {
                bail!("the run has no order `{id}`; it has {first} to {last}")
            }
            OrderKnown::NoOrders => bail!("the run has no order `{id}`; it has no orders"),
        }
    }
    match args.format {
        Format::Json => print!("{}", json::text(&serde_json::to_value(&found)?)),
        Format::Table if found.is_empty() => match &args.id {
            Some(id) => println!(
                "no decision explains an order `{id}`; without --id all decisions are shown, \
                 and orders.csv in the folder holds all orders"
            ),
            None => println!(
                "the strategy has recorded no decisions; it does so with `context.narrate`"
            ),
        },
        Format::Table => found.iter().for_each(print_decision),
    }
    Ok(Ending::Done)
}

fn print_decision(decision: &Decision) {
    println!("{}  {}", TsNanos::from_nanos(decision.ts_event_ns), on_one_line(&decision.title));
    for line in decision.body.lines() {
        println!("    {}", on_one_line(line));
    }
    match (&decision.order, &decision.client_order_id) {
        (Some(order), Some(id)) => {
            println!(
                "    order {}: {} {} {} {}, {}{}",
                on_one_line(id),
                order.side,
                order.quantity,
                order.instrument_id,
                order.order_type,
                order.status,
                order
                    .reason_text
                    .as_ref()
                    .map_or(String::new(), |why| format!(" ({})", on_one_line(why))),
            );
            for fill in &order.fills {
                println!(
                    "    fill {}: {} at {} yen, {}",
                    fill.trade_id,
                    fill.quantity,
                    grouped(&fill.price),
                    TsNanos::from_nanos(fill.ts_event_ns)
                );
            }
        }
        (None, Some(id)) => println!("    order {}: none with this id", on_one_line(id)),
        (_, None) => {}
    }
}
