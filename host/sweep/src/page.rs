//! The page of a sweep: one HTML file with a heat map and the best runs, which asks the network for
//! nothing. The same sweep gives the same bytes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::finished::{Finished, Results};
use crate::luck::DEFINITIONS;
use crate::manifest::SweepManifest;
use crate::plan::{Phase, Plan};
use crate::score::Statistic;
use crate::verify::Verdict;
use results::report::{escape, texts};

/// The page around the data. Between pairs of `@@` stands the name of the part that goes there.
const TEMPLATE: &str = include_str!("assets/sweep.html");
/// Its own texts in both languages.
const TEXTS: &str = include_str!("assets/texts.json");
/// All of its texts: the exchange's rules and what the record says are told as on the page of a run.
static ALL_TEXTS: LazyLock<String> =
    LazyLock::new(|| texts::with_families(TEXTS, &["rule", "said"]));
/// Runs that a page holds at most: the best of each kind; the table beside it holds all.
const ROWS_MAX: usize = 50_000;
/// Different error texts that a page holds at most, and characters of each.
const ERRORS_MAX: usize = 100;
/// Characters of an error that a page shows.
const ERROR_CHARS: usize = 400;

/// The page.
#[must_use]
pub fn render(
    plan: &Plan,
    results: &Results,
    rank_by: Statistic,
    manifest: &SweepManifest,
) -> String {
    render_up_to(plan, results, rank_by, manifest, ROWS_MAX)
}

fn render_up_to(
    plan: &Plan,
    results: &Results,
    rank_by: Statistic,
    manifest: &SweepManifest,
    rows_max: usize,
) -> String {
    let rows = shown_rows(plan, results, rank_by, rows_max);
    let data = escape::script_json(&data(plan, results, rank_by, manifest, &rows));
    let part = |name: &str| match name {
        "report.css" => results::report::STYLE,
        "sweep.css" => include_str!("assets/sweep.css"),
        "texts.json" => ALL_TEXTS.as_str(),
        "language.js" => texts::LANGUAGE_SCRIPT,
        "sweep.js" => include_str!("assets/sweep.js"),
        "heat.js" => include_str!("assets/heat.js"),
        _ => "",
    };
    let mut page = String::with_capacity(data.len() + (64 << 10));
    let template = texts::filled(TEMPLATE, TEXTS);
    for (index, piece) in template.split("@@").enumerate() {
        page.push_str(match (index % 2, piece) {
            (0, text) => text,
            (_, "data") => &data,
            (_, name) => part(name),
        });
    }
    page
}

/// The rows on the page, in order: all, or else every test run and the best of the others.
fn shown_rows(plan: &Plan, results: &Results, rank_by: Statistic, rows_max: usize) -> Vec<usize> {
    let done: Vec<usize> = results.rows.iter().flatten().map(|run| run.row).collect();
    if done.len() <= rows_max {
        return done;
    }
    let is_test = |row: &usize| plan.run(*row).phase == Phase::Test;
    let mut rows: Vec<usize> = done.iter().copied().filter(is_test).take(rows_max).collect();
    let others = results.ranked(done.into_iter().filter(|row| !is_test(row)), rank_by);
    let room = rows_max - rows.len();
    rows.extend(others.into_iter().take(room));
    rows.sort_unstable();
    rows
}

fn data(
    plan: &Plan,
    results: &Results,
    rank_by: Statistic,
    manifest: &SweepManifest,
    rows: &[usize],
) -> Value {
    let folds: Vec<Value> = plan
        .folds()
        .iter()
        .map(|fold| json!({ "train": plan.period(&fold.train), "test": plan.period(&fold.test) }))
        .collect();
    let statistics: Vec<Value> = Statistic::ALL
        .into_iter()
        .map(|one| {
            json!({ "name": one.name(), "kind": kind_of(one), "higher": one.higher_is_better() })
        })
        .collect();
    let luck: Vec<Value> = DEFINITIONS
        .into_iter()
        .map(|(name, _, unit, _)| json!({ "name": name, "unit": unit }))
        .collect();
    json!({
        "manifest": manifest,
        "axes": plan.grid().axes(),
        "fixed": plan.grid().fixed(),
        "luck": luck,
        "period": plan.period(&(0..plan.days().len())),
        "folds": folds,
        "statistics": statistics,
        "runs": columns(plan, results, rank_by, rows),
    })
}

/// How a statistic's numbers are written.
const fn kind_of(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Sharpe => "ratio",
        Statistic::Return | Statistic::MaxDrawdown | Statistic::WinRate => "percent",
        Statistic::EquityEnd | Statistic::Turnover | Statistic::Commission => "yen",
        Statistic::RoundTrips | Statistic::Fills => "count",
    }
}

