//! What may be asked for: the files of the data layout, nothing else (specification 3, "Data
//! layout"). A request names one of them or it names nothing; no text of a client is ever part of a
//! path on disk, other than the digits and letters of an issue code.

use percent_encoding::percent_decode_str;
use pricestore::generation::GenerationFileName;

/// Longest path after `/jp/`. The longest good one has 21 bytes, 63 when each is encoded.
const PATH_BYTES_MAX: usize = 96;
/// Places of an issue code.
const CODE_PLACES: [usize; 2] = [4, 5];
/// How Windows names devices, followed by a digit; it takes `COM1.db` for one of them.
const DEVICES: [&str; 2] = ["COM", "LPT"];

/// A file of the data layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredFile {
    /// `stocks_daily/mother.db`, the combined database.
    Combined,
    /// `stocks_daily/<code>.db`, the daily prices of an issue.
    Daily(String),
    /// `stocks_board/<code>.db`, the board data of an issue.
    Board(String),
    /// `listed_info.db`, the listed issues.
    Listed,
    /// `generation.json`, which ties the others.
    Generation,
    /// `rank-<n>.grid` of the ranking's own folder.
    Snapshot(GenerationFileName),
}

impl StoredFile {
    /// The file that a request names, by its path after `/jp/` as it was sent. Codes may be sent in
    /// either case and are kept in capital letters.
    pub(super) fn named(path: &str) -> Option<Self> {
        if path.len() > PATH_BYTES_MAX {
            return None;
        }
        let parts = path.split('/').map(decoded).collect::<Option<Vec<String>>>()?;
        match parts.iter().map(String::as_str).collect::<Vec<&str>>()[..] {
            ["listed_info.db"] => Some(Self::Listed),
            ["generation.json"] => Some(Self::Generation),
            ["stocks_daily", "mother.db"] => Some(Self::Combined),
            ["stocks_daily", name] => code(name).map(Self::Daily),
            ["stocks_board", name] => code(name).map(Self::Board),
            _ => None,
        }
    }

    /// A file of a snapshot by its name in the ranking's folder, which has one spelling.
    pub(super) fn of_snapshot(name: &str) -> Option<Self> {
        if name.len() > PATH_BYTES_MAX {
            return None;
        }
        let name = GenerationFileName::parse(&format!("rank/{name}"))?;
        name.snapshot().map(|_| Self::Snapshot(name))
    }

    /// Its path in a generation; none for what a generation does not have.
    pub(super) fn published_path(&self) -> Option<String> {
        let name = match self {
            Self::Combined => GenerationFileName::Combined,
            Self::Listed => GenerationFileName::Listed,
            Self::Daily(code) => GenerationFileName::issue(code)?,
            Self::Snapshot(name) => name.clone(),
            Self::Board(_) | Self::Generation => return None,
        };
        Some(name.path())
    }

    /// Its folder below `jp/`; none for a file that stands there itself.
    pub(super) const fn folder(&self) -> Option<&'static str> {
        match self {
            Self::Combined | Self::Daily(_) => Some("stocks_daily"),
            Self::Board(_) => Some("stocks_board"),
            Self::Listed | Self::Generation | Self::Snapshot(_) => None,
        }
    }

    /// Its names in that folder, in the order in which they are tried. The update job writes codes
    /// in capital letters; others may not.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Combined => vec!["mother.db".to_owned()],
            Self::Listed => vec!["listed_info.db".to_owned()],
            Self::Generation => vec!["generation.json".to_owned()],
            Self::Snapshot(name) => {
                let path = name.path();
                vec![path.rsplit('/').next().unwrap_or_default().to_owned()]
            }
            Self::Daily(code) | Self::Board(code) => {
                let mut names = vec![format!("{code}.db"), format!("{}.db", code.to_lowercase())];
                names.dedup();
                names
            }
        }
    }
}

/// A part of a path, percent-decoded once. None where it holds what no name of the layout holds: so
/// separators, drives, streams and spaces are out, encoded or not.
fn decoded(part: &str) -> Option<String> {
    let text = percent_decode_str(part).decode_utf8().ok()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
    text.bytes().all(fits).then(|| text.into_owned())
}

fn code(name: &str) -> Option<String> {
    let code = name.strip_suffix(".db")?.to_ascii_uppercase();
    let fits = CODE_PLACES.contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric());
    (fits && !is_device(&code)).then_some(code)
}

