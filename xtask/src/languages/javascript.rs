//! Strategies in JavaScript, by componentize-js, which runs on Node.js.

use std::path::Path;

use anyhow::anyhow;

use super::{CONTRACT, Problem};
use crate::environment::told;
use crate::npm;
use crate::project::Project;

const SOURCES: &str = "guests/languages/javascript";
/// Where its packages are, below the target folder.
const TOOLS: &str = "languages/javascript-tools";

/// Makes a component of `sma_cross.js`.
pub(super) fn build(project: &Project, out: &Path) -> Result<(), Problem> {
    let (node, tools) = npm::installed(project, SOURCES, TOOLS).map_err(Problem::NoTools)?;
    let mut command = node.command();
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
