//! Views over what other commands of the program wrote: the caller says which files belong together
//! and what their columns hold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::csv_cell::{FORMULA, NUMBER};
use duckdb::Connection;

use super::{ConsoleError, identifier, literal, text_literal, trouble};

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileForm {
    /// Comma-separated values with a header, maybe packed with gzip; columns without a stated type
    /// are text.
    Csv,
    /// The same; columns without a stated type have the type that all their values fit.
    CsvOfAnyType,
    /// A JSON object on each line.
    JsonLines,
    /// Parquet, which knows its types.
    Parquet,
}

/// A file, and what tells its rows from those of other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledFile {
    /// Where it is.
    pub path: PathBuf,
    /// The value of the view's label column.
    pub label: String,
}

/// A view over files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    /// The name that statements use.
    pub name: String,
    /// How all of them are read.
    pub form: FileForm,
    /// The files; columns that only some of them have are null in the others.
    pub files: Vec<LabelledFile>,
    /// The name of the column with the labels; none for a view without.
    pub label: Option<&'static str>,
    /// Types of columns by name, as the database engine calls them. Columns that no file has do not
    /// matter.
    pub types: BTreeMap<String, &'static str>,
}

/// A view over rows that the caller has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsView {
    /// The name that statements use.
    pub name: String,
    /// Names and types of its columns.
    pub columns: Vec<(String, &'static str)>,
    /// The rows; `None` is null.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Something stored that statements may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredView {
    /// Files that are read when a statement asks for them.
    Files(FileView),
    /// Rows.
    Rows(RowsView),
}

impl StoredView {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Files(view) => &view.name,
            Self::Rows(view) => &view.name,
        }
    }

    /// Files that have to stay readable.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let files = match self {
            Self::Files(view) => view.files.as_slice(),
            Self::Rows(_) => &[],
        };
        files.iter().map(|file| &file.path)
    }

    pub(super) fn create(&self, connection: &Connection) -> Result<(), ConsoleError> {
        let statement = match self {
            Self::Files(view) => view.statement(connection)?,
            Self::Rows(view) => view.statement(),
        };
        connection.execute_batch(&statement).map_err(|error| {
            let name = self.name();
            ConsoleError::Files(format!("the view {name} cannot be made: {error}"))
        })
    }
}

impl FileView {
    fn statement(&self, connection: &Connection) -> Result<String, ConsoleError> {
        if let Some(file) = self.files.iter().find(|file| has_wildcard(&file.path)) {
            return Err(ConsoleError::Files(trouble::wildcard(&file.path)));
        }
        let reader = self.reader();
        let columns = self.columns(connection)?;
        let name = identifier(&self.name);
        let Some(label) = self.label else {
            return Ok(format!("CREATE VIEW {name} AS SELECT {columns} FROM {reader} AS t"));
        };
        let labels = self
            .files
            .iter()
            .map(|file| format!("({}, {})", literal(&file.path), text_literal(&file.label)));
        Ok(format!(
            "CREATE VIEW {name} AS SELECT l.label AS {}, {columns} FROM {reader} AS t \
             JOIN (VALUES {}) AS l(path, label) ON l.path = t.filename",
            identifier(label),
            labels.collect::<Vec<_>>().join(", ")
        ))
    }

    /// The call that reads the files, with the column `filename`.
    pub(super) fn reader(&self) -> String {
        let paths: Vec<String> = self.files.iter().map(|file| literal(&file.path)).collect();
        self.reader_of(&paths)
    }

    /// The same for the files with these paths, as they stand in a statement.
    pub(super) fn reader_of(&self, paths: &[String]) -> String {
        reader_of(self.form, paths, &[])
    }

