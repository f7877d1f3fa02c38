//! What a sweep says at its end, for people and for scripts.

use std::path::{Path, PathBuf};

use domain::Money;
use exchange::NOT_MODELLED;
use results::output::json;
use serde_json::{Value, json};
use sweep::verify::Verdict;
use sweep::{Phase, Plan, Results, Score, Statistic, SweepManifest};

use crate::args::Format;
use crate::terminal::{columns, grouped, not_modelled, pairs, percent};

/// Different warnings that are printed.
const WARNINGS_PRINTED: usize = 5;

/// `fast=5 slow=50`.
pub(crate) fn parameters(plan: &Plan, combination: u64) -> String {
    let axes = plan.grid().axes().iter();
    let pairs = axes.zip(plan.grid().values(combination));
    let pairs: Vec<String> = pairs.map(|(axis, value)| format!("{}={value}", axis.name)).collect();
    pairs.join(" ")
}

/// What is printed at the end.
pub(crate) struct Report<'a> {
    pub(crate) format: Format,
    pub(crate) plan: &'a Plan,
    pub(crate) results: &'a Results,
    pub(crate) rank_by: Statistic,
    /// How many of the best runs are named.
    pub(crate) top: usize,
    pub(crate) manifest: SweepManifest,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) running_s: f64,
}

