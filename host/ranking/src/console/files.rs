//! Files beside the daily prices that have views: minute bars, trades, narratives, audit logs.

use std::fs;
use std::path::{Path, PathBuf};

use duckdb::Connection;

use super::stored::{FileForm, has_wildcard, reader_of, unguarded};
use super::{identifier, literal, trouble};

/// Folders of the data directory that become views of the same name, when they hold files. A file
/// may lie in a folder of its own below, as those of a run do.
pub const FOLDERS: [&str; 4] = ["minute", "trades", "narrative", "audit"];
/// Most files of one view.
pub const FILES_MAX: usize = 10_000;
/// Folders inside folders that are looked through.
const DEPTH: usize = 3;

/// The one of them whose files are ours: texts in its CSV files may be guarded.
const OURS: &str = "narrative";
/// The column that is text whatever it looks like: the code 0130 is not the number 130.
const CODE: &str = "code";

/// Files that make up one view.
pub(super) struct FileSet {
    pub(super) name: &'static str,
    form: FileForm,
    pub(super) paths: Vec<PathBuf>,
}

/// How a file is read, by its name.
fn form_of(path: &Path) -> Option<FileForm> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "parquet" => Some(FileForm::Parquet),
        "csv" => Some(FileForm::CsvOfAnyType),
        "jsonl" | "ndjson" => Some(FileForm::JsonLines),
        _ => None,
    }
}

impl FileSet {
    /// Makes the view. Its column `filename` tells files apart.
    ///
    /// # Errors
    /// Why it cannot be made, for people.
    pub(super) fn create(&self, connection: &Connection) -> Result<(), String> {
        if let Some(path) = self.paths.iter().find(|path| has_wildcard(path)) {
            return Err(trouble::wildcard(path));
        }
        let failed = |error: duckdb::Error| {
            let why =
                trouble::unreadable(&error.to_string(), self.paths.iter().map(PathBuf::as_path));
            format!("the files of {} cannot be read: {why}", self.name)
        };
        let paths: Vec<String> = self.paths.iter().map(|path| literal(path)).collect();
        let mut reader = reader_of(self.form, &paths, &[]);
        let mut columns = described(connection, &reader).map_err(failed)?;
        if self.form == FileForm::CsvOfAnyType {
            let names = columns.iter().map(|(name, _)| name.clone());
            let codes: Vec<String> = names.filter(|name| name.eq_ignore_ascii_case(CODE)).collect();
            reader = reader_of(self.form, &paths, &codes);
            columns = described(connection, &reader).map_err(failed)?;
        }
        let is_guarded = self.name == OURS && self.form == FileForm::CsvOfAnyType;
        let selected = columns.iter().map(|(name, kind)| {
            let quoted = identifier(name);
            match kind.as_str() {
                "VARCHAR" if is_guarded && name != "filename" => {
                    format!("{} AS {quoted}", unguarded(&quoted))
                }
                _ => quoted,
            }
        });
        let selected = selected.collect::<Vec<_>>().join(", ");
        let view = format!("CREATE VIEW {} AS SELECT {selected} FROM {reader}", self.name);
        connection.execute_batch(&view).map_err(failed)
    }
}

/// Names and types of the columns of what a call reads.
fn described(connection: &Connection, reader: &str) -> duckdb::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(&format!("DESCRIBE SELECT * FROM {reader}"))?;
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    columns.collect()
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
        found.sort_by(|(_, one), (_, other)| one.cmp(other));
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

fn collect(
    folder: &Path,
    depth: usize,
    found: &mut Vec<(FileForm, PathBuf)>,
) -> Result<(), String> {
    let unreadable = |error| format!("{} cannot be listed: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            if depth > 1 {
                collect(&path, depth - 1, found)?;
            }
        } else if let Some(form) = form_of(&path) {
            found.push((form, path));
        }
        if found.len() > FILES_MAX {
            return Err(format!("{} holds more than {FILES_MAX} files", folder.display()));
        }
    }
    Ok(())
}
