//! Builds the strategies of `guests/languages` with the toolchains of their languages, which are
//! installed into the cache folder. Where that cannot be (no network, no Python) a file beside the
//! place of the component says why, and the tests that want it are skipped with that reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use sha2::{Digest, Sha256};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

use crate::environment::{Environment, told};
use crate::project::Project;
use crate::steps::Stopwatch;
use crate::{cache, cases, component, npm};

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
    ("sma-cross-python", |project, out| of_python(project, "sma_cross", out)),
    ("raises-python", |project, out| of_python(project, "raises", out)),
    ("sma-cross-javascript", of_javascript),
    ("sma-cross-c", of_c),
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
    let mut digest = Sha256::new();
    for file in &files {
        let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        digest.update((content.len() as u64).to_le_bytes());
        digest.update(content);
    }
    // How the tools are called is part of it too.
    digest.update(include_str!("languages.rs"));
    Ok(cache::hex(&digest.finalize()))
}

/// Makes a component of a module in Python, by componentize-py.
fn of_python(project: &Project, module: &str, out: &Path) -> Result<(), Problem> {
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

/// The strategy in JavaScript, and which packages of npm it takes.
const JAVASCRIPT: &str = "guests/languages/javascript";

/// Makes a component of `sma_cross.js`, by componentize-js, which runs on Node.js.
fn of_javascript(project: &Project, out: &Path) -> Result<(), Problem> {
    let lock = project.root.join(JAVASCRIPT).join(npm::LOCK);
    let lock = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()));
    let tools = cache::pinned("javascript-tools", &lock?)?;
    npm::install(project, JAVASCRIPT, &tools).map_err(Problem::NoTools)?;
    let mut command = Command::new("node");
    command.current_dir(project.root.join(JAVASCRIPT));
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

/// Makes a component of `sma_cross.c`, by zig's compiler, with bindings of the crate wit-bindgen-c.
fn of_c(project: &Project, out: &Path) -> Result<(), Problem> {
    let python = TOOLS.python(project).map_err(Problem::NoTools)?;
    let folder = project.target.join("languages/c");
    bindings(&project.root.join(CONTRACT), &folder)?;
    let module = folder.join("sma_cross.wasm");
    let mut command = Command::new(python);
    command.current_dir(&folder);
    // A reactor has no main; what it does not use of the C library imports nothing.
    command.args(["-m", "ziglang", "cc", "--target=wasm32-wasi", "-mexec-model=reactor"]);
    command.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wl,--strip-debug", "-I."]);
    command.args(["strategy.c", "strategy_component_type.o"]);
    command.arg(project.root.join("guests/languages/c/sma_cross.c"));
    command.arg("-o").arg(&module);
    let cache = project.target.join("languages/zig-cache");
    command.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
    told("zig cc", &mut command).map_err(|error| anyhow!(error))?;
    let module = fs::read(&module).with_context(|| format!("cannot read {}", module.display()));
    let component = component::from_module(&module?)?;
    fs::write(out, component).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

/// Writes the bindings of the contract: `strategy.h`, `strategy.c` and an object file with its type.
fn bindings(contract: &Path, folder: &Path) -> Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(contract)?;
    let world = resolve.select_world(&[package], Some("strategy"))?;
    let mut files = Files::default();
    let mut generator = wit_bindgen_c::Opts::default().build();
    generator.generate(&mut resolve, world, &mut files)?;
    fs::create_dir_all(folder)?;
    for (name, content) in files.iter() {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
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
