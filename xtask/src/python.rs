//! The tests in Python: the engine from end to end, the package that drives it, and our statistics against public
//! packages. Where their virtual environment cannot be made (no Python, no network) they are skipped, each with
//! the reason: the project itself needs Rust and nothing else.

use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::{env, fs, thread};

use anyhow::{Context, Result, anyhow};

use crate::cases::{self, Case, of_junit};
use crate::environment::Environment;
use crate::failures::Failures;
use crate::process;
use crate::project::Project;
use crate::skips::Skips;

/// Their folder.
pub(crate) const TESTS: &str = "clients/python/tests";
/// Names another interpreter, like that of a virtual environment.
const VARIABLE: &str = "KUMIKI_PYTHON";
/// What a usable interpreter can do without failing.
const PROBE: &str = "import sys, pytest, xdist, numpy, pandas, websockets, jsonschema\n\
                     assert sys.version_info >= (3, 9), 'Python is older than 3.9'\n\
                     try: import empyrical\n\
                     except ImportError: import quantstats";
/// Where it all is installed.
const ENVIRONMENT: Environment = Environment {
    name: "python-tests",
    requirements: "clients/python/requirements.txt",
    probe: PROBE,
    optional: Some("clients/python/requirements-ray.txt"),
};

/// Runs the tests of a folder, or one test; says why where it cannot. The program must have been built.
/// `variables` say how many seeds tests take, or name another program.
pub(crate) fn test(
    project: &Project,
    tests: &str,
    variables: &[(&str, &str)],
    skips: &mut Skips,
    timed: &mut Vec<Case>,
) -> Result<()> {
    let python = match interpreter(project) {
        Ok(python) => python,
        Err(reason) => {
            // A single test is named with its file.
            let skipped = match tests.split_once("::") {
                Some((_, test)) => vec![test.to_owned()],
                None => tests_below(&project.root.join(tests))?,
            };
            eprintln!("skipped: {} tests in Python: {reason}", skipped.len());
            eprintln!("    clients/python/README.md says what is needed; {VARIABLE} names it");
            skipped.iter().for_each(|test| skips.add(test, &format!("tests in Python: {reason}")));
            return Ok(());
        }
    };
    let mut command = Command::new(python);
    command.current_dir(&project.root).args(["-m", "pytest"]);
    command.env("KUMIKI_PROGRAM", project.program());
    command.envs(variables.iter().copied());
    pytest(project, &mut command, [tests], skips, timed)
}

/// Runs tests by a command that starts pytest, and takes its report.
pub(crate) fn pytest(
    project: &Project,
    command: &mut Command,
    tests: impl IntoIterator<Item = impl AsRef<OsStr>>,
    skips: &mut Skips,
    timed: &mut Vec<Case>,
) -> Result<()> {
    let report = project.target.join("pytest.xml");
    command.args(["-q", "-p", "no:cacheprovider"]);
    // Most tests wait for a process, so there are more at once than processors.
    let at_once = thread::available_parallelism().map_or(1, NonZero::get) + 1;
    command.args(["-n", &at_once.to_string(), "--dist", "worksteal"]);
    command.arg(format!("--junitxml={}", report.display())).args(tests);
    // The tests need not hold the port themselves.
    command.env("KUMIKI_PRODUCTION_PORT_HELD", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    cases::remove(&report)?;
    let mut failures = Failures::default();
    failures.take_end(process::run(command));
    // Without one it failed before the first test, and has said so.
    if let Ok(report) = fs::read_to_string(&report) {
        let cases = of_junit(&report);
        skips.take(&cases);
        failures.take(&cases);
        timed.extend(cases);
    }
    failures.verdict()
}

/// Runs a script that uses what the tests share; fails where no Python can run it. The program must have been built.
pub(crate) fn run(project: &Project, script: &str, arguments: &[String]) -> Result<()> {
    let python = interpreter(project)
        .map_err(|reason| anyhow!("{script}: {reason}; {VARIABLE} names a Python"))?;
    let mut command = Command::new(python);
    command.current_dir(&project.root).arg(script).args(arguments);
    command.env("KUMIKI_PROGRAM", project.program()).env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut command)
}

/// The tests of a folder by their text, for where there is no Python: one that is made with many values
/// counts once.
fn tests_below(folder: &Path) -> Result<Vec<String>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut tests = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.extension().is_some_and(|end| end == "py") {
            let text = fs::read_to_string(&path).with_context(cannot)?;
            tests.extend(text.lines().filter_map(test_on).map(str::to_owned));
        }
    }
    tests.sort();
    Ok(tests)
}

/// The name of the test that begins on a line.
fn test_on(line: &str) -> Option<&str> {
    let name = line.strip_prefix("def ").or_else(|| line.strip_prefix("async def "))?;
    name.starts_with("test_").then(|| name.split('(').next())?
}

/// An interpreter that has what the tests need: the one that was named, else that of our own environment;
/// otherwise the reason.
pub(crate) fn interpreter(project: &Project) -> Result<OsString, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        let answer = process::ask(Command::new(&named).args(["-c", PROBE]));
        let reason = || {
            format!("{VARIABLE}={} is not usable: {}", named.to_string_lossy(), answer.last_line())
        };
        return if answer.ok { Ok(named.clone()) } else { Err(reason()) };
    }
    ENVIRONMENT.python(project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_cannot_run_are_counted() {
        let project = Project::find().expect("the tests run inside the project");
        let tests = tests_below(&project.root.join(TESTS)).expect("they are there");
        assert!(tests.len() > 100, "{tests:?}");
        assert!(tests.contains(&"test_a_wrong_greeting_is_refused".to_owned()));
        assert_eq!(test_on("async def test_a(x):"), Some("test_a"));
        assert_eq!((test_on("    def test_b():"), test_on("def helper():")), (None, None));
    }
}
