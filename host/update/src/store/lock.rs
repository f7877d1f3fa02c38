//! One job at a time in a data directory, and one publication of a snapshot.

use std::ops::ControlFlow;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use pricestore::{FolderLock, LockFault, PublicationLock, PublishError, holder_text};

use super::error::StoreError;
use super::limits::{PUBLICATION_WAIT_S, PUBLICATION_WAIT_STEP_MS};
use super::paths::StorePaths;
use super::publish::{STEPS, WAITING};
use crate::price_store::StoreProgress;

/// Takes the lock of a data directory, whose work folder must be there. It is held by the one job of the
/// directory.
pub(super) fn take_job(paths: &StorePaths) -> Result<FolderLock, StoreError> {
    FolderLock::take(&paths.work_folder()).map_err(|fault| match fault {
        LockFault::Held(holder) => {
            StoreError::Locked { folder: paths.data().path().to_owned(), holder }
        }
        LockFault::Io(path, source) => StoreError::Io { doing: "lock", path, source },
    })
}

/// Waits until nobody else publishes into the data directory, as `kumiki rank publish` does.
pub(super) fn wait_for_publication(
    paths: &StorePaths,
    progress: &mut StoreProgress<'_>,
) -> Result<PublicationLock, StoreError> {
    wait(paths, Duration::from_secs(PUBLICATION_WAIT_S), progress)
}

fn wait(
    paths: &StorePaths,
    patience: Duration,
    progress: &mut StoreProgress<'_>,
) -> Result<PublicationLock, StoreError> {
    let (waited, mut is_told) = (Stopwatch::start(), false);
    loop {
        let holder = match PublicationLock::take(paths.data()) {
            Ok(lock) => return Ok(lock),
            Err(PublishError::Locked { holder, .. }) => holder,
            Err(error) => return Err(StoreError::Publication(error)),
        };
        let elapsed = waited.elapsed();
        if elapsed >= patience {
            let folder = paths.data().rank_folder();
            return Err(StoreError::Waited { folder, holder, seconds: elapsed.as_secs() });
        }
        if !std::mem::replace(&mut is_told, true) {
            let holder = holder_text(holder.as_ref());
            tracing::warn!("another publication is running ({holder}); waiting for it to end");
        }
        if progress(1, STEPS, WAITING) == ControlFlow::Break(()) {
            return Err(StoreError::Cancelled);
        }
        sleep(Duration::from_millis(PUBLICATION_WAIT_STEP_MS).min(patience));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pricestore::DataDir;

    use super::*;

    #[test]
    fn a_second_job_is_told_who_holds_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let paths = StorePaths::new(&DataDir::new(folder.path()));
        fs::create_dir(paths.work_folder()).unwrap();
        let first = take_job(&paths).unwrap();
        let text = take_job(&paths).unwrap_err().to_string();
        let process = std::process::id();
        assert!(text.contains(&format!("is running (process {process} since 2")), "{text}");
        assert!(text.ends_with("JST); wait for it to end"), "{text}");
        fs::write(paths.work_folder().join("HOLDER"), "x").unwrap();
        let text = take_job(&paths).unwrap_err().to_string();
        assert!(text.contains("(its process is unknown)"), "{text}");
        drop(first);
        take_job(&paths).unwrap();
    }

    #[test]
    fn a_publication_that_does_not_end_is_waited_for_so_long_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let paths = StorePaths::new(&DataDir::new(folder.path()));
        let other = PublicationLock::take(paths.data()).unwrap();
        let mut told = 0;
        let patience = Duration::from_millis(PUBLICATION_WAIT_STEP_MS);
        let mut watch = |_, _, what: &'static str| {
            told += u32::from(what == WAITING);
            ControlFlow::Continue(())
        };
        let text = wait(&paths, patience, &mut watch).unwrap_err().to_string();
        let process = std::process::id();
        assert!(text.contains(&format!("is still running (process {process} since 2")), "{text}");
        assert!(text.ends_with("wait for it to end, then run the update again"), "{text}");
        assert!(told > 0);
        // The user's wish to end comes before.
        let stopped = wait(&paths, patience, &mut |_, _, _| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(StoreError::Cancelled)));
        drop(other);
        wait(&paths, patience, &mut |_, _, _| ControlFlow::Break(())).unwrap();
    }
}
