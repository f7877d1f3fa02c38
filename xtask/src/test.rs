//! `cargo xtask test`: everything that must hold, step by step.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use crate::cases::{self, Case, of_cargo_test, of_junit, slowest};
use crate::failures::Failures;
use crate::project::Project;
use crate::skips::Skips;
use crate::steps::Steps;
use crate::{
    browser, docs, doctor, graphql_audit, guests, host, languages, other_systems, page_guests,
    process, production_port, python, schemas, windows,
};

/// Names the interpreter that runs the blocks of Python in pages.
const PAGES_PYTHON: &str = "KUMIKI_PAGES_PYTHON";
/// Tests that are told at the end as the slowest, of those whose runner says how long they took.
const SLOWEST: usize = 20;

/// Runs all steps; the first failure ends it, and is told on stdout too: a reader of either stream
/// finds it at the end.
pub(crate) fn run(project: &Project, no_lint: bool) -> Result<()> {
    let mut steps = Steps::new();
    let mut skips = Skips::default();
    let mut timed = Vec::new();
    let ended =
        production_port::held(|| run_steps(project, no_lint, &mut steps, &mut skips, &mut timed));
    eprint!("the slowest tests:\n{}", slowest(&timed, SLOWEST));
    let ended = ended.map_err(|error| anyhow!("{error:#}\n{}, then one failed", steps.passed()));
    match &ended {
        Ok(()) => println!("{}; {}", steps.passed(), skips.told()),
        Err(error) => println!("error: {error}"),
    }
    ended
}

fn run_steps(
    project: &Project,
    no_lint: bool,
    steps: &mut Steps,
    skips: &mut Skips,
    timed: &mut Vec<Case>,
) -> Result<()> {
    if !no_lint {
        steps.step("format", || format(project))?;
    }
    steps.step("guests", || guests::build(project))?;
    steps.step("guests of the pages", || page_guests::build(project))?;
    steps.step("guests in other languages", || languages::build(project))?;
    if !no_lint {
        steps.step("lints", || lint(project))?;
        steps.step("documentation", || document(project))?;
    }
    steps.step("other systems", || other_systems::check(project, skips))?;
    steps.step("host", || host::build_with_tests(project))?;
    steps.step("browser", || browser::prepare(project))?;
    steps.step("audit suite of GraphQL", || graphql_audit::prepare(project))?;
    steps.step("tests", || test(project, skips, timed))?;
    steps.step("schemas", || schemas::check(project))?;
    steps.step("Windows program", || windows::try_out(project, skips, timed))?;
    steps.step("engine end to end, and statistics, by Python", || {
        python::test(project, python::TESTS, &[], skips, timed)
    })
}

fn format(project: &Project) -> Result<()> {
    process::run(project.cargo().args(["fmt", "--all", "--check"]))?;
    let mut command = project.cargo();
    command.args(["fmt", "--all", "--check", "--manifest-path"]);
    process::run(command.arg(project.guests_manifest()))
}

fn lint(project: &Project) -> Result<()> {
    let mut command = project.cargo_with_database("clippy --workspace --all-targets");
    process::run(command.args(["--", "--deny", "warnings"]))?;
    // The program that the demo starts with.
    let mut command = project.cargo();
    command.args(["clippy", "--package", "cli", "--no-default-features", "--release"]);
    process::run(command.args(["--", "--deny", "warnings"]))?;
    guests::lint(project)
}

fn document(project: &Project) -> Result<()> {
    docs::check(project)?;
    let mut command = project.cargo_with_database("doc --workspace --no-deps");
    process::run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Runs all tests, so that one run tells of all that fail.
fn test(project: &Project, skips: &mut Skips, timed: &mut Vec<Case>) -> Result<()> {
    let mut failures = Failures::default();
    take(guests::test(project)?, skips, &mut failures);
    let has_nextest = doctor::has_nextest(project);
    // Where there is none, the step of the tests in Python says why.
    let python = python::interpreter(project).ok().map(|python| (PAGES_PYTHON, python));
    let mut command = project.cargo_with_database("test --workspace --no-fail-fast");
    // nextest does not run the examples of the documentation.
    command.args(has_nextest.then_some("--doc")).args(["--", "--show-output"]);
    command.envs(python.clone());
    take(process::run_and_read(&mut command)?, skips, &mut failures);
    if has_nextest {
        nextest(project, python, skips, timed, &mut failures)?;
    }
    failures.verdict()
}

fn take((output, ended): (String, Result<()>), skips: &mut Skips, failures: &mut Failures) {
    let cases = of_cargo_test(&output);
    skips.take(&cases);
    failures.take(&cases);
    failures.take_end(ended);
}

fn nextest(
    project: &Project,
    variables: impl IntoIterator<Item = (&'static str, OsString)>,
    skips: &mut Skips,
    timed: &mut Vec<Case>,
    failures: &mut Failures,
) -> Result<()> {
    // nextest keeps its reports in the checkout unless a configuration says where the target folder is.
    let store = project.target.join("nextest");
    let report = store.join("default").join("junit.xml");
    fs::create_dir_all(&store).with_context(|| format!("cannot make {}", store.display()))?;
    cases::remove(&report)?;
    let config = store.join("config.toml");
    fs::write(&config, nextest_config(&store))
        .with_context(|| format!("cannot write {}", config.display()))?;
    let mut command = project.cargo_with_database("nextest run --workspace --no-fail-fast");
    command.arg("--config-file").arg(&config).envs(variables);
    let ended = process::run(&mut command);
    let failed = ended.is_err();
    failures.take_end(ended);
    match fs::read_to_string(&report) {
        Ok(report) => {
            let cases = of_junit(&report);
            skips.take(&cases);
            failures.take(&cases);
            timed.extend(cases);
            Ok(())
        }
        // It failed before the first test, and has said so.
        Err(_) if failed => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", report.display())),
    }
}

/// What tests print is kept, so that the end can tell which of them were skipped.
fn nextest_config(store: &Path) -> String {
    let store = Value::from(store.display().to_string());
    // A text is the same in JSON and in TOML.
    format!(
        "[store]\ndir = {store}\n\n\
         [profile.default.junit]\npath = \"junit.xml\"\nstore-success-output = true\n"
    )
}
