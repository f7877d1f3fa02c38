//! `cargo xtask test`: everything that must hold, step by step.

use anyhow::Result;

use crate::project::Project;
use crate::steps::Steps;
use crate::{doctor, guests, heavy, host, process, python, schemas};

/// Runs all steps; the first failure ends it.
pub(crate) fn run(project: &Project, no_lint: bool) -> Result<()> {
    doctor::require(project, !no_lint)?;
    heavy::announce(project);
    let mut steps = Steps::new(if no_lint { 5 } else { 8 });
    if !no_lint {
        steps.step("format", || format(project))?;
    }
    steps.step("guests", || guests::build(project))?;
    if !no_lint {
        steps.step("lints", || lint(project))?;
        steps.step("documentation", || document(project))?;
    }
    steps.step("host", || host::build(project))?;
    steps.step("tests", || test(project))?;
    steps.step("schemas", || schemas::check(project))?;
    steps.step("statistics against Python packages", || python::test(project))?;
    println!("{}", steps.verdict());
    Ok(())
}

fn format(project: &Project) -> Result<()> {
    process::run(project.cargo().args(["fmt", "--all", "--check"]))?;
    let mut command = project.cargo();
    command.args(["fmt", "--all", "--check", "--manifest-path"]);
    process::run(command.arg(project.guests_manifest()))
}

fn lint(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--release"]);
    process::run(command.args(["--", "--deny", "warnings"]))?;
    guests::lint(project)
}

fn document(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["doc", "--workspace", "--no-deps", "--release"]);
    process::run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn test(project: &Project) -> Result<()> {
    // The guests first: they take seconds, and the last counts on the screen are the project's.
    guests::test(project)?;
    if doctor::has_nextest(project) {
        // nextest does not run the examples of the documentation.
        process::run(project.cargo().args(["test", "--doc", "--release", "--workspace"]))?;
        let mut command = project.cargo();
        command.args(["nextest", "run", "--cargo-profile", "release", "--workspace"]);
        process::run(&mut command)
    } else {
        process::run(project.cargo().args(["test", "--release", "--workspace"]))
    }
}
