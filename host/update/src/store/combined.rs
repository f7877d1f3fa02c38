//! The combined database, written aside: whole, or the published one with the new days behind its rows. After
//! one more day nearly all of it is as it was, and sorting and packing ten years takes seconds. That the
//! rest is as it was is not believed but compared.
//!
//! | the published combined database | the next one |
//! |---|---|
//! | is not there, or of another form | is written whole |
//! | has other bytes than were written | is written whole |
//! | has another row than the store, on whatever day | is written whole |
//! | the rows of days after its last one, with those that came so before, are more than [`COMBINED_LATER_ROWS_MAX`], or of more than [`COMBINED_LATER_DAYS_MAX`] days | is written whole |
//! | something fails while it is gone on from | is written whole |
//! | it is the beginning of the store | is a copy of it, and the rows of the new days follow |
//!
//! Readers find the rows of an issue in few blocks either way: those that are by issue and date, whose number
//! is in the table `rows_in_order`, lie together, and the later ones are few.

use std::fs::File;
use std::io;
use std::path::Path;

use domain::text::with_causes;
use duckdb::Connection;
use pricestore::STORAGE_VERSION;
use pricestore::generation::GenerationFileName;
use pricestore::sql::{digest_of_rows, quoted_path};

use super::durable::clear;
use super::error::StoreError;
use super::limits::{COMBINED_LATER_DAYS_MAX, COMBINED_LATER_ROWS_MAX};
use super::paths::StorePaths;
use super::schema::{ADJUSTED_MARK, adjusted, names, published_values, unknown_before};
use super::{calendar, fetch_tables, publish, written};

/// What is being written.
const ASIDE: &str = "aside";

