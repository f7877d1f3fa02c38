//! One database for each issue, written from the published combined one.
//!
//! A file is always written anew and never appended to: the rows of an issue lie together in the
//! combined database, but for those of the last days, which are few; so reading all of them costs less than
//! opening the old file to add one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use domain::JstDate;
use duckdb::{Connection, params};
use pricestore::generation::{GenerationFileName, PublishedFile};
use pricestore::sql::{column, log_of, must_be_database, objects, quoted_path};

use super::durable::{give_name, remove, sync_folder};
use super::error::StoreError;
use super::issue_file::{Content, Issue, IssueWriter, empty_file, open_published};
use super::limits::{REMOVED_PERCENT_MAX, SPLIT_NOTE_EVERY, SPLIT_THREADS_MAX};
use super::paths::{StorePaths, unfinished};
use super::publish::is_published;
use super::schema::digest;
use super::written;
use crate::price_store::{Split, StoreProgress};

/// Form of the files; a change of it makes all of them be written again. The version of DuckDB is
/// added, because digests are only the same within one.
const FORM: &str = "10";
/// Notes of a file that it is not what it has to be. None has no bytes.
pub(super) const AGAIN: &str = "UPDATE work.issue_file SET bytes = 0 WHERE code = ?";
/// What is being done, for the progress.
const WHAT: &str = "per-issue databases";

/// How many files of issues that are no longer there a job may remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removals {
    /// At most one in a hundred of them at once.
    Few,
    /// Any number.
    Any,
}

/// A file that was written aside.
#[derive(Debug)]
struct Written<'a> {
    issue: &'a Issue,
    file: PublishedFile,
}

/// Writes what changed; see [`crate::PriceStore::split_to_individual`]. Content is compared for every
/// issue, so a file that an earlier job should have written is written too; `from` only says which
/// of the others count as looked at.
pub(super) fn split(
    connection: &Connection,
    paths: &StorePaths,
    from: Option<JstDate>,
    removals: Removals,
    progress: &mut StoreProgress<'_>,
) -> Result<Split, StoreError> {
    let mother = paths.data().mother();
    if !is_published(connection, paths)? {
        return Err(StoreError::NotPublished(mother));
    }
    let published = open_published(paths, &mother)?;
    let failed = |error| StoreError::database("compare the per-issue databases")(error);
    let issues = issues(&published).map_err(failed)?;
    let noted = noted(connection).map_err(failed)?;
    let mut split = Split::default();
    let removed = to_remove(paths, &issues, &noted, removals)?;
    let (mut wanted, mut foreign) = (Vec::new(), Vec::new());
    for issue in &issues {
        // A link is none of the job's files, wherever it leads.
        let file = fs::symlink_metadata(paths.issue(&issue.code)).ok();
        let is_link = file.as_ref().is_some_and(fs::Metadata::is_symlink);
        let length = file.map(|file| file.len());
        let is_same = noted
            .get(&issue.code)
            .is_some_and(|(content, bytes)| (*content, Some(*bytes)) == (issue.content, length))
            && !is_link;
        if !is_same {
            // What others wrote is replaced by what has all of its rows, and by nothing else.
            let is_as_written = !is_link
                && (noted.get(&issue.code).map(|(_, bytes)| *bytes) == length || length.is_none());
            // The engine would take up what somebody has changed in the old file with the new one.
            let has_log = is_there(&log_of(&paths.issue(&issue.code)));
            let may_replace = !has_log
                && (is_as_written
                    || match found_in(&published, &paths.issue(&issue.code)) {
                        Found::NothingMore => true,
                        // What the job wrote was damaged since; what others wrote is theirs.
                        Found::NoDatabase => noted.contains_key(&issue.code) && !is_link,
                        Found::OtherRows | Found::More => false,
                    });
            match may_replace {
                true => wanted.push(issue),
                false => foreign.push(issue.code.as_str()),
            }
        } else if from.is_none_or(|from| issue.last >= from) {
            split.unchanged += 1;
        }
    }
    if !wanted.is_empty() {
        let empty = empty_file(&published, paths)?;
        let threads = SPLIT_THREADS_MAX.min(wanted.len());
        let writers =
            (0..threads).map(|number| IssueWriter::new(&published, number, &empty, paths));
        let writers = writers.collect::<Result<_, _>>()?;
        split.written = write_all(connection, paths, writers, &wanted, progress)?;
    }
    for code in &removed {
        remove(&paths.issue(code))?;
    }
    split.removed = removed.len() as u64;
    if !removed.is_empty() {
        forget_issues(connection, &removed).map_err(StoreError::database("forget issues"))?;
    }
    sync_folder(&paths.daily_folder())?;
    match foreign.is_empty() {
        true => Ok(split),
        false => Err(StoreError::foreign(&paths.daily_folder(), &foreign)),
    }
}

