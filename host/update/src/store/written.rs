//! The digests of the published files, noted by whoever has written them; what is on disk is held against
//! them before it is tied to a generation, and made again where it is not as it was written.
//!
//! A file's digest is noted before the file gets its name, beside that of the file whose place it takes, so
//! that a job knows its own files also when the one before was killed. So is that of a combined database of others
//! whose rows the job has taken over, until it publishes its own.

use std::collections::BTreeMap;
use std::path::Path;

use duckdb::{Appender, Connection, params};
use pricestore::generation::{Generation, GenerationFileName, PublishedFile, read_files};
use pricestore::sql::column;

use super::error::StoreError;
use super::paths::StorePaths;
use super::{listed, publish, split};
use crate::price_store::PublishedCheck;

/// A row for each file as it is, and one more while another one is about to take its place.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS work.written_file
    (path VARCHAR, bytes UBIGINT, xxh128 VARCHAR, modified_us UBIGINT);";

fn failed(error: duckdb::Error) -> StoreError {
    StoreError::database("note which files are written")(error)
}

/// Makes the table where the database does not have it.
pub(super) fn prepare(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch(TABLE).map_err(failed)
}

/// A finished file that shall get a name.
pub(super) fn finished(
    aside: &Path,
    name: &GenerationFileName,
) -> Result<PublishedFile, StoreError> {
    PublishedFile::read(aside, name).map_err(StoreError::io("read", aside))
}