fn is_device(code: &str) -> bool {
    DEVICES.iter().any(|device| {
        code.strip_prefix(device)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use pricestore::DataDir;

    #[test]
    fn the_layout_is_what_may_be_asked_for() {
        let daily = |code: &str| Some(StoredFile::Daily(code.to_owned()));
        let board = |code: &str| Some(StoredFile::Board(code.to_owned()));
        for (path, expected) in [
            ("stocks_daily/mother.db", Some(StoredFile::Combined)),
            ("listed_info.db", Some(StoredFile::Listed)),
            ("generation.json", Some(StoredFile::Generation)),
            ("stocks_daily/7203.db", daily("7203")),
            ("stocks_daily/130a.db", daily("130A")),
            ("stocks_daily/25935.db", daily("25935")),
            ("stocks_board/130A.db", board("130A")),
            ("stocks_daily/%37203%2edb", daily("7203")),
            ("stocks%5Fdaily/mother.db", Some(StoredFile::Combined)),
        ] {
            assert_eq!(StoredFile::named(path), expected, "{path}");
        }
        let mother = DataDir::new("d").jp_folder().join("stocks_daily").join("mother.db");
        assert_eq!(mother, DataDir::new("d").mother());
    }

    #[test]
    fn nothing_else_may_be_asked_for() {
        for path in [
            "",
            "/",
            ".",
            "..",
            "stocks_daily",
            "stocks_daily/",
            "stocks_daily//mother.db",
            "/stocks_daily/mother.db",
            "stocks_daily/mother.db/",
            "stocks_daily/mother.db.new",
            "stocks_daily/mother.db%00",
            "stocks_daily/mother",
            "Stocks_daily/mother.db",
            "stocks_daily/Mother.db",
            "stocks_daily/7203.DB",
            "stocks_daily/720.db",
            "stocks_daily/720300.db",
            "stocks_daily/72-3.db",
            "stocks_daily/７２０３.db",
            "stocks_daily/7203.db ",
            "stocks_daily/7203.db:data",
            "stocks_board/mother.db",
            "stocks_minute/7203.db",
            "listed_info",
            "stocks_daily/../listed_info.db",
            "stocks_daily/%2e%2e/listed_info.db",
            "../rank/CURRENT",
            "%2e%2e/rank/CURRENT",
            "stocks_daily%2Fmother.db",
            "stocks_daily%5Cmother.db",
            "stocks_daily\\mother.db",
            "stocks_daily/%2537203.db",
            "stocks_daily/%+37203.db",
            "stocks_daily/7203.db%",
            "stocks_daily/7203.d%6",
            "C:/stocks_daily/mother.db",
            "C:7203.db",
            "stocks_daily/COM1.db",
            "stocks_board/lpt9.db",
        ] {
            assert_eq!(StoredFile::named(path), None, "{path}");
        }
        let long = |dots: usize| format!("stocks_daily/{}", ".".repeat(dots));
        assert_eq!(StoredFile::named(&long(PATH_BYTES_MAX)), None);
    }

    #[test]
    fn only_files_of_snapshots_are_asked_for_in_the_folder_of_the_ranking() {
        for name in ["rank-7.grid", "rank-12.grid"] {
            let file = StoredFile::of_snapshot(name).unwrap();
            assert_eq!((file.names(), file.folder()), (vec![name.to_owned()], None));
            assert_eq!(file.published_path(), Some(format!("rank/{name}")));
        }
        for name in [
            "CURRENT",
            "LOCK",
            "",
            "rank-7.db",
            "rank-07.grid",
            "rank-7.grid.new",
            "rank-%37.grid",
            "../mother.db",
            "rank-.grid",
            "rank-1.grid/",
            "spill/rank-1.grid",
            "/rank-1.grid",
        ] {
            assert_eq!(StoredFile::of_snapshot(name), None, "{name}");
        }
        assert_eq!(StoredFile::of_snapshot(&format!("rank-{}.grid", "1".repeat(99))), None);
    }

    #[test]
    fn the_longest_good_path_fits() {
        let encoded =
            |part: &str| -> String { part.bytes().map(|byte| format!("%{byte:02x}")).collect() };
        let path = format!("{}/{}", encoded("stocks_daily"), encoded("25935.db"));
        assert_eq!(StoredFile::named(&path), Some(StoredFile::Daily("25935".to_owned())));
    }

    #[test]
    fn a_code_has_a_name_in_either_case() {
        assert_eq!(StoredFile::Daily("130A".to_owned()).names(), ["130A.db", "130a.db"]);
        assert_eq!(StoredFile::Board("7203".to_owned()).names(), ["7203.db"]);
    }

    proptest! {
        #[test]
        fn what_is_named_is_a_plain_name_in_a_known_folder(path in "(stocks_(daily|board)/)?[%/\\\\.:0-9A-Fa-f_ dbmother]{0,24}") {
            if let Some(stored) = StoredFile::named(&path) {
                for name in stored.names() {
                    let stem = name.strip_suffix(".db").unwrap();
                    prop_assert!(stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
                }
            }
        }
    }
}
