//! Where the files are (specification 3, "Data layout").

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::limits::{CURRENT_BYTES_MAX, SNAPSHOT_NUMBER_MAX};
use crate::text::excerpt;

/// The data directory is a copy of another server's, which only the replica that keeps it writes to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{} is a copy that `kumiki rank serve --follow` keeps; change the data of the server that it \
     follows, or choose another folder", .0.display()
)]
pub struct IsReplica(PathBuf);

/// What to do about a file CURRENT that cannot be used.
const CURRENT_REMEDY: &str = "remove it and run `kumiki rank publish`, which makes a new snapshot";

/// The number of the snapshot whose file has this name.
fn snapshot_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("rank-")?.strip_suffix(".grid")?;
    let number = digits.parse::<u64>().ok().filter(|number| *number <= SNAPSHOT_NUMBER_MAX)?;
    (number.to_string() == digits).then_some(number)
}

/// The data directory (`DATA_DIR` of the specification).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// A data directory; nothing needs to be in it yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of the files that are handed out (specification 3, "Data layout").
    #[must_use]
    pub fn jp_folder(&self) -> PathBuf {
        self.0.join("jp")
    }

    /// The combined database of all issues, the source of truth.
    #[must_use]
    pub fn mother(&self) -> PathBuf {
        self.0.join("jp").join("stocks_daily").join("mother.db")
    }

    /// The issues that were listed, by date (specification 3, "Data layout").
    #[must_use]
    pub fn listed_info(&self) -> PathBuf {
        self.0.join("jp").join("listed_info.db")
    }

    /// The file that ties what is published together; see [`crate::generation`].
    #[must_use]
    pub fn generation_file(&self) -> PathBuf {
        self.jp_folder().join("generation.json")
    }

    /// The folder of the update job; who finds it knows that the directory is a job's.
    #[must_use]
    pub fn work_folder(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The folder of a copy of another server's data; who finds it knows that the directory is one.
    #[must_use]
    pub fn replica_folder(&self) -> PathBuf {
        self.0.join("replica")
    }

    /// Refuses a copy of another server's data: what makes or publishes prices begins with this.
    ///
    /// # Errors
    /// When it is one.
    pub fn refuse_replica(&self) -> Result<(), IsReplica> {
        match self.replica_folder().exists() {
            true => Err(IsReplica(self.0.clone())),
            false => Ok(()),
        }
    }

    /// The folder of the update job's reports; nothing in it is ever served as it is.
    #[must_use]
    pub fn update_folder(&self) -> PathBuf {
        self.0.join("update")
    }

    /// The private folder of the ranking; only a snapshot of the published generation is handed out.
    #[must_use]
    pub fn rank_folder(&self) -> PathBuf {
        self.0.join("rank")
    }

    /// The file of a snapshot.
    #[must_use]
    pub fn rank_grid(&self, number: u64) -> PathBuf {
        self.rank_folder().join(format!("rank-{number}.grid"))
    }

    /// The file that names the current snapshot.
    #[must_use]
    pub fn current_file(&self) -> PathBuf {
        self.rank_folder().join("CURRENT")
    }

    /// The number of the current snapshot; `None` where nothing was published yet.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or one that says that the file holds something else.
    pub fn current(&self) -> io::Result<Option<u64>> {
        let unreadable = |error: io::Error| {
            let text = format!("rank/CURRENT cannot be read ({error}); {CURRENT_REMEDY}");
            io::Error::new(error.kind(), text)
        };
        let file = match atomic_file::open_to_read(&self.current_file()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let mut bytes = Vec::new();
        file.take(CURRENT_BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let number = text.trim_end().parse::<u64>().ok();
        let number = number.filter(|number| *number <= SNAPSHOT_NUMBER_MAX).ok_or_else(|| {
            let found = excerpt(text.trim_end());
            let text = format!(
                "rank/CURRENT holds `{found}` instead of the number of a snapshot; {CURRENT_REMEDY}"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        Ok(Some(number))
    }

    /// The numbers of all snapshots that have a file here, ascending; also those that a folder has in its
    /// name, because no file can have that name then. What has another name than a snapshot's file is
    /// not this program's.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn snapshots(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.rank_folder())? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(snapshot_of));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_snapshots_have_their_numbers() {
        for (name, number) in [
            ("rank-1.db", None),
            ("rank-12.grid", Some(12)),
            ("rank-1000000000000000.grid", Some(SNAPSHOT_NUMBER_MAX)),
            ("rank-1000000000000001.grid", None),
            ("rank-18446744073709551615.grid", None),
            ("rank-18446744073709551615.bak", None),
            ("rank-1.grid.new", None),
            ("rank-1.bak", None),
            ("rank-01.grid", None),
            ("rank-+1.grid", None),
            ("rank-.grid", None),
            ("1.grid", None),
        ] {
            assert_eq!(snapshot_of(name), number, "{name}");
        }
    }

    #[test]
    fn what_current_holds_is_named_where_it_is_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        fs::create_dir(data.rank_folder()).unwrap();
        assert_eq!(data.current().unwrap(), None);
        for (content, words) in [
            (&b""[..], "rank/CURRENT holds `` instead of the number"),
            (b"x\n", "holds `x` instead"),
            (b"\xff", "instead of the number"),
            (b"18446744073709551615", "holds `18446744073709551615` instead"),
        ] {
            fs::write(data.current_file(), content).unwrap();
            let error = data.current().unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("remove it and run"), "{error}");
        }
        fs::remove_file(data.current_file()).unwrap();
        fs::create_dir(data.current_file()).unwrap();
        let error = data.current().unwrap_err().to_string();
        assert!(error.contains("rank/CURRENT cannot be read ("), "{error}");
    }
}
