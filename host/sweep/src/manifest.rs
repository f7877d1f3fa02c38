//! What a sweep was made from, and how far it is.

use std::collections::BTreeMap;

use exchange::RULES;
use replay::data_set::DataSet;
use replay::options::ReplayOptions;
use results::output::{ComponentIdentity, InputFile, SettingsFile};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::finished::Results;
use crate::luck::Luck;
use crate::plan::{Phase, Plan};
use crate::rows::RowRange;
use crate::score::Statistic;
use crate::table;

/// Version of the folder's form.
pub const SWEEP_VERSION: u32 = 6;
/// Different warnings that a manifest names.
const WARNINGS_MAX: usize = 20;

/// What a sweep was made from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepHeader<'a> {
    /// Version of the folder's form.
    sweep_version: u32,
    /// Version of Kumiki.
    kumiki_version: &'a str,
    /// The strategy.
    strategy: &'a ComponentIdentity,
    /// The engine that runs it, with its version.
    engine: &'a str,
    /// Data files.
    inputs: &'a [InputFile],
    /// The folder's tables of instruments and of business days, as far as there are any.
    settings: &'a [SettingsFile],
    /// Names of the instruments by their ids, as far as the instrument table has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<&'a BTreeMap<String, String>>,
    /// Where lots, price steps and base prices came from, a line each.
    notes: &'a [String],
    /// The options in words.
    options: &'a Value,
    /// The combinations and their days.
    plan: Value,
    /// The parameters that nobody gave, as the strategy reports them with the first combination; null where it
    /// does not start with that.
    parameter_defaults: Option<BTreeMap<String, Value>>,
    /// Whether the strategy was handed one trade at a time (window 1). Runs made with more are not kept
    /// for it: trades in memory before their time may have changed them.
    one_trade_at_a_time: bool,
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
/// `rank` says by what runs are ranked, and whether the best are verified; `in_effect` are the parameters that the
/// strategy reports with the plan's first combination.
#[must_use]
pub fn header(
    (strategy, in_effect): (&ComponentIdentity, Option<BTreeMap<String, Value>>),
    engine: &str,
    data: &DataSet,
    options: &ReplayOptions,
    shown: &Value,
    plan: &Plan,
    rank: (Statistic, bool),
) -> Value {
    // Results depend on everything but how large a window is; the configuration is the plan's.
    let pinned = ReplayOptions { window: 1, config_json: String::new(), ..options.clone() };
    let rules: Vec<String> = RULES.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    let hash = |text: String| format!("{:032x}", xxh3_128(text.as_bytes()));
    // Only a walk forward chooses by the rank; otherwise it is a matter of looking.
    let chosen_by = plan.walk_forward().map(|_| rank.0.name());
    let choice_verified = plan.walk_forward().map(|_| rank.1);
    let given = |name: &String| {
        let grid = plan.grid();
        grid.fixed().contains_key(name) || grid.axes().iter().any(|axis| axis.name == *name)
    };
    let parameter_defaults = in_effect.map(|mut all| {
        all.retain(|name, _| !given(name));
        all
    });
    json!(SweepHeader {
        sweep_version: SWEEP_VERSION,
        kumiki_version: env!("CARGO_PKG_VERSION"),
        strategy,
        engine,
        inputs: &data.inputs,
        settings: &data.settings,
        names: (!data.names.is_empty()).then_some(&data.names),
        notes: &data.notes,
        options: shown,
        plan: plan.described(),
        parameter_defaults,
        one_trade_at_a_time: options.window == 1,
        chosen_by,
        choice_verified,
        all_options_xxh3_128: hash(format!("{pinned:?}")),
        fill_rules_xxh3_128: hash(rules.join("\n")),
    })
}

