//! `kumiki replay verify`: make a run again from its folder and say whether the same came out.

use std::path::Path;

use anyhow::{Context, Result};
use atomic_file::AtomicFolder;
use replay::RequestError;
use replay::verify::{Difference, OtherFiles, Verification, VerifyError, VerifyRequest};
use results::output::REPORT_FILE;
use results::output::json;
use serde_json::json;
use trader::Strategies;

use crate::Ending;
use crate::args::{Format, VerifyArgs};
use crate::interrupt::Interrupt;
use crate::paths;
use crate::replay_run::{self, Screen};

/// Letters of a value that are shown: a whole table of rules in a line helps nobody.
const SHOWN_LETTERS_MAX: usize = 200;

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    // Nothing that was decoded or compiled before is used; the folder goes when this ends.
    let cold = AtomicFolder::create_beside(&std::env::temp_dir().join("kumiki-verify"))
        .context("cannot make a folder for an empty cache")?;
    let cache = cold.unfinished_path().to_owned();
    let folder = paths::strategies_folder(args.strategies.as_deref())?;
    let request = VerifyRequest {
        folder: args.folder.clone(),
        data: args.data.clone(),
        strategy: args.strategy.clone(),
        strategies: Strategies { folder, cache, shipped: None },
        limits: args.limits.changes().to_vec(),
    };
    let found = match request.run(&mut Screen::new(&interrupt)) {
        Ok(found) => found,
        Err(VerifyError::Request(
            error @ (RequestError::Cancelled { .. } | RequestError::Stopped),
        )) => return replay_run::ended(error),
        Err(error @ VerifyError::Stopped) => {
            eprintln!("{error}");
            return Ok(Ending::Interrupted);
        }
        Err(error) => return Err(error.into()),
    };
    match args.format {
        Format::Table => print_table(&found, &args.data),
        Format::Json => {
            let told = json!({
                "verdict": verdict(&found), "found": found, "not_compared": [REPORT_FILE],
            });
            print!("{}", json::text(&told));
        }
    }
    Ok(match &found {
        found if found.is_from_other_data() => Ending::InputsChanged,
        found if found.is_same() => Ending::Done,
        _ => Ending::Different,
    })
}

/// One word for scripts.
fn verdict(found: &Verification) -> &'static str {
    match found {
        found if found.is_from_other_data() => "inputs changed",
        found if found.is_same() => "same",
        _ => "different",
    }
}

fn print_table(found: &Verification, data: &Path) {
    if !found.inputs_changed.is_empty() {
        let data = data.display();
        println!(
            "nothing was run: this is not what the run was made from (data: {data}; --data and --strategy name others)"
        );
        for one in &found.inputs_changed {
            let (was, is) = (shown(&one.was), shown(&one.is));
            println!("  {} changed since the run: was {was}, is {is}", one.what);
        }
        return;
    }
    println!("the run: window {}, event log {}", found.window, found.event_log_digest);
    for limit in &found.limits_changed {
        println!("limit {}: {} in place of the run's {}", limit.what, limit.is, limit.was);
    }
    for run in &found.runs {
        let path = run.path;
        if run.differences.is_empty() {
            println!("again, {path} calls, window 1: the same");
            continue;
        }
        println!("again, {path} calls, window 1: NOT THE SAME");
        print_differences(&run.differences);
    }
    println!("{REPORT_FILE} is made from the other files, and was not compared");
    if let Some(OtherFiles { names, more }) = &found.others
        && !names.is_empty()
    {
        let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
        println!("not written by the run, and not looked at: {}{more}", quoted.join(", "));
    }
    if !found.is_same() && !found.limits_changed.is_empty() {
        println!(
            "with other limits than the run's something else may come out; leave --guest-limit out"
        );
    } else if !found.is_same() && found.window > 1 {
        println!(
            "with a window of {} the strategy had trades in its memory before their time; it may \
             have seen the future",
            found.window
        );
    }
}

fn print_differences(differences: &[Difference]) {
    for one in differences {
        println!("  {}: was {}, is {}", one.what, shown(&one.was), shown(&one.is));
    }
}

/// The start of a value; JSON holds all of it.
fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let start: String = letters.by_ref().take(SHOWN_LETTERS_MAX).collect();
    match (start.is_empty(), letters.next()) {
        (true, _) => "none".to_owned(),
        (false, None) => start,
        (false, Some(_)) => format!("{start}... ({} bytes)", text.len()),
    }
}
