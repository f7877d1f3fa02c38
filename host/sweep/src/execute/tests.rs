//! Plans on one and several threads, stopped, resumed, with runs that fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use domain::JstDate;
use serde_json::{Value, json};

use super::*;
use crate::finished::Verified;
use crate::grid::Grid;
use crate::manifest::{Asked, SweepManifest};
use crate::plan::Choice;
use crate::score::scored;
use crate::verify::Verdict;
use crate::windows::WalkForward;

/// The Sharpe ratio of a run is minus its distance from 7, plus the index of its first day.
/// 13 fails, 17 is a failure of the host.
struct Distance {
    ran: Mutex<Vec<(i64, Range<usize>)>>,
    stop_after: Option<usize>,
    /// Runs whose event log is another one with window 1.
    sees_the_future: fn(i64) -> bool,
    /// Runs that were made with window 1.
    again: Mutex<Vec<i64>>,
}

impl Default for Distance {
    fn default() -> Self {
        Self {
            ran: Mutex::default(),
            stop_after: None,
            sees_the_future: |_| false,
            again: Mutex::default(),
        }
    }
}

impl Runner for Distance {
    fn run(&self, config: &str, days: Range<usize>, stop: &AtomicBool) -> Result<Outcome, String> {
        let config: Value = serde_json::from_str(config).unwrap();
        let a = config["a"].as_i64().unwrap();
        let mut ran = self.ran.lock().unwrap();
        if self.stop_after.is_some_and(|runs| ran.len() >= runs) {
            stop.store(true, Ordering::Relaxed);
            return Ok(Outcome::Stopped);
        }
        ran.push((a, days.clone()));
        match a {
            13 => Ok(Outcome::Failed("bad luck".to_owned())),
            17 => Err("no memory".to_owned()),
            a => Ok(Outcome::Scored(Box::new(scored(
                Some(days.start as f64 - (a - 7).abs() as f64),
                0.1,
            )))),
        }
    }

    fn run_strictly(
        &self,
        config: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String> {
        let parsed: Value = serde_json::from_str(config).unwrap();
        let a = parsed["a"].as_i64().unwrap();
        if self.stop_after.is_some_and(|runs| self.again.lock().unwrap().len() + 13 >= runs) {
            stop.store(true, Ordering::Relaxed);
            return Ok(Outcome::Stopped);
        }
        self.again.lock().unwrap().push(a);
        let distance = (a - 7).abs() as f64;
        let mut score = scored(Some(days.start as f64 - distance), 0.1);
        if (self.sees_the_future)(a) {
            score.digest = "4567".to_owned();
        }
        Ok(Outcome::Scored(Box::new(score)))
    }
}

fn plan(axis: &str, walk_forward: Option<&str>) -> Plan {
    let grid = Grid::new(vec![axis.parse().unwrap()], BTreeMap::new()).unwrap();
    let first = JstDate::from_ymd_opt(2025, 1, 6).unwrap();
    let days: Vec<JstDate> = first.iter_days().take(6).collect();
    let walk_forward = walk_forward.map(|text| {
        let asked: WalkForward = text.parse().unwrap();
        (asked, asked.folds(&days).unwrap())
    });
    Plan::new(grid, Choice::All, walk_forward, days).unwrap()
}

fn sweep(
    folder: &Path,
    plan: &Plan,
    runner: &Distance,
    jobs: usize,
) -> Result<Results, SweepError> {
    let (mut journal, kept) = Journal::open(folder, &json!({ "plan": plan.described() })).unwrap();
    let stop = AtomicBool::new(false);
    let rank_by = Statistic::Sharpe;
    let rows = 0..plan.rows();
    let leaves_verifying = false;
    let sweep =
        Sweep { plan, rank_by, runner, rows, verify: 3, leaves_verifying, jobs, stop: &stop };
    sweep.run(&mut journal, kept, &mut |_| {})
}

fn fresh(plan: &Plan, jobs: usize) -> Results {
    let folder = tempfile::tempdir().unwrap();
    sweep(folder.path(), plan, &Distance::default(), jobs).unwrap()
}

#[test]
fn any_number_of_threads_gives_the_same_rows() {
    let plan = plan("a=0:12:1", None);
    let one = fresh(&plan, 1);
    assert!(one.is_complete() && one.failed() == 0);
    for jobs in [2, 5, 64] {
        assert_eq!(fresh(&plan, jobs).rows, one.rows, "{jobs} jobs");
    }
    assert_eq!(one.best(0..13, Statistic::Sharpe), Some(7));
    assert_eq!(one.ranked(0..13, Statistic::Sharpe)[..3], [7, 6, 8]);
}

#[test]
fn a_failed_run_is_a_row() {
    let results = fresh(&plan("a=12:14:1", None), 2);
    assert!(results.is_complete());
    assert_eq!((results.done(), results.failed()), (3, 1));
    let row = results.rows[1].as_ref().unwrap();
    assert_eq!((row.score.as_ref(), row.error.as_deref()), (None, Some("bad luck")));
    assert_eq!(results.ranked(0..3, Statistic::Sharpe), [0, 2]);
}

#[test]
fn a_failure_of_the_host_ends_the_sweep_and_keeps_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("a=15:18:1", None);
    let error = sweep(folder.path(), &plan, &Distance::default(), 1).unwrap_err();
    assert!(error.to_string().starts_with("run 2 could not be made: no memory"), "{error}");
    let (_, kept) = Journal::open(folder.path(), &json!({ "plan": plan.described() })).unwrap();
    assert_eq!(kept.runs.len(), 2);
}

