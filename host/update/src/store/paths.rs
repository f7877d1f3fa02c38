//! Where the store's files are.

use std::path::{Path, PathBuf};

use pricestore::DataDir;

/// Ending of a file that is being written; one that a killed job left is removed at the next start. No
/// other program gives its files such names.
pub(super) const UNFINISHED: &str = "kumiki-new";
/// Ending of the per-issue databases.
const DATABASE: &str = "db";

/// The files of one data directory.
#[derive(Debug, Clone)]
pub(super) struct StorePaths {
    data: DataDir,
}

impl StorePaths {
    pub(super) fn new(data: &DataDir) -> Self {
        Self { data: data.clone() }
    }

    pub(super) fn data(&self) -> &DataDir {
        &self.data
    }

    /// The job's own folder; nothing in it is ever served.
    pub(super) fn work_folder(&self) -> PathBuf {
        self.data.work_folder()
    }

    /// The job's own combined database.
    pub(super) fn work_database(&self) -> PathBuf {
        self.work_folder().join("mother.db")
    }

    /// Where DuckDB puts what does not fit into memory.
    pub(super) fn spill_folder(&self) -> PathBuf {
        self.work_folder().join("spill")
    }

    /// The folder of the published databases.
    pub(super) fn daily_folder(&self) -> PathBuf {
        self.data.path().join("jp").join("stocks_daily")
    }

    /// The folder of the published boards.
    pub(super) fn board_folder(&self) -> PathBuf {
        self.data.jp_folder().join("stocks_board")
    }

    /// The published board of one issue.
    pub(super) fn board(&self, code: &str) -> PathBuf {
        self.board_folder().join(format!("{code}.{DATABASE}"))
    }

    /// The published database of one issue.
    pub(super) fn issue(&self, code: &str) -> PathBuf {
        self.daily_folder().join(format!("{code}.{DATABASE}"))
    }
}

/// The name under which a file is written before it is renamed.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pricestore::sql::log_of;

    #[test]
    fn files_have_their_names() {
        let paths = StorePaths::new(&DataDir::new("data"));
        assert_eq!(paths.issue("130A"), Path::new("data/jp/stocks_daily/130A.db"));
        assert_eq!(unfinished(Path::new("a/7203.db")), Path::new("a/7203.db.kumiki-new"));
        assert_eq!(
            log_of(Path::new("a/mother.db.kumiki-new")),
            Path::new("a/mother.db.kumiki-new.wal")
        );
    }
}
