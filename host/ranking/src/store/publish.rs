//! Makes a snapshot from the combined database. Every step can be repeated: files are written
//! aside and renamed, and the file `CURRENT` is changed last.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;

use domain::JstDate;
use duckdb::arrow::array::{Array, AsArray};
use duckdb::arrow::datatypes::{Float64Type, Int16Type};
use duckdb::{Config, Connection};

use super::layout::DataDir;
use super::reference::{quoted, rows_are_in_order};
use crate::formula::Column;
use crate::grid::{GridWriter, TEMPORARY, write_atomically};
use crate::limits::{SNAPSHOT_CELLS_MAX, SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX, SNAPSHOTS_KEPT};

/// Days that are read at a time while the grid is written.
const BATCH_DAYS: usize = 64;
/// Memory of DuckDB while it sorts the source.
const MEMORY: &str = "2GB";

/// Folder for what does not fit into DuckDB's memory.
const SPILL: &str = "spill";

/// A snapshot that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its number.
    pub number: u64,
    /// Business days.
    pub days: usize,
    /// Issues.
    pub codes: usize,
    /// First and last business day.
    pub range: (JstDate, JstDate),
}

/// Why nothing was published. The current snapshot stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no combined database.
    #[error("{} is missing; load daily prices first or make a sample", .0.display())]
    NoSource(PathBuf),
    /// The combined database holds something that cannot be ranked.
    #[error("the combined database cannot be published: {0}")]
    Source(String),
    /// Another process publishes into the same directory.
    #[error("another publication into {} is running; wait for it", .0.display())]
    Locked(PathBuf),
    /// A file could not be written or read.
    #[error("cannot publish to {}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// DuckDB refused something.
    #[error("the database engine failed while publishing")]
    Database(#[from] duckdb::Error),
}

/// Publishes a new snapshot of the combined database and removes those before the last one. The
/// combined database is opened read-only; its writer must have closed it.
///
/// # Errors
///
/// Returns why nothing was published.
pub fn publish(data: &DataDir) -> Result<Published, PublishError> {
    let mother = data.mother();
    if !mother.is_file() {
        return Err(PublishError::NoSource(mother));
    }
    let folder = data.rank_folder();
    let failed = |source| PublishError::Io { path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let _lock = lock(data)?;
    sweep(data).map_err(failed)?;
    let newest = data.snapshots().map_err(failed)?.last().copied();
    let number = newest.max(data.current().map_err(failed)?).unwrap_or(0) + 1;
    let published = build(data, number)?;
    write_atomically(&data.current_file(), format!("{number}\n").as_bytes()).map_err(failed)?;
    remove_old(data, number).map_err(failed)?;
    Ok(published)
}

/// Removes what a publication that was killed has left. While another one runs, nothing is done:
/// it removes such files itself before it begins.
///
/// # Errors
///
/// Returns why files could not be removed.
pub fn remove_leftovers(data: &DataDir) -> Result<(), PublishError> {
    let folder = data.rank_folder();
    if !folder.is_dir() {
        return Ok(());
    }
    let _lock = match lock(data) {
        Err(PublishError::Locked(_)) => return Ok(()),
        lock => lock?,
    };
    sweep(data).map_err(|source| PublishError::Io { path: folder, source })
}

/// Removes unfinished files, and snapshots after the current one, which nobody has ever used. The
/// lock must be held.
fn sweep(data: &DataDir) -> io::Result<()> {
    for entry in fs::read_dir(data.rank_folder())? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_unfinished = name.ends_with(".db.new") || name.ends_with(".db.new.wal");
        if is_unfinished || name.starts_with(TEMPORARY) {
            remove_if_there(&entry.path())?;
        }
    }
    let spill = data.rank_folder().join(SPILL);
    if spill.is_dir() {
        fs::remove_dir_all(spill)?;
    }
    let current = data.current()?.unwrap_or(0);
    for unused in data.snapshots()?.into_iter().filter(|number| *number > current) {
        remove_if_there(&data.rank_db(unused))?;
        remove_if_there(&data.rank_grid(unused))?;
    }
    Ok(())
}

