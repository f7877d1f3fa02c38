//! Virtual environments of Python, made from a list of packages once per machine.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::project::Project;
use crate::{cache, process};

/// What the interpreter of a virtual environment must be.
const VERSION_PROBE: &str = "import sys, venv\n\
                             assert sys.version_info >= (3, 9), 'Python is older than 3.9'";

/// A virtual environment: its name in the cache, its list of packages, and what it can do without
/// failing once they are installed.
pub(crate) struct Environment {
    pub(crate) name: &'static str,
    pub(crate) requirements: &'static str,
    pub(crate) probe: &'static str,
    /// A list of more packages, without which it is usable too: what needs them is skipped.
    pub(crate) optional: Option<&'static str>,
}

impl Environment {
    /// Its interpreter. It is made where it is missing.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) fn python(&self, project: &Project) -> Result<OsString, String> {
        let requirements = project.root.join(self.requirements);
        let wanted = read(&requirements)?;
        let folder = cache::pinned(self.name, &wanted).map_err(|error| format!("{error:#}"))?;
        let _lock = cache::locked(&folder).map_err(|error| format!("{error:#}"))?;
        let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        // Written last, so that an environment that was begun is made anew.
        let stamp = folder.join("installed.txt");
        let mut probe = Command::new(&python);
        probe.args(["-c", self.probe]);
        if !stamp.is_file() || !process::ask(&mut probe).ok {
            let usable =
                |name: &&str| process::ask(Command::new(name).args(["-c", VERSION_PROBE])).ok;
            let system = ["python3", "python"].into_iter().find(usable);
            let system = system.ok_or("there is no Python 3.9 or newer")?;
            eprintln!("installing {} into {}", self.requirements, folder.display());
            let mut make = Command::new(system);
            told("no virtual environment", make.args(["-m", "venv", "--clear"]).arg(&folder))?;
            install(&python, &requirements)?;
            told("the installed packages do not work", &mut probe)?;
            write(&stamp, &wanted)?;
        }
        if let Some(optional) = self.optional
            && let Err(reason) = install_optional(&python, &folder, &project.root.join(optional))
        {
            eprintln!("{optional}: {reason}; the tests that need these packages are skipped");
        }
        Ok(python.into_os_string())
    }
}

/// Installs the packages that are not needed by all, where they are not there.
fn install_optional(python: &Path, folder: &Path, list: &Path) -> Result<(), String> {
    let (wanted, stamp) = (read(list)?, folder.join("installed-optional.txt"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing {}", list.display());
    install(python, list)?;
    write(&stamp, &wanted)
}

fn install(python: &Path, list: &Path) -> Result<(), String> {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    let what = "the Python packages could not be installed";
    told(what, install.arg("--requirement").arg(list))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file or a folder with all that is in it; `folder/.` is what is in it.
///
/// # Errors
/// What could not be copied.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--reflink=auto"]).arg(from).arg(to);
    told(&format!("{} cannot be copied", from.display()), &mut copy)
}

/// Runs a command quietly.
///
/// # Errors
/// What it was for, and the last that it said.
pub(crate) fn told(what: &str, command: &mut Command) -> Result<(), String> {
    let answer = process::ask(command);
    if answer.ok { Ok(()) } else { Err(format!("{what}: {}", answer.last_line())) }
}
