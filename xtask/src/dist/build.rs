//! How the program that is shipped is compiled: in a target folder of its own, because its flags would have all
//! that tests are made of compiled anew.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Error, Result};

use super::System;
use crate::project::Project;
use crate::{duckdb, paths, process, windows};

/// Where a package that has its programs in `bin` has DuckDB's library, as the program finds it.
const LIBRARIES: &str = if cfg!(target_os = "macos") {
    "-Clink-arg=-Wl,-rpath,@loader_path/../lib/kumiki"
} else {
    "-Clink-arg=-Wl,-rpath,$ORIGIN/../lib/kumiki"
};

/// The target folder and the flags of such a build.
pub(super) struct Build {
    target: PathBuf,
    variables: Vec<(&'static str, OsString)>,
    pub(super) system: Option<System>,
}

impl Build {
    /// For this machine, or for another system.
    pub(super) fn new(project: &Project, system: Option<System>) -> Result<Self> {
        let target = project.target.join("dist-build");
        let folders = paths::renamed(project, &[(target.clone(), "/target")]);
        let set = |name: &str| env::var(name).unwrap_or_default();
        let mut rustc: Vec<String> =
            set("RUSTFLAGS").split_whitespace().map(str::to_owned).collect();
        rustc.extend(paths::rustc_flags(&folders));
        let mut variables = vec![("CARGO_PROFILE_RELEASE_STRIP", "symbols".into())];
        if cfg!(unix) {
            if system.is_none() {
                rustc.push(LIBRARIES.to_owned());
            }
            // C code of some packages names its files too.
            let flag = |(from, to): &(PathBuf, String)| {
                format!(" -ffile-prefix-map={}={to}", from.display())
            };
            let flags: String = folders.iter().map(flag).collect();
            for name in ["CFLAGS", "CXXFLAGS"] {
                variables.push((name, (set(name) + &flags).into()));
            }
        }
        // In this form a path may hold spaces.
        variables.push(("CARGO_ENCODED_RUSTFLAGS", rustc.join("\x1f").into()));
        if system == Some(System::Windows) {
            windows::tools().map_err(Error::msg)?;
            variables.push((duckdb::VARIABLE, windows::database(project)?.into()));
        }
        Ok(Self { target, variables, system })
    }

    /// Compiles the program and gives its path.
    pub(super) fn run(&self, project: &Project) -> Result<PathBuf> {
        eprintln!(
            "compiling what is shipped in {}: minutes, the first time",
            self.target.display()
        );
        let mut command = project.cargo_with_database("build --locked --package cli");
        command.args(self.arguments());
        self.describe_to(&mut command);
        process::run(&mut command)?;
        Ok(match self.system {
            None => self.target.join("release").join(format!("kumiki{}", env::consts::EXE_SUFFIX)),
            Some(System::Windows) => self.target.join(windows::TARGET).join("release/kumiki.exe"),
        })
    }

    /// What cargo is asked for besides; maturin takes the same.
    pub(super) fn arguments(&self) -> &[&str] {
        match self.system {
            None => &[],
            Some(System::Windows) => &["--target", windows::TARGET],
        }
    }

    /// Has a command that calls cargo compile so.
    pub(super) fn describe_to(&self, command: &mut Command) {
        command.env("CARGO_TARGET_DIR", &self.target);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_are_told_other_names_of_folders() {
        let project = Project::find().expect("the tests run inside the project");
        let build = Build::new(&project, None).expect("nothing is needed for it");
        let mut command = Command::new("cargo");
        build.describe_to(&mut command);
        let root = format!("-prefix-map={}=/kumiki", project.root.display());
        for (name, wanted) in [("CARGO_ENCODED_RUSTFLAGS", "=/kumiki\x1f"), ("CFLAGS", &root)] {
            let mut all = command.get_envs();
            let value = all.find(|one| one.0 == name).and_then(|one| one.1).expect("it is set");
            assert!(value.to_string_lossy().contains(wanted), "{name}: {value:?}");
        }
    }
}