/// Notes files that are about to get their names.
pub(super) fn intend(connection: &Connection, files: &[PublishedFile]) -> Result<(), StoreError> {
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let table = transaction.appender_to_catalog_and_db("written_file", "work", "main");
    table.and_then(|table| append(table, files)).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Notes files that have their names: what was there before is gone. Part of the caller's transaction.
pub(super) fn note(connection: &Connection, files: &[PublishedFile]) -> duckdb::Result<()> {
    connection
        .execute_batch("CREATE OR REPLACE TEMP TABLE placed AS FROM work.written_file LIMIT 0")?;
    append(connection.appender_to_catalog_and_db("placed", "temp", "main")?, files)?;
    connection.execute_batch(
        "DELETE FROM work.written_file WHERE path IN (SELECT path FROM temp.placed);
         INSERT INTO work.written_file FROM temp.placed; DROP TABLE temp.placed",
    )
}

fn append(mut table: Appender<'_>, files: &[PublishedFile]) -> duckdb::Result<()> {
    for PublishedFile { path, bytes, xxh128, modified_us } in files {
        table.append_row(params![path, bytes, xxh128, modified_us])?;
    }
    table.flush()
}

/// Forgets a file.
pub(super) fn forget(connection: &Connection, name: &GenerationFileName) -> duckdb::Result<()> {
    let forget = "DELETE FROM work.written_file WHERE path = ?";
    connection.execute(forget, [name.path()]).map(drop)
}

/// Forgets the snapshots other than this one.
pub(super) fn forget_snapshots(connection: &Connection, number: u64) -> duckdb::Result<()> {
    let forget = "DELETE FROM work.written_file WHERE path LIKE 'rank/%' AND path <> ?";
    connection.execute(forget, [GenerationFileName::Grid(number).path()]).map(drop)
}

/// All files that are noted.
pub(super) fn noted(connection: &Connection) -> Result<Vec<PublishedFile>, StoreError> {
    let all = "SELECT path, bytes, xxh128, modified_us FROM work.written_file ORDER BY path";
    let mut statement = connection.prepare(all).map_err(failed)?;
    let rows = statement.query_map([], |row| {
        let (path, bytes) = (row.get(0)?, row.get(1)?);
        Ok(PublishedFile { path, bytes, xxh128: row.get(2)?, modified_us: row.get(3)? })
    });
    rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

/// Whether a file, which is or shall be the one with a name, has bytes that are noted of it. Every byte is read.
pub(super) fn is_noted(
    connection: &Connection,
    on_disk: &Path,
    name: &GenerationFileName,
) -> Result<bool, StoreError> {
    let found = finished(on_disk, name)?;
    let noted = noted(connection)?;
    Ok(noted.iter().any(|one| one.path == found.path && one.has_bytes_of(&found)))
}

/// The files that this job and those before it have published and that are there.
fn own_files(
    connection: &Connection,
    paths: &StorePaths,
) -> Result<Vec<GenerationFileName>, StoreError> {
    let data = paths.data();
    let mut names = Vec::new();
    if publish::was_written(connection)? {
        names.push(GenerationFileName::Combined);
        let current = data.current().map_err(StoreError::io("look into", data.rank_folder()))?;
        names.extend(current.map(GenerationFileName::Grid));
    }
    if listed::was_written(connection)? {
        names.push(GenerationFileName::Listed);
    }
    let codes: Vec<String> =
        column(connection, "SELECT code FROM work.issue_file ORDER BY code").map_err(failed)?;
    names.extend(codes.iter().filter_map(|code| GenerationFileName::issue(code)));
    // What is gone is made again anyway, and a link is none of the job's files.
    names.retain(|name| name.on_disk(data).symlink_metadata().is_ok_and(|found| found.is_file()));
    Ok(names)
}

/// Holds every byte of the published files against what was written, or else against the generation before,
/// and sees to it that the others are made again.
///
/// | a file is | then |
/// |---|---|
/// | as it was written | it stays |
/// | the same, with another time | it stays, and its time is noted |
/// | another, or cannot be read | it is damaged, and made again |
/// | one whose digest nobody knows | it is made again |
/// | of the generation before, noted, and gone | it is made again, and told |
pub(super) fn check(
    connection: &Connection,
    paths: &StorePaths,
) -> Result<PublishedCheck, StoreError> {
    let names = own_files(connection, paths)?;
    let noted = noted(connection)?;
    let mut expected: BTreeMap<&str, Vec<&PublishedFile>> = BTreeMap::new();
    for file in &noted {
        expected.entry(&file.path).or_default().push(file);
    }
    let before = Generation::load(paths.data()).unwrap_or_default();
    for file in before.iter().flat_map(Generation::all_files) {
        expected.entry(&file.path).or_insert_with(|| vec![file]);
    }
    let gone = gone_files(paths, before.as_ref(), &noted)?;
    let folder = paths.data().path();
    let files = read_files(paths.data(), &names).map_err(StoreError::io("read", folder))?;
    let (mut renewed, mut damaged, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for (name, found) in names.into_iter().zip(files) {
        let path = name.path();
        let expected = expected.get(path.as_str()).map(Vec::as_slice).unwrap_or_default();
        match found {
            Ok(found) if expected.iter().any(|one| one.has_bytes_of(&found)) => {
                if noted.iter().filter(|one| one.path == path).ne([&found]) {
                    renewed.push((name, found));
                }
                continue;
            }
            _ if expected.is_empty() => {}
            _ => damaged.push(path),
        }
        lost.push(name);
    }
    renew(connection, paths, renewed)?;
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    lost.iter().try_for_each(|name| make_again(&transaction, name)).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(PublishedCheck { damaged, gone })
}

/// The files of the generation before that are noted and gone. Of a snapshot, which another one follows, only where
/// there is none at all.
fn gone_files(
    paths: &StorePaths,
    before: Option<&Generation>,
    noted: &[PublishedFile],
) -> Result<Vec<String>, StoreError> {
    let data = paths.data();
    let current = data.current().map_err(StoreError::io("look into", data.rank_folder()))?;
    let is_noted = |path: &String| noted.iter().any(|file| file.path == *path);
    let all = before.into_iter().flat_map(Generation::all_files).map(|file| file.path.clone());
    let gone = all.filter(|path| {
        !split::is_there(&data.path().join(path))
            && (!path.starts_with("rank/") || current.is_none())
            && is_noted(path)
    });
    Ok(gone.collect())
}

/// Notes files that are as they were written.
fn renew(
    connection: &Connection,
    paths: &StorePaths,
    files: Vec<(GenerationFileName, PublishedFile)>,
) -> Result<(), StoreError> {
    if files.is_empty() {
        return Ok(());
    }
    for (name, _) in &files {
        match name {
            GenerationFileName::Combined => publish::renew(connection, paths)?,
            GenerationFileName::Listed => listed::renew(connection, paths)?,
            _ => {}
        }
    }
    let files: Vec<PublishedFile> = files.into_iter().map(|(_, file)| file).collect();
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    note(&transaction, &files).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Notes of a file that it is not what it has to be.
fn make_again(connection: &Connection, name: &GenerationFileName) -> duckdb::Result<()> {
    forget(connection, name)?;
    match name {
        GenerationFileName::Combined | GenerationFileName::Grid(_) => {
            connection.execute_batch(publish::AGAIN)
        }
        GenerationFileName::Listed => connection.execute_batch(listed::AGAIN),
        GenerationFileName::Issue(code) => connection.execute(split::AGAIN, [code]).map(drop),
    }
}
