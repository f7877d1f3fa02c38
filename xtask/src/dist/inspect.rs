//! Looks into what was made, with other programs than those that made it: every file is there with its
//! bytes, and names no folder of this machine.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::contents::{Contents, VERSION, name};
use super::debian;
use super::tree::Tree;
use super::{unpack, wheel};
use crate::project::Project;
use crate::{paths, process};

/// A folder to unpack into, and what should be found.
pub(super) struct Inspection<'a> {
    contents: &'a Contents,
    folder: PathBuf,
}

impl Drop for Inspection<'_> {
    fn drop(&mut self) {
        // What is left over costs disk space, nothing else.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl<'a> Inspection<'a> {
    pub(super) fn new(project: &Project, contents: &'a Contents) -> Result<Self> {
        let folder = project.target.join("dist").join("unpacked");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self { contents, folder })
    }

    pub(super) fn archive(&self, path: &Path) -> Result<()> {
        unpack(path, &self.folder)?;
        self.holds(&self.contents.archive_tree()?, &[])
    }

    pub(super) fn debian(&self, path: &Path) -> Result<()> {
        let about = told(Command::new("dpkg-deb").arg("--field").arg(path))?;
        for words in ["Package: kumiki\n", "Depends: libc6 ("] {
            ensure!(about.contains(words), "its fields are {about}");
        }
        told(Command::new("dpkg-deb").arg("--extract").arg(path).arg(&self.folder))?;
        // What the units and tables start is what the package has.
        for example in ["systemd/kumiki-update.service", "cron/crontab"] {
            let place = format!("usr/share/doc/kumiki/examples/{example}");
            let text = fs::read_to_string(self.folder.join(&place))?;
            ensure!(text.contains("/usr/bin/kumiki"), "{place} starts another program");
        }
        self.holds(&debian::tree(self.contents)?, &[])
    }

    pub(super) fn wheel(&self, path: &Path, python: &OsStr) -> Result<()> {
        let mut unpack = Command::new(python);
        told(unpack.args(["-m", "zipfile", "-e"]).arg(path).arg(&self.folder))?;
        let about = format!("kumiki-{}.dist-info/", VERSION);
        self.holds(&wheel::tree(self.contents)?, &["kumiki/", &about])
    }

    /// The folder holds these files, and besides only some in those folders; none names a folder of this
    /// machine.
    fn holds(&self, wanted: &Tree, besides: &[&str]) -> Result<()> {
        let mut found = BTreeMap::new();
        files_below(&self.folder, "", &mut found)?;
        for (place, item) in wanted.items() {
            let path = found.remove(place).with_context(|| format!("{place} is missing"))?;
            ensure!(fs::read(&path)? == *item.bytes, "{place} has other bytes");
            // DuckDB's own release names folders of the machine that made it.
            let is_database = |library: &PathBuf| place.ends_with(&name(library));
            if !self.contents.library.as_ref().is_some_and(is_database) {
                self.must_be_clean(&path).context(place.to_owned())?;
            }
        }
        for (place, path) in found {
            let is_meant = besides.iter().any(|folder| place.starts_with(folder));
            ensure!(is_meant, "{place} should not be there");
            self.must_be_clean(&path).context(place)?;
        }
        Ok(())
    }

    fn must_be_clean(&self, path: &Path) -> Result<()> {
        match paths::first_in(&fs::read(path)?, &self.contents.forbidden) {
            Some(folder) => bail!("names a folder of this machine: {folder}"),
            None => Ok(()),
        }
    }
}

/// Runs a command quietly and gives what it wrote.
fn told(command: &mut Command) -> Result<String> {
    let answer = process::ask(command);
    ensure!(answer.ok, "{}: {}", command.get_program().display(), answer.err.trim());
    Ok(answer.out)
}

/// All files below a folder, by their place with `/`.
fn files_below(folder: &Path, place: &str, found: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let place = format!("{place}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files_below(&entry.path(), &format!("{place}/"), found)?;
        } else {
            ensure!(kind.is_file(), "{place} is neither a file nor a folder");
            found.insert(place, entry.path());
        }
    }
    Ok(())
}
