//! The npm client, and packages that it installs as a committed `package-lock.json` names them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::environment::told;
use crate::project::Project;
use crate::{cache, process};

/// Which packages with all that they need, and the checksum of each.
pub(crate) const LOCK: &str = "package-lock.json";
/// The oldest Node.js that all packages here run on.
const OLDEST: u32 = 20;

/// A call of npm; the reason where there is none.
pub(crate) fn client() -> Result<Command, String> {
    let npm = || Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    if process::ask(npm().arg("--version")).ok { Ok(npm()) } else { Err("there is no npm".into()) }
}

/// Installs the packages of `sources` where they are missing or others than wanted; the reason where they
/// cannot be installed or run.
pub(crate) fn install(project: &Project, sources: &str, folder: &Path) -> Result<(), String> {
    if !is_new_enough(&process::ask(Command::new("node").arg("--version")).out) {
        return Err(format!("there is no Node.js {OLDEST} or newer"));
    }
    let source = |name: &str| project.root.join(sources).join(name);
    let io = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let wanted = fs::read_to_string(source(LOCK)).map_err(|error| io(&source(LOCK), error))?;
    let _lock = cache::locked(folder).map_err(|error| format!("{error:#}"))?;
    // Written last, so that packages that were begun are installed anew.
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing {sources}/{LOCK} into {}", folder.display());
    for name in ["package.json", LOCK] {
        fs::copy(source(name), folder.join(name)).map_err(|error| io(&source(name), error))?;
    }
    let mut install = client()?;
    // Not `npm ci`: it wants the packages of all other systems to be in the lock too.
    install.current_dir(folder).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
    told("the packages of npm could not be installed", &mut install)?;
    fs::write(&stamp, wanted).map_err(|error| io(&stamp, error))
}

/// Whether `v24.1.0` is new enough; no version is not.
fn is_new_enough(version: &str) -> bool {
    let major = version.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    major.parse::<u32>().is_ok_and(|major| major >= OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_first_number() {
        assert!(is_new_enough("v20.0.0\n") && is_new_enough("v24.19.0"));
        for old in ["v18.20.1", "v9.0.0", "", "node: not found"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }
}
