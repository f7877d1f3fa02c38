//! One job at a time in a data directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::{JobHolder, StoreError};
use super::limits::HOLDER_BYTES_MAX;
use super::paths::StorePaths;

/// Held by the one job of a data directory; the system frees it when the process ends, however it
/// ends. Who holds it stands in a file of its own, because some systems let nobody else read a
/// locked file.
#[derive(Debug)]
pub(super) struct JobLock {
    _file: File,
    holder: PathBuf,
}

impl JobLock {
    /// Takes the lock of a data directory, whose work folder must be there.
    pub(super) fn take(paths: &StorePaths) -> Result<Self, StoreError> {
        let path = paths.work_folder().join("LOCK");
        let holder = paths.work_folder().join("HOLDER");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(StoreError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let folder = paths.data().path().to_owned();
                return Err(StoreError::Locked { folder, holder: read(&holder) });
            }
            Err(TryLockError::Error(source)) => return Err(StoreError::io("lock", path)(source)),
        }
        let text = format!("{}\n{}\n", std::process::id(), domain::clock::wall_now());
        fs::write(&holder, text).map_err(StoreError::io("write", &holder))?;
        Ok(Self { _file: file, holder })
    }
}

impl Drop for JobLock {
    fn drop(&mut self) {
        // The lock is what counts; a name that stays behind is replaced by the next holder.
        let _ = fs::remove_file(&self.holder);
    }
}

fn read(path: &Path) -> Option<JobHolder> {
    let mut text = String::new();
    File::open(path).ok()?.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (process, since) = text.split_once('\n')?;
    let since = since.strip_suffix('\n')?.to_owned();
    Some(JobHolder { process: process.parse().ok()?, since })
}

#[cfg(test)]
mod tests {
    use pricestore::DataDir;

    use super::*;

    #[test]
    fn a_second_job_is_told_who_holds_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let paths = StorePaths::new(&DataDir::new(folder.path()));
        fs::create_dir(paths.work_folder()).unwrap();
        let first = JobLock::take(&paths).unwrap();
        let text = JobLock::take(&paths).unwrap_err().to_string();
        let process = std::process::id();
        assert!(text.contains(&format!("is running (process {process} since 2")), "{text}");
        assert!(text.ends_with("JST); wait for it to end"), "{text}");
        fs::write(&first.holder, "x").unwrap();
        let text = JobLock::take(&paths).unwrap_err().to_string();
        assert!(text.contains("(it does not say which process)"), "{text}");
        drop(first);
        JobLock::take(&paths).unwrap();
    }

    #[test]
    fn a_long_name_of_a_holder_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("HOLDER");
        fs::write(&path, "7\n2026-01-05 10:00:00.000000 JST\n").unwrap();
        assert_eq!(read(&path).unwrap().process, 7);
        let long = format!("7\n{}\n", "x".repeat(usize::try_from(HOLDER_BYTES_MAX).unwrap()));
        fs::write(&path, long).unwrap();
        assert_eq!(read(&path), None);
    }
}
