//! Virtual environments of Python in the target folder, made from a list of packages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::project::Project;

/// What the interpreter of a virtual environment must be.
const VERSION_PROBE: &str = "import sys, venv\n\
                             assert sys.version_info >= (3, 9), 'Python is older than 3.9'";

/// A virtual environment: its folder in the target folder, its list of packages, and what it can do
/// without failing once they are installed.
pub(crate) struct Environment {
    pub(crate) folder: &'static str,
    pub(crate) requirements: &'static str,
    pub(crate) probe: &'static str,
    /// A list of more packages, without which it is usable too: what needs them is skipped.
    pub(crate) optional: Option<&'static str>,
}

/// Names under which systems have Python.
pub(crate) fn system_pythons() -> impl Iterator<Item = OsString> {
    ["python3", "python"].into_iter().map(OsString::from)
}

impl Environment {
    /// Its interpreter. It is made when it is missing or its list has changed.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) fn python(&self, project: &Project) -> Result<OsString, String> {
        let folder = project.target.join(self.folder);
        let python = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
        let python: PathBuf = folder.join(python);
        let requirements = self.requirements;
        let wanted = fs::read_to_string(project.root.join(requirements))
            .map_err(|error| format!("{requirements}: {error}"))?;
        // Written last, so that an environment that was begun is made anew.
        let stamp = folder.join("installed.txt");
        let is_there = fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted)
            && process::ask(Command::new(&python).args(["-c", self.probe])).ok;
        if is_there {
            self.install_optional(project, &python);
            return Ok(python.into_os_string());
        }
        let usable =
            |name: &OsString| process::ask(Command::new(name).args(["-c", VERSION_PROBE])).ok;
        let system = system_pythons().find(usable).ok_or("there is no Python 3.9 or newer")?;
        eprintln!("installing {requirements} into {}", folder.display());
        let mut make = Command::new(system);
        told("no virtual environment", make.args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.arg("--requirement").arg(project.root.join(requirements));
        told("the Python packages could not be installed", &mut install)?;
        let mut probe = Command::new(&python);
        told("what was installed is not usable", probe.args(["-c", self.probe]))?;
        fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
        self.install_optional(project, &python);
        Ok(python.into_os_string())
    }

    /// Installs the packages that are not needed by all, and says why where it cannot.
    fn install_optional(&self, project: &Project, python: &Path) {
        let Some(requirements) = self.optional else { return };
        let list = project.root.join(requirements);
        let stamp = project.target.join(self.folder).join("installed-optional.txt");
        let wanted = fs::read_to_string(&list).unwrap_or_default();
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return;
        }
        eprintln!("installing {requirements}");
        let mut install = Command::new(python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        let installed = told("they could not be installed", install.arg("--requirement").arg(list));
        let installed = installed.and_then(|()| {
            fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
        });
        if let Err(reason) = installed {
            eprintln!("{requirements}: {reason}; what needs these packages is skipped");
        }
    }
}

/// Runs a command quietly.
///
/// # Errors
/// What it was for, and the last that it said.
pub(crate) fn told(what: &str, command: &mut Command) -> Result<(), String> {
    let answer = process::ask(command);
    if answer.ok { Ok(()) } else { Err(format!("{what}: {}", answer.last_line())) }
}