/// Whether every file that was written is there with its size.
pub(super) fn has_files(connection: &Connection, paths: &StorePaths) -> Result<bool, StoreError> {
    let failed = StoreError::database("list the per-issue databases");
    let noted = noted(connection).map_err(failed)?;
    let is_there = |(code, (_, bytes)): (&String, &(Content, u64))| {
        fs::symlink_metadata(paths.issue(code)).is_ok_and(|file| file.len() == *bytes)
    };
    Ok(noted.iter().all(is_there))
}

/// Whether a name is taken, also by a link that leads nowhere.
pub(super) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// What is in a file that is not as the job wrote it.
pub(super) enum Found {
    /// It is no database, or one with such rows that cannot be read.
    NoDatabase,
    /// No object, column or date that the job's own file does not have, and in what others wrote no other value.
    NothingMore,
    /// Rows that the job's own file does not have, and nothing else.
    OtherRows,
    /// Something that would be lost.
    More,
}

/// What is in a file that is attached as `foreign_file`: what `look` finds, where it holds nothing but the objects of
/// this form.
pub(super) fn found(
    connection: &Connection,
    file: &Path,
    form: &BTreeSet<String>,
    look: impl FnOnce(&BTreeSet<String>) -> duckdb::Result<Found>,
) -> Found {
    if must_be_database(file).is_err() {
        return Found::More;
    }
    let attach = format!("ATTACH {} AS foreign_file (READ_ONLY)", quoted_path(file));
    if connection.execute_batch(&attach).is_err() {
        return Found::NoDatabase;
    }
    let objects = objects(connection, "foreign_file");
    let found = objects.and_then(|objects| match objects.is_subset(form) {
        true => look(&objects),
        false => Ok(Found::More),
    });
    // The name stays in use where this fails; the files after it count as others' then.
    let detached = connection.execute_batch("DETACH foreign_file");
    match found {
        Ok(found) if detached.is_ok() => found,
        // Also a database without such a table: it is somebody's.
        _ => Found::More,
    }
}

/// What is in a file of prices beside what the published database has, which is attached as `published`.
pub(super) fn found_in(published: &Connection, file: &Path) -> Found {
    match objects(published, "published") {
        Ok(form) => found(published, file, &form, |objects| found_in_attached(published, objects)),
        Err(_) => Found::More,
    }
}

fn found_in_attached(published: &Connection, objects: &BTreeSet<String>) -> duckdb::Result<Found> {
    let count = |sql: &str| published.query_row(sql, [], |row| row.get::<_, i64>(0));
    let columns =
        "SELECT count(*) FROM duckdb_columns() AS old WHERE old.database_name = 'foreign_file'
            AND NOT old.internal AND NOT EXISTS (FROM duckdb_columns() AS new
                WHERE new.database_name = 'published'
                    AND lower(new.schema_name) = lower(old.schema_name)
                    AND lower(new.table_name) = lower(old.table_name)
                    AND lower(new.column_name) = lower(old.column_name))";
    if count(columns)? > 0 {
        return Ok(Found::More);
    }
    // The job's own files may be those of an earlier state, which corrections have changed since; of others each value
    // is theirs.
    let rows = match objects.contains("table main.unknown_before") {
        true => "SELECT count(*) FROM foreign_file.daily AS old WHERE NOT EXISTS (
            FROM published.daily AS new WHERE new.code = old.code AND new.date = old.date)"
            .to_owned(),
        false => {
            let names =
                "SELECT column_name FROM duckdb_columns() WHERE database_name = 'foreign_file'
                AND table_name = 'daily' ORDER BY column_index";
            let names: Vec<String> = column(published, names)?;
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let names = names.join(", ");
            format!(
                "SELECT count(*) FROM (SELECT {names} FROM foreign_file.daily
                   EXCEPT SELECT {names} FROM published.daily)"
            )
        }
    };
    let own = "SELECT count(*) FROM duckdb_columns() WHERE database_name = 'foreign_file'
        AND table_name = 'daily' AND column_name IN ('date', 'code')";
    match count(&rows) {
        Ok(0) => Ok(Found::NothingMore),
        Ok(_) => Ok(Found::OtherRows),
        // Nothing but our columns, and their blocks are damaged.
        Err(_) if count(own)? == 2 => Ok(Found::NoDatabase),
        Err(error) => Err(error),
    }
}

