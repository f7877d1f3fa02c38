//! How much of the best run may be luck: the deflated Sharpe ratio (Bailey and Lopez de Prado, 2014)
//! and the probability of backtest overfitting (Bailey, Borwein, Lopez de Prado and Zhu, 2015).
//!
//! [`DEFINITIONS`] holds the one text that the page and the documentation show for each number.

mod normal;
mod overfitting;
#[cfg(test)]
mod tests;

use results::statistics::DAYS_PER_YEAR;
use schemars::JsonSchema;
use serde::Serialize;

use crate::finished::Results;
use crate::limits::{OVERFITTING_DAYS_MIN, OVERFITTING_RUNS_MAX};
use crate::plan::Plan;
use crate::sample::distinct_below;
use crate::score::{Score, Statistic};

pub use overfitting::{ReturnBlocks, are_all_equal, overfitted_choices};

/// Seed of the sample of runs whose returns are kept where there are too many.
const SAMPLE_SEED: u64 = 20_150_227;
/// Digits after the point that are kept where `exp` took part: its last ones differ between systems,
/// and results must not.
const SCALE: f64 = 1e12;
/// Days under which nothing can be said of a Sharpe ratio's own error.
const DAYS_MIN: u64 = 3;
/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// What is shown of luck: name in files, name for people, unit, text.
pub const DEFINITIONS: [(&str, &str, &str, &str); 9] = [
    (
        "trials",
        "Trials",
        "count",
        "Runs to choose from that have a Sharpe ratio. Out-of-sample runs and runs that saw the \
         future are left out.",
    ),
    (
        "trial_sharpe_deviation",
        "Deviation of the trials",
        "number",
        "Standard deviation of the trials' Sharpe ratios (sample, n - 1), per year.",
    ),
    (
        "expected_max_sharpe",
        "Sharpe ratio of luck",
        "number",
        "What the best of so many trials without any skill is expected to show, per year: deviation \
         of the trials * ((1 - g) * z(1 - 1 / trials) + g * z(1 - 1 / (trials * e))), with z the \
         quantile of the normal distribution and g = 0.5772 (Euler's constant); 0 for one trial. \
         Trials count as independent; those of a fine grid are not, so it is rather too high.",
    ),
    (
        "deflated_sharpe",
        "Deflated Sharpe ratio",
        "ratio",
        "Probability that the Sharpe ratio is above the one of luck by more than its own error: \
         N((s - s0) * sqrt(days - 1) / sqrt(1 - skewness * s + (kurtosis - 1) / 4 * s^2)), with N \
         the normal distribution, s the Sharpe ratio and s0 the one of luck, both of a day (per \
         sqrt(252)). The table has it for each run; the page and sweep.json for the best one. 0.95 \
         or more is what Bailey and Lopez de Prado ask for. Missing under 3 days.",
    ),
    (
        "skewness",
        "Skewness",
        "number",
        "m3 / m2^(3/2) of the daily returns, with mk the mean of (return - mean)^k.",
    ),
    ("kurtosis", "Kurtosis", "number", "m4 / m2^2 of the daily returns; 3 for a normal one."),
    (
        "overfitting_probability",
        "Probability of overfitting",
        "ratio",
        "The days are cut into 16 blocks of neighbouring days (the first ones have a day more where \
         they cannot be even). For each of the 12,870 ways to choose 8 of them, the run with the \
         best Sharpe ratio on these (the first of equal ones; 0 where returns do not differ) is \
         ranked among all by its Sharpe ratio on the other 8. The probability is the share of ways \
         in which rank / (runs + 1), counted from the worst, is at most 1/2 (equal ones share the \
         mean of their ranks). It is always made from Sharpe ratios, whatever runs are ranked by. \
         Not stated under 32 days, for fewer than 2 runs, where all runs have the same daily returns, \
         and with walk-forward.",
    ),
    (
        "overfitting_runs",
        "Runs of that probability",
        "count",
        "All runs with numbers that did not see the future; of more than 2,000 planned ones a sample \
         drawn with a fixed seed.",
    ),
    (
        "verified",
        "Verified",
        "text",
        "`yes`: the run was made again with window 1, in which no trade is in the strategy's memory \
         before its time, and its event log was the same. `saw the future`: it was not the same; the \
         run is not ranked. Missing, and on the page `not made again`: only the best of a sweep are \
         (`--verify`), and the runs that its walk forward chose.",
    ),
];

