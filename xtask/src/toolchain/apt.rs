//! Asks apt for packages and downloads them, without installing anything.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A package that apt offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// Its name.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
    /// The names of the packages it needs; of alternatives the first.
    pub(super) depends: Vec<String>,
    /// Bytes to download.
    pub(super) size: u64,
}

/// Apt with a set of package lists.
pub(super) struct Apt {
    options: Vec<OsString>,
}

impl Apt {
    /// Apt with the system's own lists.
    pub(super) fn of_the_system() -> Result<Self> {
        for program in ["apt-get", "apt-cache", "dpkg-deb", "dpkg-query"] {
            let answer = process::ask(Command::new(program).arg("--version"));
            if !answer.ok {
                bail!("no {program} here, so this is not a Debian-like system");
            }
        }
        Ok(Self { options: Vec::new() })
    }

    /// Apt with new lists, kept in `folder`, so that the system's own stay as they are and no
    /// rights are needed.
    pub(super) fn refreshed(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder.join("partial"))?;
        let mut lists = OsString::from("Dir::State::Lists=");
        lists.push(folder);
        // The caches on disk describe the system's lists; without them apt reads ours. As root,
        // apt would try to write as another user, who cannot enter our folder.
        let options = ["Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=", "APT::Sandbox::User="];
        let options = options.map(OsString::from).into_iter().chain([lists]);
        let apt = Self { options: options.flat_map(|option| ["-o".into(), option]).collect() };
        let answer = process::ask(apt.command("apt-get").args(["--quiet", "update"]));
        if !answer.ok {
            bail!("`apt-get update` said:\n{}", answer.err.trim());
        }
        Ok(apt)
    }

    /// The newest package of this name that apt would install, if any.
    pub(super) fn package(&self, name: &str) -> Option<Package> {
        let mut command = self.command("apt-cache");
        let answer = process::ask(command.args(["show", "--no-all-versions", name]));
        if answer.ok { parse(&answer.out) } else { None }
    }

    /// The shared libraries that `root` needs and this machine has not got, `root` included.
    pub(super) fn with_missing_libraries(&self, root: Package) -> Result<Vec<Package>> {
        let mut wanted = BTreeMap::new();
        let mut seen = BTreeSet::from([root.name.clone()]);
        let mut open = vec![root];
        while let Some(package) = open.pop() {
            for name in &package.depends {
                if seen.insert(name.clone()) && !is_installed(name) {
                    let of = || format!("{} needs {name}, which apt does not know", package.name);
                    open.push(self.package(name).with_context(of)?);
                }
            }
            wanted.insert(package.name.clone(), package);
        }
        Ok(wanted.into_values().collect())
    }

    /// Downloads packages into a folder.
    pub(super) fn download(&self, packages: &[Package], folder: &Path) -> Result<()> {
        let mut command = self.command("apt-get");
        command.args(["--quiet", "download"]).current_dir(folder);
        command.args(packages.iter().map(|one| format!("{}={}", one.name, one.version)));
        let answer = process::ask(&mut command);
        if !answer.ok {
            bail!("`apt-get download` said:\n{}", answer.err.trim());
        }
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // The answers are read by a program.
        command.args(&self.options).env("LC_ALL", "C");
        command
    }
}

/// A package of the system's, unpacked into a folder of that name in `place`; nothing is installed.
pub(crate) fn unpacked(name: &str, place: &Path) -> Result<PathBuf> {
    let folder = place.join(name);
    // Written last, so that a package that was begun is fetched anew.
    let stamp = folder.join("unpacked.txt");
    if stamp.is_file() {
        return Ok(folder);
    }
    let system = Apt::of_the_system()?;
    let (apt, package) = match system.package(name) {
        Some(package) => (system, package),
        None => {
            let apt = Apt::refreshed(&place.join("lists"))?;
            let package =
                apt.package(name).with_context(|| format!("apt has no package {name}"))?;
            (apt, package)
        }
    };
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    apt.download(std::slice::from_ref(&package), &folder)?;
    let mut debs = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let deb = debs.find(|path| path.extension().is_some_and(|end| end == "deb"));
    let deb = deb.with_context(|| format!("apt-get downloaded no {name}"))?;
    let answer = process::ask(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(&folder));
    if !answer.ok {
        bail!("`dpkg-deb --extract` said: {}", answer.last_line());
    }
    fs::write(&stamp, package.version)?;
    Ok(folder)
}

fn is_installed(name: &str) -> bool {
    let mut command = Command::new("dpkg-query");
    let answer = process::ask(command.args(["--show", "--showformat=${db:Status-Status}", name]));
    answer.ok && answer.out.contains("installed") && !answer.out.contains("not-installed")
}

/// Reads the first paragraph of what `apt-cache show` says.
fn parse(text: &str) -> Option<Package> {
    let paragraph = text.trim_start().split("\n\n").next()?;
    let field = |name: &str| {
        let mut lines = paragraph.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let dependency = |text: &str| {
        let first = text.split('|').next()?;
        let name = first.split_whitespace().next()?;
        // `libc6:any` is the package libc6 of any architecture.
        name.split(':').next().map(str::to_owned)
    };
    Some(Package {
        name: field("Package")?.to_owned(),
        version: field("Version")?.to_owned(),
        depends: field("Depends").unwrap_or("").split(',').filter_map(dependency).collect(),
        size: field("Size").and_then(|size| size.parse().ok()).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_first_paragraph() {
        let text = "Package: rustc-web\nVersion: 1.96.0+dfsg1-1\nDepends: libc6 (>= 2.34), \
                    gcc:any, a | b\nSize: 44\nDescription: Depends: nothing\n\nPackage: older\n";
        let package = parse(text).expect("a package");
        assert_eq!(package.name, "rustc-web");
        assert_eq!(package.version, "1.96.0+dfsg1-1");
        assert_eq!(package.depends, ["libc6", "gcc", "a"]);
        assert_eq!(package.size, 44);
    }

    #[test]
    fn a_package_without_needs_is_a_package() {
        let package = parse("Package: p\nVersion: 1\n").expect("a package");
        assert_eq!((package.depends.len(), package.size), (0, 0));
        assert_eq!(parse(""), None);
    }
}
