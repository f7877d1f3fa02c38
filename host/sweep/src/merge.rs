//! Parts of one sweep, made on several machines, put together.
//!
//! A part is the folder of a sweep that made some of the rows (`--rows`), or was interrupted: its
//! journal, whose first line pins the whole sweep, and its manifest. Parts need neither data nor
//! strategy to be merged. What comes out is what one machine would have written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::JstDate;
use domain::limits::SWEEP_PARTS_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::finished::{Finished, Results, Verified};
use crate::folder::{MANIFEST_FILES, SweepFolder, SweepFolderError};
use crate::grid::{Axis, Grid, GridError};
use crate::journal::{JOURNAL_FILE, Journal, JournalError, Kept, difference};
use crate::manifest::{Asked, SweepManifest};
use crate::plan::{Choice, Plan};
use crate::points::{self, Points};
use crate::rows::RowRange;
use crate::score::Statistic;
use crate::windows::{WalkForward, WindowsError};

/// Bytes of a part's manifest, which holds the values of the grid.
const MANIFEST_MAX: u64 = 256 << 20;

/// Why parts cannot be merged. Nothing was written.
#[derive(Debug, Error)]
pub enum MergeError {
    /// Too many.
    #[error("{0} parts, the limit of one merge is {SWEEP_PARTS_MAX}; merge some of them first")]
    TooMany(usize),
    /// A folder that is no part.
    #[error("{path} is no part of a sweep: {problem}")]
    NoPart {
        /// The folder.
        path: PathBuf,
        /// Why not, and what to do.
        problem: String,
    },
    /// A journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Two parts of different sweeps.
    #[error("{other} and {first} are not parts of the same sweep: {difference}")]
    OtherSweep {
        /// The first part.
        first: PathBuf,
        /// The other one.
        other: PathBuf,
        /// What is different: there, the first; here, the other one.
        difference: String,
    },
    /// Two parts have a row and do not agree.
    #[error("{first} and {other} both have row {row}, but differ there: {difference}")]
    RowsDiffer {
        /// The row.
        row: usize,
        /// The first part that has it.
        first: PathBuf,
        /// The other one.
        other: PathBuf,
        /// What is different.
        difference: String,
    },
    /// Points are missing, or not asked for.
    #[error("{0}")]
    Points(String),
    /// The plan cannot be made again.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The walk forward cannot be made again.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}

/// Where a part is.
#[derive(Debug, Clone)]
pub struct PartFolder(pub PathBuf);

/// What is read of a part's manifest.
#[derive(Debug, Deserialize)]
struct PartManifest {
    rank_by: String,
    verify: usize,
    days: Vec<String>,
    made_from: Value,
    rules: BTreeMap<String, String>,
}

/// What is read of a header's plan.
#[derive(Debug, Deserialize)]
struct Pinned {
    grid: Value,
    parameters: BTreeMap<String, Value>,
    combinations: Value,
    walk_forward: Option<String>,
    runs: usize,
}

/// Parts that are one sweep.
#[derive(Debug)]
pub struct Merged {
    /// What the whole sweep runs.
    pub plan: Plan,
    /// What the parts have of it.
    pub results: Results,
    /// By what runs are ranked, and how many are made again.
    pub asked: Asked,
    /// The manifest of the whole.
    pub manifest: SweepManifest,
    /// What was dropped, for people.
    pub warnings: Vec<String>,
    header: Value,
}

/// The parts that were read so far.
struct Gathered {
    first: PathBuf,
    header: Value,
    manifest: PartManifest,
    runs: BTreeMap<usize, (Finished, usize)>,
    verified: BTreeMap<usize, (Verified, usize)>,
    warnings: Vec<String>,
}

impl Merged {
    /// Reads parts; `points` are those that the sweep was made from, where it was.
    ///
    /// # Errors
    /// [`MergeError`] when they do not belong together.
    pub fn read(parts: &[PartFolder], points: Option<Points>) -> Result<Self, MergeError> {
        let different: BTreeSet<&Path> = parts.iter().map(|part| part.0.as_path()).collect();
        if different.len() > SWEEP_PARTS_MAX {
            return Err(MergeError::TooMany(different.len()));
        }
        let parts: Vec<&Path> = different.into_iter().collect();
        let mut gathered: Option<Gathered> = None;
        for (index, path) in parts.iter().enumerate() {
            let manifest = manifest_of(path)?;
            let (header, kept) = Journal::read(path)?;
            let header =
                header.filter(|header| *header == manifest.made_from).ok_or_else(|| {
                    no_part(
                        path,
                        "its manifest does not belong to its journal; run its sweep again, which \
                         goes on where it was",
                    )
                })?;
            match &mut gathered {
                None => gathered = Some(Gathered::new(path, header, manifest)),
                Some(all) => all.belongs(path, &header, &manifest)?,
            }
            if let Some(all) = &mut gathered {
                all.take(kept, index, &parts)?;
            }
        }
        match gathered {
            Some(all) => all.merged(points),
            None => Err(MergeError::TooMany(0)),
        }
    }

