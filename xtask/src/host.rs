//! Builds and calls the `kumiki` program.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::project::Project;
use crate::{duckdb, process};

/// What a first build compiles once, and how long that takes.
pub(crate) const FIRST_BUILD: &str = "the first build compiles wasmtime with its compiler and all else: about 10 minutes on two cores, once";

/// Compiles the program.
pub(crate) fn build(project: &Project) -> Result<()> {
    process::run(project.cargo_with_database("build").args(["--package", "cli"]))?;
    compile_strategies(project)
}

/// Compiles the programs that tests start, from the same crates that the tests are linked with: without a
/// test among what is built, crates have other features, and each would be compiled twice.
pub(crate) fn build_with_tests(project: &Project) -> Result<()> {
    let mut command = project.cargo_with_database("build --workspace --test program");
    // Not all programs: Windows would not let the one that runs be replaced.
    process::run(command.args(["--bin", "kumiki", "--bin", "update_job"]))?;
    compile_strategies(project)
}

/// Compiles what replays, and tells whether it is the whole program: that is taken where it was compiled
/// before; else one without DuckDB, which needs nothing but Rust.
pub(crate) fn build_for_replay(project: &Project) -> Result<bool> {
    let is_whole = duckdb::is_there(project) && is_compiled(project, "pricestore");
    if is_whole {
        build(project)?;
    } else {
        let mut command = project.cargo();
        command.args(["build", "--release", "--package", "cli", "--no-default-features"]);
        process::run(&mut command)?;
        compile_strategies(project)?;
    }
    Ok(is_whole)
}

/// Says what the coming build compiles for the first time; cargo says how far it is.
pub(crate) fn announce(project: &Project) {
    if !is_compiled(project, "wasmtime") {
        eprintln!("{FIRST_BUILD}");
    }
}

/// Whether a library was compiled before.
pub(crate) fn is_compiled(project: &Project, library: &str) -> bool {
    let entries = project.release().join("deps").read_dir().into_iter().flatten().flatten();
    let mut names = entries.map(|file| file.file_name().to_string_lossy().into_owned());
    let start = format!("lib{library}-");
    // A check leaves other files.
    names.any(|name| name.starts_with(&start) && name.ends_with(".rlib"))
}

/// Compiles the strategies that were built before: what the program finds beside itself then needs no
/// compiling at its first run.
fn compile_strategies(project: &Project) -> Result<()> {
    if !project.release().join("strategies").is_dir() {
        return Ok(());
    }
    let mut compile = program(project);
    // The names of the strategies are for a terminal; our output belongs to others.
    compile.args(["strategy", "compile"]).stdout(Stdio::null());
    process::run(&mut compile)
}

/// The program, in the project's folder.
pub(crate) fn program(project: &Project) -> Command {
    let mut command = Command::new(project.program());
    command.current_dir(&project.root);
    command
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_check_is_not_a_build() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = Project {
            root: folder.path().into(),
            target: folder.path().into(),
            is_database_compiled: false,
        };
        let deps = project.release().join("deps");
        fs::create_dir_all(&deps).expect("a folder");
        fs::write(deps.join("libwasmtime-1f.rmeta"), "").expect("a file");
        fs::write(deps.join("libwasmtime_environ-1f.rlib"), "").expect("a file");
        assert!(!is_compiled(&project, "wasmtime"));
        fs::write(deps.join("libwasmtime-1f.rlib"), "").expect("a file");
        assert!(is_compiled(&project, "wasmtime"));
    }
}