/// Every issue of the published database. A file also says from where on its rows compare.
fn issues(published: &Connection) -> duckdb::Result<Vec<Issue>> {
    let sql = format!(
        "SELECT found.code, rows, xor(digest, coalesce(hash(unknown.date), 0::UBIGINT)),
             last::VARCHAR, unknown.date::VARCHAR
           FROM (SELECT code, count(*) AS rows, {} AS digest, max(date) AS last
               FROM published.daily GROUP BY code) found
             LEFT JOIN published.unknown_before unknown ON unknown.code = found.code
           ORDER BY found.code",
        digest()
    );
    let day = |text: String| text.parse().map_err(|_| duckdb::Error::InvalidQuery);
    let mut statement = published.prepare(&sql)?;
    let issues = statement.query_map([], |row| {
        Ok(Issue {
            code: row.get(0)?,
            content: Content { rows: row.get(1)?, digest: row.get(2)? },
            last: day(row.get(3)?)?,
            unknown_before: row.get::<_, Option<String>>(4)?.map(day).transpose()?,
        })
    })?;
    issues.collect()
}

/// What was written into each file, and its size; of files in another form the size alone.
fn noted(connection: &Connection) -> duckdb::Result<BTreeMap<String, (Content, u64)>> {
    let form = format!("{FORM}, DuckDB {}", connection.version()?);
    let renewed = "UPDATE work.state SET split_form = $1 WHERE split_form IS DISTINCT FROM $1";
    if connection.execute(renewed, [&form])? > 0 {
        // They are the job's own all the same, as long as they have their sizes.
        connection.execute_batch("UPDATE work.issue_file SET rows = 0, digest = 0")?;
    }
    let mut statement =
        connection.prepare("SELECT code, rows, digest, bytes FROM work.issue_file")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, (Content { rows: row.get(1)?, digest: row.get(2)? }, row.get(3)?)))
    })?;
    rows.collect()
}

/// Writes the files of these issues with a few threads, and notes what is in them.
fn write_all(
    connection: &Connection,
    paths: &StorePaths,
    writers: Vec<IssueWriter<'_>>,
    issues: &[&Issue],
    progress: &mut StoreProgress<'_>,
) -> Result<u64, StoreError> {
    let all = issues.len() as u64;
    if progress(0, all, WHAT).is_break() {
        return Err(StoreError::Cancelled);
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let shared = Shared { issues, next: &next, stop: &stop };
    std::thread::scope(|scope| {
        // Files that wait for their names do not keep others from being written: replacing a few hundred takes
        // half a second of waiting for the disk.
        let (sender, receiver) = sync_channel(SPLIT_NOTE_EVERY);
        let (mut done, mut fault, mut batch) = (0, None, Vec::new());
        let mut started = 0;
        for writer in writers {
            let sender = sender.clone();
            let thread = std::thread::Builder::new();
            match thread.spawn_scoped(scope, move || work(&writer, shared, &sender)) {
                Ok(_) => started += 1,
                // Those that run write all, only later.
                Err(_) if started > 0 => break,
                Err(error) => {
                    fault = Some(StoreError::io(
                        "start a thread that writes",
                        paths.daily_folder(),
                    )(error));
                    break;
                }
            }
        }
        drop(sender);
        // All answers are taken, so that no thread waits when one has failed.
        for outcome in receiver {
            match outcome {
                Ok(written) => batch.push(written),
                Err(error) => fault = fault.or(Some(error)),
            }
            done += 1;
            if fault.is_none() && batch.len() >= SPLIT_NOTE_EVERY {
                fault = note(connection, paths, &mut batch).err();
            }
            if fault.is_none() && progress(done, all, WHAT) == ControlFlow::Break(()) && done < all
            {
                fault = Some(StoreError::Cancelled);
            }
            if fault.is_some() {
                stop.store(true, Ordering::Release);
            }
        }
        // What was written is noted even when the rest was not.
        let last = note(connection, paths, &mut batch);
        fault.map_or(last, Err).map(|()| done)
    })
}

/// What the writing threads share.
#[derive(Clone, Copy)]
struct Shared<'p, 'a> {
    issues: &'p [&'a Issue],
    next: &'p AtomicUsize,
    stop: &'p AtomicBool,
}

