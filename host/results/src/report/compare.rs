//! Runs side by side: their parameters, their statistics, their equity.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::curve::Curve;
use super::data::cash_start;
use super::{COMPARE_PAGE, replace_page, written};
use crate::output::read::read_json;
use crate::output::{FolderError, MANIFEST_FILE, ReadError};
use crate::summary::DEFINITIONS;

/// Runs that can be compared at once; more colours cannot be told apart.
pub const RUNS_COMPARED_MAX: usize = 8;

/// Points of one run's curve.
const POINTS_MAX: usize = 4_000;

/// Some runs side by side.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The runs, in the order given.
    pub runs: Vec<RunOverview>,
    /// What the runs were made from, where it differs: the path in the manifest, and a value for
    /// each run.
    pub differences: Vec<Compared>,
    /// Every number of the summary, with a value for each run.
    pub statistics: Vec<Compared>,
    #[serde(skip)]
    curves: Vec<Curve>,
}

/// One run of a comparison.
#[derive(Debug, Serialize)]
pub struct RunOverview {
    /// The folder as it was given.
    pub folder: String,
    /// The strategy's name.
    pub strategy: String,
    /// What was traded: ids, each with its name where the manifest has one.
    pub instruments: Vec<String>,
    /// `completed`, `interrupted` or `failed`.
    pub status: String,
    /// Money at the start, yen.
    pub cash_start: String,
    /// What a reader must be told of its execution model.
    pub warning: Option<String>,
    /// What the exchange and the account left out; empty where its manifest says nothing.
    pub not_modelled: String,
}

/// One line of a comparison.
#[derive(Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What is compared.
    pub name: String,
    /// Its value in each run; null where a run has none.
    pub values: Vec<Value>,
}

impl Comparison {
    /// Reads the folders of runs.
    ///
    /// # Errors
    /// [`ReadError`] when one of them is not a run's.
    pub fn read(folders: &[&Path]) -> Result<Self, ReadError> {
        let mut made = Self {
            runs: Vec::new(),
            differences: Vec::new(),
            statistics: Vec::new(),
            curves: Vec::new(),
        };
        let mut options: Vec<BTreeMap<String, Value>> = Vec::new();
        let mut summaries = Vec::new();
        // All runs in steps of the longest, so that the common axis is even.
        let mut step = 1;
        for folder in folders {
            read_json(folder, MANIFEST_FILE)?;
            step = step.max(Curve::step_of(folder, POINTS_MAX)?);
        }
        for folder in folders {
            let manifest = read_json(folder, MANIFEST_FILE)?;
            let summary = read_json(folder, "summary.json")?;
            let cash = cash_start(folder, &summary)?;
            made.curves.push(Curve::read(folder, cash, step)?);
            made.runs.push(RunOverview::new(folder, &manifest, &summary));
            options.push(flattened(&manifest));
            summaries.push(summary);
        }
        made.differences = differences(&options);
        let line = |name: &str| Compared {
            name: name.to_owned(),
            values: summaries.iter().map(|summary| summary[name].clone()).collect(),
        };
        made.statistics = DEFINITIONS.iter().map(|one| line(one.name)).collect();
        Ok(made)
    }

    /// What the runs' exchange left out, each text once.
    #[must_use]
    pub fn not_modelled(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !run.not_modelled.is_empty() && !texts.contains(&run.not_modelled.as_str()) {
                texts.push(&run.not_modelled);
            }
        }
        texts
    }

    /// Writes the page that overlays the equity; an earlier one is replaced.
    ///
    /// # Errors
    /// [`FolderError`] when it cannot be written, or `page` is there and something else.
    pub fn write_page(&self, page: &Path) -> Result<(), FolderError> {
        replace_page(page, COMPARE_PAGE, |out| {
            out.write_all(b"{\"comparison\":")?;
            written(out, self)?;
            out.write_all(b",\"definitions\":")?;
            written(out, &DEFINITIONS)?;
            out.write_all(b",\"curves\":")?;
            written(out, &self.curves)?;
            out.write_all(b"}")
        })
    }
}

