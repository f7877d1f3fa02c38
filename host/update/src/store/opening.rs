//! How the job gets its own database: the one of the last job, a copy of the published one, or an
//! empty one.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use duckdb::{Config, Connection};
use pricestore::generation::{Generation, GenerationFileName, PublishedFile};
use pricestore::sql::{
    self, column, digest_of_rows, log_of, must_be_database, must_be_published, quoted_path,
    view_among,
};
use pricestore::{DataDir, has_calendar};

use super::durable::{clear, put_in_place, remove, sync_folder};
use super::error::StoreError;
use super::fetch_tables::{ALL_COMPLETE, TABLES, has_table};
use super::limits::ENGINE_MEMORY;
use super::paths::{StorePaths, unfinished};
use super::schema::{
    ADJUSTED_MARK, CALENDAR, COLUMNS, COLUMNS_NEEDED, NOTES, definitions, digest, is_stored_code,
    names, published_values,
};
use super::written;

/// Where the job's own database came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// There was nothing yet.
    Empty,
    /// It is the one of the last job.
    Kept,
    /// It is the one of the last job, which did not end by itself; what it had stored is there.
    Recovered,
    /// It is a copy of the published combined database.
    Copied,
    /// The one of the last job could not be used and was set aside; a copy of the published
    /// combined database took its place, or an empty one where nothing was published.
    Rebuilt {
        /// Why it could not be used.
        why: String,
        /// Where it is now.
        aside: PathBuf,
    },
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a new database"),
            Self::Kept => f.write_str("the database of the last job"),
            Self::Recovered => f.write_str("the database of the last job, which was interrupted"),
            Self::Copied => f.write_str("a copy of the published database"),
            Self::Rebuilt { why, aside } => write!(
                f,
                "the published database, because the job's own could not be used ({why}); it is \
                 now {}",
                aside.display()
            ),
        }
    }
}

/// Opens the job's own database under the name `work`; makes it where there is none.
pub(super) fn open(paths: &StorePaths) -> Result<(Connection, Opening), StoreError> {
    let path = paths.work_database();
    let exists = path.try_exists().map_err(StoreError::io("look for", &path))?;
    // What is read of them would be what somebody else has changed.
    for published in [paths.data().mother(), paths.data().listed_info()] {
        must_be_published(&published).map_err(StoreError::io("open", &published))?;
    }
    // The engine would wait for a pipe, and write what a link leads to.
    for own in [&path, &log_of(&path)] {
        atomic_file::must_be_own(own).map_err(StoreError::io("open", own))?;
    }
    if !exists {
        // A log without its database belongs to nothing.
        remove(&log_of(&path))?;
        let copied = make(paths)?;
        let connection = connect(paths)?;
        attach(&connection, &path)?;
        return Ok((connection, if copied { Opening::Copied } else { Opening::Empty }));
    }
    let was_interrupted = log_of(&path).exists();
    match reopen(paths, &path) {
        Ok(connection) if was_interrupted => Ok((connection, Opening::Recovered)),
        Ok(connection) => Ok((connection, Opening::Kept)),
        Err(Trouble::Refused(error)) => Err(error),
        Err(Trouble::Damaged(why)) => {
            let aside = set_aside(&path)?;
            make(paths)?;
            let connection = connect(paths)?;
            attach(&connection, &path)?;
            Ok((connection, Opening::Rebuilt { why, aside }))
        }
    }
}

/// An instance of the database engine in memory; files are attached to it.
pub(super) fn connect(paths: &StorePaths) -> Result<Connection, StoreError> {
    let failed = StoreError::database("start");
    let config = Config::default().max_memory(ENGINE_MEMORY);
    let connection = config.and_then(sql::open).map_err(failed)?;
    let spill = quoted_path(&paths.spill_folder());
    let prepare = format!("SET temp_directory = {spill}; SET enable_progress_bar = false");
    connection.execute_batch(&prepare).map_err(StoreError::database("start"))?;
    Ok(connection)
}

fn attach(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let attach = format!("ATTACH {} AS work", quoted_path(path));
    connection.execute_batch(&attach).map_err(StoreError::database("open the job's own database"))
}

