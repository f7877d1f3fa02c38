//! `kumiki replay compare-live`: a run on the live market beside the simulated exchange.

use anyhow::Result;
use domain::text::on_one_line;
use live::compare::{
    COMPARE_FILE, ComparedLive, FirstDifference, ModelCompared, Told, ToldKind, compare,
};
use results::output::json;

use crate::Ending;
use crate::args::{CompareLiveArgs, Format};
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
    Ok(if found.identical { Ending::Done } else { Ending::Different })
}

fn print_table(found: &ComparedLive) -> Result<()> {
    let component = on_one_line(&found.component);
    for one in &found.models {
        let ModelCompared { model, orders, signals, fills, .. } = one;
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
    if !found.identical {
        print!("\n{}", columns(&numbers(&found.models)));
    }
    if found.torn {
        println!("a crash has cut off the end of the journal; the rest was compared");
    }
    Ok(())
}

/// The numbers of the models side by side.
fn numbers(models: &[ModelCompared]) -> Vec<Vec<String>> {
    let line = |name: &str, value: &dyn Fn(&ModelCompared) -> String| {
        std::iter::once(name.to_owned()).chain(models.iter().map(value)).collect()
    };
    let shown = |number: u64| grouped(&number.to_string());
    let both = |recorded: u64, simulated: u64| {
        format!("{} in the run, {} simulated", shown(recorded), shown(simulated))
    };
    let pieces =
        |fills: u64, shares: u64| format!("{} of {}", shown(fills), count(shares, "share"));
    vec![
        line("", &|one| one.model.clone()),
        line("orders", &|one| both(one.orders.recorded, one.orders.simulated)),
        line("signals", &|one| both(one.signals.recorded, one.signals.simulated)),
        line("fills", &|one| both(one.fills.recorded, one.fills.simulated)),
        line("shares filled in both", &|one| shown(one.fills.shares_matched)),
        line("missed fills", &|one| pieces(one.fills.missed, one.fills.shares_missed)),
        line("extra fills", &|one| pieces(one.fills.extra, one.fills.shares_extra)),
        line("cost, simulated", &|one| format!("{} yen", grouped(&one.fills.slippage.to_string()))),
    ]
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
