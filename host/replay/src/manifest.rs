//! The manifest of a replay.

use std::collections::BTreeMap;

use domain::GuestLimit;
use results::output::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest};
use results::{RunStatus, RunTotals};
use sandbox::Limits;
use serde_json::Value;

use crate::options::ReplayOptions;

/// What the results must say aloud.
fn warning(options: &ReplayOptions, totals: &RunTotals) -> Option<String> {
    let all: Vec<String> =
        options.model.warning().into_iter().chain(totals.warnings.iter().cloned()).collect();
    (!all.is_empty()).then(|| all.join(". "))
}

/// The manifest of a replay over trades; `range` is the first and last date of its data in Japan.
#[must_use]
pub fn manifest(
    options: &ReplayOptions,
    totals: &RunTotals,
    component: ComponentIdentity,
    inputs: Vec<InputFile>,
    range: (String, String),
    limits: &Limits,
) -> Manifest {
    let fault = match &totals.status {
        RunStatus::Failed(fault) => Some(fault.to_string()),
        RunStatus::Completed | RunStatus::Interrupted => None,
    };
    Manifest {
        status: totals.status.as_str().to_owned(),
        partial: totals.status != RunStatus::Completed,
        fault,
        warning: warning(options, totals),
        parameters_effective: json_values(&totals.parameters),
        notes: totals.notes.clone(),
        event_log_digest: totals.digest.to_string(),
        event_log_records: totals.digest_records,
        ..begun(options, component, inputs, range, limits)
    }
}

/// The manifest of a run before its first row: `running`, without what comes out of it.
#[must_use]
pub(crate) fn begun(
    options: &ReplayOptions,
    component: ComponentIdentity,
    inputs: Vec<InputFile>,
    range: (String, String),
    limits: &Limits,
) -> Manifest {
    Manifest {
        manifest_version: MANIFEST_VERSION,
        kumiki_version: env!("CARGO_PKG_VERSION").to_owned(),
        run_kind: None,
        status: "running".to_owned(),
        partial: true,
        fault: None,
        warning: None,
        component,
        engine: sandbox::ENGINE.to_owned(),
        limits: limit_values(limits),
        // The strategy has parsed it before; what is no JSON is kept as text.
        parameters: serde_json::from_str(&options.config_json)
            .unwrap_or_else(|_| options.config_json.clone().into()),
        parameters_effective: BTreeMap::new(),
        instrument_id: options.of_each(|instrument| instrument.id.to_string()),
        names: None,
        start: range.0,
        end: range.1,
        granularity: "trade".to_owned(),
        bars_from: None,
        cash: options.cash.to_string(),
        lot: options.of_each(|instrument| instrument.lot.to_string()),
        ticks: options.of_each(|instrument| instrument.ticks.to_string()),
        lot_asked: String::new(),
        ticks_asked: String::new(),
        window: options.window,
        execution_model: options.model,
        rules: options.model.rules().into_iter().map(|(name, text)| (name.into(), text)).collect(),
        inputs,
        settings: Vec::new(),
        notes: Vec::new(),
        event_log_digest: String::new(),
        event_log_records: 0,
    }
}

/// Values that are JSON texts, as JSON. The sandbox has parsed them before; what is no JSON is kept as
/// text.
#[must_use]
pub fn json_values(texts: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
    texts.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}

/// The values of all limits by their names.
#[must_use]
pub fn limit_values(limits: &Limits) -> BTreeMap<String, u64> {
    GuestLimit::ALL.iter().map(|limit| (limit.name().to_owned(), limits.get(*limit))).collect()
}
