//! The comparison of our statistics with public Python packages. It needs Python and is left out, with
//! the reason, where that is missing: the project itself needs Rust and nothing else.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::project::Project;

const TESTS: &str = "clients/python/tests";
/// Names another interpreter, like that of a virtual environment.
const VARIABLE: &str = "KUMIKI_PYTHON";
/// What a usable interpreter can do without failing.
const PROBE: &str = "import sys, pytest, numpy, pandas\n\
                     assert sys.version_info >= (3, 9), 'Python is older than 3.9'\n\
                     try: import empyrical\n\
                     except ImportError: import quantstats";

/// Runs the tests; says why where it cannot. The program must have been built.
pub(crate) fn test(project: &Project) -> Result<()> {
    let Some(python) = interpreter() else {
        eprintln!("skipped: no Python with pytest and empyrical-reloaded or quantstats was found");
        eprintln!("    clients/python/README.md says how to have one; {VARIABLE} names it");
        return Ok(());
    };
    let mut command = Command::new(python);
    command.current_dir(&project.root).args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        TESTS,
    ]);
    command.env("KUMIKI_PROGRAM", project.program()).env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut command)
}

/// An interpreter that has what the tests need. One that was named but has not is an answer too: its
/// reason is shown.
fn interpreter() -> Option<OsString> {
    if let Some(named) = env::var_os(VARIABLE) {
        let answer = process::ask(Command::new(&named).args(["-c", PROBE]));
        if !answer.ok {
            eprintln!("{VARIABLE}={}: {}", named.to_string_lossy(), answer.last_line());
        }
        return answer.ok.then_some(named);
    }
    let usable = |name: &OsString| process::ask(Command::new(name).args(["-c", PROBE])).ok;
    ["python3", "python"].into_iter().map(OsString::from).find(usable)
}
