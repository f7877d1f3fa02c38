//! The combined database, written aside and put where readers find it.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::UNIX_EPOCH;

use duckdb::Connection;
use pricestore::Published;
use pricestore::generation::{GenerationFileName, PublishedFile};
use pricestore::sql::must_be_published;

use super::combined;
use super::durable::{clear, put_in_place, sync_folder};
use super::error::StoreError;
use super::fetch_tables;
use super::issue_file::open_published;
use super::lock::wait_for_publication;
use super::paths::{StorePaths, unfinished};
use super::split::{Found, found_in, is_there};
use super::written;
use crate::price_store::StoreProgress;

/// Form of the combined database: what a version with another one has published is published anew.
const FORM: &str = "6";
/// Notes that what is published is not what it has to be. Generations count from 1.
pub(super) const AGAIN: &str = "UPDATE work.state SET published = 0";
/// Steps of a publication, for its progress.
pub(super) const STEPS: u64 = 2;
/// The step in which a job waits for another publication.
pub(super) const WAITING: &str =
    "waiting for another publication, as `kumiki rank publish`, to end";

/// Publishes the combined database, then the ranking's snapshot of it. Where both were published
/// already, nothing is written.
pub(super) fn publish(
    connection: &Connection,
    paths: &StorePaths,
    progress: &mut StoreProgress<'_>,
) -> Result<Published, StoreError> {
    if let Some(published) = standing(connection, paths)? {
        return Ok(published);
    }
    step(progress, 0, "combined database")?;
    let (path, aside) = (paths.data().mother(), unfinished(&paths.data().mother()));
    let generation = combined::write(connection, &aside, paths)?;
    if let Err(cancelled) = step(progress, 1, "snapshot for rankings") {
        clear(&aside)?;
        return Err(cancelled);
    }
    let allowed = may_replace(connection, paths, &aside);
    // Before anything is replaced, so that who publishes meanwhile sees one of both.
    let lock = match allowed.and_then(|()| wait_for_publication(paths, progress)) {
        Ok(lock) => lock,
        Err(refused) => {
            clear(&aside)?;
            return Err(refused);
        }
    };
    // From here to the end nobody is asked: the snapshot follows its source at once.
    let file = written::finished(&aside, &GenerationFileName::Combined)?;
    written::intend(connection, std::slice::from_ref(&file))?;
    put_in_place(&aside, &path)?;
    sync_folder(&paths.daily_folder())?;
    let published = lock.publish()?;
    note(connection, generation, &path, file, &published)?;
    // It is done; a wish to stop is for what comes next.
    let _ = progress(STEPS, STEPS, "published");
    Ok(published)
}

fn step(progress: &mut StoreProgress<'_>, done: u64, what: &'static str) -> Result<(), StoreError> {
    match progress(done, STEPS, what) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(StoreError::Cancelled),
    }
}

/// Refuses to replace what others wrote by what does not have all of it.
fn may_replace(
    connection: &Connection,
    paths: &StorePaths,
    aside: &Path,
) -> Result<(), StoreError> {
    let path = paths.data().mother();
    // A new file would take the link's place, and what it leads to would stay as it is.
    if path.is_symlink() {
        let what = "it is a link, and a publication would put a file in its place; move the file that it \
            leads to here, or make one of the folders above it the link";
        return Err(StoreError::Unusable { path, what: what.to_owned() });
    }
    must_be_published(&path).map_err(StoreError::io("replace", &path))?;
    if !is_there(&path) || is_own(connection, paths)? {
        return Ok(());
    }
    let published = open_published(paths, aside)?;
    let may = match found_in(&published, &path) {
        Found::NothingMore => true,
        // What has become of the rows since they were written, or taken over, stands in reports.
        Found::OtherRows => written::is_noted(connection, &path, &GenerationFileName::Combined)?,
        // What the job wrote was damaged since.
        Found::NoDatabase => noted(connection)?.is_some(),
        Found::More => false,
    };
    match may {
        true => Ok(()),
        false => Err(StoreError::ForeignCombined(path)),
    }
}

/// The file that was published last, where one was.
fn noted(connection: &Connection) -> Result<Option<String>, StoreError> {
    let file = "SELECT published_file FROM work.state";
    let file = connection.query_row(file, [], |row| row.get(0));
    file.map_err(StoreError::database("look up what was published"))
}

/// Whether a job has ever published here.
pub(super) fn was_written(connection: &Connection) -> Result<bool, StoreError> {
    Ok(noted(connection)?.is_some())
}