#[test]
fn a_stopped_sweep_goes_on_where_it_was() {
    let plan = plan("a=0:12:1", None);
    let folder = tempfile::tempdir().unwrap();
    let stopped = Distance { stop_after: Some(5), ..Distance::default() };
    let partial = sweep(folder.path(), &plan, &stopped, 2).unwrap();
    assert!(!partial.is_complete() && partial.done() == 5);
    let rest = Distance::default();
    let results = sweep(folder.path(), &plan, &rest, 2).unwrap();
    assert_eq!((results.kept, rest.ran.lock().unwrap().len()), (5, 8));
    assert_eq!(results.rows, fresh(&plan, 1).rows);
    let nothing = Distance::default();
    sweep(folder.path(), &plan, &nothing, 2).unwrap();
    assert!(nothing.ran.lock().unwrap().is_empty());
}

#[test]
fn the_best_of_each_fold_is_tested_on_the_days_after() {
    let plan = plan("a=1:10:3", Some("2d/1d"));
    let results = fresh(&plan, 2);
    assert!(results.is_complete());
    assert_eq!(plan.folds().len(), 4);
    for fold in 0..4 {
        let test = results.rows[plan.test_row(fold)].as_ref().unwrap();
        // 7 is the third value.
        assert_eq!(test.combination, Some(2));
        assert_eq!(test.score.as_ref().unwrap().sharpe, Some((fold + 2) as f64));
    }
}

#[test]
fn a_fold_without_a_run_to_choose_says_so() {
    let plan = plan("a=13", Some("4d/2d"));
    let results = fresh(&plan, 1);
    let test = results.rows[plan.test_row(0)].as_ref().unwrap();
    assert_eq!(test.error.as_deref(), Some("every run to choose from failed"));
}

#[test]
fn the_number_of_threads_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    for jobs in [0, SWEEP_JOBS_MAX + 1] {
        let error = sweep(folder.path(), &plan("a=1", None), &Distance::default(), jobs);
        assert_eq!(
            error.unwrap_err().to_string(),
            format!("{jobs} jobs asked for; ask for 1 to 256")
        );
    }
}

#[test]
fn progress_counts_and_names_the_best() {
    let plan = plan("a=5:13:1", None);
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(folder.path(), &json!({})).unwrap();
    let (runner, stop) = (Distance::default(), AtomicBool::new(false));
    let rank_by = Statistic::Sharpe;
    let sweep = Sweep {
        plan: &plan,
        rank_by,
        runner: &runner,
        rows: 0..plan.rows(),
        verify: 2,
        leaves_verifying: false,
        jobs: 1,
        stop: &stop,
    };
    let mut last = None;
    sweep.run(&mut journal, Kept::default(), &mut |progress| last = Some(progress)).unwrap();
    let last = last.unwrap();
    assert_eq!((last.done, last.total, last.kept, last.failed), (9, 9, 0, 1));
    assert_eq!(last.verified, 2);
    assert_eq!(last.best, Some((2, 0.0)));
}

fn cheats(a: i64) -> bool {
    (6..=8).contains(&a)
}

