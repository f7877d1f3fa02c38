//! The numbers of luck against golden vectors, which clients/python/luck.py computes from the papers.

use std::collections::BTreeMap;

use domain::JstDate;
use serde_json::Value;

use super::*;
use crate::finished::{Finished, Verified};
use crate::grid::Grid;
use crate::plan::Choice;
use crate::score::scored;
use crate::windows::WalkForward;

const GOLDEN: &str = include_str!("../../../../tests/golden/luck.json");

fn run_of(daily: &[f64]) -> Score {
    let shape = shape(daily);
    Score {
        days: daily.len() as u64,
        skewness: shape.map(|shape| shape.0),
        kurtosis: shape.map(|shape| shape.1),
        return_blocks: ReturnBlocks::of(daily).map(Box::new),
        ..scored(results::statistics::sharpe_of(daily), 0.1)
    }
}

fn close(found: f64, wanted: &Value, what: &str) {
    let wanted = wanted.as_f64().unwrap();
    assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{what}: {found}, not {wanted}");
}

#[test]
fn golden_vectors_agree() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let vectors = golden["vectors"].as_array().unwrap();
    assert!(vectors.len() >= 6);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let runs: Vec<Vec<f64>> = serde_json::from_value(vector["runs"].clone()).unwrap();
        let runs: Vec<Score> = runs.iter().map(|daily| run_of(daily)).collect();
        let trials = Trials::of(runs.iter().filter_map(|run| run.sharpe));
        close(trials.expected_max(), &vector["expected_max_sharpe"], name);
        for (run, wanted) in runs.iter().zip(vector["deflated_sharpe"].as_array().unwrap()) {
            match trials.deflated_sharpe(run) {
                Some(found) => close(found, wanted, name),
                None => assert!(wanted.is_null(), "{name}: {wanted} is missing"),
            }
        }
        let blocks: Vec<&ReturnBlocks> =
            runs.iter().filter_map(|run| run.return_blocks.as_deref()).collect();
        let (overfitted, _) = overfitted_choices(&blocks).unwrap();
        assert_eq!(vector["overfitted_choices"], overfitted, "{name}");
    }
}

fn plan(runs: usize, days: usize, walk_forward: Option<&str>) -> Plan {
    let grid = Grid::new(vec![format!("a=1:{runs}:1").parse().unwrap()], BTreeMap::new());
    let first = JstDate::from_ymd_opt(2025, 1, 6).unwrap();
    let days: Vec<JstDate> = first.iter_days().take(days).collect();
    let walk_forward = walk_forward.map(|text| {
        let asked: WalkForward = text.parse().unwrap();
        (asked, asked.folds(&days).unwrap())
    });
    Plan::new(grid.unwrap(), Choice::All, walk_forward, days).unwrap()
}

/// Runs with daily returns of their own, the later ones better.
fn results(plan: &Plan) -> Results {
    let run = |row: usize| {
        let mut random = domain::Random::of_seed(row as u64);
        let mut day = || (random.below(2_001) as f64 - 1_000.0 + 40.0 * row as f64) / 1e5;
        let daily: Vec<f64> = plan.days().iter().map(|_| day()).collect();
        let score = Some(run_of(&daily));
        Some(Box::new(Finished {
            row,
            combination: plan.run(row).combination.or(Some(0)),
            score,
            error: None,
        }))
    };
    Results { rows: (0..plan.rows()).map(run).collect(), ..Results::default() }
}

fn luck(plan: &Plan, results: &Results) -> Luck {
    Luck::of(plan, results, Statistic::Sharpe)
}

