//! The folder of a sweep: journal, table, manifest and page.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use marketdata::parquet::ParquetError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_128;

use crate::execute::Results;
use crate::journal::JOURNAL_FILE;
use crate::luck::Luck;
use crate::plan::Plan;
use crate::score::Statistic;
use crate::{page, table};
use exchange::RULES;
use replay::options::ReplayOptions;
use results::output::{ComponentIdentity, InputFile};

/// Version of the folder's form.
pub const SWEEP_VERSION: u32 = 2;
/// The names of the tables and the page of a sweep that is complete, without their endings.
const COMPLETE: &str = "sweep";
/// The same of a sweep that is not.
const PARTIAL: &str = "sweep.partial";

/// Why a sweep's folder cannot be written.
#[derive(Debug, Error)]
pub enum SweepFolderError {
    /// There is something else.
    #[error("{0} is not empty and holds no sweep (no {JOURNAL_FILE}); choose another folder")]
    Occupied(PathBuf),
    /// The disk says no.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The failure beneath.
        source: io::Error,
    },
    /// The Parquet file cannot be written.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The failure beneath.
        source: ParquetError,
    },
}

/// What a sweep was made from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepHeader<'a> {
    /// Version of the folder's form.
    sweep_version: u32,
    /// Version of Kumiki.
    kumiki_version: &'a str,
    /// The strategy.
    strategy: &'a ComponentIdentity,
    /// Data files.
    inputs: &'a [InputFile],
    /// The options in words.
    options: &'a Value,
    /// The combinations and their days.
    plan: Value,
    /// By what a walk forward chose; null without one.
    chosen_by: Option<&'a str>,
    /// Whether a walk forward made the best run of each window again with window 1 before it chose
    /// it; null without one.
    choice_verified: Option<bool>,
    /// xxh3-128 of all options, in hexadecimal.
    all_options_xxh3_128: String,
    /// xxh3-128 of the exchange's rules, in hexadecimal.
    fill_rules_xxh3_128: String,
}

/// What pins a sweep: the first line of its journal. A journal with another header is not resumed.
/// `shown` are the options in words, for messages and the page; all of `options` is pinned by a hash.
/// `rank` says by what runs are ranked, and whether the best are verified.
#[must_use]
pub fn header(
    strategy: &ComponentIdentity,
    inputs: &[InputFile],
    options: &ReplayOptions,
    shown: &Value,
    plan: &Plan,
    rank: (Statistic, bool),
) -> Value {
    // Results depend on everything but the window; the configuration is the plan's.
    let pinned = ReplayOptions { window: 1, config_json: String::new(), ..options.clone() };
    let rules: Vec<String> = RULES.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    let hash = |text: String| format!("{:032x}", xxh3_128(text.as_bytes()));
    // Only a walk forward chooses by the rank; otherwise it is a matter of looking.
    let chosen_by = plan.walk_forward().map(|_| rank.0.name());
    let choice_verified = plan.walk_forward().map(|_| rank.1);
    json!(SweepHeader {
        sweep_version: SWEEP_VERSION,
        kumiki_version: env!("CARGO_PKG_VERSION"),
        strategy,
        inputs,
        options: shown,
        plan: plan.described(),
        chosen_by,
        choice_verified,
        all_options_xxh3_128: hash(format!("{pinned:?}")),
        fill_rules_xxh3_128: hash(rules.join("\n")),
    })
}

/// What a sweep was made from and how far it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SweepManifest {
    /// `complete` or `partial`.
    pub status: String,
    /// Runs of the plan.
    pub runs_total: usize,
    /// Runs that are done.
    pub runs_done: usize,
    /// Runs that failed.
    pub runs_failed: usize,
    /// Runs that were made again with window 1.
    pub runs_verified: usize,
    /// Those of them in which something else happened then; they are not ranked.
    pub runs_saw_the_future: usize,
    /// By what the best run was chosen.
    pub rank_by: String,
    /// The row of the best run, out-of-sample runs left out.
    pub best_run: Option<usize>,
    /// Its parameters, for `replay run`.
    pub best_parameters: Option<Value>,
    /// Return of the test runs one after the other; none without walk-forward.
    pub out_of_sample_return: Option<f64>,
    /// How much of the best run may be luck.
    pub luck: Luck,
    /// What the sweep was made from: the first line of its journal.
    #[schemars(with = "SweepHeader<'_>")]
    pub made_from: Value,
    /// The columns of the table with their meaning.
    pub columns: Vec<Value>,
}

