//! Empty roots, in which products are tried: a small Debian, nothing but the libraries that the program is
//! linked with, or nothing but those of the packages that a Debian package declares. Nothing of this machine
//! can be seen from inside, the network neither.

use std::env::consts::OS;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::trial::Place;
use crate::environment::told;
use crate::process::{self, Answer};
use crate::project::Project;
use crate::toolchain::debian_tool;

/// Makes small Debians.
const DEBOOTSTRAP: &str = "debootstrap";
/// What is in one besides: the wheel is tried with it.
const PACKAGES: &str = "python3,python3-venv";

/// Folders of the root that are links on a system with all programs below `/usr`.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

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
    pub(super) fn with_libraries(project: &Project, name: &str, program: &Path) -> Result<Self> {
        let root = Self::empty(project, name)?;
        let answer = process::ask(Command::new("ldd").arg(program));
        let libraries = libraries(&answer.out);
        if !answer.ok || libraries.is_empty() {
            bail!("ldd does not tell the libraries: {}", answer.last_line());
        }
        for library in libraries {
            root.take(library)?;
        }
        root.make_folders()?;
        Ok(root)
    }

    /// A root with a Debian package unpacked, and of the packages that it declares to need the libraries,
    /// as they are on this system; nothing else.
    ///
    /// # Errors
    /// Why it cannot be tried here.
    pub(super) fn of_package(project: &Project, package: &Path) -> Result<Result<Self, String>> {
        if let Err(reason) = possible() {
            return Ok(Err(reason));
        }
        let field = ["--field".as_ref(), package.as_os_str(), "Depends".as_ref()];
        let needs = process::ask(Command::new("dpkg-deb").args(field));
        if !needs.ok {
            bail!("dpkg-deb: {}", needs.last_line());
        }
        let root = Self::empty(project, "package")?;
        root.link_as_merged()?;
        for name in declared(&needs.out) {
            let answer = process::ask(Command::new("dpkg-query").args(["--listfiles", name]));
            if !answer.ok {
                let reason = format!("{name}, which it declares, is not on this system");
                return Ok(Err(reason));
            }
            for library in answer.out.lines().filter(|file| is_library(file)) {
                root.take(library)?;
            }
        }
        let mut unpack = Command::new("dpkg-deb");
        told("unpack", unpack.arg("--extract").arg(package).arg(&root.folder))
            .map_err(anyhow::Error::msg)?;
        root.make_folders()?;
        Ok(Ok(root))
    }

    /// Makes `/lib` and the like links where they are links on this system: the loader of programs is named
    /// by such a path.
    #[cfg(unix)]
    fn link_as_merged(&self) -> Result<()> {
        for name in MERGED {
            if let Ok(target) = fs::read_link(Path::new("/").join(name))
                && target.is_relative()
            {
                fs::create_dir_all(self.folder.join(&target))?;
                std::os::unix::fs::symlink(&target, self.folder.join(name))?;
            }
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn link_as_merged(&self) -> Result<()> {
        bail!("there is no {} here", MERGED.join(", "))
    }

    /// Copies a file of this system to the same place in the root.
    fn take(&self, file: &str) -> Result<()> {
        let to = self.path(file);
        fs::create_dir_all(to.parent().context("a library is in a folder")?)?;
        fs::copy(file, &to).with_context(|| format!("cannot copy {file}"))?;
        Ok(())
    }

    fn make_folders(&self) -> Result<()> {
        for folder in ["proc", "tmp"] {
            fs::create_dir_all(self.path(folder))?;
        }
        Ok(())
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

/// The packages that a field `Depends` names, the first of each choice.
fn declared(depends: &str) -> Vec<&str> {
    let names = depends.split(',').map(str::trim).map(|one| {
        let end = one.find(['|', '(', ' ', ':']).unwrap_or(one.len());
        &one[..end]
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether a file of a package is a library: `libc.so.6`, and not what only debuggers read.
fn is_library(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    name.split_once(".so").is_some_and(|(_, rest)| is_version(rest)) && Path::new(file).is_file()
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
    fn packages_and_libraries_are_told_from_the_rest() {
        let depends = "libc6 (>= 2.34), libgcc-s1 (>= 4.2) | other, libstdc++6:any\n";
        assert_eq!(declared(depends), ["libc6", "libgcc-s1", "libstdc++6"]);
        assert!(declared("").is_empty());
        let folder = tempfile::tempdir().expect("a folder");
        for (name, is) in [("libm.so.6", true), ("ld-x.so", true), ("libm.so.6-gdb.py", false)] {
            let file = folder.path().join(name);
            fs::write(&file, "").expect("a file");
            assert_eq!(is_library(file.to_str().expect("a text")), is, "{name}");
        }
        assert!(!is_library("/nowhere/libm.so.6"));
    }

    #[test]
    fn libraries_are_the_files_that_ldd_names() {
        let text = "\tlinux-vdso.so.1 (0x00007f12)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x00)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00)\n";
        assert_eq!(libraries(text), ["/lib/x/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert!(libraries("\tstatically linked\n").is_empty());
    }
}
