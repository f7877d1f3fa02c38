//! The files that a generation may have. No text of a generation is ever part of a path, other than
//! the digits and letters of an issue code and the number of a snapshot.

use std::path::PathBuf;

use crate::data_dir::DataDir;

/// Places of an issue code.
const CODE_PLACES: [usize; 2] = [4, 5];

/// A file of a generation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GenerationFileName {
    /// `jp/stocks_daily/mother.db`, the combined database.
    Combined,
    /// `jp/listed_info.db`, the listed issues.
    Listed,
    /// `rank/rank-<n>.grid`, a snapshot.
    Grid(u64),
    /// `jp/stocks_daily/<code>.db`, the database of an issue.
    Issue(String),
}

impl GenerationFileName {
    /// The file of a path below the data directory, as [`Self::path`] gives it and in no other way.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let name = match path {
            "jp/stocks_daily/mother.db" => Self::Combined,
            "jp/listed_info.db" => Self::Listed,
            _ => match path.strip_prefix("rank/rank-") {
                Some(snapshot) => Self::Grid(snapshot.strip_suffix(".grid")?.parse().ok()?),
                None => {
                    let code = path.strip_prefix("jp/stocks_daily/")?.strip_suffix(".db")?;
                    Self::issue(code)?
                }
            },
        };
        // A number has one spelling only.
        (name.path() == path).then_some(name)
    }

    /// The database of an issue; none where that is no code.
    #[must_use]
    pub fn issue(code: &str) -> Option<Self> {
        let is_code = CODE_PLACES.contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        // What one system takes for a device: COM1 to COM9, LPT1 to LPT9.
        let is_device = code.len() == 4 && (code.starts_with("COM") || code.starts_with("LPT"));
        (is_code && !is_device).then(|| Self::Issue(code.to_owned()))
    }

    /// Its path below the data directory, with `/`.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::Combined => "jp/stocks_daily/mother.db".to_owned(),
            Self::Listed => "jp/listed_info.db".to_owned(),
            Self::Grid(number) => format!("rank/rank-{number}.grid"),
            Self::Issue(code) => format!("jp/stocks_daily/{code}.db"),
        }
    }

    /// Where it is on disk.
    #[must_use]
    pub fn on_disk(&self, data: &DataDir) -> PathBuf {
        match self {
            Self::Combined => data.mother(),
            Self::Listed => data.jp_folder().join("listed_info.db"),
            Self::Grid(number) => data.rank_grid(*number),
            Self::Issue(code) => data.jp_folder().join("stocks_daily").join(format!("{code}.db")),
        }
    }

    /// The number of the snapshot that it is a file of.
    #[must_use]
    pub fn snapshot(&self) -> Option<u64> {
        match self {
            Self::Grid(number) => Some(*number),
            Self::Combined | Self::Listed | Self::Issue(_) => None,
        }
    }
}