/// How much of the best run may be luck.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Luck {
    /// Runs to choose from that have a Sharpe ratio.
    pub trials: usize,
    /// Standard deviation of their Sharpe ratios, per year; none for fewer than two.
    pub trial_sharpe_deviation: Option<f64>,
    /// The Sharpe ratio per year that the best of so many runs without skill is expected to show.
    pub expected_max_sharpe: Option<f64>,
    /// Deflated Sharpe ratio of the best run.
    pub deflated_sharpe: Option<f64>,
    /// Why there is none.
    pub deflated_sharpe_missing: Option<String>,
    /// Probability of backtest overfitting.
    pub overfitting_probability: Option<f64>,
    /// Why there is none.
    pub overfitting_missing: Option<String>,
    /// Runs that it was made from.
    pub overfitting_runs: usize,
}

/// The Sharpe ratios of the runs that were tried.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Trials {
    count: usize,
    /// Of Sharpe ratios of a day.
    deviation: Option<f64>,
}

impl Trials {
    /// The trials with these Sharpe ratios, per year.
    pub fn of(sharpes: impl Iterator<Item = f64>) -> Self {
        let daily: Vec<f64> = sharpes.map(|sharpe| sharpe / DAYS_PER_YEAR.sqrt()).collect();
        let count = daily.len();
        let mean = daily.iter().sum::<f64>() / count as f64;
        let squares: f64 = daily.iter().map(|one| (one - mean) * (one - mean)).sum();
        let deviation = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        Self { count, deviation }
    }

    /// The Sharpe ratio of a day that the best of them is expected to show without skill.
    fn expected_max(&self) -> f64 {
        let Some(deviation) = self.deviation else { return 0.0 };
        let tail = 1.0 / self.count as f64;
        let first = normal::above_which(tail);
        let second = normal::above_which(tail / std::f64::consts::E);
        deviation * ((1.0 - EULER) * first + EULER * second)
    }

    /// The deflated Sharpe ratio of a run that was chosen from these trials; none where its Sharpe
    /// ratio has no error to compare with.
    #[must_use]
    pub fn deflated_sharpe(&self, run: &Score) -> Option<f64> {
        let sharpe = run.sharpe? / DAYS_PER_YEAR.sqrt();
        let (skewness, kurtosis) = (run.skewness?, run.kurtosis?);
        let spread = 1.0 - skewness * sharpe + (kurtosis - 1.0) / 4.0 * sharpe * sharpe;
        if run.days < DAYS_MIN || spread <= 0.0 {
            return None;
        }
        let above = (sharpe - self.expected_max()) * ((run.days - 1) as f64).sqrt();
        Some(rounded(normal::upper_tail(-above / spread.sqrt())))
    }
}

/// Skewness and kurtosis of daily returns; none where they do not differ.
#[must_use]
pub fn shape(daily: &[f64]) -> Option<(f64, f64)> {
    if daily.windows(2).all(|pair| pair[0] == pair[1]) {
        return None;
    }
    let count = daily.len() as f64;
    let mean = daily.iter().sum::<f64>() / count;
    let (mut second, mut third, mut fourth) = (0.0, 0.0, 0.0);
    for day in daily {
        let apart = day - mean;
        second += apart * apart / count;
        third += apart * apart * apart / count;
        fourth += apart * apart * apart * apart / count;
    }
    (second > 0.0).then(|| (third / (second * second.sqrt()), fourth / (second * second)))
}

/// The rows whose daily returns are kept, in rising order: all, or a sample of them. None with
/// walk-forward, whose runs have different days.
#[must_use]
pub fn sampled_rows(plan: &Plan) -> Vec<u64> {
    if !plan.folds().is_empty() {
        return Vec::new();
    }
    distinct_below(plan.rows() as u64, OVERFITTING_RUNS_MAX as u64, SAMPLE_SEED)
}