/// Writes all rows that readers may see. Tells the generation of the store that this is.
pub(super) fn write(
    connection: &Connection,
    aside: &Path,
    paths: &StorePaths,
) -> Result<u64, StoreError> {
    let failed = |error| StoreError::database("write the combined database")(error);
    clear(aside)?;
    let visible = fetch_tables::visible(connection).map_err(failed)?;
    let state = format!("SELECT generation, (SELECT count(*) FROM {visible}) FROM work.state");
    let (generation, rows): (u64, u64) =
        connection.query_row(&state, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
    if rows == 0 {
        return Err(StoreError::Empty(paths.data().path().to_owned()));
    }
    connection.execute_batch("CHECKPOINT work").map_err(failed)?;
    match go_on(connection, aside, paths, &visible) {
        Ok(true) => return Ok(generation),
        Ok(false) => {}
        Err(error) => {
            let why = with_causes(&error);
            tracing::warn!(why, "the combined database is written whole, not gone on from");
        }
    }
    clear(aside)?;
    let written = in_attached(connection, aside, |connection| {
        connection.execute_batch(&format!(
            "CREATE TABLE aside.daily AS SELECT {} FROM {visible} ORDER BY code, date;
             CREATE TABLE aside.rows_in_order AS SELECT count(*)::UBIGINT AS rows FROM aside.daily",
            published_values(),
        ))?;
        connection.execute_batch(&format!(
            "{} USE aside; {}; USE memory; CHECKPOINT aside",
            beside_rows(connection)?,
            adjusted()
        ))?;
        connection.query_row("SELECT count(*) FROM aside.daily", [], |row| row.get::<_, u64>(0))
    });
    let written = written.map_err(failed)?;
    if written != rows {
        let what = format!("{written} of {rows} rows were written; check the disk and try again");
        return Err(StoreError::Unusable { path: aside.to_owned(), what });
    }
    Ok(generation)
}

/// How many of the rows of an attached database that a job has published are by issue and date.
pub(super) fn rows_in_order(connection: &Connection, database: &str) -> duckdb::Result<u64> {
    let rows = format!("SELECT rows FROM {database}.rows_in_order");
    connection.query_row(&rows, [], |row| row.get(0))
}

/// Does something in the database that is being written, and detaches it whatever happened, so that its
/// name is free for the next time.
fn in_attached<T>(
    connection: &Connection,
    aside: &Path,
    work: impl FnOnce(&Connection) -> duckdb::Result<T>,
) -> duckdb::Result<T> {
    connection.execute_batch(&format!(
        "ATTACH {} AS {ASIDE} (STORAGE_VERSION '{STORAGE_VERSION}', RECOVERY_MODE no_wal_writes)",
        quoted_path(aside)
    ))?;
    let outcome = work(connection);
    let detached = connection.execute_batch("USE memory; DETACH DATABASE IF EXISTS aside");
    outcome.and_then(|done| detached.map(|()| done))
}

/// The tables beside the rows, which are there, as SQL.
fn beside_rows(connection: &Connection) -> duckdb::Result<String> {
    let calendar = match calendar::is_known(connection)? {
        true => "CREATE TABLE aside.calendar AS FROM work.calendar ORDER BY date;",
        false => "",
    };
    let days = connection
        .query_row("SELECT count(DISTINCT date) FROM aside.daily", [], |row| row.get(0))?;
    Ok(format!(
        "DROP TABLE IF EXISTS aside.calendar; {calendar}
         CREATE OR REPLACE TABLE aside.correction AS FROM work.correction
           WHERE date IN (SELECT date FROM work.day WHERE is_complete OR is_accepted)
           ORDER BY logged_at, date, code, column_name;
         DROP TABLE IF EXISTS aside.unknown_before; {}",
        unknown_before(days)
    ))
}

/// Goes on from the published database where it is the beginning of what is stored; else false.
fn go_on(
    connection: &Connection,
    aside: &Path,
    paths: &StorePaths,
    visible: &str,
) -> Result<bool, StoreError> {
    let failed = |error| StoreError::database("go on from the combined database")(error);
    if !publish::is_own(connection, paths)? {
        return Ok(false);
    }
    let mother = paths.data().mother();
    // Its bytes alone: a file that is published has the permissions of any other.
    let mut bytes = atomic_file::open_to_read(&mother).map_err(StoreError::io("read", &mother))?;
    let mut copy = File::create_new(aside).map_err(StoreError::io("write", aside))?;
    io::copy(&mut bytes, &mut copy).map_err(StoreError::io("write", aside))?;
    drop(copy);
    // Of the copy, so that what was read is what is gone on from.
    if !written::is_noted(connection, aside, &GenerationFileName::Combined)? {
        return Ok(false);
    }
    in_attached(connection, aside, |connection| append(connection, visible)).map_err(failed)
}

/// Puts the rows of new days behind those that are there, where all others are the same; else false, and
/// the file is of no use.
fn append(connection: &Connection, visible: &str) -> duckdb::Result<bool> {
    let new = format!("FROM {visible} WHERE date > (SELECT max(date) FROM aside.daily)");
    let in_order = rows_in_order(connection, ASIDE)?;
    let counts = format!(
        "SELECT (SELECT count(*) FROM aside.daily), (SELECT count(*) {new}),
           (SELECT count(*) FROM {visible}), (SELECT count(DISTINCT date) {new})
             + (SELECT count(DISTINCT date) FROM aside.daily WHERE rowid >= {in_order})"
    );
    let (known, more, all, days): (u64, u64, u64, u64) =
        connection.query_row(&counts, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
    let is_many =
        known + more > in_order + COMBINED_LATER_ROWS_MAX || days > COMBINED_LATER_DAYS_MAX;
    if known + more != all || is_many {
        return Ok(false);
    }
    let values = published_values();
    connection.execute_batch(&format!(
        "INSERT INTO aside.daily SELECT {values} {new} ORDER BY code, date"
    ))?;
    let digest = digest_of_rows(&format!("{}, {ADJUSTED_MARK}", names()));
    let is_equal = format!(
        "SELECT (SELECT {digest} FROM aside.daily) = (SELECT {digest} FROM (SELECT {values} FROM {visible}))"
    );
    if !connection.query_row(&is_equal, [], |row| row.get::<_, bool>(0))? {
        return Ok(false);
    }
    connection.execute_batch(&format!("{} CHECKPOINT aside", beside_rows(connection)?))?;
    Ok(true)
}