#[test]
fn few_days_and_walk_forwards_have_no_probability_of_overfitting() {
    let short = plan(4, OVERFITTING_DAYS_MIN - 1, None);
    let found = luck(&short, &results(&short));
    assert_eq!(found.overfitting_probability, None);
    assert_eq!(found.overfitting_missing.unwrap(), "31 days; it is stated from 32 on");
    assert!(found.deflated_sharpe.is_some());
    let enough = plan(4, OVERFITTING_DAYS_MIN, None);
    let found = luck(&enough, &results(&enough));
    assert!(found.overfitting_probability.is_some() && found.overfitting_runs == 4);
    let walk = plan(4, 40, Some("10d/5d"));
    let found = luck(&walk, &results(&walk));
    assert!(found.overfitting_missing.unwrap().contains("out of sample"));
    assert_eq!(found.trials, 4 * walk.folds().len(), "test runs are no trials");
}

#[test]
fn missing_runs_and_single_ones_say_why() {
    let plan = plan(3, 40, None);
    let mut some = results(&plan);
    some.rows[1] = None;
    let found = luck(&plan, &some);
    assert_eq!(found.overfitting_missing.as_deref(), Some("runs are missing"));
    some.rows = vec![None; 3];
    let found = luck(&plan, &some);
    assert_eq!((found.trials, found.deflated_sharpe), (0, None));
    assert_eq!(found.deflated_sharpe_missing.as_deref(), Some("no run is ranked"));
    assert_eq!(found.expected_max_sharpe, None);
}

#[test]
fn runs_that_are_all_equal_have_no_probability_of_overfitting() {
    let plan = plan(4, 40, None);
    let mut equal = results(&plan);
    let first = equal.rows[1].clone().unwrap().score;
    equal.rows.iter_mut().flatten().for_each(|run| run.score.clone_from(&first));
    let found = luck(&plan, &equal);
    assert_eq!((found.overfitting_probability, found.overfitting_runs), (None, 4));
    assert_eq!(found.overfitting_missing.as_deref(), Some("all runs have the same returns"));
    let other = results(&plan).rows[2].clone().unwrap().score;
    equal.rows[3].as_mut().unwrap().score = other;
    assert!(luck(&plan, &equal).overfitting_probability.is_some(), "one differs");
}

#[test]
fn one_trial_is_not_deflated_by_others() {
    let plan = plan(1, 40, None);
    let found = luck(&plan, &results(&plan));
    assert_eq!((found.expected_max_sharpe, found.trial_sharpe_deviation), (Some(0.0), None));
    assert!(found.deflated_sharpe.is_some());
    assert!(found.overfitting_missing.unwrap().contains("needs two runs"));
}

#[test]
fn runs_that_saw_the_future_have_no_say() {
    let plan = plan(5, 40, None);
    let mut seen = results(&plan);
    let honest = luck(&plan, &seen);
    seen.verified.insert(4, Verified { verified_row: 4, digest: None });
    let found = luck(&plan, &seen);
    assert_eq!((honest.trials, found.trials, found.overfitting_runs), (5, 4, 4));
    assert_ne!(found.deflated_sharpe, honest.deflated_sharpe);
}

#[test]
fn returns_are_kept_of_a_limited_sample() {
    let few = plan(OVERFITTING_RUNS_MAX, 1, None);
    assert_eq!(sampled_rows(&few).len(), OVERFITTING_RUNS_MAX);
    let many = plan(OVERFITTING_RUNS_MAX * 5, 1, None);
    let sampled = sampled_rows(&many);
    assert_eq!((sampled.len(), &sampled), (OVERFITTING_RUNS_MAX, &sampled_rows(&many)));
    assert!(sampled.is_sorted() && sampled.iter().any(|row| *row > 9_000));
}

#[test]
fn every_number_has_its_definition() {
    let plan = plan(2, 40, None);
    let numbers = serde_json::to_value(luck(&plan, &results(&plan))).unwrap();
    let page = definitions_markdown();
    for name in numbers.as_object().unwrap().keys().filter(|name| !name.ends_with("_missing")) {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    assert!(DEFINITIONS.iter().all(|(_, _, _, text)| text.ends_with('.') && !text.contains('|')));
}
