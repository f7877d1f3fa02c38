//! Builds the strategies of `guests/languages` with the toolchains of their languages, which are
//! installed into the cache folder. Where that cannot be (no network, no Python) a file beside the
//! place of the component says why, and the tests that want it are skipped with that reason.

mod c;
mod javascript;
mod python;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::environment::Environment;
use crate::project::Project;
use crate::steps::Stopwatch;
use crate::{cache, cases};

/// What componentize-py and zig are installed from.
const TOOLS: Environment = Environment {
    name: "language-tools",
    requirements: "guests/languages/requirements.txt",
    probe: "import componentize_py, ziglang",
    optional: None,
};
/// The contract.
const CONTRACT: &str = "wit/strategy";

/// Why there is no component.
enum Problem {
    /// The tools are not here and could not be installed.
    NoTools(String),
    /// The tools are here and failed.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Builds a component into a file; the reason why it could not be built.
type Build = fn(&Project, &Path) -> Result<(), Problem>;

/// What is made: each with its file name.
const STRATEGIES: [(&str, Build); 4] = [
    ("sma-cross-python", |project, out| python::build(project, "sma_cross", out)),
    ("raises-python", |project, out| python::build(project, "raises", out)),
    ("sma-cross-javascript", javascript::build),
    ("sma-cross-c", c::build),
];
/// What they are made from, and what says which tools are taken: whatever changes here makes them anew.
const SOURCES: [&str; 6] = [
    "requirements.txt",
    "python/sma_cross.py",
    "python/raises.py",
    "javascript/package-lock.json",
    "javascript/sma_cross.js",
    "c/sma_cross.c",
];

/// Builds what is not there yet from the present sources and versions of the tools.
pub(crate) fn build(project: &Project) -> Result<()> {
    let folder = project.release().join("languages");
    fs::create_dir_all(&folder)?;
    let digest = digest(project)?;
    for (name, build) in STRATEGIES {
        let place = |ending: &str| folder.join(format!("{name}.{ending}"));
        let (component, stamp, skipped) = (place("wasm"), place("digest"), place("skipped"));
        let is_there = component.is_file()
            && fs::read_to_string(&stamp).is_ok_and(|present| present == digest);
        if is_there {
            eprintln!("{name} is there");
            continue;
        }
        [&component, &stamp, &skipped].into_iter().try_for_each(|file| cases::remove(file))?;
        let watch = Stopwatch::start();
        match build(project, &component) {
            Ok(()) => {
                fs::write(&stamp, &digest)?;
                eprintln!("{name} was built in {}", watch.shown());
            }
            Err(Problem::NoTools(reason)) => {
                eprintln!("skipped: {name}: {reason}");
                fs::write(&skipped, reason)?;
            }
            Err(Problem::Failed(error)) => {
                return Err(error.context(format!("the guest {name} could not be built")));
            }
        }
    }
    Ok(())
}

/// The SHA-256 of all that they are made from.
fn digest(project: &Project) -> Result<String> {
    let contract = fs::read_dir(project.root.join(CONTRACT))?;
    let mut files = contract.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.sort();
    files.extend(SOURCES.map(|source| project.root.join("guests/languages").join(source)));
    // How the tools are called is part of it too.
    let ways = [
        include_str!("languages/python.rs"),
        include_str!("languages/javascript.rs"),
        include_str!("languages/c.rs"),
    ];
    let mut digest = Sha256::new();
    for file in &files {
        let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        digest.update((content.len() as u64).to_le_bytes());
        digest.update(content);
    }
    ways.into_iter().for_each(|way| digest.update(way));
    Ok(cache::hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_made_anew_when_its_sources_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let path = |name: &str| root.join("guests/languages").join(name);
        fs::create_dir_all(root.join(CONTRACT)).expect("a folder");
        fs::write(root.join(CONTRACT).join("world.wit"), "world").expect("it can be written");
        let project = Project {
            root: root.to_owned(),
            target: root.join("target"),
            is_database_compiled: false,
        };
        let after = |name: &str, text: &str| {
            fs::create_dir_all(path(name).parent().expect("a folder")).expect("a folder");
            fs::write(path(name), text).expect("it can be written");
            digest(&project).ok()
        };
        assert_eq!(after("requirements.txt", "tool==1"), None, "sources are missing");
        let first = SOURCES.map(|source| after(source, "one")).into_iter().next_back().flatten();
        assert!(first.is_some());
        assert_eq!(after("c/sma_cross.c", "one"), first);
        let second = after("c/sma_cross.c", "two");
        assert_ne!(second, first);
        assert_ne!(after("requirements.txt", "tool==2"), second);
    }
}