type Answer<'a> = Result<Written<'a>, StoreError>;

/// Writes one file after the other until there are no more.
fn work<'a>(writer: &IssueWriter<'_>, shared: Shared<'_, 'a>, answers: &SyncSender<Answer<'a>>) {
    while !shared.stop.load(Ordering::Acquire) {
        let at = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(issue) = shared.issues.get(at) else { return };
        let outcome = writer.write(issue).map(|file| Written { issue, file });
        if answers.send(outcome).is_err() {
            return;
        }
    }
}

/// Gives what was written its names, and notes it once it is sure to be on the disk.
fn note(
    connection: &Connection,
    paths: &StorePaths,
    batch: &mut Vec<Written<'_>>,
) -> Result<(), StoreError> {
    let batch = std::mem::take(batch);
    if batch.is_empty() {
        return Ok(());
    }
    let files: Vec<PublishedFile> = batch.iter().map(|written| written.file.clone()).collect();
    written::intend(connection, &files)?;
    for Written { issue, .. } in &batch {
        let path = paths.issue(&issue.code);
        give_name(&unfinished(&path), &path)?;
    }
    sync_folder(&paths.daily_folder())?;
    note_rows(connection, &batch, &files).map_err(StoreError::database("note what was written"))
}

fn note_rows(
    connection: &Connection,
    batch: &[Written<'_>],
    files: &[PublishedFile],
) -> duckdb::Result<()> {
    connection
        .execute_batch("CREATE OR REPLACE TEMP TABLE noted AS FROM work.issue_file LIMIT 0")?;
    let mut appender = connection.appender_to_catalog_and_db("noted", "temp", "main")?;
    for Written { issue, file } in batch {
        let Content { rows, digest } = issue.content;
        appender.append_row(params![issue.code, rows, digest, file.bytes])?;
    }
    appender.flush()?;
    drop(appender);
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(
        "DELETE FROM work.issue_file WHERE code IN (SELECT code FROM temp.noted);
         INSERT INTO work.issue_file FROM temp.noted",
    )?;
    written::note(&transaction, files)?;
    transaction.commit()?;
    connection.execute_batch("DROP TABLE temp.noted")
}

/// Which files are of issues that the combined database does not have any more. Only what this job
/// wrote is among them: a file that is not noted is somebody else's.
fn to_remove(
    paths: &StorePaths,
    issues: &[Issue],
    noted: &BTreeMap<String, (Content, u64)>,
    removals: Removals,
) -> Result<Vec<String>, StoreError> {
    let kept: BTreeSet<&str> = issues.iter().map(|issue| issue.code.as_str()).collect();
    let gone = noted.keys().filter(|code| !kept.contains(code.as_str())).cloned();
    let gone: Vec<String> = gone.collect();
    let is_many = gone.len() * 100 > noted.len() * REMOVED_PERCENT_MAX;
    if is_many && removals == Removals::Few {
        let folder = paths.daily_folder();
        return Err(StoreError::ManyRemovals { folder, gone: gone.len(), of: noted.len() });
    }
    Ok(gone)
}

/// Forgets what was written for these issues.
fn forget_issues(connection: &Connection, codes: &[String]) -> duckdb::Result<()> {
    let mut statement = connection.prepare("DELETE FROM work.issue_file WHERE code = ?")?;
    codes.iter().try_for_each(|code| statement.execute([code]).map(drop))?;
    let mut names = codes.iter().filter_map(|code| GenerationFileName::issue(code));
    names.try_for_each(|name| written::forget(connection, &name))
}
