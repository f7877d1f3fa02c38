//! Makes a run again from its folder, one trade at a time, and compares.
//!
//! A strategy that is handed many trades at once has those in its memory that it should not know yet.
//! With window 1 it has not: a run that comes out the same owes nothing to them. The caller gives an
//! empty cache, so that data are decoded and the strategy is compiled anew.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::fault::Fault;
use domain::guest_limit::{LimitChange, LimitError};
use domain::limits::WINDOW_ROWS_MAX;
use domain::{GuestLimit, InstrumentId, Money, TsNanos};
use exchange::ExecutionModel;
use results::output::{
    AUDIT_FILE, COMMANDS_FILE, InputFile, MANIFEST_FILE, MANIFEST_VERSION, Manifest, ReadError,
    commands, json, read_json_text,
};
use results::{RunStatus, WallClock};
use sandbox::{CallPath, Limits, StrategyModule};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use trader::{Strategies, component_identity};
use xxhash_rust::xxh3::xxh3_64;

use crate::data_set::{DataRequest, DataSet, Granularity, is_of_files_not_read, settings};
use crate::driver::Scripted;
use crate::error::RequestError;
use crate::instruments::InstrumentChoices;
use crate::observer::RunObserver;
use crate::options::ReplayOptions;
use crate::request::RunRequest;

/// What the fault of a run says that ran out of fuel.
const OUT_OF_FUEL: &str = " used up its fuel of ";
/// Trades handed over at once: none before its time.
const WINDOW: u32 = 1;
/// What may have another value: how many trades were handed over at once, and the program that wrote it down.
const NOT_COMPARED: [&str; 2] = ["window", "kumiki_version"];

/// Which run is made again, and from what.
#[derive(Debug, Clone)]
pub struct VerifyRequest {
    /// The run's folder.
    pub folder: PathBuf,
    /// The folder with the data that it was made from.
    pub data: PathBuf,
    /// The strategy's file or name; none for the built-in one of the name in the manifest.
    pub strategy: Option<String>,
    /// Where strategies are. The cache has to be an empty folder.
    pub strategies: Strategies,
    /// Limits in place of those that the run had. Their values are not compared; what comes out is.
    pub limits: Vec<LimitChange>,
}

/// Why a run cannot be made again.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The folder cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The manifest lacks something, or has something that is nothing known.
    #[error(
        "{path}: {problem}; it was written by another version, or changed: run the replay again"
    )]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file of the run cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The manifest was written by a version that knew less, or more, of what decides a run.
    #[error(
        "{path} is a manifest of version {found}; this program makes runs again from version \
         {MANIFEST_VERSION}: run the replay again"
    )]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// Somebody stopped the run, and nothing says where.
    #[error(
        "the run in {0} was interrupted and has no record of where, so it cannot be made again; \
         run the replay to its end"
    )]
    Interrupted(PathBuf),
    /// A limit that was asked for is none.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The run could not be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The run was stopped while it was made again.
    #[error("interrupted; nothing was compared")]
    Stopped,
}

/// Something that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: a field of the manifest, a data file, the strategy.
    pub what: String,
    /// As it was, or nothing.
    pub was: String,
    /// As it is, or nothing.
    pub is: String,
}

/// What came out of a run that was made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunAgain {
    /// How the strategy was called: `direct` or `general`.
    pub path: &'static str,
    /// xxh3-128 of the event log.
    pub event_log_digest: String,
    /// What the manifest would say now; empty when the same came out.
    pub differences: Vec<Difference>,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Strategy, data files and tables of the folder that are not those of the run. With any, nothing
    /// was run.
    pub inputs_changed: Vec<Difference>,
    /// xxh3-128 of the event log of the run in the folder.
    pub event_log_digest: String,
    /// Trades that were handed over at once in that run.
    pub window: u64,
    /// Limits that were not those of the run, as asked.
    pub limits_changed: Vec<Difference>,
    /// The runs that were made, one for each call path.
    pub runs: Vec<RunAgain>,
    /// What is in the folder that the run does not write; none where nothing was run.
    pub others: Option<OtherFiles>,
}

/// What is in a run's folder that the run does not write. Nobody has looked at it, and it changes no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherFiles {
    /// The first [`domain::limits::VERIFY_OTHERS_MAX`] names, in order.
    pub names: Vec<String>,
    /// How many there are besides.
    pub more: usize,
}

