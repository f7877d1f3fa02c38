//! The lists of issues: in the job's own database, and published as `jp/listed_info.db`.

use std::collections::BTreeSet;
use std::path::Path;

use duckdb::{Connection, params};
use pricestore::generation::GenerationFileName;
use pricestore::listed::{self, ListedError, ListedHistory};

use super::durable::{clear, put_in_place, sync_folder};
use super::error::StoreError;
use super::fetch_tables::has_table;
use super::opening::connect;
use super::paths::{StorePaths, unfinished};
use super::publish::identity;
use super::split::{Found, found};
use super::written;

/// One row. A generation is a state of the lists; the one that was published last is noted with the file
/// that holds it. The file that takes its place is noted before it gets its name, so that a job knows its
/// own file also when the one before was killed.
const STATE: &str = "
    CREATE TABLE work.listed_state (generation UBIGINT, published UBIGINT, published_file VARCHAR,
      next_file VARCHAR);
    INSERT INTO work.listed_state VALUES (1, NULL, NULL, NULL);";

/// What the published file holds, as [`pricestore::sql::objects`] tells it.
const OBJECTS: [&str; 2] = ["table main.list_date", "table main.listed_issue"];

/// Notes that the published lists are not what they have to be. Generations count from 1.
pub(super) const AGAIN: &str = "UPDATE work.listed_state SET published = 0";

/// Makes the tables where the database does not have them, with the lists that are published already;
/// tells why these could not be used.
pub(super) fn prepare(
    connection: &Connection,
    paths: &StorePaths,
) -> Result<Option<String>, StoreError> {
    clear(&unfinished(&paths.data().listed_info()))?;
    let failed = |error| StoreError::database("prepare the lists of issues")(error);
    if has_table(connection, "listed_state").map_err(failed)? {
        return Ok(None);
    }
    let path = paths.data().listed_info();
    let (published, note) = match listed::read_file(&path) {
        Ok(found) => (found.unwrap_or_default(), None),
        Err(error) => (ListedHistory::default(), Some(not_used(&path, &error))),
    };
    // Rolled back when it is dropped.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    listed::create(&transaction, "work").map_err(failed)?;
    transaction.execute_batch(STATE).map_err(failed)?;
    listed::store(&transaction, "work", &published).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(note)
}

fn not_used(path: &Path, error: &ListedError) -> String {
    format!("{} is not used: {error}", path.display())
}

/// What is stored.
pub(super) fn load(connection: &Connection) -> Result<ListedHistory, StoreError> {
    listed::load(connection, "work")
        .map_err(|source| StoreError::Listed { doing: "look up", source })
}

/// Whether a job has ever published lists here.
pub(super) fn was_written(connection: &Connection) -> Result<bool, StoreError> {
    let file = "SELECT published_file IS NOT NULL FROM work.listed_state";
    let written = connection.query_row(file, [], |row| row.get(0));
    written.map_err(StoreError::database("look up which lists were published"))
}

/// Whether the published lists are the file that was published last.
pub(super) fn is_own(connection: &Connection, paths: &StorePaths) -> Result<bool, StoreError> {
    let failed = StoreError::database("look up which lists were published");
    let file = "SELECT published_file FROM work.listed_state";
    let file: Option<String> = connection.query_row(file, [], |row| row.get(0)).map_err(failed)?;
    Ok(file.is_some() && identity(&paths.data().listed_info()).ok() == file)
}

/// Notes the time of the published file, whose bytes are as they were written.
pub(super) fn renew(connection: &Connection, paths: &StorePaths) -> Result<(), StoreError> {
    let file = identity(&paths.data().listed_info())?;
    let note = "UPDATE work.listed_state SET published_file = $1 WHERE published_file <> $1
        AND next_file IS DISTINCT FROM $1";
    let noted = connection.execute(note, [file]);
    noted.map(drop).map_err(StoreError::database("note which lists are published"))
}

