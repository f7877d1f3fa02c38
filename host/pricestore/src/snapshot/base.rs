//! The current snapshot as the beginning of the next one. After one more day nearly everything is as it
//! was, so only what is new is read from the source and stored. Whether the rest is as it was is not
//! believed but compared. What is called damaged is told; whatever else fails while the next one goes on
//! from the current one counts as its damage too.
//!
//! | the current snapshot | the next one |
//! |---|---|
//! | its tables are of another form or of another version of the engine | is made whole |
//! | its tables or its grid are missing or cannot be read, a block of them is damaged | is made whole, and told |
//! | its tables are not those of its grid; a row of its grid's table is missing or has another value than was written | is made whole, and told |
//! | a file of it has other bytes than the published generation says | is made whole, and told |
//! | another issue than in the source, or another business day before its last one | is made whole |
//! | another row than in the source on one of its days | is made whole |
//! | any; the next one's number is a multiple of [`SNAPSHOTS_IN_A_ROW_MAX`] | is made whole, so that what no digest covers does not stay |
//! | it is the beginning of what the source has | goes on from it |
//!
//! The digest of the table's rows is that of the base joined with that of the new ones, so it is always one
//! of what was meant, and a disk that loses something between two publications is noticed by the second.

use std::error::Error;
use std::path::{Path, PathBuf};

use domain::formula::Column;
use duckdb::Connection;

use crate::data_dir::DataDir;
use crate::generation::{Generation, GenerationFileName, read_files};
use crate::grid::{COLUMNS, Grid, content_text};
use crate::limits::{DIGEST_THREADS_MAX, SNAPSHOTS_IN_A_ROW_MAX};
use crate::sql::{digest_of_rows, must_be_database, quoted, quoted_path};

/// Form of the tables.
const FORM: &str = "2";
/// The columns of the grid's table, which the digest covers.
const COLUMNS_OF_GRID: &str = "day_no, code_id, present, o, h, l, c, volume";

/// A snapshot with which the next one begins.
#[derive(Debug)]
pub(super) struct Base {
    grid: Grid,
    /// The file of its tables.
    pub(super) tables: PathBuf,
    /// The digest of the rows of its grid's table.
    digest: u64,
}

/// What the current snapshot is for the next one.
#[derive(Debug)]
pub(super) enum Found {
    /// Its beginning.
    Beginning(Base),
    /// Something else, or there is none.
    Other,
    /// Not what was written, and why.
    Damaged(String),
}

impl Base {
    /// What the current snapshot is for the one with the number `next`. The calendar and the issues of the
    /// source are the tables `cal` and `issue` that the connection uses.
    pub(super) fn of(connection: &Connection, data: &DataDir, next: u64) -> Found {
        let Ok(Some(number)) = data.current() else { return Found::Other };
        if next.is_multiple_of(SNAPSHOTS_IN_A_ROW_MAX) {
            return Found::Other;
        }
        let damaged = |what: &str, error: &dyn Error| {
            Found::Damaged(format!("{what} of snapshot {number}: {}", first_lines(error)))
        };
        let grid = match Grid::open(&data.rank_grid(number), number) {
            Ok(grid) => grid,
            Err(fault) => return damaged("the grid", &fault),
        };
        let tables = data.rank_db(number);
        if !tables.is_file() {
            return Found::Damaged(format!("the tables of snapshot {number} are missing"));
        }
        let digest = match digest_of_beginning(connection, &grid, &tables) {
            Ok(Some(Ok(digest))) => digest,
            Ok(Some(Err(what))) => return Found::Damaged(format!("snapshot {number}: {what}")),
            Ok(None) => return Found::Other,
            Err(error) => return damaged("the tables", &error),
        };
        if let Err(fault) = grid.check_all(DIGEST_THREADS_MAX) {
            return damaged("the grid", &fault);
        }
        match is_as_published(data, number, &grid) {
            Ok(()) => Found::Beginning(Self { grid, tables, digest }),
            Err(what) => Found::Damaged(format!("snapshot {number}: {what}")),
        }
    }

    /// Its business days.
    pub(super) fn days(&self) -> usize {
        self.grid.days().len()
    }

    /// For each column, the cells of all codes on a day.
    pub(super) fn day(&self, day: usize) -> [&[f64]; COLUMNS] {
        Column::ALL.map(|column| self.grid.stripe(day, column))
    }
}