impl Verification {
    /// Whether the same came out on every path.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.inputs_changed.is_empty() && self.runs.iter().all(|run| run.differences.is_empty())
    }

    /// Whether data, tables of their folder or the strategy are not those whose hashes the manifest has;
    /// nothing was run then. Whatever else differs, the manifest's own words too, was made otherwise, by
    /// the strategy or by somebody who changed it.
    #[must_use]
    pub fn is_from_other_data(&self) -> bool {
        !self.inputs_changed.is_empty()
    }
}

/// What is read of a manifest; the rest is only compared.
#[derive(Debug, Deserialize)]
struct Recorded {
    status: String,
    component: RecordedComponent,
    parameters: BTreeMap<String, Value>,
    instrument_id: String,
    start: String,
    end: String,
    granularity: String,
    cash: String,
    lot_asked: String,
    ticks_asked: String,
    limits: BTreeMap<String, u64>,
    window: u64,
    execution_model: ExecutionModel,
    inputs: Vec<RecordedInput>,
    settings: Vec<RecordedSettings>,
    event_log_digest: String,
}

#[derive(Debug, Deserialize)]
struct RecordedComponent {
    name: String,
    sha256: String,
}

#[derive(Debug, Deserialize)]
struct RecordedSettings {
    file: String,
    sha256: String,
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct RecordedInput {
    file: String,
    xxh3_128: String,
}

impl VerifyRequest {
    /// Makes the run again on every call path and compares.
    ///
    /// # Errors
    /// [`VerifyError`] when the run cannot be made again; that it comes out otherwise is no error.
    pub fn run(&self, observer: &mut dyn RunObserver) -> Result<Verification, VerifyError> {
        let (text, manifest) = read_json_text(&self.folder, MANIFEST_FILE)?;
        let version = manifest.get("manifest_version").and_then(Value::as_u64);
        if let Some(found) = version.filter(|found| *found != u64::from(MANIFEST_VERSION)) {
            return Err(VerifyError::Version { path: self.folder.join(MANIFEST_FILE), found });
        }
        let recorded: Recorded =
            serde_json::from_value(manifest.clone()).map_err(|error| self.damaged(&error))?;
        if !(1..=u64::from(WINDOW_ROWS_MAX)).contains(&recorded.window) {
            let problem = format!("window {}, which is 1 to {WINDOW_ROWS_MAX}", recorded.window);
            return Err(self.damaged(&problem));
        }
        let reworded = reworded(&text, &manifest);
        let request = self.request(&recorded)?;
        let mut manifest = manifest;
        let limits_changed = self.limits_changed(&mut manifest);
        let was_stopped = recorded.status == RunStatus::Interrupted.as_str();
        if was_stopped && !self.script(&request.data.instruments)?.stops() {
            return Err(VerifyError::Interrupted(self.folder.clone()));
        }
        let module = self.load(&request, None, observer)?;
        let mut found = Verification {
            inputs_changed: self.settings_changed(&recorded)?,
            event_log_digest: recorded.event_log_digest.clone(),
            window: recorded.window,
            limits_changed,
            runs: Vec::new(),
            others: None,
        };
        // With another calendar or other instruments the data may be none for a run.
        if !found.inputs_changed.is_empty() {
            return Ok(found);
        }
        let data = request.data.load(observer)?;
        found.inputs_changed = inputs_changed(&recorded, &module, &data.inputs);
        if !found.inputs_changed.is_empty() {
            return Ok(found);
        }
        let options = request.options(&data);
        let mut modules = vec![module];
        // Where the direct path cannot be taken there is no other than the general one.
        if modules[0].call_path() == CallPath::Direct {
            modules.push(self.load(&request, Some(CallPath::General), observer)?);
        }
        for (other, module) in modules.iter().enumerate() {
            // The first one is called as it was in the run.
            let is_other = other > 0;
            let path = module.call_path().as_str();
            let out = self.strategies.cache.join(format!("again-{path}"));
            let script = self.script(&request.data.instruments)?;
            // Who ran out of fuel does so again; a user's own limit is as it was asked for.
            let ran_out = manifest["fault"].as_str().is_some_and(|told| told.contains(OUT_OF_FUEL));
            let asked = self.changes(GuestLimit::Fuel) || self.changes(GuestLimit::LifecycleFuel);
            let more_fuel = is_other && !ran_out && !asked;
            let running = if more_fuel { with_adapters(&request) } else { request.clone() };
            let requests = (&request, &running);
            let (again, fault) =
                run_again(requests, module, &data, (&options, script), &out, observer)?;
            let changed = files::changed(&self.folder, &out)
                .map_err(|(path, error)| VerifyError::File { path, source: error })?;
            if !is_other {
                let others = files::others(&self.folder, &out);
                found.others = Some(others.map_err(|error| self.damaged(&error))?);
            }
            let now = serde_json::to_value(&again).map_err(|error| self.damaged(&error))?;
            let mut manifest = manifest.clone();
            if self.changes(GuestLimit::Orders) {
                // It is one of the rules too.
                for (field, name) in [("execution_model", "orders_max"), ("rules", "LIMITS")] {
                    manifest[field][name] = now[field][name].clone();
                }
            }
            if is_other
                && let Some(fault) = fault
                && manifest["fault"].as_str().is_some_and(|told| fault.is_told_by(told))
            {
                manifest["fault"] = now["fault"].clone();
            }
            found.runs.push(RunAgain {
                path,
                event_log_digest: again.event_log_digest,
                differences: [differences(&manifest, &now), changed, reworded.clone()].concat(),
            });
        }
        Ok(found)
    }

