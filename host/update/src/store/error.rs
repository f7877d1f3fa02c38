//! What can go wrong with the databases.

use std::io;
use std::path::{Path, PathBuf};

use domain::JstDate;
use pricestore::generation::GenerationError;
use pricestore::listed::ListedError;
use pricestore::{LockHolder, PublishError, holder_text};

use crate::row::IssueCode;

/// Why rows were not stored or not published. What was published before stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another job works in the same data directory.
    #[error(
        "another update of {} is running ({}); wait for it to end", folder.display(),
        holder_text(holder.as_ref())
    )]
    Locked {
        /// The data directory.
        folder: PathBuf,
        /// Who, where that can be read.
        holder: Option<LockHolder>,
    },
    /// Another process publishes into the data directory, and does not come to its end.
    #[error(
        "after {seconds} s another publication into {} is still running ({}), so nothing was published; \
         wait for it to end, then run the update again", folder.display(), holder_text(holder.as_ref())
    )]
    Waited {
        /// The folder of the snapshots.
        folder: PathBuf,
        /// Who, where that can be read.
        holder: Option<LockHolder>,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The data directory is a copy of another server's.
    #[error(transparent)]
    Replica(#[from] pricestore::IsReplica),
    /// The caller asked to stop.
    #[error("stopped before the end; the files published before are unchanged")]
    Cancelled,
    /// More rows than one transaction takes.
    #[error("{asked} rows at once are too many; at most {max} can be stored together")]
    TooManyRows {
        /// Rows that were given.
        asked: usize,
        /// Rows that one transaction takes.
        max: usize,
    },
    /// A row cannot be stored.
    #[error("the row of {code} on {date} cannot be stored: {what}")]
    Row {
        /// The row's issue.
        code: IssueCode,
        /// The row's trading date (JST).
        date: JstDate,
        /// What is wrong with it.
        what: String,
    },
    /// A database holds something that no job has written.
    #[error("{} cannot be used: {what}", path.display())]
    Unusable {
        /// The database's file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// There is nothing to publish.
    #[error("no daily prices are stored for {}; fetch them with `kumiki data update`", .0.display())]
    Empty(PathBuf),
    /// What is stored was not published, so it cannot be split.
    #[error("{} does not hold the stored rows; publish them, then split", .0.display())]
    NotPublished(PathBuf),
    /// More issues than usual are no longer in the combined database.
    #[error(
        "{gone} of {of} files in {} belong to issues that the combined database no longer has. Check the \
         combined database; if the loss is right, allow it with --remove-issues", folder.display()
    )]
    ManyRemovals {
        /// The folder of the per-issue databases.
        folder: PathBuf,
        /// Files that would be removed.
        gone: usize,
        /// Files that jobs have written.
        of: usize,
    },
    /// Files lie where the job writes, which it did not write and which hold more than it has.
    #[error(
        "{} file(s) in {} were not written by this job and hold rows that the combined database does not have: \
         {}; the job left them unchanged. Move them away, or load their rows first",
        count, folder.display(), codes
    )]
    Foreign {
        /// The folder of the per-issue databases.
        folder: PathBuf,
        /// How many.
        count: usize,
        /// The first of their codes.
        codes: String,
    },
    /// A combined database lies where the job publishes its own, and has more than that.
    #[error(
        "{} was not written by this job and holds rows that the job does not have; the job left it unchanged \
         and published nothing. Move it away. To go on with its prices instead, remove the folder `work` \
         beside `jp`", .0.display()
    )]
    ForeignCombined(PathBuf),
    /// A database of listed issues lies where the job writes its own, and has more than that.
    #[error(
        "{} was not written by this job and holds lists that the job does not have; the job left it unchanged \
         and published no names and markets. Move it away", .0.display()
    )]
    ForeignLists(PathBuf),
    /// The lists of issues could not be read or written.
    #[error("cannot {doing} the lists of issues")]
    Listed {
        /// What was being done.
        doing: &'static str,
        /// What is wrong.
        source: ListedError,
    },
    /// A file could not be read, written or renamed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// DuckDB refused something.
    #[error("the database engine failed to {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What DuckDB says.
        source: duckdb::Error,
    },
    /// The ranking's snapshot could not be published; the combined database was.
    #[error("the combined database was published, but not the ranking's snapshot of it")]
    Snapshot(#[from] PublishError),
    /// What is published cannot be changed.
    #[error("nothing was published")]
    Publication(#[source] PublishError),
    /// All files were published; what ties them was not.
    #[error("all files were published, but not the generation that names them")]
    Generation(#[from] GenerationError),
}

impl StoreError {
    /// Files of others with these codes.
    pub(super) fn foreign(folder: &Path, codes: &[&str]) -> Self {
        /// Codes that the text names.
        const NAMED_MAX: usize = 5;
        let mut named = codes.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        if codes.len() > NAMED_MAX {
            named.push_str(", ...");
        }
        Self::Foreign { folder: folder.to_owned(), count: codes.len(), codes: named }
    }

    /// A failure of DuckDB.
    pub(super) fn database(doing: &'static str) -> impl FnOnce(duckdb::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    /// A failure of the file system.
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.into(), source }
    }
}
