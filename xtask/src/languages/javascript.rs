//! Strategies in JavaScript, by componentize-js, which runs on Node.js.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};

use super::{CONTRACT, Problem};
use crate::environment::told;
use crate::project::Project;
use crate::{cache, npm};

const SOURCES: &str = "guests/languages/javascript";

/// Makes a component of `sma_cross.js`.
pub(super) fn build(project: &Project, out: &Path) -> Result<(), Problem> {
    let lock = project.root.join(SOURCES).join(npm::LOCK);
    let lock = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()));
    let tools = cache::pinned("javascript-tools", &lock?)?;
    npm::install(project, SOURCES, &tools).map_err(Problem::NoTools)?;
    let mut command = Command::new("node");
    command.current_dir(project.root.join(SOURCES));
    command.arg(tools.join("node_modules/@bytecodealliance/componentize-js/src/cli.js"));
    command.args(["sma_cross.js", "--world-name", "strategy", "--wit"]);
    command.arg(project.root.join(CONTRACT));
    // All that would import WASI.
    command.args(["--disable", "stdio", "random", "clocks", "http", "fetch-event"]);
    command.arg("--out").arg(out);
    told("componentize-js", &mut command).map_err(|error| anyhow!(error))?;
    if out.is_file() {
        return Ok(());
    }
    Err(anyhow!("componentize-js wrote nothing").into())
}
