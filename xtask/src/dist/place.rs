//! Places in which products are tried: an empty folder, or a small Debian, from which nothing of this machine
//! can be seen, the network neither. No place knows our environment.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::environment::{copy, told};
use crate::process::{self, Answer};
use crate::project::Project;
use crate::windows;

/// Makes small Debians.
const DEBOOTSTRAP: &str = "debootstrap";
/// What is in one besides: the wheel is tried with it.
const PACKAGES: &str = "python3,python3-venv";
/// Variables without which programs of Windows do not start.
const KEPT: [&str; 2] = ["SystemRoot", "TEMP"];

/// A place that is removed at the end.
pub(super) struct Place {
    folder: PathBuf,
    /// Whether it is the root of what runs there.
    is_root: bool,
    /// Whether what runs there is Windows' and runs under Wine.
    is_windows: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left over costs disk space, nothing else.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Place {
    /// An empty folder of this machine.
    pub(super) fn empty(project: &Project, name: &str) -> Result<Self> {
        let folder = project.target.join("dist-trial").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder.join("tmp"))?;
        Ok(Self { folder, is_root: false, is_windows: false })
    }

    /// An empty folder, and a machine with Windows that nothing was done on.
    pub(super) fn windows(project: &Project) -> Result<Self> {
        let mut place = Self::empty(project, "windows")?;
        place.is_windows = true;
        Ok(place)
    }

    /// A copy of a small Debian, which is made once and kept in the target folder.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn debian(project: &Project) -> Result<Self, String> {
        can_enter_roots()?;
        let pristine = project.target.join("dist-debian");
        let stamp = pristine.join("made.txt");
        if !stamp.is_file() {
            make_debian(&pristine)?;
            fs::write(&stamp, PACKAGES).map_err(|error| error.to_string())?;
        }
        let mut place = Self::empty(project, "debian").map_err(|error| format!("{error:#}"))?;
        place.is_root = true;
        copy(&pristine.join("root/."), &place.folder)?;
        Ok(place)
    }

    /// Where a path of the place is for us.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }

    /// Runs a command there, in the place's first folder, and gives what it wrote to stdout.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let Answer { ok, out, err } = self.ask(arguments)?;
        if !ok {
            bail!("`{}` failed:\n{out}{}", arguments.join(" "), err.trim());
        }
        Ok(out)
    }

    /// The same, whether it succeeds or not.
    pub(super) fn ask(&self, arguments: &[&str]) -> Result<Answer> {
        let (program, rest) = arguments.split_first().context("no program")?;
        if self.is_root {
            let mut command = unshare();
            let mut root = OsString::from("--root=");
            root.push(&self.folder);
            command.arg(root).args(arguments).env_clear();
            command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/tmp");
            return Ok(process::ask(&mut command));
        }
        if self.is_windows {
            let mut command = Command::new("wine");
            command.current_dir(&self.folder).args(arguments).env_clear();
            command.env("PATH", env::var_os("PATH").unwrap_or_default());
            command.env("HOME", self.path("tmp")).env("PYTHONUTF8", "1");
            command.envs(windows::wine_variables(&self.path("wine")));
            return Ok(process::ask(&mut command));
        }
        let program = self.path(program);
        let programs = program.parent().context("a program is in a folder")?.as_os_str();
        let mut command = Command::new(&program);
        command.current_dir(&self.folder).args(rest).env_clear().env("PATH", programs);
        let kept = KEPT.into_iter().filter_map(|name| Some((name, env::var_os(name)?)));
        command.envs(kept);
        for home in ["HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "XDG_RUNTIME_DIR"] {
            command.env(home, self.path("tmp"));
        }
        Ok(process::ask(&mut command))
    }
}

/// Whether programs can be run in another root here.
///
/// # Errors
/// Why they cannot.
fn can_enter_roots() -> Result<(), String> {
    if env::consts::OS != "linux" {
        return Err("only Linux can run a program in another root".to_owned());
    }
    told("no other root can be entered", unshare().args(["--root=/", "true"]))
}

/// A namespace of its own for everything; as root of that namespace where we are not root.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    // What runs inside ends with the command itself.
    let own = ["--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc"];
    command.args(own);
    if !apt::is_root() {
        command.arg("--map-root-user");
    }
    command
}

fn make_debian(place: &Path) -> Result<(), String> {
    if !apt::is_root() {
        return Err("only root can make a small Debian".to_owned());
    }
    let problem = |error: std::io::Error| error.to_string();
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).map_err(problem)?;
    let release = fs::read_to_string("/etc/os-release").map_err(problem)?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.ok_or("this system is no release of Debian or its like")?;
    if !process::ask(Command::new(DEBOOTSTRAP).arg("--version")).ok {
        apt::install(&[DEBOOTSTRAP])?;
    }
    eprintln!("making a small Debian {codename} in {}, once ...", place.display());
    let mut command = Command::new(DEBOOTSTRAP);
    command.args(["--variant=minbase", &format!("--include={PACKAGES}"), codename]);
    told(DEBOOTSTRAP, command.arg(place.join("root")))
}
