//! A small database with everything that makes real data hard, and shelves with modules.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use marketdata::sample::daily::DailySample;
use pricestore::DataDir;
use pricestore::sample::make_daily_sample;
use ranking::{
    CancelToken, EngineOptions, Formula, FormulaRegistry, RankEngine, RankOrder, RankQuery, SortBy,
};
use tempfile::TempDir;
use tests::built;

/// Business days of the data: several slices of work.
const DAYS: usize = 150;

/// Data for all tests; they are only read.
pub(crate) static DATA: LazyLock<PathBuf> = LazyLock::new(|| {
    built::made_once("sample", |folder| {
        let sample = DailySample { codes: 60, days: DAYS, ..DailySample::default() };
        make_daily_sample(&DataDir::new(folder), &sample).unwrap();
    })
});

/// The file of a module by its package: a test guest or a built-in one.
pub(crate) fn file(package: &str) -> PathBuf {
    if package.starts_with("formula-") {
        built::test_guest(package)
    } else {
        built::formula(package)
    }
}

/// A registry with these packages' modules.
pub(crate) fn registry(packages: &[&str]) -> (TempDir, FormulaRegistry) {
    let folder = tempfile::tempdir().unwrap();
    let registry = registry_in(folder.path(), packages);
    (folder, registry)
}

pub(crate) fn registry_in(folder: &Path, packages: &[&str]) -> FormulaRegistry {
    let registry = FormulaRegistry::open(folder, Some(&built::compiled_guests())).unwrap();
    for package in packages {
        registry.add(&file(package)).unwrap();
    }
    registry
}

pub(crate) fn engine(threads: usize) -> RankEngine {
    let options = EngineOptions { threads, cache_bytes: 0, ..EngineOptions::default() };
    RankEngine::open(&DATA, options).unwrap()
}

pub(crate) fn params(given: &[(&str, f64)]) -> Vec<(String, f64)> {
    given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// A query over all days.
pub(crate) fn query(engine: &RankEngine, sort_by: impl Into<SortBy>, limit: u32) -> RankQuery {
    let info = engine.snapshot();
    RankQuery {
        from: info.first,
        to: info.last,
        sort_by: sort_by.into(),
        order: RankOrder::Desc,
        limit,
        codes: None,
        adjusted: false,
    }
}

pub(crate) fn formula(text: &str) -> SortBy {
    Formula::parse(text).unwrap().into()
}

/// Date and close of the first issue on each day on which it has one.
pub(crate) fn first_issue(engine: &RankEngine) -> Vec<(domain::JstDate, f64)> {
    let all = query(engine, formula("Close"), 1);
    let ranking = engine.rank(&all, &CancelToken::new()).unwrap();
    let codes = Some(vec![ranking.codes[0].to_string()]);
    let ranking = engine.rank(&RankQuery { codes, ..all }, &CancelToken::new()).unwrap();
    ranking.rows.iter().map(|row| (ranking.days[row.day as usize], row.close)).collect()
}
