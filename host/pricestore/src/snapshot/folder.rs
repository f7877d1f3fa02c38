//! What lies in the folder of the snapshots. What is surely not this program's stays as it is:
//!
//! | in `rank/` | is |
//! |---|---|
//! | a file whose name is one under which files are written | removed: a publication was killed |
//! | `WRITTEN`, a number a line | the snapshots that this program has written; without it, those up to `CURRENT` |
//! | a snapshot of these with a number above that in `CURRENT` | removed: nobody has ever used it |
//! | a snapshot of these with a number before the last two | removed: nobody asks it any more |
//! | any other file with the name of a snapshot's | left alone; its number is passed over |
//! | a folder with the name of a snapshot's file | left alone; its number is passed over |
//! | in the folder `spill`, a file that DuckDB names so | removed, and the folder when nothing else is in it |
//! | anything else there, and a folder with any other name | left alone |
//! | a `CURRENT` that holds no number, or one above [`SNAPSHOT_NUMBER_MAX`](crate::limits::SNAPSHOT_NUMBER_MAX) | an error that names it and what to do |
//! | a name with such a number, or any other | left alone |

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use atomic_file::{UNFINISHED_PREFIX, remove_if_there};

use super::error::PublishError;
use crate::data_dir::DataDir;
use crate::limits::SNAPSHOTS_KEPT;

/// Start of the names under which files are written before they have their own; those of earlier
/// versions too.
const OTHER_NAMES: [&str; 2] = [UNFINISHED_PREFIX, ".tmp"];

/// Folder for what does not fit into DuckDB's memory.
pub(super) const SPILL: &str = "spill";
/// Start of the names of its files there.
const SPILL_PREFIX: &str = "duckdb_temp_";

/// An error of the system with the entry that it is about.
fn at(path: &Path) -> impl FnOnce(io::Error) -> PublishError {
    move |source| PublishError::Io { path: path.to_owned(), source }
}

/// The number of the current snapshot.
pub(super) fn current(data: &DataDir) -> Result<Option<u64>, PublishError> {
    data.current().map_err(at(&data.rank_folder()))
}

/// The number of the next snapshot, whose names nothing has.
pub(super) fn next_number(data: &DataDir) -> Result<u64, PublishError> {
    let newest = data.snapshots().map_err(at(&data.rank_folder()))?.last().copied();
    // Both are far below what would wrap.
    Ok(newest.max(current(data)?).unwrap_or(0) + 1)
}

/// Name of the file of the snapshots that this program has written.
const WRITTEN: &str = "WRITTEN";

/// The snapshots that this program has written.
fn written(data: &DataDir) -> Result<BTreeSet<u64>, PublishError> {
    let path = data.rank_folder().join(WRITTEN);
    match atomic_file::open_to_read(&path).and_then(io::read_to_string) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        // As earlier versions left it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let current = current(data)?.unwrap_or(0);
            let all = data.snapshots().map_err(at(&data.rank_folder()))?;
            Ok(all.into_iter().filter(|number| *number <= current).collect())
        }
        Err(error) => Err(at(&path)(error)),
    }
}

fn write_down(data: &DataDir, numbers: &BTreeSet<u64>) -> Result<(), PublishError> {
    let path = data.rank_folder().join(WRITTEN);
    let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
    atomic_file::write(&path, text.as_bytes()).map_err(at(&path))
}

/// Notes that this program writes a snapshot, before there is anything of it.
pub(super) fn note_own(data: &DataDir, number: u64) -> Result<(), PublishError> {
    let mut numbers = written(data)?;
    numbers.insert(number);
    write_down(data, &numbers)
}

/// Removes those of the own snapshots that are of no use.
fn remove_own(data: &DataDir, is_useless: impl Fn(u64) -> bool) -> Result<(), PublishError> {
    let mut numbers = written(data)?;
    let useless: Vec<u64> = numbers.iter().copied().filter(|number| is_useless(*number)).collect();
    for number in &useless {
        remove_snapshot(data, *number)?;
        numbers.remove(number);
    }
    if useless.is_empty() { Ok(()) } else { write_down(data, &numbers) }
}

/// Removes a file; a folder of this name is not ours and stays.
fn remove_file(path: &Path) -> Result<(), PublishError> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        _ => remove_if_there(path).map_err(at(path)),
    }
}

/// Removes the file of a snapshot, and the one for SQL that earlier versions wrote beside it.
fn remove_snapshot(data: &DataDir, number: u64) -> Result<(), PublishError> {
    let grid = data.rank_grid(number);
    remove_file(&grid.with_extension("db"))?;
    remove_file(&grid)
}

/// Removes unfinished files, and snapshots after the current one, which nobody has ever used. The
/// lock must be held.
pub(super) fn sweep(data: &DataDir) -> Result<(), PublishError> {
    let folder = data.rank_folder();
    for entry in fs::read_dir(&folder).map_err(at(&folder))? {
        let entry = entry.map_err(at(&folder))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if OTHER_NAMES.iter().any(|one| name.starts_with(one)) {
            remove_file(&entry.path())?;
        }
    }
    sweep_spill(&folder.join(SPILL))?;
    let current = current(data)?.unwrap_or(0);
    remove_own(data, |number| number > current)
}

/// Removes what DuckDB has left in its folder, and nothing that it does not name so.
fn sweep_spill(spill: &Path) -> Result<(), PublishError> {
    if !spill.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let mut is_empty = true;
    for entry in fs::read_dir(spill).map_err(at(spill))? {
        let entry = entry.map_err(at(spill))?;
        let is_ours = entry.file_name().to_string_lossy().starts_with(SPILL_PREFIX);
        match is_ours {
            true => remove_file(&entry.path())?,
            false => is_empty = false,
        }
    }
    match is_empty {
        // A folder with such a name is somebody's.
        true => match fs::remove_dir(spill) {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(at(spill)(error)),
            _ => Ok(()),
        },
        false => Ok(()),
    }
}

/// Removes the snapshots before the last one. Engines that still use one keep its bytes until
/// their last query ends.
pub(super) fn remove_old(data: &DataDir, number: u64) -> Result<(), PublishError> {
    remove_own(data, |old| old + SNAPSHOTS_KEPT <= number)
}
