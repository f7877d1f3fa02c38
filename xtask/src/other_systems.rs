//! Crates with hardly any C code are checked for systems whose programs cannot be made here.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::project::Project;
use crate::skips::Skips;

/// The systems, as rustup calls them.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-msvc"];
/// The crates; the others are left to machines with these systems.
const CRATES: [&str; 8] =
    ["domain", "exchange", "marketdata", "sandbox", "results", "trader", "replay", "sweep"];

/// Checks them for each system whose library is installed.
pub(crate) fn check(project: &Project, skips: &mut Skips) -> Result<()> {
    let installed = process::ask(Command::new("rustup").args(["target", "list", "--installed"]));
    for target in TARGETS {
        if !installed.out.lines().any(|line| line == target) {
            let reason = format!("its library is not installed; `rustup target add {target}` does");
            skips.say(&format!("check for {target}"), &reason);
            continue;
        }
        let mut command = project.cargo();
        command.args(["check", "--release", "--target", target]);
        // A check needs no object of the few functions in C that wasmtime brings, and no compiler here makes one.
        for tool in ["CC", "AR"] {
            command.env(format!("{tool}_{}", target.replace('-', "_")), "true");
        }
        process::run(command.args(CRATES.into_iter().flat_map(|name| ["--package", name])))?;
    }
    Ok(())
}