impl RunOverview {
    fn new(folder: &Path, manifest: &Value, summary: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            folder: folder.display().to_string(),
            strategy: text(&manifest["component"]["name"]),
            instruments: instruments(manifest),
            status: text(&manifest["status"]),
            cash_start: text(&summary["cash_start"]),
            warning: manifest["warning"].as_str().map(str::to_owned),
            not_modelled: text(&manifest["rules"]["NOT MODELLED"]),
        }
    }
}

/// The instruments of a run with their names.
fn instruments(manifest: &Value) -> Vec<String> {
    let ids = manifest["instrument_id"].as_str().unwrap_or_default().split(',');
    let named = |id: &str| match manifest["names"][id].as_str() {
        Some(name) => format!("{id} {name}"),
        None => id.to_owned(),
    };
    ids.filter(|id| !id.is_empty()).map(named).collect()
}

/// What a run was made from, each value by its path. What came out is left to the statistics, and the
/// rules' words to the parameters that they explain. Of the strategy's parameters those count that were
/// in effect: a default that was given is none that differs.
fn flattened(manifest: &Value) -> BTreeMap<String, Value> {
    const EFFECTIVE: &str = "parameters_effective";
    const RESULTS: [&str; 10] = [
        "event_log_digest",
        "event_log_records",
        "fault",
        "manifest_version",
        "names",
        "notes",
        "partial",
        "rules",
        "status",
        "warning",
    ];
    let mut values = BTreeMap::new();
    for (name, value) in manifest.as_object().into_iter().flatten() {
        if !RESULTS.contains(&name.as_str()) && name != EFFECTIVE {
            flatten(name, value, &mut values);
        }
    }
    for (name, value) in manifest[EFFECTIVE].as_object().into_iter().flatten() {
        let path = format!("parameters.{name}");
        let inside = format!("{path}.");
        values.retain(|given, _| *given != path && !given.starts_with(&inside));
        flatten(&path, value, &mut values);
    }
    values
}

fn flatten(path: &str, value: &Value, values: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                flatten(&format!("{path}.{name}"), field, values);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), item, values);
            }
        }
        other => {
            values.insert(path.to_owned(), other.clone());
        }
    }
}

fn differences(runs: &[BTreeMap<String, Value>]) -> Vec<Compared> {
    let mut names: Vec<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let line = |name: &String| Compared {
        name: name.clone(),
        values: runs.iter().map(|run| run.get(name).cloned().unwrap_or(Value::Null)).collect(),
    };
    let differs = |line: &Compared| line.values.iter().any(|value| *value != line.values[0]);
    names.into_iter().map(line).filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_told() {
        let run = |fast: u32, extra: bool| {
            let mut manifest = json!({
                "status": if extra { "failed" } else { "completed" },
                "parameters": { "fast": fast, "slow": 20 },
                "inputs": [{ "file": "a", "rows": 5 }],
            });
            if extra {
                manifest["parameters"]["note"] = json!("x");
            }
            flattened(&manifest)
        };
        let found = differences(&[run(5, false), run(5, true), run(8, false)]);
        let line = |name: &str, values: [Value; 3]| Compared {
            name: name.to_owned(),
            values: values.to_vec(),
        };
        assert_eq!(
            found,
            [
                line("parameters.fast", [json!(5), json!(5), json!(8)]),
                line("parameters.note", [Value::Null, json!("x"), Value::Null]),
            ]
        );
        assert_eq!(differences(&[run(5, true), run(5, true)]), []);
    }

    #[test]
    fn parameters_count_as_they_were_in_effect() {
        let run = |given: Value, effective: Value| {
            flattened(&json!({ "parameters": given, "parameters_effective": effective }))
        };
        let by_default = run(json!({ "x": 1 }), json!({ "fast": 20, "slow": 100 }));
        let given = run(json!({ "x": 1, "fast": "20" }), json!({ "fast": 20, "slow": 100 }));
        assert_eq!(differences(&[by_default.clone(), given]), []);
        let other = run(json!({ "x": 2 }), json!({ "fast": 20, "slow": 50 }));
        let found = differences(&[by_default, other]);
        let names: Vec<_> = found.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["parameters.slow", "parameters.x"], "what nobody reported stays");
    }
}