    /// The tables of the data folder that are not those of the run.
    fn settings_changed(&self, recorded: &Recorded) -> Result<Vec<Difference>, VerifyError> {
        let told = |sha256: &str, bytes: u64| format!("sha256 {sha256}, {bytes} bytes");
        let now = settings::files(&self.data).map_err(RequestError::from)?;
        let mut files: BTreeMap<&str, [String; 2]> = BTreeMap::new();
        for was in &recorded.settings {
            files.entry(&was.file).or_default()[0] = told(&was.sha256, was.bytes);
        }
        for is in &now {
            files.entry(&is.file).or_default()[1] = told(&is.sha256, is.bytes);
        }
        let changed = files.into_iter().filter(|(_, [was, is])| was != is);
        let difference =
            |(file, [was, is]): (&str, [String; 2])| Difference { what: file.to_owned(), was, is };
        Ok(changed.map(difference).collect())
    }

    fn damaged(&self, problem: &impl ToString) -> VerifyError {
        VerifyError::Manifest {
            path: self.folder.join(MANIFEST_FILE),
            problem: problem.to_string(),
        }
    }

    /// The request that the run was made by, with window 1.
    fn request(&self, recorded: &Recorded) -> Result<RunRequest, VerifyError> {
        let ids: Result<Vec<InstrumentId>, _> =
            recorded.instrument_id.split(',').map(str::parse).collect();
        let date = |text: &str| text.parse().map_err(|error| self.damaged(&error));
        let granularity = [Granularity::Trade, Granularity::Minute, Granularity::Day]
            .into_iter()
            .find(|one| one.as_str() == recorded.granularity);
        let unknown = || self.damaged(&format!("granularity {}", recorded.granularity));
        let cash: Money = recorded.cash.parse().map_err(|error| self.damaged(&error))?;
        Ok(RunRequest {
            data: DataRequest {
                folder: self.data.clone(),
                cache: self.strategies.cache.clone(),
                instruments: ids.map_err(|error| self.damaged(&error))?,
                start: Some(date(&recorded.start)?),
                end: Some(date(&recorded.end)?),
                granularity: granularity.ok_or_else(unknown)?,
                choices: InstrumentChoices {
                    lots: recorded
                        .lot_asked
                        .parse()
                        .map_err(|error: String| self.damaged(&error))?,
                    ticks: recorded
                        .ticks_asked
                        .parse()
                        .map_err(|error: String| self.damaged(&error))?,
                },
            },
            strategy: match &self.strategy {
                Some(strategy) => strategy.clone(),
                None => self.built_in(&recorded.component.name)?,
            },
            strategies: self.strategies.clone(),
            parameters: recorded.parameters.clone(),
            cash,
            model: recorded.execution_model,
            limits: self.limits(&recorded.limits)?,
            window: WINDOW,
            out: None,
            wall_clock: self.wall_clock(),
        })
    }