impl SweepManifest {
    /// The manifest of these results.
    #[must_use]
    pub fn new(plan: &Plan, results: &Results, rank_by: Statistic, header: Value) -> Self {
        let chosen = (0..plan.rows()).filter(|row| plan.run(*row).combination.is_some());
        let best = results.best(chosen, rank_by);
        let combination = best.and_then(|row| results.rows[row].as_ref()?.combination);
        let parameters =
            combination.map(|number| serde_json::from_str(&plan.grid().config_json(number)));
        let columns = table::columns(plan).into_iter().map(|column| {
            json!({
                "name": column.field.name,
                "kind": column.field.kind.to_string(),
                "optional": column.field.optional,
                "meaning": column.meaning,
            })
        });
        Self {
            status: if results.is_complete() { "complete" } else { "partial" }.to_owned(),
            runs_total: plan.rows(),
            runs_done: results.done(),
            runs_failed: results.failed(),
            runs_verified: results.verified.len(),
            runs_saw_the_future: results.futures_seen().count(),
            rank_by: rank_by.name().to_owned(),
            best_run: best,
            // A plain object of parameters, made by the line above.
            best_parameters: parameters.and_then(Result::ok),
            out_of_sample_return: out_of_sample_return(plan, results),
            luck: Luck::of(plan, results, rank_by),
            made_from: header,
            columns: columns.collect(),
        }
    }
}

/// What is left of one yen after all test runs, one after the other, minus one; none while one of
/// them is missing or failed.
fn out_of_sample_return(plan: &Plan, results: &Results) -> Option<f64> {
    let folds = 0..plan.folds().len();
    if folds.is_empty() {
        return None;
    }
    let growth = |fold: usize| {
        let run = results.rows[plan.test_row(fold)].as_ref()?;
        Some(1.0 + run.score.as_ref()?.return_ratio?)
    };
    folds.map(growth).product::<Option<f64>>().map(|all| all - 1.0)
}

/// Where a sweep writes.
#[derive(Debug, Clone)]
pub struct SweepFolder {
    path: PathBuf,
}

impl SweepFolder {
    /// The folder at `path`, made when it is missing.
    ///
    /// # Errors
    /// [`SweepFolderError`] when it holds something else than a sweep, or cannot be made.
    pub fn prepare(path: impl Into<PathBuf>) -> Result<Self, SweepFolderError> {
        let path = path.into();
        let occupied = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if occupied && !path.join(JOURNAL_FILE).is_file() {
            return Err(SweepFolderError::Occupied(path));
        }
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(SweepFolderError::Write { path, source }),
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes table, manifest and page; each file is complete or not there. The names of a sweep
    /// that is not complete say so, and those of one that is replace them.
    ///
    /// # Errors
    /// [`SweepFolderError`].
    pub fn write(
        &self,
        plan: &Plan,
        results: &Results,
        rank_by: Statistic,
        manifest: &SweepManifest,
    ) -> Result<Vec<PathBuf>, SweepFolderError> {
        let (name, other) =
            if results.is_complete() { (COMPLETE, PARTIAL) } else { (PARTIAL, COMPLETE) };
        let mut written = Vec::new();
        let csv = self.path.join(format!("{name}.csv"));
        self.file(&csv, |file| table::write_csv(plan, results, file))?;
        let parquet = self.path.join(format!("{name}.parquet"));
        let failed = |source| SweepFolderError::Parquet { path: parquet.clone(), source };
        let bytes = table::write_parquet(plan, results, Vec::new()).map_err(failed)?;
        self.file(&parquet, |file| file.write_all(&bytes))?;
        let json = self.path.join(format!("{name}.json"));
        self.file(&json, |file| {
            serde_json::to_writer_pretty(&mut *file, manifest)?;
            file.write_all(b"\n")
        })?;
        let html = self.path.join(format!("{name}.html"));
        let text = page::render(plan, results, rank_by, manifest);
        self.file(&html, |file| file.write_all(text.as_bytes()))?;
        written.extend([csv, parquet, json, html]);
        for ending in ["csv", "parquet", "json", "html"] {
            let old = self.path.join(format!("{other}.{ending}"));
            match fs::remove_file(&old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(SweepFolderError::Write { path: old, source: error });
                }
                _ => {}
            }
        }
        Ok(written)
    }

    fn file(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut io::BufWriter<AtomicFile>) -> io::Result<()>,
    ) -> Result<(), SweepFolderError> {
        let failed = |source| SweepFolderError::Write { path: path.to_owned(), source };
        let write = || -> io::Result<()> {
            let mut file = io::BufWriter::new(AtomicFile::create_in(&self.path)?);
            fill(&mut file)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?.commit(path)
        };
        write().map_err(failed)
    }
}
