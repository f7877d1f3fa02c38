//! Packages of npm, as a committed `package-lock.json` names them, in a folder.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::cache;
use crate::environment::told;
use crate::node::Node;
use crate::project::Project;

/// Which packages with all that they need, and the checksum of each.
pub(crate) const LOCK: &str = "package-lock.json";

/// Installs the packages of `sources` where they are missing or others than wanted; the reason where they
/// cannot be.
pub(crate) fn install(
    project: &Project,
    node: &Node,
    sources: &str,
    folder: &Path,
) -> Result<(), String> {
    let source = |name: &str| project.root.join(sources).join(name);
    let io = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let wanted = fs::read_to_string(source(LOCK)).map_err(|error| io(&source(LOCK), error))?;
    let _lock = cache::locked(folder).context("packages of npm").map_err(|e| format!("{e:#}"))?;
    // Written last, so that packages that were begun are installed anew.
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing {sources}/{LOCK} into {}", folder.display());
    for name in ["package.json", LOCK] {
        fs::copy(source(name), folder.join(name)).map_err(|error| io(&source(name), error))?;
    }
    let mut install = node.npm();
    // Not `npm ci`: it wants the packages of all other systems to be in the lock too.
    install.current_dir(folder).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
    told("the packages of npm could not be installed", &mut install)?;
    fs::write(&stamp, wanted).map_err(|error| io(&stamp, error))
}