    /// A clock for the audit log where that of the run tells the time of the outside. Which time it
    /// was is not compared.
    fn wall_clock(&self) -> Option<WallClock> {
        let tells = files::tells_wall_time(&self.folder.join(AUDIT_FILE));
        tells.then_some(TsNanos::default as WallClock)
    }

    /// What clients did to the run; nothing where its folder has no such file.
    fn script(&self, instruments: &[InstrumentId]) -> Result<Scripted, VerifyError> {
        let path = self.folder.join(COMMANDS_FILE);
        if path.is_file() {
            Ok(Scripted::from(commands::read(&path, instruments)?))
        } else {
            Ok(Scripted::new(Vec::new()))
        }
    }

    /// The name of a built-in strategy; a folder of somebody else names no file of this machine.
    fn built_in(&self, name: &str) -> Result<String, VerifyError> {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if name.chars().all(is_plain) {
            return Ok(name.to_owned());
        }
        Err(self.damaged(&format!("its strategy `{name}` is no built-in one; name the file")))
    }

    /// The limits of a manifest, and those that are asked for in their place.
    fn limits(&self, recorded: &BTreeMap<String, u64>) -> Result<Limits, VerifyError> {
        let mut limits = Limits::default();
        for limit in GuestLimit::ALL {
            let value = recorded.get(limit.name());
            let value = value.ok_or_else(|| self.damaged(&format!("no limit {}", limit.name())))?;
            let changed = limits.changed(&[LimitChange { limit: *limit, value: *value }]);
            limits = changed.map_err(|error| self.damaged(&error))?;
        }
        Ok(limits.changed(&self.limits)?)
    }

    /// Whether another value is asked for than the run had.
    fn changes(&self, limit: GuestLimit) -> bool {
        self.limits.iter().any(|change| change.limit == limit)
    }

    /// Puts the limits that are asked for into the manifest that the new one is held against, and says
    /// which were others there.
    fn limits_changed(&self, manifest: &mut Value) -> Vec<Difference> {
        let mut changed = Vec::new();
        for LimitChange { limit, value } in &self.limits {
            let is = Value::from(*value);
            let was = std::mem::replace(&mut manifest["limits"][limit.name()], is.clone());
            if was != is {
                let what = limit.name().to_owned();
                changed.push(Difference { what, was: was.to_string(), is: is.to_string() });
            }
        }
        changed
    }

