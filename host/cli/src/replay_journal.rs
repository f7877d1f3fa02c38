//! `kumiki replay journal`: make the decisions of a live run again and say whether the same came out.

use anyhow::Result;
use live::journal::{Difference, Output, Reproduced, reproduce};
use results::output::json;

use crate::Ending;
use crate::args::{Format, JournalArgs};
use crate::{output, paths};

/// What is said of a journal without an end.
pub(crate) const NOT_ENDED: &str =
    "the run has not ended: it still runs, or it was killed; what its journal has so far was used";

/// Runs the command.
pub(crate) fn run(args: &JournalArgs) -> Result<Ending> {
    let cache = args.cache_dir.clone().or_else(paths::system_cache);
    let found = match reproduce(&args.path, args.component.as_deref(), cache.as_deref()) {
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
    // A single file may be one of several.
    if !found.has_end && args.path.is_dir() {
        match args.format {
            Format::Table => println!("{NOT_ENDED}"),
            Format::Json => eprintln!("{NOT_ENDED}"),
        }
    }
    Ok(if found.identical { Ending::Done } else { Ending::Different })
}

fn print_table(found: &Reproduced) -> Result<()> {
    let Reproduced { outputs, first_difference, torn, component, .. } = found;
    let Some(component) = component else {
        println!("the run was killed before its journal had a line; there is nothing to compare");
        return Ok(());
    };
    let component = domain::text::on_one_line(component);
    match first_difference {
        None => println!("identical: {outputs} outputs of `{component}` came out again"),
        Some(Difference { index, recorded, reproduced }) => {
            println!("NOT THE SAME: output {index} of {outputs} (from 0) of `{component}`");
            println!("  recorded:   {}", told(recorded.as_ref())?);
            println!("  reproduced: {}", told(reproduced.as_ref())?);
        }
    }
    if *torn {
        println!("the end of the journal is cut off; the last line was left out");
    }
    Ok(())
}

/// An output on one line.
fn told(output: Option<&Output>) -> Result<String> {
    Ok(match output {
        None => "nothing".to_owned(),
        Some(output) => {
            let text = serde_json::to_string(&output.output)?;
            let place = format!("{} (call {})", output.input, output.call);
            let time = output.ts_event.map(|time| format!(" at {time}")).unwrap_or_default();
            format!("{place}{time}: {}", domain::text::on_one_line(&text))
        }
    })
}
