//! Empty roots, in which products are tried: a small Debian, or nothing but the libraries that the program is
//! linked with. Nothing of this machine can be seen from inside, the network neither.

use std::collections::BTreeSet;
use std::env::consts::OS;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::contents::Contents;
use super::trial::Place;
use crate::environment::told;
use crate::process::{self, Answer};
use crate::project::Project;
use crate::{apt, duckdb};

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
    // What runs inside ends with the command itself.
    let own = ["--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc"];
    command.args(own);
    if !apt::is_root() {
        command.arg("--map-root-user");
    }
    command
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
            if !apt::is_root() {
                return Err("only root can make a small Debian".to_owned());
            }
            make_debian(&pristine)?;
            fs::write(&stamp, PACKAGES).map_err(|error| error.to_string())?;
        }
        let root = Self::empty(project, name).map_err(|error| format!("{error:#}"))?;
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--reflink=auto"]).arg(pristine.join("root/.")).arg(&root.folder);
        told("the small Debian cannot be copied", &mut copy)?;
        Ok(root)
    }

    /// A root with the libraries of this system that a product's files are linked with, and nothing else.
    pub(super) fn with_libraries(project: &Project, contents: &Contents) -> Result<Self> {
        let root = Self::empty(project, "archive")?;
        let mut ldd = Command::new("ldd");
        let answer = process::ask(ldd.arg(&contents.program).args(&contents.library));
        let libraries = libraries(&answer.out);
        if !answer.ok || libraries.is_empty() {
            bail!("ldd does not tell the libraries: {}", answer.last_line());
        }
        for library in libraries {
            let to = root.path(library);
            fs::create_dir_all(to.parent().context("a library is in a folder")?)?;
            fs::copy(library, &to).with_context(|| format!("cannot copy {library}"))?;
        }
        for folder in ["proc", "tmp", "opt"] {
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

    /// A command that runs inside, in the root's first folder, with nothing of our environment.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = unshare();
        let mut root = std::ffi::OsString::from("--root=");
        root.push(&self.folder);
        command.arg(root).args(arguments).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/tmp");
        command
    }
}

impl Place for Root {
    fn path(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let Answer { ok, out, err } = process::ask(&mut self.command(arguments));
        if !ok {
            bail!("`{}` failed in an empty root:\n{}{}", arguments.join(" "), out, err.trim());
        }
        Ok(out)
    }
}

fn make_debian(place: &Path) -> Result<(), String> {
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

/// The files of this system that `ldd` names; DuckDB's library is the product's own.
fn libraries(text: &str) -> BTreeSet<&str> {
    // A heading of a file ends so.
    let lines = text.lines().filter(|line| !line.ends_with(':') && !line.contains(duckdb::LIBRARY));
    lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_files_that_ldd_names() {
        let own = format!("\t{0} => /made/{0} (0x00)\n/made/{0}:\n", duckdb::LIBRARY);
        let text = "/made/kumiki:\n\tlinux-vdso.so.1 (0x00007f12)\n\tlibm.so.6 => /lib/x/libm.so.6 \
                    (0x00)\n\t/lib64/ld-linux-x86-64.so.2 (0x00)\n";
        let text = format!("{text}{own}");
        let wanted = ["/lib/x/libm.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries(&text), BTreeSet::from(wanted));
        assert!(libraries("\tstatically linked\n").is_empty());
    }
}