    /// What is selected: every column in the order of the files, those with a stated type cast.
    fn columns(&self, connection: &Connection) -> Result<String, ConsoleError> {
        let names = names_of(connection, &self.reader()).map_err(|error| {
            let why = trouble::unreadable(
                &error.to_string(),
                self.files.iter().map(|file| file.path.as_path()),
            );
            ConsoleError::Files(format!("the files of {} cannot be read: {why}", self.name))
        })?;
        let selected = names.iter().map(|name| {
            let quoted = identifier(name);
            match self.types.get(name) {
                Some(&"VARCHAR") if self.form == FileForm::Csv => {
                    format!("{} AS {quoted}", unguarded(&format!("t.{quoted}")))
                }
                Some(kind) => format!("CAST(t.{quoted} AS {kind}) AS {quoted}"),
                None => format!("t.{quoted}"),
            }
        });
        Ok(selected.collect::<Vec<_>>().join(", "))
    }
}

/// The call that reads files with these paths, as they stand in a statement, and gives the column
/// `filename`. All readers of files are made here, because of what the engine does unasked:
///
/// | the engine would | so |
/// |---|---|
/// | take a folder `column=value` for a column of its files, before the one that they have | off |
/// | take columns of several files by their place | by name |
/// | guess the form of a CSV file | said |
/// | guess types of CSV columns from the first rows | all text, or from all rows but `texts` |
/// | make maps of JSON objects that have many or rare fields | off |
pub(super) fn reader_of(form: FileForm, paths: &[String], texts: &[String]) -> String {
    let paths = paths.join(", ");
    let common = "union_by_name = true, filename = true, hive_partitioning = false";
    let csv = "header = true, delim = ',', quote = '\"', escape = '\"'";
    let json = "sample_size = -1, map_inference_threshold = -1, field_appearance_threshold = 0";
    match form {
        FileForm::Csv => format!("read_csv([{paths}], {common}, {csv}, all_varchar = true)"),
        FileForm::CsvOfAnyType => {
            let texts: Vec<String> =
                texts.iter().map(|name| format!("{}: 'VARCHAR'", text_literal(name))).collect();
            let types = match texts.as_slice() {
                [] => String::new(),
                _ => format!(", types = {{{}}}", texts.join(", ")),
            };
            format!("read_csv([{paths}], {common}, {csv}, sample_size = -1{types})")
        }
        FileForm::JsonLines => format!("read_ndjson([{paths}], {common}, {json})"),
        FileForm::Parquet => format!("read_parquet([{paths}], {common})"),
    }
}

/// The columns of what a call reads.
pub(super) fn names_of(connection: &Connection, reader: &str) -> duckdb::Result<Vec<String>> {
    let describe = format!("DESCRIBE SELECT * EXCLUDE (filename) FROM {reader}");
    let mut statement = connection.prepare(&describe)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    names.collect()
}

/// The text of a cell of our CSV files, as [`domain::csv_cell::unguarded`] has it.
pub(super) fn unguarded(cell: &str) -> String {
    let (formula, number) = (text_literal(&FORMULA), text_literal(&NUMBER));
    format!(
        "CASE WHEN regexp_matches({cell}, {formula}) AND NOT regexp_matches({cell}, {number}) \
         THEN substr({cell}, 2) ELSE {cell} END"
    )
}

impl RowsView {
    fn statement(&self) -> String {
        let cell = |cell: &Option<String>| {
            cell.as_ref().map_or_else(|| "NULL::VARCHAR".to_owned(), |text| text_literal(text))
        };
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(cell).collect();
            format!("({})", cells.join(", "))
        });
        let columns = self.columns.iter().enumerate().map(|(index, (name, kind))| {
            format!("CAST(c{index} AS {kind}) AS {}", identifier(name))
        });
        let names = (0..self.columns.len()).map(|index| format!("c{index}"));
        format!(
            "CREATE VIEW {} AS SELECT {} FROM (VALUES {}) AS r({})",
            identifier(&self.name),
            columns.collect::<Vec<_>>().join(", "),
            rows.collect::<Vec<_>>().join(", "),
            names.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Whether the database engine would take a path for a pattern of many.
pub(super) fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}