    /// The rows that no part has.
    #[must_use]
    pub fn missing(&self) -> Vec<RowRange> {
        let rows = self.results.rows.iter().enumerate();
        RowRange::of(rows.filter(|(_, run)| run.is_none()).map(|(row, _)| row))
    }

    /// Writes the folder: its journal first, and the files that are made from it. The same parts give
    /// the same bytes, whatever was there of the same sweep before.
    ///
    /// # Errors
    /// [`MergeWriteError`]; each file is as it was, or complete.
    pub fn write(&self, folder: &SweepFolder) -> Result<Vec<PathBuf>, MergeWriteError> {
        let (journal, there) = Journal::open(folder.path(), &self.header)?;
        let has = |row: usize| self.results.rows.get(row).is_some_and(Option::is_some);
        let others: BTreeSet<usize> = there.runs.iter().map(|run| run.row).collect();
        let others = RowRange::of(others.into_iter().filter(|row| !has(*row)));
        if !others.is_empty() {
            let rows = RowRange::in_words(&others);
            return Err(MergeWriteError::HasMore { path: folder.path().to_owned(), rows });
        }
        let verified = self.results.verified.values();
        let runs = self.results.rows.iter().flatten().map(Box::as_ref);
        journal.replace(&self.header, runs, verified)?;
        Ok(folder.write(&self.plan, &self.results, self.asked.rank_by, &self.manifest)?)
    }
}

/// Why what was merged could not be written.
#[derive(Debug, Error)]
pub enum MergeWriteError {
    /// The folder has rows that would be lost.
    #[error("{path} has rows that no part has ({rows}); go on there, or choose another folder")]
    HasMore {
        /// The folder.
        path: PathBuf,
        /// The rows.
        rows: String,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The other files.
    #[error(transparent)]
    Folder(#[from] SweepFolderError),
}

impl Gathered {
    fn new(path: &Path, header: Value, manifest: PartManifest) -> Self {
        Self {
            first: path.to_owned(),
            header,
            manifest,
            runs: BTreeMap::new(),
            verified: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    /// Whether another part is of the same sweep, asked in the same way.
    fn belongs(
        &self,
        path: &Path,
        header: &Value,
        manifest: &PartManifest,
    ) -> Result<(), MergeError> {
        let told = |header: &Value, manifest: &PartManifest| {
            json!({
                "made_from": header, "rank_by": manifest.rank_by, "verify": manifest.verify,
                "days": manifest.days, "rules": manifest.rules,
            })
        };
        let ours = told(&self.header, &self.manifest);
        match difference("", &ours, &told(header, manifest)) {
            None => Ok(()),
            Some(difference) => Err(MergeError::OtherSweep {
                first: self.first.clone(),
                other: path.to_owned(),
                difference,
            }),
        }
    }

    fn take(&mut self, kept: Kept, part: usize, parts: &[&Path]) -> Result<(), MergeError> {
        self.warnings.extend(kept.warning);
        for run in kept.runs {
            taken(&mut self.runs, run.row, run, part, parts)?;
        }
        for run in kept.verified {
            taken(&mut self.verified, run.verified_row, run, part, parts)?;
        }
        Ok(())
    }

    fn merged(self, points: Option<Points>) -> Result<Merged, MergeError> {
        let PartManifest { rank_by, verify, days, rules, .. } = self.manifest;
        let first = &self.first;
        let rank_by: Statistic = rank_by.parse().map_err(|problem| no_part(first, problem))?;
        let days: Vec<JstDate> = days
            .iter()
            .map(|day| day.parse().map_err(|_| no_part(first, format!("`{day}` is no date"))))
            .collect::<Result<_, _>>()?;
        let asked = Asked { rank_by, verify };
        let plan = plan(first, &self.header, points, days)?;
        let mut results = Results { rows: vec![None; plan.rows()], ..Results::default() };
        for (row, (run, part)) in self.runs {
            let place = results.rows.get_mut(row).ok_or_else(|| {
                no_part(first, format!("part {part} has a row {row}, the sweep has fewer"))
            })?;
            *place = Some(Box::new(run));
        }
        results.kept = results.done();
        let known: BTreeMap<usize, Verified> =
            self.verified.into_iter().map(|(row, (run, _))| (row, run)).collect();
        match results.rows.iter().all(Option::is_some) {
            true => results.settle(&plan, asked, &known),
            // Which are the best is not known yet; what is known of a run stays true.
            false if asked.verify > 0 => results.verified = known,
            false => {}
        }
        let manifest = SweepManifest::new(&plan, &results, asked, rules, self.header.clone());
        let (header, warnings) = (self.header, self.warnings);
        Ok(Merged { plan, results, asked, manifest, warnings, header })
    }
}

/// Adds what a part has of a row.
fn taken<T: PartialEq + Serialize>(
    all: &mut BTreeMap<usize, (T, usize)>,
    row: usize,
    run: T,
    part: usize,
    parts: &[&Path],
) -> Result<(), MergeError> {
    let Some((there, first)) = all.get(&row) else {
        all.insert(row, (run, part));
        return Ok(());
    };
    if *there == run {
        return Ok(());
    }
    let difference = difference("", &json!(there), &json!(run)).unwrap_or_default();
    let (first, other) = (parts[*first].to_owned(), parts[part].to_owned());
    Err(MergeError::RowsDiffer { row, first, other, difference })
}

fn no_part(path: &Path, problem: impl Into<String>) -> MergeError {
    MergeError::NoPart { path: path.to_owned(), problem: problem.into() }
}

fn manifest_of(folder: &Path) -> Result<PartManifest, MergeError> {
    for name in MANIFEST_FILES {
        let path = folder.join(name);
        let mut bytes = Vec::new();
        let read = |file: File| file.take(MANIFEST_MAX + 1).read_to_end(&mut bytes);
        match File::open(&path).and_then(read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(no_part(folder, format!("cannot read {name}: {error}"))),
            Ok(length) if length as u64 > MANIFEST_MAX => {
                return Err(no_part(folder, format!("{name} has more than {MANIFEST_MAX} bytes")));
            }
            Ok(_) => {}
        }
        return serde_json::from_slice(&bytes).map_err(|error| {
            let problem =
                format!("{name} cannot be understood ({error}); it may be of another version");
            no_part(folder, problem)
        });
    }
    let problem = if folder.join(JOURNAL_FILE).is_file() {
        "its sweep was killed before it wrote its manifest; run it again, and it goes on where it \
         was"
    } else {
        "it has no journal.jsonl and no sweep.partial.json; name folders of `kumiki replay sweep --rows`"
    };
    Err(no_part(folder, problem))
}

/// The plan that a header pins.
fn plan(
    first: &Path,
    header: &Value,
    points: Option<Points>,
    days: Vec<JstDate>,
) -> Result<Plan, MergeError> {
    let unknown =
        |error: serde_json::Error| no_part(first, format!("cannot read its plan: {error}"));
    let pinned: Pinned = serde_json::from_value(header["plan"].clone()).map_err(unknown)?;
    let grid = match (&pinned.combinations["xxh3_128"], points) {
        (Value::Null, None) => {
            let axes: Vec<Axis> = serde_json::from_value(pinned.grid).map_err(unknown)?;
            Grid::new(axes, pinned.parameters)?
        }
        (Value::Null, Some(_)) => {
            let text = "the parts are of a grid; leave --points out".to_owned();
            return Err(MergeError::Points(text));
        }
        (_, None) => {
            let text = "the parts are of a sweep over points; name their file with --points FILE";
            return Err(MergeError::Points(text.to_owned()));
        }
        (_, Some(points)) => {
            let ours = points::described(&points);
            if let Some(difference) = difference("points", &pinned.combinations, &ours) {
                let text = format!(
                    "--points is not the file of the parts: {difference} (there: the parts; here: the file)"
                );
                return Err(MergeError::Points(text));
            }
            Grid::of_points(points, pinned.parameters)?
        }
    };
    let choice = match &pinned.combinations {
        Value::Object(random) if random.contains_key("random") => {
            let number = |name: &str| {
                let number = random.get(name).and_then(Value::as_u64);
                number.ok_or_else(|| no_part(first, format!("its plan has no `{name}`")))
            };
            Choice::Random { runs: number("random")?, seed: number("seed")? }
        }
        _ => Choice::All,
    };
    let walk_forward = match pinned.walk_forward {
        None => None,
        Some(text) => {
            let asked: WalkForward = text.parse()?;
            Some((asked, asked.folds(&days)?))
        }
    };
    let plan = Plan::new(grid, choice, walk_forward, days)?;
    let (made, said) = (plan.rows(), pinned.runs);
    if made != said {
        return Err(no_part(first, format!("its plan says {said} runs, but makes {made}")));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finished::Finished;
    use crate::score::scored;

    /// A part of six runs as a program leaves it.
    fn part(folder: &Path, name: &str, rows: &[usize], sharpe: f64) -> PartFolder {
        let axes = vec!["a=0:5:1".parse().unwrap()];
        let days: Vec<JstDate> =
            JstDate::from_ymd_opt(2025, 1, 6).unwrap().iter_days().take(3).collect();
        let grid = Grid::new(axes, BTreeMap::new()).unwrap();
        let plan = Plan::new(grid, Choice::All, None, days).unwrap();
        let header = json!({ "strategy": { "name": "x" }, "plan": plan.described() });
        let folder = SweepFolder::prepare(folder.join(name)).unwrap();
        let (mut journal, _) = Journal::open(folder.path(), &header).unwrap();
        let mut results = Results { rows: vec![None; 6], ..Results::default() };
        for row in rows {
            let score = Some(scored(Some(sharpe + *row as f64), 0.1));
            let run = Finished { row: *row, combination: Some(*row as u64), score, error: None };
            journal.add(&run).unwrap();
            results.rows[*row] = Some(Box::new(run));
        }
        let asked = Asked { rank_by: Statistic::Sharpe, verify: 0 };
        let manifest = SweepManifest::new(&plan, &results, asked, BTreeMap::new(), header);
        folder.write(&plan, &results, asked.rank_by, &manifest).unwrap();
        PartFolder(folder.path().to_owned())
    }

    #[test]
    fn parts_that_agree_are_joined_and_others_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, rows: &[usize], sharpe| part(folder.path(), name, rows, sharpe);
        let (a, b) = (made("a", &[0, 1, 2], 1.0), made("b", &[2, 3], 1.0));
        let merged = Merged::read(&[b.clone(), a.clone(), a.clone()], None).unwrap();
        assert_eq!(RowRange::in_words(&merged.missing()), "4..6");
        assert_eq!(merged.results.done(), 4);
        let other = made("c", &[2, 4, 5], 1.5);
        let error = Merged::read(&[a.clone(), other], None).unwrap_err().to_string();
        assert!(error.contains("both have row 2, but differ there: score.sharpe is"), "{error}");
        let rest = made("d", &[4, 5], 1.0);
        let merged = Merged::read(&[a.clone(), b.clone(), rest.clone()], None).unwrap();
        assert!(merged.missing().is_empty() && merged.results.is_complete());
        // What is written is a sweep that can be merged again, and no row in it is lost.
        let out = SweepFolder::prepare(folder.path().join("out")).unwrap();
        merged.write(&out).unwrap();
        let again = PartFolder(out.path().to_owned());
        assert_eq!(Merged::read(&[again], None).unwrap().results.rows, merged.results.rows);
        let error = Merged::read(&[a, b], None).unwrap().write(&out).unwrap_err().to_string();
        assert!(error.contains("has rows that no part has (4..6)"), "{error}");
    }

    #[test]
    fn a_part_has_a_journal_and_the_manifest_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let a = part(folder.path(), "a", &[0], 1.0);
        let refused = |part: &PartFolder| {
            Merged::read(std::slice::from_ref(part), None).unwrap_err().to_string()
        };
        let manifest = a.0.join("sweep.partial.json");
        let text = std::fs::read_to_string(&manifest).unwrap();
        std::fs::write(&manifest, text.replace("\"name\": \"x\"", "\"name\": \"y\"")).unwrap();
        assert!(refused(&a).contains("its manifest does not belong to its journal"));
        std::fs::write(&manifest, "{}").unwrap();
        assert!(refused(&a).contains("sweep.partial.json cannot be understood"));
        std::fs::remove_file(&manifest).unwrap();
        assert!(refused(&a).contains("killed before it wrote its manifest; run it again"));
        std::fs::remove_file(a.0.join(JOURNAL_FILE)).unwrap();
        assert!(refused(&a).contains("it has no journal.jsonl"));
    }

    #[test]
    fn the_number_of_parts_is_limited() {
        let many = (0..=SWEEP_PARTS_MAX).map(|part| PartFolder(part.to_string().into()));
        let error = Merged::read(&many.collect::<Vec<_>>(), None).unwrap_err().to_string();
        assert!(error.starts_with("100001 parts, the limit of one merge is 100000"), "{error}");
    }
}
