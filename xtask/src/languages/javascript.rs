//! Strategies in JavaScript, by componentize-js, which runs on Node.js.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::node::Node;
use super::{CONTRACT, Problem};
use crate::environment::told;
use crate::project::Project;

const SOURCES: &str = "guests/languages/javascript";
const LOCK: &str = "package-lock.json";

/// Makes a component of `sma_cross.js`.
pub(super) fn build(project: &Project, out: &Path) -> Result<(), Problem> {
    let node = Node::find(project).map_err(Problem::NoTools)?;
    let tools = tools(project, &node).map_err(Problem::NoTools)?;
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

/// The folder with the packages, which are installed when they are missing or others than wanted.
fn tools(project: &Project, node: &Node) -> Result<PathBuf, String> {
    let folder = project.target.join("languages/javascript-tools");
    let told_io = |error: anyhow::Error| format!("{error:#}");
    let source = |name: &str| project.root.join(SOURCES).join(name);
    // Which packages with all that they need, and the checksum of each.
    let wanted = read(&source(LOCK)).map_err(told_io)?;
    // Written last, so that packages that were begun are installed anew.
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    eprintln!("installing {} into {}", source(LOCK).display(), folder.display());
    let io = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&folder).map_err(|error| io(&folder, error))?;
    for name in ["package.json", LOCK] {
        fs::copy(source(name), folder.join(name)).map_err(|error| io(&source(name), error))?;
    }
    let mut install = node.npm();
    // Not `npm ci`: it wants the packages of all other systems to be in the lock too.
    install.current_dir(&folder).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
    told("the packages of npm could not be installed", &mut install)?;
    fs::write(&stamp, wanted).map_err(|error| io(&stamp, error))?;
    Ok(folder)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
