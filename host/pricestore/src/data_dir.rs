//! Where the files are (specification 3, "Data layout").

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::limits::CURRENT_BYTES_MAX;

/// The data directory is a copy of another server's, which only the replica that keeps it writes to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{} is a copy that `kumiki rank serve --follow` keeps; change the data of the server that it \
     follows, or choose another folder", .0.display()
)]
pub struct IsReplica(PathBuf);

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

    /// A snapshot for SQL.
    #[must_use]
    pub fn rank_db(&self, number: u64) -> PathBuf {
        self.rank_folder().join(format!("rank-{number}.db"))
    }

    /// A snapshot for the kernel.
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
        let file = match fs::File::open(self.current_file()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(CURRENT_BYTES_MAX).read_to_string(&mut text)?;
        let number = text.trim_end().parse::<u64>().map_err(|_| {
            let message = "the file CURRENT does not hold the number of a snapshot";
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        Ok(Some(number))
    }

    /// The numbers of all snapshots that have a file here, ascending.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn snapshots(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.rank_folder())? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("rank-"));
            let number = number.and_then(|name| name.split('.').next());
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }
}
