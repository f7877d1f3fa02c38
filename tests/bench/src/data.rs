//! The data of the benches: the shared real trades when present, else a sample of the same size.

use std::path::{Path, PathBuf};

use domain::JstDate;
use marketdata::{Catalog, SampleCodes, SampleSpec, TradeFile, write_sample};
use tests::sample::vendor_code;
use tests::workspace_root;

/// Trading days and trades a day of the one code-month.
const MONTH: (u32, u32) = (20, 50_000);
/// Trading days and trades a day of the twelve months.
const YEAR: (u32, u32) = (245, 40_000);
/// Codes and trades of each in the file of all codes.
const ALL_CODES: (usize, u32) = (2_000, 1_000);

/// Data for the benches, below a folder that is kept between runs.
pub(crate) struct BenchData {
    /// A month of one code (`72030`).
    pub(crate) month: TradeFile,
    /// A day of many codes; `13010` is among them.
    pub(crate) all_codes: TradeFile,
    /// A folder with twelve months of one code (`72030`).
    pub(crate) year: PathBuf,
    /// Real trades of two codes, when the shared data is there.
    pub(crate) real: Option<TradeFile>,
}

impl BenchData {
    /// Finds or makes the data.
    pub(crate) fn prepare() -> Self {
        let (folder, month) = (kept(), month());
        let all_codes =
            sample(&folder.join("all-codes"), SampleCodes::Count(ALL_CODES.0), 1, ALL_CODES.1);
        let shared = workspace_root().join("../shared/data/trades_retimed");
        let real = shared.is_dir().then(|| only_file(&shared));
        let year = folder.join("year");
        make(&year, SampleCodes::These(vec![vendor_code("72030")]), YEAR.0, YEAR.1);
        Self { month, all_codes, year, real }
    }
}

/// Where the data are kept between runs.
fn kept() -> PathBuf {
    tests::built::release_folder().join("../bench-data")
}

/// A month of one code (`72030`).
pub(crate) fn month() -> TradeFile {
    let codes = SampleCodes::These(vec![vendor_code("72030")]);
    sample(&kept().join("month"), codes, MONTH.0, MONTH.1)
}

fn sample(folder: &Path, codes: SampleCodes, days: u32, trades_per_code_day: u32) -> TradeFile {
    make(folder, codes, days, trades_per_code_day);
    only_file(folder)
}

fn make(folder: &Path, codes: SampleCodes, days: u32, trades_per_code_day: u32) {
    let start = JstDate::from_ymd_opt(2025, 6, 2).unwrap_or_default();
    let spec = SampleSpec { seed: 7, start, days, codes, trades_per_code_day };
    if let Err(error) = write_sample(folder, &spec) {
        panic!("cannot make the sample data: {error}");
    }
}

fn only_file(folder: &Path) -> TradeFile {
    let catalog = Catalog::open(folder).unwrap_or_else(|error| panic!("{error}"));
    match catalog.files() {
        [file] => file.clone(),
        files => panic!("{} has {} trades files instead of one", folder.display(), files.len()),
    }
}

/// A fresh folder for caches, removed at the end.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}

/// Where the pieces of data of a child process are.
pub(crate) fn path_argument(number: usize) -> PathBuf {
    std::env::args_os().nth(number).map(PathBuf::from).unwrap_or_default()
}