/// Held while one publication runs; the system frees it when the process ends.
fn lock(data: &DataDir) -> Result<File, PublishError> {
    let path = data.rank_folder().join("LOCK");
    let failed = |source| PublishError::Io { path: path.clone(), source };
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PublishError::Locked(data.rank_folder())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn build(data: &DataDir, number: u64) -> Result<Published, PublishError> {
    let folder = data.rank_folder();
    let failed = |source| PublishError::Io { path: folder.clone(), source };
    let unfinished = folder.join(format!("rank-{number}.db.new"));
    remove_if_there(&unfinished).map_err(failed)?;
    remove_if_there(&unfinished.with_extension("new.wal")).map_err(failed)?;
    let connection = Connection::open_in_memory_with_flags(Config::default().max_memory(MEMORY)?)?;
    connection.execute_batch(&format!(
        "SET temp_directory = {}; ATTACH {} AS mother (READ_ONLY); ATTACH {} AS snapshot; USE snapshot;",
        quoted(&folder.join(SPILL).to_string_lossy()),
        quoted(&data.mother().to_string_lossy()),
        quoted(&unfinished.to_string_lossy()),
    ))?;
    check_source(&connection)?;
    connection.execute_batch(TABLES)?;
    if !rows_are_in_order(&connection)? {
        return Err(PublishError::Source("the grid's rows are not in order".to_owned()));
    }
    connection.execute_batch("CHECKPOINT snapshot")?;
    let published = write_grid(&connection, data, number)?;
    connection.execute_batch("USE memory; DETACH snapshot; DETACH mother")?;
    drop(connection);
    // Some systems only flush a file that was opened for writing.
    let written = fs::OpenOptions::new().write(true).open(&unfinished);
    written.and_then(|file| file.sync_all()).map_err(failed)?;
    fs::rename(&unfinished, data.rank_db(number)).map_err(failed)?;
    Ok(published)
}

/// Tables of the snapshot. Prices and volumes of 0 are null in formulas; what is not finite is no
/// value at all. A row takes part where it has a close.
const TABLES: &str = "
    CREATE TABLE cal AS SELECT (row_number() OVER (ORDER BY date) - 1)::INTEGER day_no, date
      FROM (SELECT DISTINCT date FROM mother.daily) ORDER BY 1;
    CREATE TABLE issue AS SELECT (row_number() OVER (ORDER BY code) - 1)::INTEGER code_id, code
      FROM (SELECT DISTINCT code FROM mother.daily) ORDER BY 1;
    CREATE TABLE g AS
      WITH s AS (SELECT date, code, CASE WHEN isfinite(open) THEN open END AS open,
          CASE WHEN isfinite(high) THEN high END AS high, CASE WHEN isfinite(low) THEN low END AS low,
          CASE WHEN isfinite(close) THEN close END AS close,
          CASE WHEN isfinite(volume) THEN volume END AS volume FROM mother.daily)
      SELECT k.day_no::SMALLINT day_no, i.code_id::SMALLINT code_id,
          nullif(s.close, 0) IS NOT NULL present, nullif(s.open, 0) o, nullif(s.high, 0) h,
          nullif(s.low, 0) l, nullif(s.close, 0) c, nullif(s.volume, 0) v, s.volume
        FROM cal k CROSS JOIN issue i LEFT JOIN s ON s.date = k.date AND s.code = i.code
        ORDER BY k.day_no, i.code_id;";

/// Refuses what the grid cannot hold, with the first example.
fn check_source(connection: &Connection) -> Result<(), PublishError> {
    let refuse = |text: String| Err(PublishError::Source(text));
    let columns = "SELECT count(*) FROM (DESCRIBE mother.daily) WHERE
        (column_name = 'date' AND column_type = 'DATE')
        OR (column_name = 'code' AND column_type = 'VARCHAR')
        OR (column_name IN ('open', 'high', 'low', 'close', 'volume') AND column_type = 'DOUBLE')";
    if connection.query_row(columns, [], |row| row.get::<_, i64>(0))? != 7 {
        return refuse(
            "table daily must have the columns date DATE, code VARCHAR and open, high, low, \
             close, volume DOUBLE"
                .to_owned(),
        );
    }
    let nameless = "SELECT count(*) FROM mother.daily WHERE date IS NULL OR code IS NULL";
    let nameless: i64 = connection.query_row(nameless, [], |row| row.get(0))?;
    if nameless > 0 {
        return refuse(format!("{nameless} rows have no date or no code"));
    }
    let (days, codes): (usize, usize) = connection.query_row(
        "SELECT count(DISTINCT date), count(DISTINCT code) FROM mother.daily",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if days == 0 {
        return refuse("table daily has no rows".to_owned());
    }
    let cells = days.saturating_mul(codes);
    if days > SNAPSHOT_DAYS_MAX || codes > SNAPSHOT_CODES_MAX || cells > SNAPSHOT_CELLS_MAX {
        return refuse(format!("{days} days of {codes} codes are more than a snapshot may hold"));
    }
    let twice = "SELECT date::VARCHAR, code, count(*) FROM mother.daily GROUP BY date, code
                 HAVING count(*) > 1 ORDER BY 1, 2 LIMIT 1";
    let mut statement = connection.prepare(twice)?;
    let mut rows = statement.query([])?;
    if let Some(row) = rows.next()? {
        let (date, code, count): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let code = crate::query::shown(&code);
        return refuse(format!("code {code} has {count} rows on {date} instead of one"));
    }
    Ok(())
}

fn write_grid(
    connection: &Connection,
    data: &DataDir,
    number: u64,
) -> Result<Published, PublishError> {
    let days: Vec<String> = column(connection, "SELECT date::VARCHAR FROM cal ORDER BY day_no")?;
    let days: Vec<JstDate> =
        days.iter().map(|day| date(day)).collect::<Result<_, PublishError>>()?;
    let codes: Vec<String> = column(connection, "SELECT code FROM issue ORDER BY code_id")?;
    let codes: Vec<Box<str>> = codes.into_iter().map(String::into_boxed_str).collect();
    let (Some(first), Some(last)) = (days.first().copied(), days.last().copied()) else {
        return Err(PublishError::Source("table daily has no rows".to_owned()));
    };
    let published =
        Published { number, days: days.len(), codes: codes.len(), range: (first, last) };
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::InvalidInput => PublishError::Source(source.to_string()),
        _ => PublishError::Io { path: data.rank_grid(number), source },
    };
    let mut writer = GridWriter::new(&data.rank_folder(), number, days, codes).map_err(failed)?;
    write_days(connection, &published, |columns| writer.day(columns).map_err(failed))?;
    writer.finish(&data.rank_grid(number)).map_err(failed)?;
    Ok(published)
}

/// One day of the grid: for each column, the values of all codes.
type Day = [Vec<Option<f64>>; Column::ALL.len()];

/// Reads the grid table day by day; every row must be where it belongs.
fn write_days(
    connection: &Connection,
    published: &Published,
    mut write: impl FnMut(&Day) -> Result<(), PublishError>,
) -> Result<(), PublishError> {
    let mut statement = connection.prepare(
        "SELECT day_no, code_id, o, h, l, c, volume FROM g WHERE day_no BETWEEN ? AND ?
         ORDER BY day_no, code_id",
    )?;
    let mut cell = 0;
    let mut day = Day::default();
    for start in (0..published.days).step_by(BATCH_DAYS) {
        let end = (start + BATCH_DAYS).min(published.days);
        for batch in statement.query_arrow([start, end - 1])? {
            let [days, codes] = [0, 1].map(|place| batch.column(place).as_primitive::<Int16Type>());
            for row in 0..batch.num_rows() {
                let expected = (cell / published.codes, cell % published.codes);
                let found = (days.value(row).cast_unsigned(), codes.value(row).cast_unsigned());
                if (found.0.into(), found.1.into()) != expected {
                    return Err(misplaced(expected));
                }
                for (index, column) in day.iter_mut().enumerate() {
                    let values = batch.column(2 + index).as_primitive::<Float64Type>();
                    column.push(values.is_valid(row).then(|| values.value(row)));
                }
                cell += 1;
                if cell.is_multiple_of(published.codes) {
                    write(&day)?;
                    day.iter_mut().for_each(Vec::clear);
                }
            }
        }
    }
    if cell < published.days * published.codes {
        return Err(misplaced((cell / published.codes, cell % published.codes)));
    }
    Ok(())
}

fn misplaced((day, code): (usize, usize)) -> PublishError {
    PublishError::Source(format!("the grid has no row for day {day} and code {code}"))
}

fn date(text: &str) -> Result<JstDate, PublishError> {
    text.parse().map_err(|_| PublishError::Source(format!("`{text}` is no date of the calendar")))
}

fn column<T: duckdb::types::FromSql>(connection: &Connection, sql: &str) -> duckdb::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Removes the snapshots before the last one. Engines that still use one keep its bytes until
/// their last query ends.
fn remove_old(data: &DataDir, number: u64) -> io::Result<()> {
    for old in data.snapshots()?.into_iter().filter(|old| *old + SNAPSHOTS_KEPT <= number) {
        remove_if_there(&data.rank_db(old))?;
        remove_if_there(&data.rank_grid(old))?;
    }
    Ok(())
}

fn remove_if_there(path: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