/// Why the database of the last job is not opened.
enum Trouble {
    /// It is not what a job leaves behind.
    Damaged(String),
    /// It may be good; the user has to do something.
    Refused(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

fn reopen(paths: &StorePaths, path: &Path) -> Result<Connection, Trouble> {
    // What the system does not let us read or write is not damaged.
    let access = fs::OpenOptions::new().read(true).write(true).open(path);
    drop(access.map_err(StoreError::io("open", path))?);
    must_be_database(path).map_err(StoreError::io("open", path))?;
    let connection = connect(paths)?;
    let attached = connection.execute_batch(&format!("ATTACH {} AS work", quoted_path(path)));
    attached.map_err(|error| judge(path, &error))?;
    let columns = columns_of(&connection, "work").map_err(|error| judge(path, &error))?;
    let expected: Vec<_> = COLUMNS.iter().map(|(name, kind)| (*name, *kind)).collect();
    let found: Vec<_> = columns.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect();
    if found != expected {
        return Err(Trouble::Damaged("its table daily has other columns".to_owned()));
    }
    if !has_table(&connection, "correction").map_err(|error| judge(path, &error))? {
        return Err(Trouble::Damaged("an earlier version wrote it".to_owned()));
    }
    // Reads every value, and so checks every block.
    let all = format!("SELECT {} FROM work.daily", digest());
    let notes = "SELECT count(*) FROM work.state, (SELECT bit_xor(hash(code, rows, digest, bytes))
        FROM work.issue_file) WHERE generation >= 1";
    let read = connection.query_row(&all, [], |_| Ok(()));
    let read = read.and_then(|()| connection.query_row(notes, [], |row| row.get::<_, i64>(0)));
    let read = read.and_then(|count| read_others(&connection).map(|()| count));
    match read {
        Ok(1) => Ok(connection),
        Ok(_) => Err(Trouble::Damaged("its notes are missing".to_owned())),
        Err(error) => Err(judge(path, &error)),
    }
}

/// Reads every value of the tables beside the rows.
fn read_others(connection: &Connection) -> duckdb::Result<()> {
    let tables = "SELECT table_name FROM duckdb_tables()
        WHERE database_name = 'work' AND table_name <> 'daily'";
    let tables: Vec<String> = column(connection, tables)?;
    tables.iter().try_for_each(|table| {
        let table = table.replace('"', "\"\"");
        let all = format!("SELECT bit_xor(hash(one)) FROM work.\"{table}\" AS one");
        connection.query_row(&all, [], |_| Ok(()))
    })
}

/// What an engine or a system says that lacks something, in lower case: the database may be good.
const WANTS: [&str; 10] = [
    "out of memory",
    "cannot allocate memory",
    "failed to allocate",
    "bad_alloc",
    "too many open files",
    "no space left",
    "disk quota exceeded",
    "input/output error",
    "permission denied",
    "read-only file system",
];

/// Tells damage from a want of memory, files or disk, and from a database that another program has open.
fn judge(path: &Path, error: &duckdb::Error) -> Trouble {
    let text = error.to_string();
    let refused = |what: &str| {
        Trouble::Refused(StoreError::Unusable { path: path.to_owned(), what: what.to_owned() })
    };
    if text.contains("Could not set lock") || text.contains("being used by another process") {
        return refused("another program has it open; close it there and try again");
    }
    let first = text.lines().next().unwrap_or_default();
    if let Some(want) = WANTS.iter().find(|want| text.to_ascii_lowercase().contains(**want)) {
        return refused(&format!(
            "it could not be read because of the system ({want}: {first}); it is unchanged, try again"
        ));
    }
    Trouble::Damaged(first.to_owned())
}

fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let aside = path.with_extension("damaged");
    for (from, to) in [(path.to_owned(), aside.clone()), (log_of(path), log_of(&aside))] {
        remove(&to)?;
        if from.exists() {
            atomic_file::rename(&from, &to).map_err(StoreError::io("rename", &from))?;
        }
    }
    Ok(aside)
}

/// Makes the job's own database; tells whether the published one could be copied.
fn make(paths: &StorePaths) -> Result<bool, StoreError> {
    let path = paths.work_database();
    let aside = unfinished(&path);
    clear(&aside)?;
    let connection = connect(paths)?;
    let failed = |error| StoreError::database("make the job's own database")(error);
    create(&connection, &quoted_path(&aside))?;
    let copied = copy_published(&connection, paths.data())?;
    connection.execute_batch(ALL_COMPLETE).map_err(failed)?;
    connection.execute_batch("CHECKPOINT work; DETACH work").map_err(failed)?;
    put_in_place(&aside, &path)?;
    sync_folder(&paths.work_folder())?;
    Ok(copied)
}

/// The job's own database in memory only, empty.
pub(super) fn open_in_memory(paths: &StorePaths) -> Result<Connection, StoreError> {
    let connection = connect(paths)?;
    create(&connection, "':memory:'")?;
    Ok(connection)
}

/// Makes an empty database of the job's at a place, which is quoted, under the name `work`.
fn create(connection: &Connection, place: &str) -> Result<(), StoreError> {
    let create = format!(
        "ATTACH {place} AS work; USE work; CREATE TABLE daily ({}); CREATE TABLE {CALENDAR}; {NOTES} {TABLES}
         USE memory",
        definitions()
    );
    connection.execute_batch(&create).map_err(StoreError::database("make the job's own database"))
}