/// What was asked of a sweep that its journal does not pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// By what runs are ranked.
    pub rank_by: Statistic,
    /// How many of the best runs are made again with window 1.
    pub verify: usize,
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
    /// Their rows, each range from the first to one before the end, like `0..100`.
    pub rows: Vec<RowRange>,
    /// Runs that failed.
    pub runs_failed: usize,
    /// Runs that were made again with window 1.
    pub runs_verified: usize,
    /// Those of them in which something else happened then; they are not ranked.
    pub runs_saw_the_future: usize,
    /// Test runs of a walk forward among these: there is no return out of sample then.
    pub test_runs_saw_the_future: usize,
    /// Runs that warn of something.
    pub runs_warned: usize,
    /// The first warning of each, those of most runs first; at most 20.
    pub warnings: Vec<SweepWarning>,
    /// How many of the best runs were to be made again with window 1.
    pub verify: usize,
    /// By what the best run was chosen.
    pub rank_by: String,
    /// The row of the best run, out-of-sample runs left out.
    pub best_run: Option<usize>,
    /// Its parameters, for `replay run`.
    pub best_parameters: Option<Value>,
    /// Return of the test runs one after the other; none without walk-forward, or where one of them failed or saw
    /// the future.
    pub out_of_sample_return: Option<f64>,
    /// How much of the best run may be luck.
    pub luck: Luck,
    /// The trading days, JST.
    pub days: Vec<String>,
    /// What the sweep was made from: the first line of its journal.
    #[schemars(with = "SweepHeader<'_>")]
    pub made_from: Value,
    /// How fills were made and what is not modelled, by the names of the rules.
    pub rules: BTreeMap<String, String>,
    /// The columns of the table with their meaning.
    pub columns: Vec<Value>,
}

/// What some runs warn of first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SweepWarning {
    /// How many do.
    pub runs: usize,
    /// The sentence.
    pub text: String,
}

impl SweepWarning {
    fn of(results: &Results) -> Vec<Self> {
        let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
        for text in results.scores().filter_map(|score| score.warning.as_deref()) {
            *runs.entry(text).or_default() += 1;
        }
        let warnings = runs.into_iter().map(|(text, runs)| Self { runs, text: text.to_owned() });
        let mut warnings: Vec<Self> = warnings.collect();
        warnings.sort_by(|one, next| (next.runs, &one.text).cmp(&(one.runs, &next.text)));
        warnings.truncate(WARNINGS_MAX);
        warnings
    }
}

impl SweepManifest {
    /// The manifest of these results; `rules` are the exchange's.
    #[must_use]
    pub fn new(
        plan: &Plan,
        results: &Results,
        Asked { rank_by, verify }: Asked,
        rules: BTreeMap<String, String>,
        header: Value,
    ) -> Self {
        let chosen = (0..plan.rows()).filter(|row| plan.run(*row).combination.is_some());
        let best = results.best(chosen, rank_by);
        let combination = best.and_then(|row| results.rows[row].as_ref()?.combination);
        let parameters =
            combination.map(|number| serde_json::from_str(&plan.grid().config_json(number)));
        Self {
            status: if results.is_complete() { "complete" } else { "partial" }.to_owned(),
            runs_total: plan.rows(),
            runs_done: results.done(),
            rows: RowRange::of(results.rows.iter().flatten().map(|run| run.row)),
            runs_failed: results.failed(),
            runs_verified: results.verified.len(),
            runs_saw_the_future: results.futures_seen().count(),
            test_runs_saw_the_future: results
                .futures_seen()
                .filter(|row| plan.run(*row).phase == Phase::Test)
                .count(),
            runs_warned: results.scores().filter(|score| score.warnings > 0).count(),
            warnings: SweepWarning::of(results),
            verify,
            rank_by: rank_by.name().to_owned(),
            best_run: best,
            // A plain object of parameters, made by the line above.
            best_parameters: parameters.and_then(Result::ok),
            out_of_sample_return: out_of_sample_return(plan, results),
            luck: Luck::of(plan, results, rank_by),
            days: plan.days().iter().map(ToString::to_string).collect(),
            made_from: header,
            rules,
            columns: table::columns(plan).iter().map(table::Column::described).collect(),
        }
    }
}

/// What is left of one yen after all test runs, one after the other, minus one; none while one of
/// them is missing, failed or saw the future.
fn out_of_sample_return(plan: &Plan, results: &Results) -> Option<f64> {
    let folds = 0..plan.folds().len();
    if folds.is_empty() {
        return None;
    }
    let growth = |fold: usize| {
        let row = plan.test_row(fold);
        let run = results.rows[row].as_ref().filter(|_| !results.saw_the_future(row))?;
        Some(1.0 + run.score.as_ref()?.return_ratio?)
    };
    folds.map(growth).product::<Option<f64>>().map(|all| all - 1.0)
}
