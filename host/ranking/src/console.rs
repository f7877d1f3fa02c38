//! SQL for people over everything that was stored: read-only views, one SELECT at a time, with
//! limits on memory, rows and files.
//!
//! Data is opened read-only before the first statement; after that nothing else can be opened and
//! no setting can be changed, so a statement can neither write nor read elsewhere.

mod answer;
mod boards;
mod files;
mod form;
mod stored;
mod trouble;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duckdb::{Config, Connection};
use pricestore::sql::{batches, must_be_database};
use pricestore::{DataDir, sql};
use thiserror::Error;

use crate::CancelToken;
use crate::text::redacted;

use answer::AsText;

pub use answer::{
    ANSWER_BYTES_MAX, AnswerSink, CELL_BYTES, Column, Cut, Given, Held, ROW_BYTES_MAX, ROWS_HELD,
    ROWS_MAX, Table,
};
pub use boards::BOARDS_MAX;
pub use files::{FILES_MAX, FOLDERS};
pub use stored::{FileForm, FileView, LabelledFile, RowsView, StoredView};

/// Longest statement, in bytes.
pub const SQL_BYTES_MAX: usize = 100_000;
/// Least memory of the database engine, in bytes; with less it cannot open files.
pub const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// What the engine says where memory is used up. What it advises then cannot be done here.
const OUT_OF_MEMORY: &str = "Out of Memory Error";
/// How functions begin that change the engine, in its plans.
const CHANGING: [&str; 6] = [
    "ENABLE_",
    "DISABLE_",
    "TRUNCATE_DUCKDB_LOGS",
    "CHECKPOINT",
    "FORCE_CHECKPOINT",
    "JSON_EXECUTE_SERIALIZED_SQL",
];
/// The combined database, and that of listed issues, as the engine calls them here.
const MOTHER: &str = "mother";
const LISTED: &str = "listed";
/// Views of them, and of folders that flags name.
const OF_MOTHER: [&str; 3] = ["daily", "adjusted", "calendar"];
const OF_LISTED: [&str; 2] = ["listed_issue", "list_date"];
const OF_FLAGS: [(&str, &str); 2] = [("runs", "--runs"), ("sweeps", "--sweeps")];
/// Views of folders that flags make too.
const OF_FLAGS_TOO: [(&str, &str); 3] =
    [("trades", "--data"), ("narrative", "--runs"), ("audit", "--runs or --config-dir")];
/// Why a view is not there.
const ABSENT: &str = "is not there";
/// How often a running statement looks whether it was cancelled.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// What a statement may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleOptions {
    /// Threads of the database engine, at least 1.
    pub threads: usize,
    /// Memory of the database engine, in bytes.
    pub memory_bytes: u64,
    /// Rows of an answer, at most [`ROWS_MAX`]; the rest is cut off and said so. None gives all of them to
    /// whoever holds one at a time.
    pub rows: Option<usize>,
    /// What statements may see beside the data directory.
    pub stored: Vec<StoredView>,
}

impl Default for ConsoleOptions {
    fn default() -> Self {
        Self { threads: 2, memory_bytes: 1 << 30, rows: Some(ROWS_HELD), stored: Vec::new() }
    }
}

/// Why there is no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// There is nothing to look at.
    #[error(
        "{0} holds no data; load daily prices with `kumiki data update`, or make some with `kumiki data \
        sample --daily`"
    )]
    NoData(String),
    /// A folder cannot be listed or holds too much.
    #[error("{0}")]
    Files(String),
    /// The statement is something else than one SELECT.
    #[error("{0}")]
    Refused(String),
    /// The statement is wrong or needs more than it may use.
    #[error("{0}")]
    Statement(String),
    /// It needs more memory than it may use.
    #[error(
        "the statement needs more memory than the {} MB of the database engine; give more with --memory, or \
         ask for fewer rows or shorter values",
        .0 >> 20
    )]
    Memory(u64),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The database engine cannot be set up.
    #[error("the database engine cannot be set up: {0}")]
    Engine(#[from] duckdb::Error),
    /// A row has more than [`ROW_BYTES_MAX`] bytes.
    #[error(
        "row {0} has {1} bytes of values, at most {ROW_BYTES_MAX} can be shown; ask for a part, like \
         left(text, 1000)"
    )]
    RowTooLarge(usize, usize),
    /// The system has no thread left for who would end the statement.
    #[error("the statement did not run: the thread that can cancel it did not start: {0}")]
    Thread(io::Error),
    /// The answer cannot be handed on.
    #[error("the answer cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// A view that statements can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The name that statements use.
    pub name: String,
    /// Names and types of its columns, in the order of the file or table.
    pub columns: Vec<(String, String)>,
}