/// Copies the rows of the published combined database, and notes its digest where it has no other values. One that
/// was not made by a job may lack the columns after the first seven.
fn copy_published(connection: &Connection, data: &DataDir) -> Result<bool, StoreError> {
    let mother = &data.mother();
    if !mother.try_exists().map_err(StoreError::io("look for", mother))? {
        return Ok(false);
    }
    must_be_published(mother).map_err(StoreError::io("open", mother))?;
    refuse_damaged(data)?;
    // Before it is copied: one that is put there meanwhile has other bytes. Of one that cannot be read the copy tells.
    let file = PublishedFile::read(mother, &GenerationFileName::Combined).ok();
    let unusable = |what: String| StoreError::Unusable { path: mother.to_owned(), what };
    // What cannot be read of it is damaged, whoever wrote it.
    let failed = |error: duckdb::Error| {
        let why = error.to_string();
        unusable(damaged(data, why.lines().next().unwrap_or_default()))
    };
    let attach = format!("ATTACH {} AS published (READ_ONLY)", quoted_path(mother));
    connection.execute_batch(&attach).map_err(failed)?;
    if let Some(view) = view_among(connection, "published").map_err(failed)? {
        let what = format!("its `{view}` is a view, which may read anything; it must be a table");
        return Err(unusable(what));
    }
    let found = columns_of(connection, "published")
        .map_err(|error| unusable(format!("it has no table daily ({error})")))?;
    let has = |(name, kind): (&str, &str)| found.iter().any(|one| one.0 == name && one.1 == kind);
    if let Some((name, kind)) = COLUMNS[..COLUMNS_NEEDED].iter().find(|column| !has(**column)) {
        return Err(unusable(format!("its table daily has no column {name} {kind}")));
    }
    let values = COLUMNS.map(|(name, kind)| {
        if has((name, kind)) { name.to_owned() } else { format!("NULL::{kind} AS {name}") }
    });
    let mut codes = connection.prepare("SELECT DISTINCT code FROM published.daily ORDER BY 1");
    let codes = codes.as_mut().map_err(|_| unusable("it cannot be read".to_owned()))?;
    let codes = codes.query_map([], |row| row.get::<_, Option<String>>(0)).map_err(failed)?;
    for code in codes {
        let code = code.map_err(failed)?.unwrap_or_default();
        if !is_stored_code(&code) {
            return Err(unusable(format!("`{}` in it is no code", code.escape_debug())));
        }
    }
    let has_calendar = has_calendar(connection, "published").map_err(failed)?.map_err(unusable)?;
    let calendar = match has_calendar {
        true => "INSERT INTO work.calendar SELECT date, is_open FROM published.calendar;",
        false => "",
    };
    let copy = format!(
        "INSERT INTO work.daily ({}) SELECT {} FROM published.daily; {calendar}",
        names(),
        values.join(", ")
    );
    connection.execute_batch(&copy).map_err(failed)?;
    let has_all = has_all(connection, &found).map_err(failed)?;
    connection.execute_batch("DETACH published").map_err(failed)?;
    if let Some(file) = file.filter(|_| has_all) {
        written::prepare(connection)?;
        written::intend(connection, &[file])?;
    }
    Ok(true)
}

/// Whether what was copied has all values of the published `daily`, which has these columns.
fn has_all(connection: &Connection, columns: &[(String, String)]) -> duckdb::Result<bool> {
    let is_own = |name: &str| name == ADJUSTED_MARK || COLUMNS.iter().any(|one| one.0 == name);
    if !columns.iter().all(|(name, _)| is_own(name)) {
        return Ok(false);
    }
    let columns: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let digest = digest_of_rows(&columns.join(", "));
    let is_equal = format!(
        "SELECT (SELECT {digest} FROM published.daily) IS NOT DISTINCT FROM
           (SELECT {digest} FROM (SELECT {} FROM work.daily))",
        published_values()
    );
    connection.query_row(&is_equal, [], |row| row.get(0))
}

/// Refuses a published combined database that has the size and time with which it was published, and other
/// bytes: a disk has lost some.
fn refuse_damaged(data: &DataDir) -> Result<(), StoreError> {
    let (name, path) = (GenerationFileName::Combined, data.mother());
    let published = Generation::load(data).unwrap_or_default();
    let found = fs::metadata(&path).map_err(StoreError::io("look at", &path))?;
    let known = published.as_ref().and_then(|published| published.file(&name.path()));
    let Some(known) = known.filter(|known| known.is_file(&found)) else { return Ok(()) };
    let found = PublishedFile::read(&path, &name).map_err(StoreError::io("read", &path))?;
    match known.has_bytes_of(&found) {
        true => Ok(()),
        false => {
            let what = damaged(data, &format!("its digest is {}", found.xxh128));
            Err(StoreError::Unusable { path, what })
        }
    }
}

/// What is wrong with a published combined database that is all there is, and what to do.
fn damaged(data: &DataDir, why: &str) -> String {
    let published = Generation::load(data).unwrap_or_default();
    let path = GenerationFileName::Combined.path();
    let known = published.as_ref().and_then(|published| published.file(&path));
    let expected = known.map_or(String::new(), |known| {
        let PublishedFile { bytes, xxh128, .. } = known;
        format!("; it was published with {bytes} bytes with the digest {xxh128}")
    });
    format!(
        "it cannot be copied ({why}){expected}. The job's own database is missing, so the job cannot make it \
         again: put back a copy of it, like that of a replica, or remove it to fetch all days again"
    )
}

/// Names and types of the columns of `daily`.
fn columns_of(connection: &Connection, catalog: &str) -> duckdb::Result<Vec<(String, String)>> {
    let sql = format!("SELECT column_name, column_type FROM (DESCRIBE {catalog}.daily)");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
