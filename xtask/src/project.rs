//! Where things are: the project's folder, its target folder, cargo.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

/// The lowest Rust version that the project takes, as in `1.95`.
pub(crate) const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// The project on this machine.
pub(crate) struct Project {
    /// The folder with the root manifest.
    pub(crate) root: PathBuf,
    /// Cargo's target folder of the root workspace.
    pub(crate) target: PathBuf,
    /// Whether DuckDB's C++ code is compiled, because its library cannot be had.
    pub(crate) is_database_compiled: bool,
}

impl Project {
    /// Finds the project in the folder above this package, which `cargo run` names.
    pub(crate) fn find() -> Result<Self> {
        let package = env::var_os("CARGO_MANIFEST_DIR");
        let package = package.context("not started by cargo; run `cargo xtask`")?;
        Self::of(Path::new(&package).parent().context("the package is in no folder")?)
    }

    fn of(root: &Path) -> Result<Self> {
        let root = root.to_path_buf();
        let metadata = metadata(&root, &root.join("Cargo.toml"))?;
        let target = metadata["target_directory"].as_str().context("no target folder known")?;
        Ok(Self { target: target.into(), root, is_database_compiled: false })
    }

    /// Cargo, in the project's folder.
    pub(crate) fn cargo(&self) -> Command {
        cargo(&self.root)
    }

    /// A task of cargo with what is linked with DuckDB.
    pub(crate) fn cargo_with_database(&self, task: &str) -> Command {
        let mut command = self.cargo();
        command.args(task.split(' ')).arg("--release");
        if self.is_database_compiled {
            command.args(["--features", "cli/bundled"]);
        }
        command
    }

    /// The manifest of the guests' workspace, relative to the project's folder.
    pub(crate) fn guests_manifest(&self) -> PathBuf {
        Path::new("guests").join("Cargo.toml")
    }

    /// What cargo knows about the guests' workspace, without its dependencies.
    pub(crate) fn guests_metadata(&self) -> Result<Value> {
        metadata(&self.root, &self.root.join(self.guests_manifest()))
    }

    /// The target folder of the guests, for WebAssembly and for their native tests.
    pub(crate) fn guests_target(&self) -> PathBuf {
        self.target.join("guests")
    }

    /// The folder of the programs, `<target>/release`.
    pub(crate) fn release(&self) -> PathBuf {
        self.target.join("release")
    }

    /// The `kumiki` program.
    pub(crate) fn program(&self) -> PathBuf {
        self.release().join(format!("kumiki{}", env::consts::EXE_SUFFIX))
    }
}

fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    for name in variables_about_xtask(env::vars_os().map(|(name, _)| name)) {
        command.env_remove(name);
    }
    command
}

/// What `cargo run` tells us about our own package. Handed on, it would make build scripts that
/// watch these variables run again each time.
fn variables_about_xtask(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let ours = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    names.filter(ours).collect()
}

fn metadata(folder: &Path, manifest: &Path) -> Result<Value> {
    if !manifest.is_file() {
        bail!("{} is missing", manifest.display());
    }
    let mut command = cargo(folder);
    command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    let answer = process::ask(command.arg(manifest));
    if !answer.ok {
        bail!("cargo cannot read {}:\n{}", manifest.display(), answer.err.trim());
    }
    serde_json::from_str(&answer.out).context("the answer of cargo metadata is not JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_this_project() {
        let project = Project::find().expect("the tests run inside the project");
        assert!(project.root.join("xtask").is_dir());
        assert!(RUST_VERSION.starts_with("1."));
    }

    #[test]
    fn a_missing_manifest_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Project::of(folder.path()).err().expect("nothing is there");
        assert!(error.to_string().ends_with("Cargo.toml is missing"));
    }

    #[test]
    fn keeps_what_the_user_set() {
        let names = ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_TARGET_DIR", "RUSTFLAGS"];
        let removed = variables_about_xtask(names.into_iter().map(OsString::from));
        assert_eq!(removed, ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"]);
    }
}
