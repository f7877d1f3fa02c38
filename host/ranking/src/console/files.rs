//! Files beside the daily prices that have views: minute bars, trades, narratives, audit logs.

use std::fs;
use std::path::{Path, PathBuf};

use super::literal;

/// Folders of the data directory that become views of the same name, when they hold files. A file
/// may lie in a folder of its own below, as those of a run do.
pub const FOLDERS: [&str; 4] = ["minute", "trades", "narrative", "audit"];
/// Most files of one view.
pub const FILES_MAX: usize = 10_000;
/// Folders inside folders that are looked through.
const DEPTH: usize = 3;

/// Files that make up one view.
pub(super) struct FileSet {
    name: &'static str,
    form: Form,
    pub(super) paths: Vec<PathBuf>,
}

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Parquet,
    Csv,
    JsonLines,
}

impl Form {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }

    const fn reader(self) -> &'static str {
        match self {
            Self::Parquet => "read_parquet",
            Self::Csv => "read_csv",
            Self::JsonLines => "read_ndjson",
        }
    }
}

impl FileSet {
    /// The statement that makes the view. The column `filename` tells files apart.
    pub(super) fn view(&self) -> String {
        let paths: Vec<String> = self.paths.iter().map(|path| literal(path)).collect();
        format!(
            "CREATE VIEW {} AS SELECT * FROM {}([{}], union_by_name = true, filename = true)",
            self.name,
            self.form.reader(),
            paths.join(", ")
        )
    }
}

/// The file sets of a data directory. A folder with files of several forms is refused: a view has
/// one.
pub(super) fn find(data: &Path) -> Result<Vec<FileSet>, String> {
    let mut sets = Vec::new();
    for name in FOLDERS {
        let folder = data.join(name);
        if !folder.is_dir() {
            continue;
        }
        let mut found = Vec::new();
        collect(&folder, DEPTH, &mut found)?;
        found.sort();
        let Some(&(form, _)) = found.first() else { continue };
        if let Some((_, other)) = found.iter().find(|(other, _)| *other != form) {
            return Err(format!(
                "{} holds files of several forms, like {}; keep one form (Parquet, CSV or JSON \
                 lines) in it",
                folder.display(),
                other.display()
            ));
        }
        sets.push(FileSet { name, form, paths: found.into_iter().map(|(_, path)| path).collect() });
    }
    Ok(sets)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<(Form, PathBuf)>) -> Result<(), String> {
    let unreadable = |error| format!("{} cannot be listed: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            if depth > 1 {
                collect(&path, depth - 1, found)?;
            }
        } else if let Some(form) = Form::of(&path) {
            found.push((form, path));
        }
        if found.len() > FILES_MAX {
            return Err(format!("{} holds more than {FILES_MAX} files", folder.display()));
        }
    }
    Ok(())
}
