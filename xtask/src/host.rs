//! Builds and calls the `kumiki` program.

use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::{heavy, process};

/// Compiles the program.
pub(crate) fn build(project: &Project) -> Result<()> {
    process::run(project.cargo().args(["build", "--release", "-p", "cli"]))
}

/// Compiles what replays: the whole program where DuckDB is compiled already, else one without its
/// database, which takes a third of the time. Tells whether it is the whole one.
pub(crate) fn build_for_replay(project: &Project) -> Result<bool> {
    if heavy::is_database_compiled(project) {
        return build(project).map(|()| true);
    }
    let mut command = project.cargo();
    command.args(["build", "--release", "-p", "cli", "--no-default-features"]);
    process::run(&mut command).map(|()| false)
}

/// The program, in the project's folder.
pub(crate) fn program(project: &Project) -> Command {
    let mut command = Command::new(project.program());
    command.current_dir(&project.root);
    command
}
