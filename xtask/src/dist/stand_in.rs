//! A stand-in for cargo, for a packager that wants to compile the program itself: it hands over the program
//! that was built before. The packager's own call would compile some crates once more with other features,
//! and ship another program than the one that was tested.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process;
use crate::project::Project;

/// Names the program to hand over; it also says that this process stands in.
const PROGRAM: &str = "KUMIKI_DIST_PROGRAM";
/// Names the true cargo.
const CARGO: &str = "KUMIKI_DIST_CARGO";

/// Makes a command use this program as its cargo.
pub(super) fn give(command: &mut Command, project: &Project, program: &Path) -> Result<()> {
    let ourselves = env::current_exe().context("where is this program?")?;
    command.env("CARGO", ourselves).env(PROGRAM, program);
    command.env(CARGO, project.cargo().get_program());
    Ok(())
}

/// Whether this process was started as somebody's cargo.
pub(crate) fn is_wanted() -> bool {
    env::var_os(PROGRAM).is_some()
}

/// Stands in: `cargo rustc` answers with the program, everything else goes to the true cargo.
pub(crate) fn run() -> Result<ExitCode> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let cargo = env::var_os(CARGO).with_context(|| format!("{CARGO} is not set"))?;
    if arguments.first().is_none_or(|first| first != "rustc") {
        let status = Command::new(&cargo).env("CARGO", &cargo).args(&arguments).status()?;
        return Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)));
    }
    let program = PathBuf::from(env::var_os(PROGRAM).unwrap_or_default());
    let mut after = arguments.iter().skip_while(|one| *one != "--manifest-path");
    let manifest = after.nth(1).context("cargo rustc without --manifest-path")?;
    let mut metadata = Command::new(&cargo);
    metadata.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    let answer = process::ask(metadata.arg(manifest));
    let metadata: Value = serde_json::from_str(&answer.out)
        .with_context(|| format!("cargo metadata: {}", answer.last_line()))?;
    for message in messages(&metadata, &program)? {
        println!("{message}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What cargo says of a program that is there already.
fn messages(metadata: &Value, program: &Path) -> Result<[Value; 2]> {
    if !program.is_file() {
        bail!("{} is missing", program.display());
    }
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == "cli").context("no package cli")?;
    let mut targets = package["targets"].as_array().into_iter().flatten();
    let target = targets.find(|target| target["name"] == "kumiki").context("no target kumiki")?;
    let path = program.to_str().context("the program's path is not text")?;
    let profile = json!({"opt_level": "3", "debuginfo": 0, "debug_assertions": false,
                         "overflow_checks": false, "test": false});
    Ok([
        json!({"reason": "compiler-artifact", "package_id": package["id"],
               "manifest_path": package["manifest_path"], "target": target, "profile": profile,
               "features": [], "filenames": [path], "executable": path, "fresh": true}),
        json!({"reason": "build-finished", "success": true}),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_is_there_is_handed_over() {
        let program = env::current_exe().expect("this test");
        let target = json!({"name": "kumiki", "kind": ["bin"]});
        let package = json!({"name": "cli", "id": "cli-1", "targets": [target]});
        let metadata = json!({"packages": [{"name": "other"}, package]});
        let [artefact, finished] = messages(&metadata, &program).expect("all is there");
        assert_eq!(artefact["package_id"], "cli-1");
        assert_eq!(artefact["executable"].as_str(), program.to_str());
        assert_eq!(finished["success"], true);
        assert!(messages(&metadata, Path::new("nowhere")).is_err());
        assert!(messages(&json!({"packages": []}), &program).is_err());
    }
}
