//! The project's files as pairs of path and text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names of folders that hold nothing of ours.
const SKIPPED: [&str; 6] = [".git", "target", "runs", "__pycache__", "node_modules", ".venv"];

/// A text file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path from the project's folder, with `/` on every system.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl File {
    /// A file made up for a test.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The extension, without the dot; empty when there is none.
    pub fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|end| end.to_str()).unwrap_or("")
    }

    /// Whether it stands anywhere below `folder`.
    pub fn is_below(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The project's folder.
pub fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// All text files of the project, in the order of their paths.
pub fn read_all(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // In a linked work tree `.git` is a file.
            if SKIPPED.contains(&entry.file_name().to_string_lossy().as_ref()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file()
                && let Some(file) = read_text(root, &entry.path())?
            {
                files.push(file);
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_text(root: &Path, path: &Path) -> io::Result<Option<File>> {
    let inside = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    // What is not UTF-8 is data, and no rule speaks of data.
    let text = String::from_utf8(fs::read(path)?).ok();
    Ok(text.map(|text| File { path: parts.join("/"), text }))
}

/// The names of the folders directly in `folder`, sorted; none when it is missing.
pub fn folders_in(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !SKIPPED.contains(&name.as_str())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_this_file() {
        let files = read_all(&workspace_root()).unwrap();
        let this = files.iter().find(|file| file.path == "tests/src/files.rs").unwrap();
        assert_eq!(this.extension(), "rs");
        assert!(this.is_below("tests") && this.is_below("tests/src") && !this.is_below("test"));
        assert!(!files.iter().any(|file| file.is_below("target")));
    }

    #[test]
    fn finds_this_folder() {
        assert!(folders_in(&workspace_root()).contains(&"tests".to_owned()));
        assert!(folders_in(&workspace_root().join("no-such-folder")).is_empty());
    }
}
