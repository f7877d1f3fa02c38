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

use crate::cache;
use crate::environment::Environment;
use crate::project::Project;
use crate::steps::Stopwatch;

/// What componentize-py and zig are installed from.
const TOOLS: Environment = Environment {
    name: "language-tools",
    requirements: "guests/languages/requirements.txt",
    probe: "import componentize_py, ziglang",
    optional: None,
};
/// The contract.
const CONTRACT: &str = "wit/strategy";

/// A strategy in another language.
struct Foreign {
    /// The component's file name.
    name: &'static str,
    /// Its sources, and what says which tools are taken: whatever changes here makes it anew.
    sources: &'static [&'static str],
    /// Builds the component into a file; the reason why it could not be.
    build: fn(&Project, &Path) -> Result<(), Problem>,
}

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

const FOREIGN: [Foreign; 4] = [
    Foreign {
        name: "sma-cross-python",
        sources: &["requirements.txt", "python/sma_cross.py"],
        build: |project, out| python::build(project, "sma_cross", out),
    },
    Foreign {
        name: "raises-python",
        sources: &["requirements.txt", "python/sma_cross.py", "python/raises.py"],
        build: |project, out| python::build(project, "raises", out),
    },
    Foreign {
        name: "sma-cross-javascript",
        sources: &["javascript/package-lock.json", "javascript/sma_cross.js"],
        build: javascript::build,
    },
    Foreign {
        name: "sma-cross-c",
        sources: &["requirements.txt", "c/sma_cross.c"],
        build: c::build,
    },
];

/// Builds what is not there yet from the present sources and versions of the tools.
pub(crate) fn build(project: &Project) -> Result<()> {
    let folder = project.release().join("languages");
    fs::create_dir_all(&folder)?;
    for foreign in &FOREIGN {
        let name = foreign.name;
        let digest = digest(project, foreign)?;
        let place = |ending: &str| folder.join(format!("{name}.{ending}"));
        let (component, stamp, skipped) = (place("wasm"), place("digest"), place("skipped"));
        let is_there = component.is_file()
            && fs::read_to_string(&stamp).is_ok_and(|present| present == digest);
        if is_there {
            eprintln!("{name} is there");
            continue;
        }
        remove(&[&component, &stamp, &skipped])?;
        let watch = Stopwatch::start();
        match (foreign.build)(project, &component) {
            Ok(()) => {
                fs::write(&stamp, digest)?;
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

fn remove(files: &[&PathBuf]) -> Result<()> {
    for file in files.iter().filter(|file| file.exists()) {
        fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    Ok(())
}

/// The SHA-256 of all that a component is made from.
fn digest(project: &Project, foreign: &Foreign) -> Result<String> {
    let languages = project.root.join("guests/languages");
    let mut files: Vec<PathBuf> =
        foreign.sources.iter().map(|source| languages.join(source)).collect();
    let mut contract: Vec<PathBuf> = fs::read_dir(project.root.join(CONTRACT))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    contract.sort();
    files.append(&mut contract);
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
        let foreign =
            Foreign { name: "x", sources: &["requirements.txt", "x.py"], build: |_, _| Ok(()) };
        fs::create_dir_all(path("")).expect("a folder");
        let project = Project {
            root: root.to_owned(),
            target: root.join("target"),
            is_database_compiled: false,
        };
        let after = |name: &str, text: &str| {
            fs::write(path(name), text).expect("it can be written");
            digest(&project, &foreign).ok()
        };
        assert_eq!(after("requirements.txt", "tool==1"), None, "a source is missing");
        let first = after("x.py", "one");
        assert!(first.is_some());
        assert_eq!(after("x.py", "one"), first);
        let second = after("x.py", "two");
        assert_ne!(second, first);
        assert_ne!(after("requirements.txt", "tool==2"), second);
    }
}
