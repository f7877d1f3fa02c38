//! Folders below one that hold a file of a name: runs, sweeps. What is done with each:
//!
//! | in the folder that was given, or below it | what is done |
//! |---|---|
//! | a folder with the file | taken; what is in it is not looked through |
//! | its name begins with a dot | passed over: a run that is being written |
//! | a link to a folder | told; it may lead to where we come from |
//! | a folder more than [`DEPTH`] below | told |
//! | a folder that cannot be listed | told; the one that was given is an error |
//! | its path has `*`, `?` or `[`, or is no text | told; the database engine would look for others |

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use ranking::console::FILES_MAX;

use super::left_out::LeftOut;

/// Folders inside folders that are looked through.
const DEPTH: usize = 3;

/// A folder that was found, and its name for people: its way from the folder that was given.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) label: String,
}

/// The folders in `root` that hold `file`, `root` itself among them, in the order of their paths.
///
/// # Errors
/// Why `root`, which `flag` names, cannot be listed.
pub(super) fn with_file(
    flag: &str,
    root: &Path,
    file: &str,
    left_out: &mut LeftOut,
) -> Result<Vec<Found>> {
    let mut walk = Walk { flag, root, file, found: Vec::new(), left_out };
    walk.look(root, DEPTH)?;
    let mut found = walk.found;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

struct Walk<'a> {
    flag: &'a str,
    root: &'a Path,
    file: &'a str,
    found: Vec<Found>,
    left_out: &'a mut LeftOut,
}

impl Walk<'_> {
    fn look(&mut self, folder: &Path, depth: usize) -> Result<()> {
        if folder.join(self.file).is_file() {
            return self.take(folder);
        }
        let below = match below(folder) {
            Ok(below) => below,
            Err(error) if folder == self.root => {
                let (flag, folder) = (self.flag, folder.display());
                bail!("{flag}: cannot list {folder}: {error}; give a folder that is there");
            }
            Err(error) => {
                self.left_out.add(format!("it cannot be listed ({error})"), self.label(folder));
                return Ok(());
            }
        };
        for (path, is_link) in below {
            if is_link {
                self.left_out.add("links are not followed", self.label(&path));
            } else if depth == 0 {
                let why = format!("it lies more than {DEPTH} folders below");
                self.left_out.add(why, self.label(&path));
            } else {
                self.look(&path, depth - 1)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, folder: &Path) -> Result<()> {
        let label = self.label(folder);
        match folder.to_str() {
            None => self.left_out.add("its name is no text", label),
            Some(path) if path.contains(['*', '?', '[']) => {
                self.left_out.add("its name has *, ? or [, which stand for other names", label);
            }
            Some(_) if self.found.len() == FILES_MAX => {
                let (root, file) = (self.root.display(), self.file);
                bail!("{root} holds more than {FILES_MAX} folders with {file}");
            }
            Some(_) => self.found.push(Found { path: folder.to_owned(), label }),
        }
        Ok(())
    }

    fn label(&self, folder: &Path) -> String {
        let way = folder.strip_prefix(self.root).ok().filter(|way| !way.as_os_str().is_empty());
        let name = way.or_else(|| folder.file_name().map(Path::new)).unwrap_or(folder);
        name.to_string_lossy().replace('\\', "/")
    }
}

/// The folders of a folder by name, and whether each is a link.
fn below(folder: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && (kind.is_dir() || (kind.is_symlink() && path.is_dir())) {
            found.push((path, kind.is_symlink()));
        }
    }
    found.sort();
    Ok(found)
}
