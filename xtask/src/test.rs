//! `cargo xtask test`: everything that must hold, step by step.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use crate::doctor::Purpose;
use crate::failures::Failures;
use crate::process::Shown;
use crate::production_port::Guard;
use crate::project::Project;
use crate::skips::Skips;
use crate::steps::Steps;
use crate::{
    browser, dist, doctor, graphql_audit, guests, heavy, host, junit, languages, process, python,
    schemas,
};

/// Runs all steps; the first failure ends it, and is told on stdout too: a reader of either stream
/// finds it at the end.
pub(crate) fn run(project: &Project, no_lint: bool) -> Result<()> {
    let lints = if no_lint { Purpose::Everything } else { Purpose::EverythingAndLints };
    doctor::require(project, lints)?;
    let _progress = heavy::announce(project);
    let mut steps = Steps::new(if no_lint { 10 } else { 13 });
    let mut skips = Skips::default();
    let guard = Guard::hold()?;
    let ended = run_steps(project, no_lint, &mut steps, &mut skips).and_then(|()| guard.release());
    let ended = ended.map_err(|error| anyhow!("{error:#}\n{}, then one failed", steps.passed()));
    match &ended {
        Ok(()) => println!("{}; {}", steps.verdict(), skips.told()),
        Err(error) => println!("error: {error}"),
    }
    ended
}

fn run_steps(project: &Project, no_lint: bool, steps: &mut Steps, skips: &mut Skips) -> Result<()> {
    if !no_lint {
        steps.step("format", || format(project))?;
    }
    steps.step("guests", || guests::build(project))?;
    steps.step("guests in other languages", || languages::build(project))?;
    steps.step("tests without a database", || test_without_database(project, skips))?;
    if !no_lint {
        steps.step("lints", || lint(project))?;
        steps.step("documentation", || document(project))?;
    }
    steps.step("host", || host::build_with_tests(project))?;
    steps.step("packages", || dist::test(project, skips))?;
    steps.step("browser", || browser::prepare(project))?;
    steps.step("audit suite of GraphQL", || graphql_audit::prepare(project))?;
    steps.step("tests", || test(project, skips))?;
    steps.step("schemas", || schemas::check(project))?;
    steps.step("engine end to end, and statistics, by Python", || python::test(project, skips))
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
    // The program that the demo starts with, and the one that only lacks DuckDB.
    for features in [&[][..], &["--features", "live"]] {
        let mut command = project.cargo();
        command.args(["clippy", "--package", "cli", "--no-default-features", "--release"]);
        process::run(command.args(features).args(["--", "--deny", "warnings"]))?;
    }
    guests::lint(project)
}

fn document(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["doc", "--workspace", "--no-deps", "--release"]);
    process::run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Runs what needs no DuckDB before that is compiled: the guests' tests and, where nextest can choose them,
/// those of the crates below. What is wrong there is told in minutes on a fresh machine.
fn test_without_database(project: &Project, skips: &mut Skips) -> Result<()> {
    let mut failures = Failures::default();
    take(guests::test(project)?, skips, &mut failures);
    if doctor::has_nextest(project) {
        nextest(project, Part::WithoutDatabase, skips, &mut failures)?;
    }
    failures.verdict()
}

/// Runs all other tests, so that one run tells of all that fail.
fn test(project: &Project, skips: &mut Skips) -> Result<()> {
    let mut failures = Failures::default();
    let has_nextest = doctor::has_nextest(project);
    let mut command = project.cargo();
    // nextest does not run the examples of the documentation.
    command.args(["test", "--release", "--workspace", "--no-fail-fast"]);
    command.args(has_nextest.then_some("--doc")).args(["--", "--show-output"]);
    take(process::run_and_read(&mut command)?, skips, &mut failures);
    if has_nextest {
        nextest(project, Part::Rest, skips, &mut failures)?;
    }
    failures.verdict()
}

fn take(shown: Shown, skips: &mut Skips, failures: &mut Failures) {
    skips.take_output(&shown.out);
    failures.take_output(&shown.out);
    failures.take_end(shown.ended);
}