impl Report<'_> {
    pub(crate) fn print(&self) {
        match self.format {
            Format::Table => self.table(),
            Format::Json => self.json(),
        }
    }

    /// The best runs, out-of-sample ones left out.
    fn top(&self) -> Vec<usize> {
        let chosen = (0..self.plan.rows()).filter(|row| self.plan.run(*row).phase != Phase::Test);
        let mut ranked = self.results.ranked(chosen, self.rank_by);
        ranked.truncate(self.top);
        ranked
    }

    fn table(&self) {
        let manifest = &self.manifest;
        let made = self.results.done() - self.results.kept;
        println!(
            "{} of {} runs done, {} failed, {} kept from before; {} in {:.1} s ({:.1} runs/s)",
            manifest.runs_done,
            manifest.runs_total,
            manifest.runs_failed,
            self.results.kept,
            made,
            self.running_s,
            rate(made, self.running_s)
        );
        let top = self.top();
        if !top.is_empty() {
            println!("\nbest by {}:\n", self.rank_by);
            print!("{}", columns(&self.rows(&top)));
        }
        if !self.plan.folds().is_empty() {
            println!("\nout of sample:\n");
            print!("{}", columns(&self.test_rows()));
            if let Some(all) = manifest.out_of_sample_return {
                println!("\nreturn of the test windows one after the other: {}", percent(all));
            } else if manifest.test_runs_saw_the_future > 0 {
                println!(
                    "\nno return of the test windows one after the other: a run on them saw the future"
                );
            }
        }
        print!("\n{}", pairs(&self.luck()));
        if let Some(error) = self.first_error() {
            println!("\nfirst failed run: {error}");
        }
        self.warnings();
        if let Some(warning) = self.manifest.made_from["options"]["warning"].as_str() {
            println!("\n{warning}");
        }
        println!("\n{}", not_modelled(NOT_MODELLED));
        let page = self.files.iter().find(|path| path.extension().is_some_and(|end| end == "html"));
        if let Some(page) = page {
            println!("\npage: {}", page.display());
        }
    }

    /// What runs warn of, in the words of a single one.
    fn warnings(&self) {
        let SweepManifest { runs_warned, runs_done, warnings, .. } = &self.manifest;
        if *runs_warned > 0 {
            println!("\n{runs_warned} of {runs_done} runs warn of something:");
        }
        for warning in warnings.iter().take(WARNINGS_PRINTED) {
            println!("{} of them: {}", warning.runs, warning.text);
        }
        if warnings.len() > WARNINGS_PRINTED {
            println!("and of more; see `warnings` in sweep.json and the table");
        }
    }

    /// What the best run may owe to luck, and which runs saw the future.
    fn luck(&self) -> Vec<(&'static str, String)> {
        let (manifest, luck) = (&self.manifest, &self.manifest.luck);
        let or_why = |share: Option<f64>, why: &Option<String>| match share {
            Some(share) => percent(share),
            None => format!("- ({})", why.as_deref().unwrap_or("unknown")),
        };
        let deflated = match (luck.deflated_sharpe, luck.expected_max_sharpe) {
            (Some(share), Some(chance)) => format!(
                "{} (luck alone shows a Sharpe ratio of {chance:.3} in {} trials)",
                percent(share),
                luck.trials
            ),
            (share, _) => or_why(share, &luck.deflated_sharpe_missing),
        };
        let overfitting = or_why(luck.overfitting_probability, &luck.overfitting_missing);
        let verified = match (manifest.runs_verified, manifest.runs_saw_the_future) {
            (0, _) => "none".to_owned(),
            (runs, 0) => format!("{runs} runs came out the same with window 1"),
            (runs, seen) => format!("{seen} of {runs} runs SAW THE FUTURE and are not ranked"),
        };
        vec![
            ("deflated Sharpe ratio", deflated),
            ("probability of overfitting", overfitting),
            ("verified", verified),
        ]
    }

    fn rows(&self, rows: &[usize]) -> Vec<Vec<String>> {
        let axes = self.plan.grid().axes().iter().map(|axis| axis.name.clone());
        let has_folds = !self.plan.folds().is_empty();
        let mut head = vec!["run".to_owned()];
        head.extend(has_folds.then(|| "days".to_owned()));
        head.extend(axes);
        head.extend(NUMBERS.map(str::to_owned));
        head.push("verified".to_owned());
        let mut table = vec![head];
        for row in rows {
            let Some(run) = self.results.rows.get(*row).and_then(Option::as_ref) else { continue };
            let mut line = vec![row.to_string()];
            line.extend(has_folds.then(|| self.days(*row)));
            line.extend(self.values(run.combination));
            if let Some(score) = &run.score {
                line.extend(numbers(score));
                line.push(self.results.verdict(*row).map_or("-", Verdict::as_str).to_owned());
            }
            table.push(line);
        }
        table
    }

    fn test_rows(&self) -> Vec<Vec<String>> {
        let folds = 0..self.plan.folds().len();
        self.rows(&folds.map(|fold| self.plan.test_row(fold)).collect::<Vec<_>>())
    }

    fn values(&self, combination: Option<u64>) -> Vec<String> {
        match combination {
            Some(number) => {
                self.plan.grid().values(number).into_iter().map(str::to_owned).collect()
            }
            None => self.plan.grid().axes().iter().map(|_| "-".to_owned()).collect(),
        }
    }

    fn days(&self, row: usize) -> String {
        let period = self.plan.period(&self.plan.run(row).days);
        period.map_or("-".to_owned(), |(first, last)| format!("{first}..{last}"))
    }

    fn first_error(&self) -> Option<String> {
        self.results.rows.iter().flatten().find_map(|run| {
            let error = run.error.as_ref()?.lines().next().unwrap_or_default().to_owned();
            let values = run.combination.map(|number| parameters(self.plan, number));
            Some(format!("{} ({}): {error}", run.row, values.unwrap_or_default()))
        })
    }

    fn json(&self) {
        let run = |row: &usize| {
            let run = self.results.rows[*row].as_ref();
            let combination = run.and_then(|run| run.combination);
            let config = combination.map(|number| self.plan.grid().config_json(number));
            json!({
                "run": row,
                "days": self.days(*row),
                "parameters": config.and_then(|text| serde_json::from_str::<Value>(&text).ok()),
                "numbers": run.and_then(|run| run.score.as_ref()).map(json_numbers),
                "error": run.and_then(|run| run.error.as_ref()),
                "verified": self.results.verdict(*row).map(Verdict::as_str),
            })
        };
        let tests = (0..self.plan.folds().len()).map(|fold| self.plan.test_row(fold));
        let files: Vec<String> = self.files.iter().map(|path| name(path)).collect();
        let whole = json!({
            "sweep": self.manifest,
            "kept": self.results.kept,
            "top": self.top().iter().map(run).collect::<Vec<_>>(),
            "out_of_sample": tests.map(|row| run(&row)).collect::<Vec<_>>(),
            "files": files,
            "timing": { "running_s": self.running_s },
        });
        print!("{}", json::text(&whole));
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

const NUMBERS: [&str; 7] =
    ["sharpe", "return", "max drawdown", "equity at end", "trips", "fills", "commission"];

fn numbers(score: &Score) -> Vec<String> {
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), percent);
    let money = |money: Money| grouped(&money.to_string());
    vec![
        score.sharpe.map_or("-".to_owned(), |sharpe| format!("{sharpe:.3}")),
        ratio(score.return_ratio),
        ratio(score.max_drawdown_ratio),
        money(score.equity_end),
        grouped(&score.round_trips.to_string()),
        grouped(&score.fills.to_string()),
        money(score.commission),
    ]
}

fn json_numbers(score: &Score) -> Value {
    let pair = |one: Statistic| (one.name().to_owned(), json!(one.of(score)));
    let mut all: serde_json::Map<String, Value> = Statistic::ALL.into_iter().map(pair).collect();
    all.insert("equity_end".to_owned(), json!(score.equity_end.to_string()));
    all.insert("turnover".to_owned(), json!(score.turnover.to_string()));
    all.insert("commission".to_owned(), json!(score.commission.to_string()));
    all.insert("orders".to_owned(), json!(score.orders));
    all.insert("digest".to_owned(), json!(score.digest));
    Value::Object(all)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(runs: usize, seconds: f64) -> f64 {
    runs as f64 / seconds.max(1e-9)
}
