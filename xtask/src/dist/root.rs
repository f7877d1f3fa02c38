//! Empty roots, in which products are tried: a small Debian, or nothing but the libraries that the program
//! is linked with. Nothing of this machine can be seen from inside, the network neither.

use std::env::consts::OS;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::environment::told;
use crate::process::{self, Answer};
use crate::project::Project;
use crate::toolchain::debian_tool;

/// Makes small Debians.
const DEBOOTSTRAP: &str = "debootstrap";
/// What is in one besides: the wheel is tried with it.
const PACKAGES: &str = "python3,python3-venv";

/// A root that is removed at the end.
pub(super) struct Root {
    folder: PathBuf,
}

impl Drop for Root {
    fn drop(&mut self) {
        // What is left over costs disk space, nothing else.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether programs can be run in another root here.
///
/// # Errors
/// Why they cannot.
pub(super) fn possible() -> Result<(), String> {
    if OS != "linux" {
        return Err("only Linux can run a program in another root".to_owned());
    }
    let answer = process::ask(unshare().args(["--root=/", "true"]));
    match answer.ok {
        true => Ok(()),
        false => Err(format!("no other root can be entered: {}", answer.last_line())),
    }
}

/// A namespace of its own for everything; as root of that namespace where we are not root.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--net", "--ipc", "--fork", "--mount-proc"]);
    if !is_root() {
        command.arg("--map-root-user");
    }
    command
}

fn is_root() -> bool {
    process::ask(Command::new("id").arg("-u")).out.trim() == "0"
}

impl Root {
    /// A copy of a small Debian, which is made once and kept in the target folder.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn debian(project: &Project, name: &str) -> Result<Self, String> {
        possible()?;
        let pristine = project.target.join("dist-debian");
        let stamp = pristine.join("made.txt");
        if !stamp.is_file() {
            if !is_root() {
                return Err("only root can make a small Debian".to_owned());
            }
            make_debian(project, &pristine)?;
            fs::write(&stamp, PACKAGES).map_err(|error| error.to_string())?;
        }
        let root = Self::empty(project, name).map_err(|error| format!("{error:#}"))?;
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--reflink=auto"]).arg(pristine.join("root/.")).arg(&root.folder);
        told("the small Debian cannot be copied", &mut copy)?;
        Ok(root)
    }

    /// A root with the libraries that a program is linked with, and nothing else.
    pub(super) fn with_libraries(project: &Project, program: &Path) -> Result<Self> {
        let root = Self::empty(project, "archive")?;
        let answer = process::ask(Command::new("ldd").arg(program));
        let libraries = libraries(&answer.out);
        if !answer.ok || libraries.is_empty() {
            bail!("ldd does not tell the libraries: {}", answer.last_line());
        }
        for library in libraries {
            let to = root.path(library);
            fs::create_dir_all(to.parent().context("a library is in a folder")?)?;
            fs::copy(library, &to).with_context(|| format!("cannot copy {library}"))?;
        }
        for folder in ["proc", "tmp"] {
            fs::create_dir_all(root.path(folder))?;
        }
        Ok(root)
    }

    fn empty(project: &Project, name: &str) -> Result<Self> {
        let folder = project.target.join("dist-trial").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Where a path of the root is outside of it.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }

    /// Runs a command inside, with nothing of our environment; gives what it wrote.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = unshare();
        let mut root = std::ffi::OsString::from("--root=");
        root.push(&self.folder);
        command.arg(root).args(arguments).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/tmp");
        let Answer { ok, out, err } = process::ask(&mut command);
        if !ok {
            bail!("`{}` failed in an empty root:\n{}{}", arguments.join(" "), out, err.trim());
        }
        Ok(out)
    }
}

fn make_debian(project: &Project, place: &Path) -> Result<(), String> {
    let problem = |error: std::io::Error| error.to_string();
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).map_err(problem)?;
    let release = fs::read_to_string("/etc/os-release").map_err(problem)?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.ok_or("this system is no release of Debian or its like")?;
    let tool = debian_tool(DEBOOTSTRAP, &project.target.join("dist-tools"))
        .map_err(|error| format!("{error:#}"))?;
    eprintln!("making a small Debian {codename} in {}, once ...", place.display());
    let mut command = Command::new("sh");
    command.arg(tool.join("usr/sbin/debootstrap"));
    command.env("DEBOOTSTRAP_DIR", tool.join("usr/share/debootstrap"));
    command.args(["--variant=minbase", &format!("--include={PACKAGES}"), codename]);
    told("debootstrap", command.arg(place.join("root")))
}

/// The files that `ldd` names.
fn libraries(text: &str) -> Vec<&str> {
    let words =
        text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_files_that_ldd_names() {
        let text = "\tlinux-vdso.so.1 (0x00007f12)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x00)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00)\n";
        assert_eq!(libraries(text), ["/lib/x/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert!(libraries("\tstatically linked\n").is_empty());
    }
}
