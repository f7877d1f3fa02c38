//! The file with the lists of issues, read when it is new.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pricestore::DataDir;
use pricestore::generation::{Generation, GenerationFileName, digest_of};
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
            self.renew(None);
        }
        Arc::clone(&self.last.read().unwrap_or_else(PoisonError::into_inner).info)
    }

    /// Reads the file where it is another one than before. Lists are published before the prices that
    /// they go with, so one that the present generation does not name waits for the next. One that cannot
    /// be read is told once, and what was known stays.
    pub(super) fn renew(&self, generation: Option<&Generation>) {
        // One that is not there, or cannot be looked at, is none.
        let found = FileStamp::at(&self.path).ok();
        let known = self.last.read().unwrap_or_else(PoisonError::into_inner).file;
        if known == Some(found) || (known.is_some() && !self.belongs_to(generation)) {
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

    /// Whether a generation has the file; without one, and without a file, there is nothing to wait for.
    fn belongs_to(&self, generation: Option<&Generation>) -> bool {
        let (Some(generation), Ok(found)) = (generation, fs::metadata(&self.path)) else {
            return true;
        };
        let named = generation.file(&GenerationFileName::Listed.path());
        // A copy of the folder has other times.
        named.is_some_and(|named| {
            named.is_file(&found)
                || digest_of(&self.path).is_ok_and(|(_, digest)| digest == named.xxh128)
        })
    }
}

#[cfg(test)]
mod tests {
    use pricestore::generation::{IssueFiles, PublishedFile, modified_us};
    use pricestore::listed::{IssueField, IssueInfo, ListedHistory, write_file};

    use super::*;
    use crate::ListedField;

    /// Puts lists in place that give an issue this name.
    fn put(data: &DataDir, name: &str) {
        let date = "2025-01-06".parse().unwrap();
        let info = IssueInfo::default().with(IssueField::Name, name);
        let mut history = ListedHistory::default();
        history.insert(date, [(Box::from("1301"), info)].into()).unwrap();
        let aside = data.listed_info().with_extension("new");
        write_file(&aside, &history).unwrap();
        fs::rename(aside, data.listed_info()).unwrap();
    }

    fn name(listed: &ListedFile) -> Option<String> {
        let date = "2025-01-07".parse().unwrap();
        listed.info().text("1301", date, ListedField::Name).map(str::to_owned)
    }

    /// A generation with the lists as they are now.
    fn generation(data: &DataDir) -> Generation {
        let (bytes, xxh128) = digest_of(&data.listed_info()).unwrap();
        let modified_us = modified_us(&fs::metadata(data.listed_info()).unwrap());
        let path = GenerationFileName::Listed.path();
        Generation {
            version: 1,
            generation: "0".repeat(32),
            snapshot: 1,
            snapshot_content: "0".repeat(16),
            first_date: "2025-01-06".to_owned(),
            last_date: "2025-01-07".to_owned(),
            files: vec![PublishedFile { path, bytes, xxh128, modified_us }],
            issues: IssueFiles::default(),
            dataset: None,
        }
    }

    #[test]
    fn lists_that_no_generation_has_yet_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        fs::create_dir_all(data.jp_folder()).unwrap();
        put(&data, "one");
        let before = generation(&data);
        let listed = ListedFile::new(&data);
        listed.renew(Some(&before));
        put(&data, "two");
        listed.renew(Some(&before));
        assert_eq!(name(&listed).as_deref(), Some("one"), "it is of no generation yet");
        let after = generation(&data);
        listed.renew(Some(&after));
        assert_eq!(name(&listed).as_deref(), Some("two"));
        // A copy of the folder has the same bytes, and a generation without lists has none.
        put(&data, "three");
        let mut copied = generation(&data);
        copied.files[0].modified_us -= 1;
        listed.renew(Some(&Generation { files: Vec::new(), ..copied.clone() }));
        assert_eq!(name(&listed).as_deref(), Some("two"));
        listed.renew(Some(&copied));
        assert_eq!(name(&listed).as_deref(), Some("three"));
        // Who has just begun takes what is there.
        put(&data, "four");
        let begun = ListedFile::new(&data);
        begun.renew(Some(&copied));
        assert_eq!(name(&begun).as_deref(), Some("four"));
        fs::remove_file(data.listed_info()).unwrap();
        listed.renew(Some(&copied));
        assert_eq!(name(&listed), None);
    }

    #[test]
    fn another_file_is_read_and_a_damaged_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        fs::create_dir_all(data.jp_folder()).unwrap();
        let listed = ListedFile::new(&data);
        let (put, name) = (|text: &str| put(&data, text), || name(&listed));
        assert_eq!(name(), None);
        put("one");
        assert_eq!(name(), None, "nobody has looked again");
        listed.renew(None);
        assert_eq!(name().as_deref(), Some("one"));
        let before = listed.info();
        listed.renew(None);
        assert!(Arc::ptr_eq(&before, &listed.info()), "the same file is not read again");
        fs::write(data.listed_info(), "damaged").unwrap();
        listed.renew(None);
        assert_eq!(name().as_deref(), Some("one"));
        put("two");
        listed.renew(None);
        assert_eq!(name().as_deref(), Some("two"));
        fs::remove_file(data.listed_info()).unwrap();
        listed.renew(None);
        assert_eq!(name(), None);
    }
}
