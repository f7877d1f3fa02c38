//! `cargo xtask test`: everything that must hold, step by step.

use std::fs;

use anyhow::{Context, Result};

use crate::project::Project;
use crate::skips::Skips;
use crate::steps::Steps;
use crate::{doctor, guests, heavy, host, languages, process, python, schemas};

/// Runs all steps; the first failure ends it.
pub(crate) fn run(project: &Project, no_lint: bool) -> Result<()> {
    doctor::require(project, !no_lint)?;
    heavy::announce(project);
    let mut steps = Steps::new(if no_lint { 6 } else { 9 });
    let mut skips = Skips::default();
    if !no_lint {
        steps.step("format", || format(project))?;
    }
    steps.step("guests", || guests::build(project))?;
    steps.step("guests in other languages", || languages::build(project))?;
    if !no_lint {
        steps.step("lints", || lint(project))?;
        steps.step("documentation", || document(project))?;
    }
    steps.step("host", || host::build(project))?;
    steps.step("tests", || test(project, &mut skips))?;
    steps.step("schemas", || schemas::check(project))?;
    steps.step("statistics against Python packages", || python::test(project, &mut skips))?;
    println!("{}; {}", steps.verdict(), skips.told());
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

fn test(project: &Project, skips: &mut Skips) -> Result<()> {
    // The guests first: they take seconds, and the last counts on the screen are the project's.
    skips.take_output(&guests::test(project)?);
    if !doctor::has_nextest(project) {
        let mut command = project.cargo();
        command.args(["test", "--release", "--workspace", "--", "--show-output"]);
        skips.take_output(&process::run_and_read(&mut command)?);
        return Ok(());
    }
    // nextest does not run the examples of the documentation.
    let mut command = project.cargo();
    command.args(["test", "--doc", "--release", "--workspace", "--", "--show-output"]);
    skips.take_output(&process::run_and_read(&mut command)?);
    let mut command = project.cargo();
    command.args(["nextest", "run", "--cargo-profile", "release", "--workspace"]);
    process::run(&mut command)?;
    // Where .config/nextest.toml has it written.
    let report = project.target.join("nextest").join("default").join("junit.xml");
    let read = fs::read_to_string(&report);
    skips.take_report(&read.with_context(|| format!("cannot read {}", report.display()))?);
    Ok(())
}
