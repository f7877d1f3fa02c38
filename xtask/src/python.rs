//! The comparison of our statistics with public Python packages. Its virtual environment is made in the
//! target folder; where that cannot be (no Python, no network) the comparison is skipped, with the
//! reason: the project itself needs Rust and nothing else.

use std::ffi::OsString;
use std::num::NonZero;
use std::process::Command;
use std::{env, fs, thread};

use anyhow::Result;

use crate::environment::{Environment, system_pythons};
use crate::failures::Failures;
use crate::project::Project;
use crate::skips::Skips;
use crate::{junit, process};

const TESTS: &str = "clients/python/tests";
/// Names another interpreter, like that of a virtual environment.
const VARIABLE: &str = "KUMIKI_PYTHON";
/// What a usable interpreter can do without failing.
const PROBE: &str = "import sys, pytest, xdist, numpy, pandas, websockets, jsonschema\n\
                     assert sys.version_info >= (3, 9), 'Python is older than 3.9'\n\
                     try: import empyrical\n\
                     except ImportError: import quantstats";
/// Where it all is installed.
const ENVIRONMENT: Environment = Environment {
    folder: "python-tests",
    requirements: "clients/python/requirements.txt",
    probe: PROBE,
    optional: Some("clients/python/requirements-ray.txt"),
};

/// Runs the tests; says why where it cannot. The program must have been built.
pub(crate) fn test(project: &Project, skips: &mut Skips) -> Result<()> {
    run(project, TESTS, "statistics against Python packages", None, skips)
}

/// Runs one test with more seeds than [`test()`] takes: `seeds` is the variable that says how many, and that
/// number.
pub(crate) fn soak(
    project: &Project,
    test: &str,
    seeds: (&str, u64),
    skips: &mut Skips,
) -> Result<()> {
    run(project, &format!("{TESTS}/{test}"), "sessions with the engine", Some(seeds), skips)
}

fn run(
    project: &Project,
    tests: &str,
    what: &str,
    seeds: Option<(&str, u64)>,
    skips: &mut Skips,
) -> Result<()> {
    let python = match interpreter(project) {
        Ok(python) => python,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            eprintln!("    clients/python/README.md says what is needed; {VARIABLE} names it");
            skips.add(what, &reason);
            return Ok(());
        }
    };
    let report = project.target.join("pytest.xml");
    let mut command = Command::new(python);
    command.current_dir(&project.root).args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    // Most tests wait for a process, so there are more at once than processors.
    let at_once = thread::available_parallelism().map_or(1, NonZero::get) + 1;
    command.args(["-n", &at_once.to_string(), "--dist", "worksteal"]);
    command.arg(format!("--junitxml={}", report.display())).arg(tests);
    command.envs(seeds.map(|(variable, number)| (variable, number.to_string())));
    command.env("KUMIKI_PROGRAM", project.program()).env("PYTHONDONTWRITEBYTECODE", "1");
    junit::remove(&report)?;
    let mut failures = Failures::default();
    failures.take_end(process::run(&mut command));
    // Without one it failed before the first test, and has said so.
    if let Ok(report) = fs::read_to_string(&report) {
        skips.take_report(&report);
        failures.take_report(&report);
    }
    failures.verdict()
}

/// An interpreter that has what the tests need: the one that was named; else that of our own
/// environment; else one of the system that has it all. Otherwise the reason.
fn interpreter(project: &Project) -> Result<OsString, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        let answer = process::ask(Command::new(&named).args(["-c", PROBE]));
        let reason = || {
            format!("{VARIABLE}={} is not usable: {}", named.to_string_lossy(), answer.last_line())
        };
        return if answer.ok { Ok(named.clone()) } else { Err(reason()) };
    }
    ENVIRONMENT.python(project).or_else(|reason| {
        let usable = |name: &OsString| process::ask(Command::new(name).args(["-c", PROBE])).ok;
        system_pythons().find(usable).ok_or(reason)
    })
}