/// The trials of a sweep.
#[must_use]
pub fn trials(plan: &Plan, results: &Results) -> Trials {
    Trials::of(ranked_scores(plan, results).filter_map(|(_, score)| score.sharpe))
}

/// The runs that can be chosen from, with their rows.
fn ranked_scores<'a>(
    plan: &'a Plan,
    results: &'a Results,
) -> impl Iterator<Item = (usize, &'a Score)> {
    let chosen =
        results.rows.iter().flatten().filter(|run| {
            plan.run(run.row).combination.is_some() && !results.saw_the_future(run.row)
        });
    chosen.filter_map(|run| Some((run.row, run.score.as_ref()?)))
}

impl Luck {
    /// What can be said of the results.
    #[must_use]
    pub fn of(plan: &Plan, results: &Results, rank_by: Statistic) -> Self {
        let trials = trials(plan, results);
        let per_year = |daily: f64| rounded(daily * DAYS_PER_YEAR.sqrt());
        let chosen = (0..plan.rows()).filter(|row| plan.run(*row).combination.is_some());
        let best = results.best(chosen, rank_by);
        let best = best.and_then(|row| results.rows[row].as_ref()?.score.as_ref());
        let deflated_sharpe = best.and_then(|score| trials.deflated_sharpe(score));
        let missing = match best {
            None => "no run is ranked",
            Some(score) if score.days < DAYS_MIN => "the best run has fewer than 3 days",
            Some(_) => "the daily returns of the best run do not differ",
        };
        let (overfitting_runs, overfitting) = overfitting(plan, results);
        Self {
            trials: trials.count,
            trial_sharpe_deviation: trials.deviation.map(per_year),
            expected_max_sharpe: (trials.count > 0).then(|| per_year(trials.expected_max())),
            deflated_sharpe,
            deflated_sharpe_missing: deflated_sharpe.is_none().then(|| missing.to_owned()),
            overfitting_probability: overfitting.as_ref().ok().copied(),
            overfitting_missing: overfitting.err(),
            overfitting_runs,
        }
    }
}

/// How many runs have a say, and the probability of overfitting or why there is none.
fn overfitting(plan: &Plan, results: &Results) -> (usize, Result<f64, String>) {
    let none = |why: &str| (0, Err(why.to_owned()));
    if !plan.folds().is_empty() {
        return none("a walk forward tests out of sample; its runs have different days");
    }
    if plan.days().len() < OVERFITTING_DAYS_MIN {
        let days = plan.days().len();
        return (0, Err(format!("{days} days; it is stated from {OVERFITTING_DAYS_MIN} on")));
    }
    if !results.is_complete() {
        return none("runs are missing");
    }
    let blocks: Vec<&ReturnBlocks> = ranked_scores(plan, results)
        .filter_map(|(_, score)| score.return_blocks.as_deref())
        .collect();
    if blocks.len() > 1 && are_all_equal(&blocks) {
        return (blocks.len(), Err("all runs have the same returns".to_owned()));
    }
    match overfitted_choices(&blocks) {
        Some((overfitted, all)) => (blocks.len(), Ok(f64::from(overfitted) / f64::from(all))),
        None => (blocks.len(), Err("it needs two runs to choose from".to_owned())),
    }
}

fn rounded(number: f64) -> f64 {
    (number * SCALE).round() / SCALE
}

/// The definitions as a section of the documentation in Markdown.
#[must_use]
pub fn definitions_markdown() -> String {
    let mut page = String::from(
        "\n## Luck\n\nOf a sweep: in `sweep.json` and on its page. A number of each run is a \
         column of its table too.\n\n| name | what | unit | formula |\n|---|---|---|---|\n",
    );
    for (name, title, unit, text) in DEFINITIONS {
        page.push_str(&format!("| `{name}` | {title} | {unit} | {text} |\n"));
    }
    page
}