/// A read-only database over the stored data.
pub struct Console {
    connection: Connection,
    views: Vec<View>,
    /// What the views of the caller are made of, to say which file a statement failed on.
    stored: Vec<StoredView>,
    /// The names of views that cannot be made, each with the reason.
    unreadable: Vec<(String, String)>,
    rows: Option<usize>,
    memory_bytes: u64,
}

impl Console {
    /// Opens all data of a data directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be opened.
    pub fn open(data: &DataDir, options: &ConsoleOptions) -> Result<Self, ConsoleError> {
        let config = Config::default()
            .threads(i64::try_from(options.threads.max(1)).unwrap_or(1))?
            .max_memory(&format!("{}B", options.memory_bytes))?;
        let connection = sql::open(config)?;
        connection.execute_batch("SET temp_directory = ''; SET enable_progress_bar = false")?;
        let mother = data.mother();
        if mother.is_file() {
            attach(&connection, MOTHER, &mother)?;
        }
        let listed = data.listed_info();
        let mut has_listed = listed.is_file();
        // One that others have put there must not take the prices away.
        if has_listed && let Err(error) = attach(&connection, LISTED, &listed) {
            let cause = redacted(&error.to_string());
            tracing::warn!(cause, "the database of listed issues cannot be used");
            has_listed = false;
        }
        // Too many of them must not take the prices away either.
        let (boards, no_boards) = match boards::find(data) {
            Ok(boards) => (boards::attach_all(&connection, &boards), None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let found = files::find(data.path()).map_err(ConsoleError::Files)?;
        let stored = options.stored.iter().flat_map(StoredView::paths);
        let paths = found.iter().flat_map(|set| &set.paths).chain(stored);
        let allowed: Vec<String> = paths.map(|path| literal(path)).collect();
        // Before anything of the databases is looked at: a view of somebody else's may read any file, or wait
        // for one that never comes.
        connection.execute_batch(&format!(
            "SET allowed_paths = [{}]; SET enable_external_access = false; \
             SET lock_configuration = true",
            allowed.join(", ")
        ))?;
        let mut unreadable = Vec::new();
        for (catalog, is_there) in [(MOTHER, mother.is_file()), (LISTED, has_listed)] {
            if is_there {
                make_views(&connection, catalog, &mut unreadable)?;
            }
        }
        boards::make_views(&connection, &boards, &mut unreadable)?;
        if let Some(why) = no_boards {
            for (view, _) in boards::VIEWS {
                no_view(&mut unreadable, view, why.clone());
            }
        }
        for set in &found {
            if let Err(why) = set.create(&connection) {
                no_view(&mut unreadable, set.name, why);
            }
        }
        put_stored(&connection, &options.stored, &mut unreadable)?;
        let views = views(&connection)?;
        unreadable.extend(absent(data, &views));
        if views.is_empty() {
            if let Some((_, why)) = unreadable.into_iter().find(|(_, why)| !is_absence(why)) {
                return Err(ConsoleError::Files(why));
            }
            return Err(ConsoleError::NoData(data.path().display().to_string()));
        }
        let (stored, rows) =
            (options.stored.clone(), options.rows.map(|rows| rows.clamp(1, ROWS_MAX)));
        let memory_bytes = options.memory_bytes;
        Ok(Self { connection, views, stored, unreadable, rows, memory_bytes })
    }

    /// The views, by name.
    #[must_use]
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// Runs one SELECT (or DESCRIBE, SHOW, SUMMARIZE or EXPLAIN) and holds its answer.
    ///
    /// # Errors
    /// When it is something else, wrong, cancelled, or needs more than it may use.
    pub fn query(&self, sql: &str, cancel: &CancelToken) -> Result<Table, ConsoleError> {
        let mut table = Table::default();
        let given = self.answer(sql, cancel, &mut table)?;
        table.cut = given.cut.is_some();
        Ok(table)
    }

    /// The same, with an answer that is handed on row by row.
    ///
    /// # Errors
    /// As [`Console::query`], and when the sink fails; it may have taken rows before.
    pub fn answer(
        &self,
        sql: &str,
        cancel: &CancelToken,
        sink: &mut impl AnswerSink,
    ) -> Result<Given, ConsoleError> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        if sql.len() > SQL_BYTES_MAX {
            let length = sql.len();
            let message = format!("the statement has {length} bytes; at most {SQL_BYTES_MAX}");
            return Err(ConsoleError::Refused(message));
        }
        let (explain, select) = split_explain(sql);
        self.check_select(select)?;
        self.watched(cancel, || {
            let wrong = |sql: &str, error: &duckdb::Error| self.failed(sql, &error.to_string());
            self.check_calls(select)?;
            let text = match explain {
                Some(explain) => AsText::of_plan(&format!("{explain} {select}")),
                // One more row than asked for tells whether there are more.
                None => AsText::of(&self.connection, select, self.rows.map(|rows| rows + 1))
                    .map_err(|error| wrong(select, &error))?,
            };
            self.run(&text, cancel, sink)
        })
    }

    /// Lets the database engine itself say whether this is a SELECT and nothing else.
    fn check_select(&self, sql: &str) -> Result<(), ConsoleError> {
        let shown = "SELECT json_serialize_sql(?::VARCHAR)";
        let text: String = self
            .connection
            .query_row(shown, [sql], |row| row.get(0))
            .map_err(|error| ConsoleError::Statement(first_lines(&error.to_string())))?;
        let tree: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| ConsoleError::Statement(error.to_string()))?;
        if tree["error"] == serde_json::Value::Bool(true) {
            let kind = tree["error_type"].as_str().unwrap_or_default();
            let message = tree["error_message"].as_str().unwrap_or("not a SELECT");
            return Err(if kind == "not implemented" {
                ConsoleError::Refused(
                    "only SELECT, DESCRIBE, SHOW, SUMMARIZE and EXPLAIN can be used: the data is \
                     read-only here"
                        .to_owned(),
                )
            } else {
                ConsoleError::Statement(first_lines(message))
            });
        }
        match tree["statements"].as_array().map_or(0, Vec::len) {
            1 => Ok(()),
            0 => Err(ConsoleError::Refused("the statement is empty; write a SELECT".to_owned())),
            count => {
                let message = format!("{count} statements at once; send one after the other");
                Err(ConsoleError::Refused(message))
            }
        }
    }