#[test]
fn runs_that_saw_the_future_leave_the_ranking_and_the_next_are_looked_at() {
    let plan = plan("a=0:12:1", None);
    let folder = tempfile::tempdir().unwrap();
    let runner = Distance { sees_the_future: cheats, ..Distance::default() };
    let results = sweep(folder.path(), &plan, &runner, 2).unwrap();
    assert!(results.is_complete());
    assert_eq!(results.futures_seen().collect::<Vec<_>>(), [6, 7, 8]);
    assert_eq!(results.ranked(0..13, Statistic::Sharpe)[..3], [5, 9, 4]);
    let again: Vec<usize> = results.verified.keys().copied().collect();
    assert_eq!(again, [4, 5, 6, 7, 8, 9], "those that saw it, and the best three of the others");
    assert_eq!(results.verdict(5), Some(Verdict::Same));
    assert_eq!(results.verdict(3), None);
}

#[test]
fn verifying_goes_on_where_it_was_and_ends_with_the_same() {
    let plan = plan("a=0:12:1", None);
    let whole = tempfile::tempdir().unwrap();
    let runner = || Distance { sees_the_future: cheats, ..Distance::default() };
    let wanted = sweep(whole.path(), &plan, &runner(), 1).unwrap();
    for again in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let stopped = Distance { stop_after: Some(13 + again), ..runner() };
        let partial = sweep(folder.path(), &plan, &stopped, 1).unwrap();
        assert!(!partial.is_complete() && partial.done() == 13, "{again}");
        let rest = runner();
        let results = sweep(folder.path(), &plan, &rest, 2).unwrap();
        assert!(results.is_complete());
        assert_eq!(
            (results.rows, results.verified),
            (wanted.rows.clone(), wanted.verified.clone())
        );
        assert_eq!(rest.again.lock().unwrap().len(), 6 - again);
    }
}

#[test]
fn a_walk_forward_does_not_choose_a_run_that_saw_the_future() {
    let plan = plan("a=1:10:3", Some("2d/1d"));
    let folder = tempfile::tempdir().unwrap();
    let runner = Distance { sees_the_future: cheats, ..Distance::default() };
    let results = sweep(folder.path(), &plan, &runner, 2).unwrap();
    for fold in 0..4 {
        let test = results.rows[plan.test_row(fold)].as_ref().unwrap();
        // Of 1, 4, 7 and 10 the third is nearest and cheats; 4 is as near as 10, and earlier.
        assert_eq!(test.combination, Some(1));
        assert_eq!(results.verdict(plan.test_row(fold)), Some(Verdict::Same));
    }
}

#[test]
fn a_test_run_that_saw_the_future_gives_no_return_out_of_sample() {
    let plan = plan("a=1:10:3", Some("2d/1d"));
    let mut results = fresh(&plan, 1);
    let asked = Asked { rank_by: Statistic::Sharpe, verify: 3 };
    let manifest =
        |results: &Results| SweepManifest::new(&plan, results, asked, BTreeMap::new(), json!({}));
    let honest = manifest(&results);
    assert!(honest.out_of_sample_return.is_some() && honest.test_runs_saw_the_future == 0);
    let verified_row = plan.test_row(2);
    let digest = Some("another one".to_owned());
    results.verified.insert(verified_row, Verified { verified_row, digest });
    let found = manifest(&results);
    assert_eq!((found.out_of_sample_return, found.test_runs_saw_the_future), (None, 1));
}

/// Whatever was made again for a run that asked for more: the same command gives the same.
#[test]
fn a_sweep_tells_what_it_asks_for_and_not_what_was_there() {
    let plan = plan("a=0:12:1", None);
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, kept) = Journal::open(folder.path(), &json!({})).unwrap();
    let (runner, stop) = (Distance::default(), AtomicBool::new(false));
    let more = Sweep {
        plan: &plan,
        rank_by: Statistic::Sharpe,
        runner: &runner,
        rows: 0..plan.rows(),
        verify: 9,
        leaves_verifying: false,
        jobs: 1,
        stop: &stop,
    };
    assert_eq!(more.run(&mut journal, kept, &mut |_| {}).unwrap().verified.len(), 9);
    drop(journal);
    let (mut journal, kept) = Journal::open(folder.path(), &json!({})).unwrap();
    let less = Sweep { verify: 3, ..more };
    let results = less.run(&mut journal, kept, &mut |_| {}).unwrap();
    assert!(results.is_complete());
    assert_eq!(results.verified, fresh(&plan, 1).verified);
}

#[test]
fn a_strategy_that_always_saw_the_future_leaves_no_best_run() {
    let plan = plan("a=0:12:1", None);
    let folder = tempfile::tempdir().unwrap();
    let runner = Distance { sees_the_future: |_| true, ..Distance::default() };
    let results = sweep(folder.path(), &plan, &runner, 2).unwrap();
    assert!(results.is_complete() && results.verified.len() == 13);
    assert_eq!(results.best(0..13, Statistic::Sharpe), None);
}

