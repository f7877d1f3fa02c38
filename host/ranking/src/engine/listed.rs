//! The file with the lists of issues, read when it is new.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pricestore::DataDir;
use pricestore::listed::read_file;

use crate::file_stamp::FileStamp;
use crate::listed::ListedInfo;
use crate::text::redacted;

/// What was read last.
#[derive(Debug, Default)]
struct LastRead {
    /// Which file, if there was one; not known before anybody has looked.
    file: Option<Option<FileStamp>>,
    info: Arc<ListedInfo>,
}

/// The lists that the update job has published.
#[derive(Debug)]
pub(super) struct ListedFile {
    path: PathBuf,
    last: RwLock<LastRead>,
}

impl ListedFile {
    pub(super) fn new(data: &DataDir) -> Self {
        Self { path: data.listed_info(), last: RwLock::default() }
    }

    /// What is known of the issues.
    pub(super) fn info(&self) -> Arc<ListedInfo> {
        let is_read = self.last.read().unwrap_or_else(PoisonError::into_inner).file.is_some();
        if !is_read {
            self.renew();
        }
        Arc::clone(&self.last.read().unwrap_or_else(PoisonError::into_inner).info)
    }

    /// Reads the file where it is another one than before. One that cannot be read is told once, and what
    /// was known stays.
    pub(super) fn renew(&self) {
        // One that is not there, or cannot be looked at, is none.
        let found = FileStamp::at(&self.path).ok();
        if self.last.read().unwrap_or_else(PoisonError::into_inner).file.as_ref() == Some(&found) {
            return;
        }
        // Read before others have to wait.
        let read = read_file(&self.path).map(|history| {
            history.map(|history| Arc::new(ListedInfo::new(&history))).unwrap_or_default()
        });
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        last.file = Some(found);
        match read {
            Ok(info) => last.info = info,
            Err(error) => {
                let cause = redacted(&error.to_string());
                tracing::error!(cause, "the database of listed issues cannot be used");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pricestore::listed::{IssueField, IssueInfo, ListedHistory, write_file};

    use super::*;
    use crate::ListedField;

    #[test]
    fn another_file_is_read_and_a_damaged_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        fs::create_dir_all(data.jp_folder()).unwrap();
        let path = data.listed_info();
        let put = |name: &str| {
            let date = "2025-01-06".parse().unwrap();
            let info = IssueInfo::default().with(IssueField::Name, name);
            let mut history = ListedHistory::default();
            history.insert(date, [(Box::from("1301"), info)].into()).unwrap();
            let aside = path.with_extension("new");
            write_file(&aside, &history).unwrap();
            fs::rename(aside, &path).unwrap();
        };
        let listed = ListedFile::new(&data);
        let name = || {
            let date = "2025-01-07".parse().unwrap();
            listed.info().text("1301", date, ListedField::Name).map(str::to_owned)
        };
        assert_eq!(name(), None);
        put("one");
        assert_eq!(name(), None, "nobody has looked again");
        listed.renew();
        assert_eq!(name().as_deref(), Some("one"));
        let before = listed.info();
        listed.renew();
        assert!(Arc::ptr_eq(&before, &listed.info()), "the same file is not read again");
        fs::write(&path, "damaged").unwrap();
        listed.renew();
        assert_eq!(name().as_deref(), Some("one"));
        put("two");
        listed.renew();
        assert_eq!(name().as_deref(), Some("two"));
        fs::remove_file(&path).unwrap();
        listed.renew();
        assert_eq!(name(), None);
    }
}