/// Packages that are made with DuckDB.
const WITH_DATABASE: [&str; 5] = ["bench", "pricestore", "ranking", "tests", "update"];
/// The program, which is made with and without it.
const PROGRAM: &str = "cli";

/// Which tests nextest runs.
#[derive(Debug, Clone, Copy)]
enum Part {
    WithoutDatabase,
    Rest,
}

impl Part {
    /// Chooses them. The program without DuckDB is among what is compiled first, because it says with which
    /// features the others are: they are compiled once for both parts.
    fn choose(self, command: &mut Command) {
        match self {
            Self::WithoutDatabase => {
                WITH_DATABASE.iter().for_each(|package| _ = command.args(["--exclude", package]));
                command.args(["--no-default-features", "--features", "cli/live", "-E"]);
                command.arg(format!("not package(={PROGRAM})"));
            }
            Self::Rest => {
                let packages = [&WITH_DATABASE[..], &[PROGRAM]].concat();
                let packages = packages.into_iter().map(|package| format!("package(={package})"));
                command.arg("-E").arg(packages.collect::<Vec<_>>().join(" | "));
            }
        }
    }
}

fn nextest(
    project: &Project,
    part: Part,
    skips: &mut Skips,
    failures: &mut Failures,
) -> Result<()> {
    // nextest keeps its reports in the checkout unless a configuration says where the target folder is.
    let store = project.target.join("nextest");
    let report = store.join("default").join("junit.xml");
    fs::create_dir_all(&store).with_context(|| format!("cannot make {}", store.display()))?;
    junit::remove(&report)?;
    let config = store.join("config.toml");
    fs::write(&config, nextest_config(&store))
        .with_context(|| format!("cannot write {}", config.display()))?;
    let mut command = project.cargo();
    command.args(["nextest", "run", "--cargo-profile", "release", "--workspace"]);
    command.args(["--no-fail-fast", "--config-file"]).arg(&config);
    part.choose(&mut command);
    let ended = process::run(&mut command);
    let failed = ended.is_err();
    failures.take_end(ended);
    match fs::read_to_string(&report) {
        Ok(report) => {
            skips.take_report(&report);
            failures.take_report(&report);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The project's packages that are made with a package, however far below.
    fn made_with(project: &Project, package: &str) -> BTreeSet<String> {
        let mut command = project.cargo();
        command.args(["tree", "--workspace", "--locked", "--edges", "normal,build,dev"]);
        command.args(["--prefix", "none", "--format", "{p}", "--invert", package]);
        let told = process::ask(&mut command);
        assert!(told.ok, "{}", told.err);
        let folder = format!("({}", project.root.display());
        let own = told.out.lines().filter(|line| line.contains(&folder));
        own.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    #[test]
    fn the_parts_are_told_apart_by_the_database() {
        let project = Project::find(None).expect("the tests run inside the project");
        let wanted = WITH_DATABASE.into_iter().chain([PROGRAM]).map(str::to_owned).collect();
        assert_eq!(made_with(&project, heavy::DATABASE_PACKAGE), wanted);
    }

    #[test]
    fn every_test_is_of_one_part() {
        let arguments = |part: Part| {
            let mut command = Command::new("cargo");
            part.choose(&mut command);
            let shown = command.get_args().map(|one| one.to_string_lossy().into_owned());
            shown.collect::<Vec<_>>().join(" ")
        };
        let shown = arguments(Part::WithoutDatabase);
        assert!(shown.ends_with("--features cli/live -E not package(=cli)"), "{shown}");
        for package in WITH_DATABASE {
            assert!(shown.contains(&format!("--exclude {package} ")), "{shown}");
        }
        let rest = arguments(Part::Rest);
        let wanted = "-E package(=bench) | package(=pricestore) | package(=ranking) | package(=tests) \
                      | package(=update) | package(=cli)";
        assert_eq!(rest, wanted);
    }
}
