//! Builds and calls the `kumiki` program.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process;
use crate::project::Project;

/// Compiles the program, and with it the strategies that were built before: what it finds beside itself
/// then needs no compiling at its first run.
pub(crate) fn build(project: &Project) -> Result<()> {
    process::run(project.cargo().args(["build", "--release", "-p", "cli"]))?;
    let mut compile = program(project);
    // The names of the strategies are for a terminal; our output belongs to others.
    compile.args(["strategy", "compile"]).stdout(Stdio::null());
    process::run(&mut compile)
}

/// The program, in the project's folder.
pub(crate) fn program(project: &Project) -> Command {
    let mut command = Command::new(project.program());
    command.current_dir(&project.root);
    command
}
