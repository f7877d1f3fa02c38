//! `cargo xtask bench`: runs a benchmark with fresh guests.

use std::env::consts::EXE_SUFFIX;
use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::{browser, guests, host, languages, process, python};

/// The benchmark that is a script in Python; its flag `--soak` is a part of `cargo xtask soak`.
pub(crate) const CONSOLE: &str = "clients/python/console_bench.py";

/// Builds the guests, then runs the benchmark `name`; its stdout is ours.
pub(crate) fn run(project: &Project, name: &str, arguments: &[String]) -> Result<()> {
    guests::build(project)?;
    if name == "console" {
        // Its page is in the program, and its client is that of the tests.
        host::build_with_tests(project)?;
        browser::prepare(project)?;
        return python::run(project, CONSOLE, arguments);
    }
    if name == "languages" {
        languages::build(project)?;
    }
    if name == "ipc" {
        // It measures the engine as a process: that of the program that the tests start, and that is shipped.
        host::build_with_tests(project)?;
    }
    // From the same crates as these: alone it would have others, and each would be compiled twice.
    let mut build = project.cargo_with_database("build --workspace --test program");
    process::run(build.args(["--bin", "bench"]))?;
    let mut bench = Command::new(project.release().join(format!("bench{EXE_SUFFIX}")));
    process::run(bench.current_dir(&project.root).arg(name).args(arguments))
}