/// Holds every byte of a snapshot's files against the published generation, where they are of it: what is
/// copied into the next one without being read by the engine too.
fn is_as_published(data: &DataDir, number: u64, grid: &Grid) -> Result<(), String> {
    let published = Generation::load(data).ok().flatten().filter(|published| {
        (published.snapshot, &published.snapshot_content) == (number, &content_text(grid.content()))
    });
    let Some(published) = published else { return Ok(()) };
    let names = [GenerationFileName::Tables(number), GenerationFileName::Grid(number)];
    let files = read_files(data, &names).map_err(|error| error.to_string())?;
    for (name, found) in names.iter().zip(files) {
        let found = found.map_err(|error| format!("{}: {error}", name.path()))?;
        if !published.file(&name.path()).is_some_and(|known| known.has_bytes_of(&found)) {
            return Err(format!("{} has other bytes than were published", name.path()));
        }
    }
    Ok(())
}

/// The digest of the rows of a snapshot's tables, where they are of this form and the source begins with
/// the same; else nothing. Where they are not what was written, that in words.
fn digest_of_beginning(
    connection: &Connection,
    grid: &Grid,
    tables: &Path,
) -> duckdb::Result<Option<Result<u64, &'static str>>> {
    if must_be_database(tables).is_err() {
        return Ok(Some(Err("its tables cannot be opened")));
    }
    let attach = format!("ATTACH {} AS base (READ_ONLY)", quoted_path(tables));
    connection.execute_batch(&attach)?;
    let found = digest_of_attached(connection, grid);
    let detached = connection.execute_batch("DETACH base");
    found.and_then(|found| detached.map(|()| found))
}

fn digest_of_attached(
    connection: &Connection,
    grid: &Grid,
) -> duckdb::Result<Option<Result<u64, &'static str>>> {
    let made = "SELECT count(*) = 1 FROM duckdb_tables()
        WHERE database_name = 'base' AND table_name = 'made'";
    let is_tied: bool = connection.query_row(made, [], |row| row.get(0))?;
    let form =
        format!("SELECT count(*) = 1 AND bool_and(form = {}) FROM base.made", form(connection)?);
    // Others have other columns.
    if !is_tied || !connection.query_row(&form, [], |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
    let made = "SELECT content, digest FROM base.made";
    let (content, digest): (u64, u64) =
        connection.query_row(made, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if content != grid.content() {
        return Ok(Some(Err("its tables are not those of its grid")));
    }
    let equal = format!(
        "SELECT (SELECT count(*) = {days} FROM base.cal)
           AND (SELECT count(*) = {days} FROM base.cal JOIN cal USING (day_no, date, rows, digest))
           AND (SELECT count(*) = {codes} FROM base.issue)
           AND (SELECT count(*) = {codes} FROM issue)
           AND (SELECT count(*) = {codes} FROM base.issue JOIN issue USING (code_id, code))",
        days = grid.days().len(),
        codes = grid.codes().len(),
    );
    if !connection.query_row(&equal, [], |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
    let is_as_written = digest_of_grid(connection, "base.g", 0)? == digest;
    Ok(Some(if is_as_written { Ok(digest) } else { Err("its tables are not what was written") }))
}

/// The digest of the rows of a grid's table from a day on.
fn digest_of_grid(connection: &Connection, table: &str, from: usize) -> duckdb::Result<u64> {
    let digest = digest_of_rows(COLUMNS_OF_GRID);
    let digest =
        format!("SELECT coalesce({digest}, 0)::UBIGINT FROM {table} WHERE day_no >= {from}");
    connection.query_row(&digest, [], |row| row.get(0))
}

/// Ties the tables of a finished snapshot to its grid and to what is in them.
pub(super) fn tie(
    connection: &Connection,
    grid: &Path,
    number: u64,
    base: Option<&Base>,
) -> duckdb::Result<()> {
    let content = Grid::open(grid, number).map_or(0, |grid| grid.content());
    let (known, before) = base.map_or((0, 0), |base| (base.days(), base.digest));
    let digest = before ^ digest_of_grid(connection, "snapshot.g", known)?;
    connection.execute_batch(&format!(
        "CREATE OR REPLACE TABLE made AS SELECT {} AS form, {content}::UBIGINT AS content,
           {digest}::UBIGINT AS digest",
        form(connection)?
    ))
}

/// The form of the tables as an SQL string. Digests of rows are the same within one version of the
/// engine only.
fn form(connection: &Connection) -> duckdb::Result<String> {
    Ok(quoted(&format!("{FORM}, DuckDB {}", connection.version()?)))
}

/// An error with what is behind it, the first line of each: the engine adds advice and traces.
pub(super) fn first_lines(error: &dyn Error) -> String {
    let mut lines = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        lines.push(error.to_string().lines().next().unwrap_or_default().to_owned());
        next = error.source();
    }
    lines.join(": ")
}
