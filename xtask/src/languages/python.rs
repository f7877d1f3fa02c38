//! Strategies in Python, by componentize-py.

use std::path::Path;
use std::process::Command;

use super::{CONTRACT, Problem, TOOLS};
use crate::environment::told;
use crate::project::Project;

/// Makes a component of a module.
pub(super) fn build(project: &Project, module: &str, out: &Path) -> Result<(), Problem> {
    let python = TOOLS.python(project).map_err(Problem::NoTools)?;
    // Not by the program that pip makes: that one has the folder's place in it.
    let mut command = Command::new(python);
    command.args(["-c", "import sys; from componentize_py import script; sys.exit(script())"]);
    command.current_dir(&project.root).env_remove("VIRTUAL_ENV");
    command.args(["--quiet", "--wit-path", CONTRACT]);
    command.args(["--world", "strategy", "componentize", module, "--stub-wasi"]);
    command.args(["--python-path", "guests/languages/python", "--output"]).arg(out);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    told("componentize-py", &mut command).map_err(|error| Problem::Failed(anyhow::anyhow!(error)))
}
