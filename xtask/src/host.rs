//! Builds and calls the `kumiki` program.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::project::Project;

/// Compiles the program.
pub(crate) fn build(project: &Project) -> Result<()> {
    process::run(project.cargo().args(["build", "--release", "-p", "cli"]))
}

/// The program, in the project's folder.
pub(crate) fn program(project: &Project) -> Command {
    let mut command = Command::new(project.program());
    command.current_dir(&project.root);
    command
}
