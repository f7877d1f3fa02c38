//! Packages of npm, as a committed `package-lock.json` names them, in a folder of the target folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::environment::told;
use crate::node::Node;
use crate::project::Project;

/// Which packages with all that they need, and the checksum of each.
const LOCK: &str = "package-lock.json";

/// A Node.js and the folder with the packages of `sources`, which are installed when they are missing or others than
/// wanted; the reason where they cannot be.
pub(crate) fn installed(
    project: &Project,
    sources: &str,
    tools: &str,
) -> Result<(Node, PathBuf), String> {
    let node = Node::find(project)?;
    let folder = project.target.join(tools);
    let told_io = |error: anyhow::Error| format!("{error:#}");
    let source = |name: &str| project.root.join(sources).join(name);
    let wanted = read(&source(LOCK)).map_err(told_io)?;
    // Written last, so that packages that were begun are installed anew.
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok((node, folder));
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
    Ok((node, folder))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