    /// Refuses functions that change the engine: they do so although its settings are locked. What a statement
    /// calls, also in views and in texts that it runs as SQL, is in its plan.
    fn check_calls(&self, select: &str) -> Result<(), ConsoleError> {
        let explain = format!("EXPLAIN (FORMAT json) SELECT * FROM (\n{select}\n)");
        let plan = self.connection.query_row(&explain, [], |row| row.get::<_, String>(1));
        let plan = plan.map_err(|error| self.failed(select, &error.to_string()))?;
        let plan: serde_json::Value = serde_json::from_str(&plan)
            .map_err(|error| ConsoleError::Statement(error.to_string()))?;
        match changing(&plan) {
            None => Ok(()),
            Some(name) => Err(ConsoleError::Refused(format!(
                "{}() changes the database engine, which is read-only here",
                name.to_ascii_lowercase()
            ))),
        }
    }

    fn run(
        &self,
        text: &AsText,
        cancel: &CancelToken,
        sink: &mut impl AnswerSink,
    ) -> Result<Given, ConsoleError> {
        let wrong = |error: duckdb::Error| self.failed(&text.sql, &error.to_string());
        let mut statement = self.connection.prepare(&text.sql).map_err(wrong)?;
        sink.columns(&text.columns)?;
        let mut rows = 0;
        for batch in batches(&mut statement).map_err(wrong)? {
            let batch = batch.map_err(wrong)?;
            let columns = answer::texts(&batch).ok_or_else(|| {
                ConsoleError::Statement("the answer is of a type that has no text".to_owned())
            })?;
            for index in 0..batch.num_rows() {
                if cancel.is_cancelled() {
                    return Err(ConsoleError::Cancelled);
                }
                if self.rows == Some(rows) {
                    return Ok(Given { rows, cut: Some(Cut::Rows) });
                }
                let row = answer::row(&columns, index);
                let bytes = row.iter().flatten().map(|cell| cell.len()).sum();
                if bytes > ROW_BYTES_MAX {
                    return Err(ConsoleError::RowTooLarge(rows + 1, bytes));
                }
                if sink.row(&row)?.is_break() {
                    return Ok(Given { rows, cut: Some(Cut::Bytes) });
                }
                rows += 1;
            }
        }
        Ok(Given { rows, cut: None })
    }

