//! Builds and calls the `kumiki` program.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::project::Project;
use crate::{heavy, process};

/// Compiles the program.
pub(crate) fn build(project: &Project) -> Result<()> {
    process::run(project.cargo().args(["build", "--release", "-p", "cli"]))?;
    compile_strategies(project)
}

/// Compiles the programs that tests start, from the same crates that the tests are linked with: without a
/// test among what is built, crates have other features, and each would be compiled twice.
pub(crate) fn build_with_tests(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["build", "--release", "--workspace", "--test", "program"]);
    // Not all programs: Windows would not let the one that runs be replaced.
    process::run(command.args(["--bin", "kumiki", "--bin", "update_job"]))?;
    compile_strategies(project)
}

/// Compiles what replays: the whole program where DuckDB is compiled already, else one for replays alone,
/// which takes a fifth of the time. Tells whether it is the whole one.
pub(crate) fn build_for_replay(project: &Project) -> Result<bool> {
    if heavy::is_database_compiled(project) {
        return build(project).map(|()| true);
    }
    let mut command = project.cargo();
    command.args(["build", "--release", "-p", "cli", "--no-default-features"]);
    process::run(&mut command)?;
    compile_strategies(project).map(|()| false)
}

/// Compiles the strategies that were built before: what the program finds beside itself then needs no
/// compiling at its first run.
fn compile_strategies(project: &Project) -> Result<()> {
    if !project.release().join("strategies").is_dir() {
        return Ok(());
    }
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
