//! `kumiki replay compare-live`: a run on the live market beside the simulated exchange.

use anyhow::Result;
use domain::text::on_one_line;
use live::compare::{
    COMPARE_FILE, ComparedLive, FillCounts, FirstDifference, ModelCompared, ReplayCompared, Told,
    ToldKind, compare,
};
use results::output::json;

use crate::Ending;
use crate::args::{CompareLiveArgs, Format};
use crate::replay_journal::NOT_ENDED;
use crate::terminal::{columns, grouped};
use crate::{output, paths};

/// Runs the command.
pub(crate) fn run(args: &CompareLiveArgs) -> Result<Ending> {
    let cache = args.cache_dir.clone().or_else(paths::system_cache);
    let component = args.component.as_deref();
    let found = match compare(&args.folder, component, &args.execution, cache.as_deref()) {
        Ok(found) => found,
        Err(error) if error.is_damage() => {
            output::failure(&error.to_string());
            return Ok(Ending::InputsChanged);
        }
        Err(error) => return Err(error.into()),
    };
    match args.format {
        Format::Table => print_table(&found)?,
        Format::Json => print!("{}", json::text(&serde_json::to_value(&found)?)),
    }
    let page = args.out.clone().unwrap_or_else(|| args.folder.join(COMPARE_FILE));
    found.write_page(&page)?;
    if args.format == Format::Table {
        println!("page: {}", page.display());
    }
    // Fill models are measured, and say nothing of the run.
    Ok(if found.identical == Some(false) { Ending::Different } else { Ending::Done })
}

fn print_table(found: &ComparedLive) -> Result<()> {
    let component = on_one_line(&found.component);
    for one in &found.replays {
        let ReplayCompared { model, orders, signals, fills, .. } = one;
        match &one.first_difference {
            None => println!(
                "the same as the run: {}, {} and {} of `{component}` ({model})",
                count(orders.recorded, "order"),
                count(fills.recorded, "fill"),
                count(signals.recorded, "signal"),
            ),
            Some(FirstDifference { recorded, simulated, .. }) => {
                println!("NOT THE SAME with `{component}` ({model}); the first difference:");
                println!("  run:       {}", said(recorded.as_ref())?);
                println!("  simulated: {}", said(simulated.as_ref())?);
            }
        }
    }
    if found.identical == Some(false) {
        println!("\nThe strategy again in the simulated exchange:\n");
        print!("{}", columns(&numbers_of_replays(&found.replays)));
    }
    if !found.models.is_empty() {
        println!("\nThe orders of the run, executed again one by one:\n");
        print!("{}", columns(&numbers_of_models(&found.models)));
    }
    if found.torn {
        println!("the end of the journal is cut off; the rest was compared");
    }
    if !found.ended {
        println!("{NOT_ENDED}");
    }
    Ok(())
}

/// Numbers side by side: a column for each.
fn numbers_of<T>(
    all: &[T],
    model: fn(&T) -> &str,
    fills: fn(&T) -> &FillCounts,
    more: Vec<Vec<String>>,
) -> Vec<Vec<String>> {
    let line = |name: &str, value: &dyn Fn(&FillCounts) -> String| {
        std::iter::once(name.to_owned()).chain(all.iter().map(|one| value(fills(one)))).collect()
    };
    let head = std::iter::once(String::new()).chain(all.iter().map(|one| model(one).to_owned()));
    let pieces =
        |fills: u64, shares: u64| format!("{} of {}", shown(fills), count(shares, "share"));
    let of_fills = [
        line("fills", &|fills| both(fills.recorded, fills.simulated)),
        line("shares filled in both", &|fills| shown(fills.shares_matched)),
        line("missed fills", &|fills| pieces(fills.missed, fills.shares_missed)),
        line("extra fills", &|fills| pieces(fills.extra, fills.shares_extra)),
        line("cost, simulated", &|fills| format!("{} yen", grouped(&fills.slippage.to_string()))),
        line("later by", &|fills| {
            fills
                .later_ms
                .map_or("-".to_owned(), |later| format!("{} ms", grouped(&later.to_string())))
        }),
    ];
    std::iter::once(head.collect()).chain(more).chain(of_fills).collect()
}

fn numbers_of_replays(replays: &[ReplayCompared]) -> Vec<Vec<String>> {
    let line = |name: &str, value: fn(&ReplayCompared) -> String| {
        std::iter::once(name.to_owned()).chain(replays.iter().map(value)).collect()
    };
    let more = vec![
        line("orders", |one| both(one.orders.recorded, one.orders.simulated)),
        line("signals", |one| both(one.signals.recorded, one.signals.simulated)),
    ];
    numbers_of(replays, |one| &one.model, |one| &one.fills, more)
}

fn numbers_of_models(models: &[ModelCompared]) -> Vec<Vec<String>> {
    let line = |name: &str, value: fn(&ModelCompared) -> String| {
        std::iter::once(name.to_owned()).chain(models.iter().map(value)).collect()
    };
    let more = vec![
        line("orders executed again", |one| shown(one.orders)),
        line("rejected by the model", |one| shown(one.rejected)),
        line("refused in the run, left out", |one| shown(one.left_out)),
    ];
    numbers_of(models, |one| &one.model, |one| &one.fills, more)
}

fn shown(number: u64) -> String {
    grouped(&number.to_string())
}

fn both(recorded: u64, simulated: u64) -> String {
    format!("{} in the run, {} simulated", shown(recorded), shown(simulated))
}

/// A number of things.
fn count(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", grouped(&number.to_string()))
}

/// One thing on one line.
fn said(told: Option<&Told>) -> Result<String> {
    let Some(told) = told else { return Ok("nothing".to_owned()) };
    let (what, text) = match &told.told {
        ToldKind::Command(command) => ("command", serde_json::to_string(command)?),
        ToldKind::Signal(signal) => ("signal", serde_json::to_string(signal)?),
        ToldKind::Event(event) => ("event", serde_json::to_string(event)?),
        ToldKind::Fault(fault) => ("fault", serde_json::to_string(fault)?),
    };
    let time = told.ts_event.map(|time| format!(" at {time}")).unwrap_or_default();
    Ok(format!("{what}{time}: {}", on_one_line(&text)))
}