    /// The strategy, compiled anew. How long that took when the run was made is no part of it, so it has
    /// the default time, unless somebody asks for another.
    fn load(
        &self,
        request: &RunRequest,
        call_path: Option<CallPath>,
        observer: &dyn RunObserver,
    ) -> Result<StrategyModule, RequestError> {
        let mut limits = request.limits;
        if !self.changes(GuestLimit::Compile) {
            limits.compile_ms = limits.compile_ms.max(Limits::default().compile_ms);
        }
        let patient = RunRequest { limits, ..request.clone() };
        patient.load_strategy(call_path, &|| observer.is_cancelled())
    }
}

/// The general path's adapters use fuel of their own at each call of the host: with so many times as much it
/// does not run out of it where the direct one does not.
const GENERAL_FUEL: u64 = 2;

/// A request with the fuel of the general path.
fn with_adapters(request: &RunRequest) -> RunRequest {
    let mut limits = request.limits;
    for fuel in [&mut limits.fuel_per_event, &mut limits.fuel_per_lifecycle_call] {
        *fuel = fuel.saturating_mul(GENERAL_FUEL);
    }
    RunRequest { limits, ..request.clone() }
}

/// The run on one path, as its manifest, and why it failed: that of the run, and how it is made.
fn run_again(
    (request, running): (&RunRequest, &RunRequest),
    module: &StrategyModule,
    data: &DataSet,
    (options, mut script): (&ReplayOptions, Scripted),
    out: &Path,
    observer: &mut dyn RunObserver,
) -> Result<(Manifest, Option<Box<Fault>>), VerifyError> {
    let mut folder = request.folder(out).map_err(RequestError::from)?;
    let stops = script.stops();
    // Trade by trade from outside, whatever the run did.
    let instance = module.instantiate(running.limits).map_err(RequestError::from)?;
    let (totals, _) =
        running.replay(instance, data, options, &mut folder, &mut script, observer)?;
    if totals.status == RunStatus::Interrupted && (!stops || observer.is_cancelled()) {
        return Err(VerifyError::Stopped);
    }
    let manifest = request.manifest(options, Some(&totals), module, data);
    folder.finish(&manifest, &totals).map_err(RequestError::from)?;
    let fault = match totals.status {
        RunStatus::Failed(fault) => Some(fault),
        RunStatus::Completed | RunStatus::Interrupted => None,
    };
    Ok((manifest, fault))
}

/// The strategy and the data files that are not those of the run.
fn inputs_changed(
    recorded: &Recorded,
    module: &StrategyModule,
    inputs: &[InputFile],
) -> Vec<Difference> {
    let mut changed = Vec::new();
    let mut compare = |what: String, was: &str, is: &str| {
        if was != is {
            changed.push(Difference { what, was: was.to_owned(), is: is.to_owned() });
        }
    };
    let component = component_identity(module);
    let name = &recorded.component.name;
    compare(
        format!("sha256 of the strategy {name}"),
        &recorded.component.sha256,
        &component.sha256,
    );
    for was in &recorded.inputs {
        let is = inputs.iter().find(|input| input.file == was.file);
        let is = is.map_or("", |input| &input.xxh3_128);
        compare(format!("xxh3_128 of the data file {}", was.file), &was.xxh3_128, is);
    }
    for is in inputs.iter().filter(|is| recorded.inputs.iter().all(|was| was.file != is.file)) {
        compare(format!("xxh3_128 of the data file {}", is.file), "", &is.xxh3_128);
    }
    changed
}

/// Whether a manifest's text is another one than its values give: a field that is there twice, or
/// spaces, are not what the program writes.
fn reworded(was: &str, manifest: &Value) -> Vec<Difference> {
    let is = json::text(manifest);
    let told =
        |text: &str| format!("{} bytes, xxh3_64 {:016x}", text.len(), xxh3_64(text.as_bytes()));
    let difference = || Difference {
        what: format!("the text of {MANIFEST_FILE}"),
        was: told(was),
        is: told(&is),
    };
    (was != is).then(difference).into_iter().collect()
}

/// Notes without the one of files that no run reads. The program writes at most one.
fn notes_of_run(notes: &[Value]) -> impl Iterator<Item = &Value> {
    let is_not_read = |note: &Value| note.as_str().is_some_and(is_of_files_not_read);
    let not_read = notes.iter().position(is_not_read);
    notes.iter().enumerate().filter(move |(at, _)| Some(*at) != not_read).map(|(_, note)| note)
}

/// The fields of two manifests that differ.
fn differences(was: &Value, is: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut names: Vec<&String> =
        [was, is].into_iter().filter_map(Value::as_object).flat_map(|all| all.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (was, is) = (was.get(name), is.get(name));
        let is_same = match (was, is) {
            // A field that is gone is another matter than one with another value.
            (Some(_), Some(_)) if NOT_COMPARED.contains(&name.as_str()) => true,
            // What no run reads changes none.
            (Some(Value::Array(was)), Some(Value::Array(is))) if name == "notes" => {
                notes_of_run(was).eq(notes_of_run(is))
            }
            _ => was == is,
        };
        if !is_same {
            let text = |value: Option<&Value>| match value {
                None => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            found.push(Difference { what: name.clone(), was: text(was), is: text(is) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_is_compared_but_the_window_and_the_version() {
        let was = json!({ "window": 1024, "kumiki_version": "0.1.0", "cash": "1", "old": 1 });
        let is = json!({ "window": 1, "kumiki_version": "0.2.0", "cash": "2", "new": [true] });
        let found = differences(&was, &is);
        let told: Vec<_> =
            found.iter().map(|one| (one.what.as_str(), &*one.was, &*one.is)).collect();
        assert_eq!(told, [("cash", "1", "2"), ("new", "", "[true]"), ("old", "1", "")]);
        assert!(differences(&was, &was).is_empty());
        let named = |name: &str| json!({ "names": { "7203.TSE": name } });
        assert_eq!(differences(&named("a"), &named("b")).len(), 1);
        // A manifest that lacks a field says nothing of what it would be.
        for all in [&was, &named("a")] {
            for name in all.as_object().unwrap().keys() {
                let mut less = all.clone();
                less.as_object_mut().unwrap().remove(name);
                let found = differences(&less, all);
                assert_eq!((found.len(), &found[0].what, &*found[0].was), (1, name, ""));
            }
        }
    }
}
