//! One publication at a time into a data directory.

use std::fs;

use super::error::PublishError;
use super::publish::{self, Published};
use crate::data_dir::DataDir;
use crate::folder_lock::{FolderLock, LockFault};
use crate::limits::SNAPSHOT_BLOCK_CELLS;

/// Held while one publication runs; the system frees it when the process ends.
#[derive(Debug)]
pub struct PublicationLock {
    data: DataDir,
    _lock: FolderLock,
}

impl PublicationLock {
    /// Takes it, and makes the folder of the snapshots where there is none.
    ///
    /// # Errors
    /// [`PublishError::Locked`] where another process publishes, and what the system says.
    pub fn take(data: &DataDir) -> Result<Self, PublishError> {
        let folder = data.rank_folder();
        fs::create_dir_all(&folder)
            .map_err(|source| PublishError::Io { path: folder.clone(), source })?;
        match FolderLock::take(&folder) {
            Ok(lock) => Ok(Self { data: data.clone(), _lock: lock }),
            Err(LockFault::Held(holder)) => Err(PublishError::Locked { folder, holder }),
            Err(LockFault::Io(path, source)) => Err(PublishError::Io { path, source }),
        }
    }

    /// The same as [`crate::publish`], with the lock that is held already.
    ///
    /// # Errors
    /// Why nothing was published.
    pub fn publish(&self) -> Result<Published, PublishError> {
        publish::publish_held(&self.data, SNAPSHOT_BLOCK_CELLS)
    }
}