    /// Why a statement failed: of which file, where it was one's fault.
    fn failed(&self, sql: &str, error: &str) -> ConsoleError {
        if error.starts_with(OUT_OF_MEMORY) {
            return ConsoleError::Memory(self.memory_bytes);
        }
        let files = self.stored.iter().filter_map(|view| match view {
            StoredView::Files(view) => Some(view),
            StoredView::Rows(_) => None,
        });
        let files: Vec<&FileView> = files.collect();
        let missing = self.unreadable.iter().find(|(name, _)| {
            error.contains("does not exist") && error.contains(&format!("name {name} "))
        });
        let why = match missing {
            Some((_, why)) => Some(why.clone()),
            None => trouble::explain(&self.connection, &files, sql, error),
        };
        ConsoleError::Statement(why.unwrap_or_else(|| first_lines(error)))
    }

    /// Does `work`; ends the running statement when the token is cancelled.
    fn watched<T>(
        &self,
        cancel: &CancelToken,
        work: impl FnOnce() -> Result<T, ConsoleError>,
    ) -> Result<T, ConsoleError> {
        let done = AtomicBool::new(false);
        let handle = self.connection.interrupt_handle();
        let outcome = std::thread::scope(|scope| {
            let watcher = std::thread::Builder::new().spawn_scoped(scope, || {
                while !done.load(Ordering::Acquire) {
                    if cancel.is_cancelled() {
                        handle.interrupt();
                    }
                    std::thread::sleep(WATCH_INTERVAL);
                }
            });
            watcher.map_err(ConsoleError::Thread)?;
            let outcome = work();
            done.store(true, Ordering::Release);
            outcome
        });
        if outcome.is_err() && cancel.is_cancelled() {
            return Err(ConsoleError::Cancelled);
        }
        outcome
    }
}

/// A function in a plan that changes the engine, or runs SQL of which the plan shows nothing.
fn changing(plan: &serde_json::Value) -> Option<&str> {
    let name = plan["name"].as_str().unwrap_or_default().trim();
    let changes = CHANGING.iter().any(|start| name.starts_with(start));
    let steps = plan.as_array().or_else(|| plan["children"].as_array());
    changes.then_some(name).or_else(|| steps?.iter().find_map(changing))
}

/// Opens a database.
fn attach(connection: &Connection, catalog: &str, path: &Path) -> Result<(), ConsoleError> {
    must_be_database(path).map_err(|error| ConsoleError::Files(error.to_string()))?;
    let attach = format!("ATTACH {} AS {catalog} (READ_ONLY)", literal(path));
    Ok(connection.execute_batch(&attach)?)
}

/// Makes the tables of a database views. One that cannot be read is told and takes nothing away from the others.
fn make_views(
    connection: &Connection,
    catalog: &str,
    unreadable: &mut Vec<(String, String)>,
) -> Result<(), ConsoleError> {
    let mut statement = connection.prepare(
        "SELECT table_name FROM information_schema.tables WHERE table_catalog = ? ORDER BY 1",
    )?;
    let names = statement.query_map([catalog], |row| row.get::<_, String>(0))?;
    for name in names.collect::<Result<Vec<_>, _>>()? {
        let quoted = identifier(&name);
        let view = format!("CREATE VIEW {quoted} AS SELECT * FROM {catalog}.{quoted}");
        if let Err(error) = connection.execute_batch(&view) {
            let why = first_lines(&error.to_string());
            let why = format!(
                "{name} cannot be read; where it is a view of other files, put a table in its place: {why}"
            );
            no_view(unreadable, &name, why);
        }
    }
    Ok(())
}