/// Puts lists in the place of those that are stored; a new state of them.
pub(super) fn store(connection: &Connection, lists: &ListedHistory) -> Result<(), StoreError> {
    let failed = |error| StoreError::database("store the lists of issues")(error);
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    listed::store(&transaction, "work", lists).map_err(failed)?;
    let next = "UPDATE work.listed_state SET generation = generation + 1";
    transaction.execute_batch(next).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Publishes the lists, where there are some and they are not published yet; tells whether it did. What
/// others wrote is replaced by what has all of it, and by nothing else.
pub(super) fn publish(connection: &Connection, paths: &StorePaths) -> Result<bool, StoreError> {
    let failed = |error| StoreError::database("look up which lists were published")(error);
    let state =
        "SELECT generation, coalesce(published = generation, false), published_file, next_file
        FROM work.listed_state";
    type State = (u64, bool, Option<String>, Option<String>);
    let (generation, is_published, file, next): State = connection
        .query_row(state, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .map_err(failed)?;
    let path = paths.data().listed_info();
    let is_there = path.try_exists().map_err(StoreError::io("look for", &path))?;
    let on_disk = is_there.then(|| identity(&path)).transpose()?;
    if is_published && on_disk.is_some() && on_disk == file {
        return Ok(false);
    }
    let lists = load(connection)?;
    if lists.lists().is_empty() {
        return Ok(false);
    }
    let is_ours = on_disk.is_none() || on_disk == file || on_disk == next;
    if !is_ours && !may_replace(paths, &lists, file.is_some())? {
        return Err(StoreError::ForeignLists(path));
    }
    let aside = unfinished(&path);
    clear(&aside)?;
    listed::write_file(&aside, &lists)
        .map_err(|source| StoreError::Listed { doing: "write", source })?;
    let failed = |error| StoreError::database("note which lists are published")(error);
    let written = identity(&aside)?;
    let file = [written::finished(&aside, &GenerationFileName::Listed)?];
    written::intend(connection, &file)?;
    connection.execute("UPDATE work.listed_state SET next_file = ?", [&written]).map_err(failed)?;
    put_in_place(&aside, &path)?;
    sync_folder(&paths.data().jp_folder())?;
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let note = "UPDATE work.listed_state SET published = ?, published_file = ?, next_file = NULL";
    transaction.execute(note, params![generation, written]).map_err(failed)?;
    written::note(&transaction, &file).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(true)
}

/// Whether nothing is lost with a file that is not as the job left it. One that is no database any more
/// was damaged where a job has written it, and is somebody's where not.
fn may_replace(
    paths: &StorePaths,
    lists: &ListedHistory,
    was_written: bool,
) -> Result<bool, StoreError> {
    let path = paths.data().listed_info();
    let form: BTreeSet<String> = OBJECTS.map(String::from).into();
    Ok(match found(&connect(paths)?, &path, &form, |_| Ok(Found::NothingMore)) {
        Found::NothingMore => match listed::read_file(&path) {
            Ok(Some(found)) => lists.contains(&found),
            Ok(None) => true,
            Err(ListedError::Database(_) | ListedError::Io(_)) => was_written,
            Err(_) => false,
        },
        Found::NoDatabase => was_written,
        Found::OtherRows | Found::More => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use domain::JstDate;
    use pricestore::DataDir;
    use pricestore::listed::{IssueField, IssueInfo, read_file, write_file};

    use super::*;
    use crate::PriceStore;
    use crate::store::WorkDatabase;

    fn lists(days: &[(&str, &str)]) -> ListedHistory {
        let mut lists = ListedHistory::default();
        for (date, name) in days {
            let date: JstDate = date.parse().unwrap();
            let info = IssueInfo::default().with(IssueField::Name, name);
            lists.insert(date, [(Box::from("1301"), info)].into()).unwrap();
        }
        lists
    }

    fn published(data: &DataDir) -> Option<ListedHistory> {
        read_file(&data.listed_info()).unwrap()
    }

    #[test]
    fn lists_are_published_once() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        let mut store = WorkDatabase::open(&data).unwrap();
        assert!(!store.publish_listed().unwrap() && published(&data).is_none(), "there are none");
        let one = lists(&[("2025-01-06", "a")]);
        store.rows().store_listed(&one).unwrap();
        assert_eq!(store.rows().listed().unwrap(), one);
        assert!(store.publish_listed().unwrap());
        assert!(!store.publish_listed().unwrap(), "nothing is new");
        drop(store);
        let mut store = WorkDatabase::open(&data).unwrap();
        assert!(!store.publish_listed().unwrap(), "nor for the next job");
        assert_eq!(published(&data), Some(one));
        fs::remove_file(data.listed_info()).unwrap();
        assert!(store.publish_listed().unwrap(), "it is gone");
        let names: Vec<_> = fs::read_dir(data.jp_folder()).unwrap().collect();
        assert_eq!(names.len(), 2, "the file and the folder of prices");
    }

    #[test]
    fn the_next_job_knows_the_file_of_one_that_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        let mut store = WorkDatabase::open(&data).unwrap();
        let (one, two) = (lists(&[("2025-01-06", "a")]), lists(&[("2025-01-06", "b")]));
        store.rows().store_listed(&one).unwrap();
        store.publish_listed().unwrap();
        // Killed after the rename: the file is noted as the next one only.
        let state = "UPDATE work.listed_state SET next_file = published_file, published = NULL,
            published_file = 'another'";
        store.execute(state);
        // What the list says now is something else, so that the file's content cannot tell.
        store.rows().store_listed(&two).unwrap();
        drop(store);
        fs::write(unfinished(&data.listed_info()), "half a file").unwrap();
        let mut store = WorkDatabase::open(&data).unwrap();
        assert!(!unfinished(&data.listed_info()).exists());
        assert!(store.publish_listed().unwrap());
        assert_eq!(published(&data), Some(two));
    }

    #[test]
    fn what_others_wrote_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        fs::create_dir_all(data.jp_folder()).unwrap();
        let path = data.listed_info();
        let put = |lists: &ListedHistory| {
            let _ = fs::remove_file(&path);
            write_file(&path, lists).unwrap();
        };
        // Another copy's lists are taken over by the first job.
        let one = lists(&[("2025-01-06", "a")]);
        put(&one);
        let mut store = WorkDatabase::open(&data).unwrap();
        assert_eq!(store.rows().listed().unwrap(), one);
        let two = lists(&[("2025-01-06", "a"), ("2025-01-07", "b")]);
        store.rows().store_listed(&two).unwrap();
        assert!(store.publish_listed().unwrap());
        // What has nothing more is replaced, what has something more is not.
        put(&one);
        assert!(store.publish_listed().unwrap());
        assert_eq!(published(&data).as_ref(), Some(&two));
        for more in [lists(&[("2025-01-08", "c")]), lists(&[("2025-01-06", "other")])] {
            put(&more);
            let error = store.publish_listed().unwrap_err().to_string();
            assert!(error.contains("was not written by this job"), "{error}");
            assert_eq!(published(&data), Some(more));
        }
        // What the job wrote was damaged since.
        fs::write(&path, "damaged").unwrap();
        assert!(store.publish_listed().unwrap());
        assert_eq!(published(&data), Some(two));
        // Something else altogether, before the first job.
        drop(store);
        fs::remove_dir_all(data.path().join("work")).unwrap();
        fs::write(&path, "somebody's").unwrap();
        let mut store = WorkDatabase::open(&data).unwrap();
        let (_, note) = store.rows().fetch_state().unwrap();
        assert!(note.is_some_and(|note| note.contains("listed_info.db is not used: ")));
        store.rows().store_listed(&one).unwrap();
        assert!(matches!(store.publish_listed(), Err(StoreError::ForeignLists(_))));
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
    }
}