/// The runs column by column, which is a third of the bytes of an object for each run.
fn columns(plan: &Plan, results: &Results, rank_by: Statistic, rows: &[usize]) -> Value {
    let mut indexes = vec![Vec::new(); plan.grid().axes().len()];
    let mut numbers: Map<String, Value> = Map::new();
    let (mut folds, mut tests, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let verdict =
        |run: &&Finished| results.verdict(run.row).map(|verdict| verdict == Verdict::Same);
    let (mut errors, mut known) = (Vec::new(), BTreeMap::new());
    let runs: Vec<_> = rows.iter().filter_map(|row| results.rows[*row].as_deref()).collect();
    for run in &runs {
        let planned = plan.run(run.row);
        folds.push(planned.fold);
        tests.push(u8::from(planned.phase == Phase::Test));
        let found = run.combination.map(|combination| plan.grid().value_indexes(combination));
        for (axis, column) in indexes.iter_mut().enumerate() {
            column.push(found.as_ref().map(|found| found[axis]));
        }
        failures.push(run.error.as_ref().map(|error| {
            let short: String = error.chars().take(ERROR_CHARS).collect();
            let next = errors.len().min(ERRORS_MAX);
            *known.entry(short.clone()).or_insert_with(|| {
                if errors.len() < ERRORS_MAX {
                    errors.push(short);
                } else if errors.len() == ERRORS_MAX {
                    errors.push("another error; see the table".to_owned());
                }
                next
            })
        }));
    }
    for one in Statistic::ALL {
        let column: Vec<Option<f64>> = runs
            .iter()
            .map(|run| run.score.as_ref().and_then(|score| one.of(score)))
            .map(|number| {
                number.map(|number| if kind_of(one) == "yen" { number } else { rounded(number) })
            })
            .collect();
        numbers.insert(one.name().to_owned(), json!(column));
    }
    let row: Vec<usize> = runs.iter().map(|run| run.row).collect();
    // Where a run stands by the statistic that the sweep ranks by; test runs are not chosen from.
    let chosen = row.iter().copied().filter(|row| plan.run(*row).phase != Phase::Test);
    let ranked = results.ranked(chosen, rank_by);
    let places: BTreeMap<usize, usize> = ranked.into_iter().zip(0..).collect();
    let rank: Vec<Option<usize>> = row.iter().map(|row| places.get(row).copied()).collect();
    let same: Vec<Option<bool>> = runs.iter().map(verdict).collect();
    json!({
        "row": row, "rank": rank, "places": indexes, "fold": folds, "test": tests,
        "failure": failures, "errors": errors, "numbers": numbers, "verified": same,
    })
}

/// Six digits are more than the page shows, and shorter than all of them.
fn rounded(number: f64) -> f64 {
    format!("{number:.6e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finished::Finished;
    use crate::grid::Grid;
    use crate::manifest::Asked;
    use crate::plan::Choice;
    use crate::score::scored;
    use domain::JstDate;

    fn plan() -> Plan {
        let axes = ["fast=1:10:1", "name=</script>,<b>"];
        let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        let days = JstDate::from_ymd_opt(2025, 1, 6).unwrap().iter_days().take(3).collect();
        Plan::new(Grid::new(axes, BTreeMap::new()).unwrap(), Choice::All, None, days).unwrap()
    }

    fn results(plan: &Plan) -> Results {
        let run = |row: usize| {
            let score = (row != 3).then(|| scored(Some(row as f64), 0.1));
            let error = (row == 3).then(|| "<!-- </script> oh".to_owned());
            Some(Box::new(Finished { row, combination: Some(row as u64), score, error }))
        };
        Results { rows: (0..plan.rows()).map(run).collect(), ..Results::default() }
    }

    fn page(rows_max: usize) -> (String, Value) {
        let (plan, by) = (plan(), Statistic::Sharpe);
        let results = results(&plan);
        let manifest = {
            let rules = BTreeMap::from([("NOT MODELLED".to_owned(), "<b>dividends".to_owned())]);
            SweepManifest::new(
                &plan,
                &results,
                Asked { rank_by: by, verify: 10 },
                rules,
                json!({ "strategy": {} }),
            )
        };
        let page = render_up_to(&plan, &results, by, &manifest, rows_max);
        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let data = serde_json::from_str(&page[start..end]).unwrap();
        (page, data)
    }

    #[test]
    fn the_page_holds_everything_and_asks_for_nothing() {
        let (page, data) = page(100);
        for word in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(!page.contains("@@") && page.contains("default-src 'none'"));
        assert_eq!(data["runs"]["row"].as_array().unwrap().len(), 20);
        assert_eq!(data["runs"]["errors"][0], "<!-- </script> oh");
        assert_eq!(data["axes"][1]["values"][0], "</script>");
        assert_eq!(data["manifest"]["best_run"], 19);
        assert_eq!(data["manifest"]["rules"]["NOT MODELLED"], "<b>dividends");
        assert!(page.contains("id=\"rules\"") && !page.contains("<b>dividends"));
        assert_eq!(page.matches("</script>").count(), page.matches("<script").count());
    }

    #[test]
    fn a_page_of_too_many_runs_holds_the_best() {
        let (_, data) = page(3);
        assert_eq!(data["runs"]["row"], json!([17, 18, 19]));
        assert_eq!(data["manifest"]["runs_done"], 20);
    }

    #[test]
    fn the_table_has_every_number_as_it_is_documented() {
        let texts: Value = serde_json::from_str(TEXTS).unwrap();
        for (name, title, _, text) in DEFINITIONS {
            assert_eq!(texts[format!("luck.{name}")]["en"], title);
            assert_eq!(texts[format!("luckText.{name}")]["en"], text);
        }
        for statistic in Statistic::ALL {
            for family in ["statistic", "inside"] {
                assert!(
                    texts[format!("{family}.{}", statistic.name())].is_object(),
                    "{statistic:?}"
                );
            }
        }
        // A table cannot end its element.
        assert!(!ALL_TEXTS.contains('<'));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(json!(rounded(0.1 + 0.2)).to_string(), "0.3");
        assert_eq!(rounded(-12_345_678.0), -12_345_680.0);
    }
}
