//! What a publication can fail with.

use std::io;
use std::path::PathBuf;

use crate::folder_lock::{LockHolder, holder_text};

/// Why nothing was published. The current snapshot stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no combined database.
    #[error("{} is missing; load daily prices with `kumiki data update`, or make some with `kumiki data sample \
        --daily`", .0.display())]
    NoSource(PathBuf),
    /// The combined database holds something that cannot be ranked.
    #[error("the combined database cannot be published: {0}")]
    Source(String),
    /// Another process publishes into the same directory.
    #[error(
        "another publication into {} is running ({}); wait until it ends", folder.display(),
        holder_text(holder.as_ref())
    )]
    Locked {
        /// The folder of the snapshots.
        folder: PathBuf,
        /// Who, where that can be read.
        holder: Option<LockHolder>,
    },
    /// A file could not be written or read.
    #[error("cannot publish to {}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// DuckDB refused something.
    #[error("the database engine failed while publishing")]
    Database(#[from] duckdb::Error),
}
