//! The comparison of our statistics with public Python packages. Its virtual environment is made in the
//! target folder; where that cannot be (no Python, no network) the comparison is skipped, with the
//! reason: the project itself needs Rust and nothing else.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::project::Project;
use crate::skips::Skips;

const TESTS: &str = "clients/python/tests";
/// What is installed for them.
const REQUIREMENTS: &str = "clients/python/requirements.txt";
/// Names another interpreter, like that of a virtual environment.
const VARIABLE: &str = "KUMIKI_PYTHON";
/// What a usable interpreter can do without failing.
const PROBE: &str = "import sys, pytest, numpy, pandas\n\
                     assert sys.version_info >= (3, 9), 'Python is older than 3.9'\n\
                     try: import empyrical\n\
                     except ImportError: import quantstats";
/// What the interpreter of a virtual environment must be.
const VERSION_PROBE: &str = "import sys, venv\n\
                             assert sys.version_info >= (3, 9), 'Python is older than 3.9'";

/// Runs the tests; says why where it cannot. The program must have been built.
pub(crate) fn test(project: &Project, skips: &mut Skips) -> Result<()> {
    let python = match interpreter(project) {
        Ok(python) => python,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            eprintln!("    clients/python/README.md says what is needed; {VARIABLE} names it");
            skips.add("statistics against Python packages", &reason);
            return Ok(());
        }
    };
    let report = project.target.join("pytest.xml");
    let mut command = Command::new(python);
    command.current_dir(&project.root).args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    command.arg(format!("--junitxml={}", report.display())).arg(TESTS);
    command.env("KUMIKI_PROGRAM", project.program()).env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut command)?;
    skips.take_report(&fs::read_to_string(&report)?);
    Ok(())
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
    environment(project).or_else(|reason| {
        let usable = |name: &OsString| process::ask(Command::new(name).args(["-c", PROBE])).ok;
        system_pythons().find(usable).ok_or(reason)
    })
}

fn system_pythons() -> impl Iterator<Item = OsString> {
    ["python3", "python"].into_iter().map(OsString::from)
}

/// The interpreter of our own environment, which is made when it is missing or its list has changed.
fn environment(project: &Project) -> Result<OsString, String> {
    let folder = project.target.join("python-tests");
    let python = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    let python: PathBuf = folder.join(python);
    let wanted = fs::read_to_string(project.root.join(REQUIREMENTS))
        .map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
    // Written last, so that an environment that was begun is made anew.
    let stamp = folder.join("installed.txt");
    let is_there = fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted)
        && process::ask(Command::new(&python).args(["-c", PROBE])).ok;
    if is_there {
        return Ok(python.into_os_string());
    }
    let usable = |name: &OsString| process::ask(Command::new(name).args(["-c", VERSION_PROBE])).ok;
    let system = system_pythons().find(usable).ok_or("there is no Python 3.9 or newer")?;
    eprintln!("installing {REQUIREMENTS} into {}", folder.display());
    let told = |what: &str, command: &mut Command| {
        let answer = process::ask(command);
        if answer.ok { Ok(()) } else { Err(format!("{what}: {}", answer.last_line())) }
    };
    let mut make = Command::new(system);
    told("no virtual environment", make.args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.arg("--requirement").arg(project.root.join(REQUIREMENTS));
    told("the Python packages could not be installed", &mut install)?;
    told("what was installed is not usable", Command::new(&python).args(["-c", PROBE]))?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python.into_os_string())
}