/// What a machine leaves that makes some of the rows.
fn part(plan: &Plan, runner: &Distance, rows: Range<usize>) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let header = json!({ "plan": plan.described() });
    let (mut journal, kept) = Journal::open(folder.path(), &header).unwrap();
    let stop = AtomicBool::new(false);
    let (rank_by, leaves_verifying) = (Statistic::Sharpe, false);
    let (rows, jobs, stop) = (rows.clone(), 2, &stop);
    let sweep = Sweep { plan, rank_by, runner, rows, verify: 3, leaves_verifying, jobs, stop };
    let results = sweep.run(&mut journal, kept, &mut |_| {}).unwrap();
    assert!(sweep.is_done(&results));
    drop(journal);
    Journal::read(folder.path()).unwrap().1
}

/// The parts of these machines, put together.
fn together(plan: &Plan, parts: Vec<Kept>) -> Results {
    let mut results = Results { rows: vec![None; plan.rows()], ..Results::default() };
    let mut known = BTreeMap::new();
    for part in parts {
        for run in part.runs {
            let row = run.row;
            results.rows[row] = Some(Box::new(run));
        }
        known.extend(part.verified.into_iter().map(|run| (run.verified_row, run)));
    }
    let asked = Asked { rank_by: Statistic::Sharpe, verify: 3 };
    results.settle(plan, asked, &known);
    results
}

#[test]
fn a_part_makes_its_rows_only() {
    let plan = plan("a=0:12:1", None);
    let runner = Distance::default();
    let kept = part(&plan, &runner, 4..7);
    let mut rows: Vec<usize> = kept.runs.iter().map(|run| run.row).collect();
    rows.sort_unstable();
    assert_eq!((rows, kept.verified.len()), (vec![4, 5, 6], 3));
    assert!(part(&plan, &runner, 4..4).runs.is_empty());
}

#[test]
fn a_part_that_leaves_verifying_verifies_nothing_and_is_done() {
    for (plan, rows) in [(plan("a=0:12:1", None), 13), (plan("a=1:10:3", Some("2d/1d")), 16)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, kept) = Journal::open(folder.path(), &json!({})).unwrap();
        let (runner, stop) = (Distance::default(), AtomicBool::new(false));
        let sweep = Sweep {
            plan: &plan,
            rank_by: Statistic::Sharpe,
            runner: &runner,
            rows: 0..plan.rows(),
            verify: 3,
            leaves_verifying: true,
            jobs: 1,
            stop: &stop,
        };
        let results = sweep.run(&mut journal, kept, &mut |_| {}).unwrap();
        // The test runs of a walk forward are left too: nobody knows yet which run may be chosen.
        assert_eq!((results.done(), results.verified.len()), (rows, 0));
        assert!(sweep.is_done(&results) && !results.is_complete());
        assert!(runner.again.lock().unwrap().is_empty());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    /// However the rows are divided, and whichever runs saw the future.
    #[test]
    fn parts_know_all_that_one_machine_would_have_verified(
        cuts in proptest::collection::btree_set(0_usize..19, 0..6), cheat in 0_usize..4, folds: bool,
    ) {
        let plan = match folds {
            false => plan("a=0:12:1", None),
            true => plan("a=1:10:3", Some("2d/1d")),
        };
        let sees: fn(i64) -> bool = [|_| false, cheats, |a| a % 2 == 1, |_| true][cheat];
        let runner = || Distance { sees_the_future: sees, ..Distance::default() };
        let folder = tempfile::tempdir().unwrap();
        let whole = sweep(folder.path(), &plan, &runner(), 2).unwrap();
        // A test run is made where all of its fold is: cuts of a walk forward are between folds.
        let block = if folds { 5 } else { 1 };
        let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut / block * block).collect();
        ends.extend([0, plan.rows()]);
        ends.retain(|end| *end <= plan.rows());
        ends.sort_unstable();
        let parts = ends.windows(2).map(|pair| part(&plan, &runner(), pair[0]..pair[1]));
        let merged = together(&plan, parts.collect());
        proptest::prop_assert!(merged.is_complete());
        proptest::prop_assert_eq!(merged.rows, whole.rows);
        proptest::prop_assert_eq!(merged.verified, whole.verified);
    }
}
