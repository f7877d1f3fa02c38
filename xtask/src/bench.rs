//! `cargo xtask bench`: runs a benchmark with fresh guests.

use anyhow::Result;

use crate::doctor::Purpose;
use crate::project::Project;
use crate::{doctor, guests, heavy, host, languages, process};

/// Builds the guests, then runs the benchmark `name`; its stdout is ours.
pub(crate) fn run(project: &Project, name: &str, arguments: &[String]) -> Result<()> {
    doctor::require(project, Purpose::Everything)?;
    let _progress = heavy::announce(project);
    guests::build(project)?;
    if name == "languages" {
        languages::build(project)?;
    }
    if name == "ipc" {
        // It measures the engine as a process: that of the program that the tests start, and that is shipped.
        host::build_with_tests(project)?;
    }
    let mut command = project.cargo();
    command.args(["run", "--release", "--quiet", "-p", "bench", "--", name]);
    process::run(command.args(arguments))
}
