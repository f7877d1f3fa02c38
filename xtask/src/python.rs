//! The tests in Python: the engine from end to end, the package that drives it, and our statistics against public
//! packages. Their virtual environment is made in the target folder; where that cannot be (no Python, no network)
//! they are skipped, each with the reason: the project itself needs Rust and nothing else.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::{env, fs, thread};

use anyhow::{Context, Result};

use crate::environment::{Environment, system_pythons};
use crate::failures::Failures;
use crate::project::Project;
use crate::skips::Skips;
use crate::{junit, process};

const TESTS: &str = "clients/python/tests";
/// Files of tests that compare our numbers with others'; all others drive the engine.
const COMPARISONS: [&str; 3] = ["test_statistics.py", "test_luck.py", "test_request_keys.py"];
/// What the two kinds are called where they are skipped.
const OF_ENGINE: &str = "end-to-end tests of the engine and its Python package";
const OF_NUMBERS: &str = "comparisons with Python packages";
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
    run(project, TESTS, None, skips)
}

/// Runs one test with more seeds than [`test()`] takes: `seeds` is the variable that says how many, and that
/// number.
pub(crate) fn soak(
    project: &Project,
    test: &str,
    seeds: (&str, u64),
    skips: &mut Skips,
) -> Result<()> {
    run(project, &format!("{TESTS}/{test}"), Some(seeds), skips)
}

fn run(
    project: &Project,
    tests: &str,
    seeds: Option<(&str, u64)>,
    skips: &mut Skips,
) -> Result<()> {
    let python = match interpreter(project) {
        Ok(python) => python,
        Err(reason) => {
            let skipped = Tests::below(&project.root.join(tests))?;
            eprintln!("skipped: {}: {reason}", skipped.told());
            eprintln!("    clients/python/README.md says what is needed; {VARIABLE} names it");
            skipped.skip(&reason, skips);
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
    // The tests need not hold it themselves.
    command.env("KUMIKI_PRODUCTION_PORT_HELD", "1");
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

/// Tests in Python, known by their text where there is no Python: one that is made with many values counts once.
#[derive(Debug, Default)]
struct Tests {
    of_engine: Vec<String>,
    of_numbers: Vec<String>,
}

impl Tests {
    /// Those of a file, or of the files of a folder.
    fn below(path: &Path) -> Result<Self> {
        let mut tests = Self::default();
        if !path.is_dir() {
            tests.take(path)?;
            return Ok(tests);
        }
        let entries =
            fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut files =
            entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
        files.sort();
        files.iter().try_for_each(|file| tests.take(file))?;
        Ok(tests)
    }

    fn take(&mut self, file: &Path) -> Result<()> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("test_") || !name.ends_with(".py") {
            return Ok(());
        }
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let tests =
            if COMPARISONS.contains(&&*name) { &mut self.of_numbers } else { &mut self.of_engine };
        tests.extend(text.lines().filter_map(test_on).map(str::to_owned));
        Ok(())
    }

    /// How many there are of each kind.
    fn told(&self) -> String {
        let kinds = [(&self.of_engine, OF_ENGINE), (&self.of_numbers, OF_NUMBERS)];
        let some = kinds.iter().filter(|(tests, _)| !tests.is_empty());
        let told: Vec<String> =
            some.map(|(tests, kind)| format!("{} {kind}", tests.len())).collect();
        told.join(", ")
    }

    /// Counts each of them as skipped.
    fn skip(&self, reason: &str, skips: &mut Skips) {
        for (tests, kind) in [(&self.of_engine, OF_ENGINE), (&self.of_numbers, OF_NUMBERS)] {
            for test in tests {
                skips.add(test, &format!("{kind}: {reason}"));
            }
        }
    }
}

/// The name of the test that begins on a line.
fn test_on(line: &str) -> Option<&str> {
    let name = line.strip_prefix("def ").or_else(|| line.strip_prefix("async def "))?;
    name.starts_with("test_").then(|| name.split('(').next())?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_cannot_run_are_counted_by_their_kind() {
        let project = Project::find(None).expect("the tests run inside the project");
        let tests = Tests::below(&project.root.join(TESTS)).expect("they are there");
        assert!(tests.of_engine.len() > 100 && tests.of_numbers.len() > 5, "{tests:?}");
        assert!(tests.of_engine.contains(&"test_a_wrong_greeting_is_refused".to_owned()));
        let mut skips = Skips::default();
        tests.skip("no Python 3.9", &mut skips);
        let (engine, numbers) = (tests.of_engine.len(), tests.of_numbers.len());
        let told = skips.told();
        assert!(told.starts_with(&format!("{} skipped:", engine + numbers)), "{told}");
        assert!(told.contains(&format!("\n  {engine} {OF_ENGINE}: no Python 3.9 (")), "{told}");
        assert!(told.contains(&format!("\n  {numbers} {OF_NUMBERS}: no Python 3.9 (")), "{told}");
        assert_eq!(tests.told(), format!("{engine} {OF_ENGINE}, {numbers} {OF_NUMBERS}"));
        let file = project.root.join(TESTS).join("test_luck.py");
        let one = Tests::below(&file).expect("it is there");
        assert!(one.of_engine.is_empty() && !one.of_numbers.is_empty(), "{one:?}");
        assert_eq!(test_on("async def test_a(x):"), Some("test_a"));
        assert_eq!((test_on("    def test_b():"), test_on("def helper():")), (None, None));
    }
}
