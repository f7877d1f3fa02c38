//! `cargo xtask demo`: from nothing to a report in the browser.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::project::Project;
use crate::{guests, host, process};

const DATA: &str = "runs/demo/data";
const REPORT: &str = "runs/demo/report";
const INSTRUMENT: &str = "7203.TSE";

/// Builds, makes sample data, replays a strategy over it and shows the report.
pub(crate) fn run(project: &Project, no_open: bool) -> Result<()> {
    guests::build(project)?;
    let is_whole = host::build_for_replay(project)?;
    let mut sample = host::program(project);
    sample.args(["data", "sample", "--out", DATA, "--seed", "7", "--days", "20"]);
    process::run(sample.args(["--instrument", INSTRUMENT]))?;
    let mut replay = host::program(project);
    replay.args(["replay", "run", "sma-cross", "--data", DATA, "--instrument", INSTRUMENT]);
    process::run(replay.args(["--out", REPORT]))?;
    let page = project.root.join(REPORT).join("report.html");
    if !page.is_file() {
        bail!("the replay succeeded, but wrote no {}", page.display());
    }
    println!("{}", page.display());
    if !is_whole {
        eprintln!(
            "this `kumiki` has no DuckDB; for rankings, SQL and the daily job, `cargo xtask setup`, then \
             `cargo build --release -p cli`"
        );
    }
    if !no_open {
        open(&page);
    }
    Ok(())
}

/// Opens the report where there is a desktop. A browser that does not start is no failure: the
/// path was printed.
fn open(page: &Path) {
    let Some(mut command) = opener(env::consts::OS, |name| env::var_os(name).is_some()) else {
        return;
    };
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        eprintln!("cannot open it with `{}`: {error}", process::shown(&command));
    }
}

/// The command that opens a file for the user, if a desktop can be expected.
fn opener(system: &str, is_set: impl Fn(&str) -> bool) -> Option<Command> {
    if is_set("CI") {
        return None;
    }
    match system {
        "macos" => Some(Command::new("open")),
        "windows" => {
            let mut command = Command::new("cmd");
            // `start` takes its first quoted argument for a window title.
            command.args(["/C", "start", ""]);
            Some(command)
        }
        _ if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") => Some(Command::new("xdg-open")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(system: &str, set: &[&str]) -> Option<String> {
        let command = opener(system, |name| set.contains(&name))?;
        Some(command.get_program().to_string_lossy().into_owned())
    }

    #[test]
    fn opens_only_where_somebody_can_look() {
        assert_eq!(program("macos", &[]).as_deref(), Some("open"));
        assert_eq!(program("windows", &[]).as_deref(), Some("cmd"));
        assert_eq!(program("linux", &["DISPLAY"]).as_deref(), Some("xdg-open"));
        assert_eq!(program("linux", &["WAYLAND_DISPLAY"]).as_deref(), Some("xdg-open"));
        assert_eq!(program("linux", &[]), None);
        assert_eq!(program("macos", &["CI"]), None);
        assert_eq!(program("linux", &["CI", "DISPLAY"]), None);
    }
}