/// The views that there are where their files are, and why they are not there.
fn absent(data: &DataDir, views: &[View]) -> Vec<(String, String)> {
    let file = |path: &Path, what: &str| format!("{} {ABSENT}; {what}", path.display());
    let (mother, listed) = (data.mother(), data.listed_info());
    let table = |path: &Path| {
        if path.is_file() {
            return format!(
                "its table {ABSENT} in {}; `kumiki data update` makes it",
                path.display()
            );
        }
        file(path, "load daily prices with `kumiki data update`")
    };
    let mut known: Vec<(&str, String)> = Vec::new();
    known.extend(OF_MOTHER.map(|name| (name, table(&mother))));
    known.extend(OF_LISTED.map(|name| (name, table(&listed))));
    let board = data.jp_folder().join("stocks_board");
    let recorded = "publish what an engine recorded with `kumiki data boards`";
    known.extend(boards::VIEWS.map(|(name, _)| (name, file(&board, recorded))));
    known.extend(FOLDERS.map(|name| {
        let flag = OF_FLAGS_TOO.iter().find(|(view, _)| *view == name);
        let or_flag = flag.map(|(_, flag)| format!(", or name a folder with {flag}"));
        let what = format!(
            "put files there, as Parquet, CSV or JSON lines{}",
            or_flag.unwrap_or_default()
        );
        (name, file(&data.path().join(name), &what))
    }));
    for (name, flag) in OF_FLAGS {
        known.push((name, format!("its folder {ABSENT}; name it with {flag}")));
    }
    known.retain(|(name, _)| views.iter().all(|view| view.name != *name));
    known
        .into_iter()
        .map(|(name, why)| (name.to_owned(), format!("there is no view {name}: {why}")))
        .collect()
}

/// Whether a view is missing only because nothing of it was ever there.
fn is_absence(why: &str) -> bool {
    why.starts_with("there is no view ") && why.contains(ABSENT)
}

/// Makes the views that the caller asks for. Two of one name would hide each other. One whose files
/// cannot be read is told and takes nothing away from the others.
fn put_stored(
    connection: &Connection,
    stored: &[StoredView],
    unreadable: &mut Vec<(String, String)>,
) -> Result<(), ConsoleError> {
    let mut known: Vec<String> = views(connection)?.into_iter().map(|view| view.name).collect();
    for view in stored {
        let name = view.name();
        if known.iter().any(|known| known == name) {
            return Err(ConsoleError::Files(format!(
                "two views would have the name {name}; leave out the flag or the folder of one of them"
            )));
        }
        match view.create(connection) {
            Ok(()) => known.push(name.to_owned()),
            Err(ConsoleError::Files(why)) if matches!(view, StoredView::Files(_)) => {
                no_view(unreadable, name, why);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Tells that a view cannot be made, and notes it for the statements that ask for it.
fn no_view(unreadable: &mut Vec<(String, String)>, name: &str, why: String) {
    tracing::warn!("there is no view {name}: {why}");
    unreadable.push((name.to_owned(), why));
}

fn views(connection: &Connection) -> Result<Vec<View>, ConsoleError> {
    let mut statement = connection.prepare(
        "SELECT table_name, column_name, data_type FROM information_schema.columns \
         WHERE table_catalog = 'memory' AND table_schema = 'main' ORDER BY 1, ordinal_position",
    )?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    })?;
    let mut views: Vec<View> = Vec::new();
    for row in rows {
        let (name, column, kind) = row?;
        if views.last().is_none_or(|view| view.name != name) {
            views.push(View { name, columns: Vec::new() });
        }
        if let Some(view) = views.last_mut() {
            view.columns.push((column, kind));
        }
    }
    Ok(views)
}

/// The words `EXPLAIN` or `EXPLAIN ANALYZE` before a statement, and the statement.
fn split_explain(sql: &str) -> (Option<&'static str>, &str) {
    let word = |text: &str, word: &str| {
        let rest = text.get(word.len()..)?;
        let fits = text.get(..word.len())?.eq_ignore_ascii_case(word);
        (fits && rest.starts_with(char::is_whitespace))
            .then(|| text.len() - rest.trim_start().len())
    };
    let Some(at) = word(sql, "EXPLAIN") else { return (None, sql) };
    match word(&sql[at..], "ANALYZE") {
        Some(more) => (Some("EXPLAIN ANALYZE"), &sql[at + more..]),
        None => (Some("EXPLAIN"), &sql[at..]),
    }
}

fn first_lines(text: &str) -> String {
    /// Lines of a message; the engine draws the place below its text.
    const LINES: usize = 6;
    text.lines().take(LINES).collect::<Vec<_>>().join("\n")
}

fn literal(path: &Path) -> String {
    sql::quoted_path(path)
}

fn text_literal(text: &str) -> String {
    sql::quoted(text)
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