/// Whether what is published has to be made again, whatever is new.
pub(super) fn is_damaged(connection: &Connection) -> Result<bool, StoreError> {
    let state = "SELECT coalesce(published = 0, false) FROM work.state";
    let damaged = connection.query_row(state, [], |row| row.get(0));
    damaged.map_err(StoreError::database("look up what was published"))
}

/// Notes the time of the published file, whose bytes are as they were written.
pub(super) fn renew(connection: &Connection, paths: &StorePaths) -> Result<(), StoreError> {
    // One in another form is published anew.
    if !noted(connection)?.is_some_and(|noted| noted.starts_with(&form())) {
        return Ok(());
    }
    let file = identity(&paths.data().mother())?;
    let note = connection.execute("UPDATE work.state SET published_file = ?", [file]);
    note.map(drop).map_err(StoreError::database("note what was published"))
}

/// Whether the combined database is the file that was published last.
pub(super) fn is_own(connection: &Connection, paths: &StorePaths) -> Result<bool, StoreError> {
    let noted = noted(connection)?;
    Ok(noted.is_some() && identity(&paths.data().mother()).ok() == noted)
}

/// Whether a snapshot for rankings is there.
pub(super) fn has_snapshot(paths: &StorePaths) -> Result<bool, StoreError> {
    Ok(snapshot(paths)?.is_some())
}

/// The number of the snapshot whose file is there.
fn snapshot(paths: &StorePaths) -> Result<Option<u64>, StoreError> {
    let folder = paths.data().rank_folder();
    let current = paths.data().current().map_err(StoreError::io("look into", folder))?;
    Ok(current.filter(|number| paths.data().rank_grid(*number).is_file()))
}

/// Notes which generation the published file holds, and what was written.
fn note(
    connection: &Connection,
    generation: u64,
    path: &Path,
    file: PublishedFile,
    snapshot: &Published,
) -> Result<(), StoreError> {
    let failed = |error| StoreError::database("note what was published")(error);
    let identity = identity(path)?;
    let files: Vec<PublishedFile> = [file].into_iter().chain(snapshot.file.clone()).collect();
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let note = "UPDATE work.state SET published = ?, published_file = ?";
    transaction.execute(note, duckdb::params![generation, identity]).map_err(failed)?;
    written::note(&transaction, &files).map_err(failed)?;
    written::forget_snapshots(&transaction, snapshot.number).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Begin of what tells a published file.
fn form() -> String {
    format!("form {FORM}, ")
}

/// What tells the published file from one that somebody else has put there: its form, its size and
/// when it was written.
pub(super) fn identity(path: &Path) -> Result<String, StoreError> {
    let metadata = fs::metadata(path).map_err(StoreError::io("look at", path))?;
    let written = metadata.modified().map_err(StoreError::io("look at", path))?;
    let written = written.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(format!("{}{} bytes, {written}", form(), metadata.len()))
}

/// Whether the published combined database holds what is stored.
pub(super) fn is_published(
    connection: &Connection,
    paths: &StorePaths,
) -> Result<bool, StoreError> {
    let failed = StoreError::database("look up what was published");
    let state = "SELECT coalesce(published = generation, false), coalesce(published_file, '')
        FROM work.state";
    let (same, file): (bool, String) =
        connection.query_row(state, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
    let path = paths.data().mother();
    Ok(same && path.is_file() && identity(&path)? == file)
}

/// What is published, where that is everything.
fn standing(connection: &Connection, paths: &StorePaths) -> Result<Option<Published>, StoreError> {
    if !is_published(connection, paths)? {
        return Ok(None);
    }
    let Some(number) = snapshot(paths)? else { return Ok(None) };
    let failed = |error| StoreError::database("look up what was published")(error);
    let visible = fetch_tables::visible(connection).map_err(failed)?;
    let counts = format!(
        "WITH seen AS (SELECT date, code FROM {visible}),
           ends AS (SELECT min(date) AS first, max(date) AS last FROM seen)
         SELECT (SELECT count(*) FROM (SELECT date FROM seen UNION SELECT date FROM work.calendar, ends
             WHERE is_open AND date BETWEEN first AND last)),
           (SELECT count(DISTINCT code) FROM seen), first::VARCHAR, last::VARCHAR FROM ends"
    );
    type Counts = (usize, usize, Option<String>, Option<String>);
    let (days, codes, first, last): Counts = connection
        .query_row(&counts, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .map_err(failed)?;
    let day = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let (Some(first), Some(last)) = (day(first), day(last)) else { return Ok(None) };
    Ok(Some(Published { number, days, codes, range: (first, last), file: None }))
}
