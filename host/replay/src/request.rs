//! Runs a replay from a request to its folder: data, strategy, options, run, results. The command line
//! and the engine both do it through here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use domain::Money;
use domain::clock::Stopwatch;
use domain::fault::{Fault, FaultKind};
use exchange::ExecutionModel;
use results::output::{ComponentIdentity, Manifest};
use results::sink::{RunSink, TotalsOnly};
use results::{RunFolder, RunStatus, RunTotals};
use sandbox::{Limits, StrategyModule};
use serde_json::Value;

use crate::data_set::{DataRequest, DataSet};
use crate::driver::{
    Multiplier, Paced, RunCommand, RunDriver, RunPosition, SystemClock, Unpaced, Watched,
};
use crate::error::RequestError;
use crate::manifest::manifest;
use crate::observer::RunObserver;
use crate::options::ReplayOptions;
use crate::run::replay;
use crate::strategies::Strategies;

/// How often an observer is told of a run's progress at most.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// What is replayed, how, and where the results go.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The market data.
    pub data: DataRequest,
    /// The strategy: a built-in one's name, or the path of a `.wasm` file.
    pub strategy: String,
    /// Where strategies are.
    pub strategies: Strategies,
    /// Parameters of the strategy, each given once.
    pub parameters: BTreeMap<String, Value>,
    /// Money in the account at the start.
    pub cash: Money,
    /// How the exchange fills orders.
    pub model: ExecutionModel,
    /// What the strategy may use and cause.
    pub limits: Limits,
    /// Trades or bars handed to the strategy at once, 1 to 65,536.
    pub window: u32,
    /// The folder of the results; none to keep no rows.
    pub out: Option<PathBuf>,
}

/// How fast a run goes.
#[derive(Debug)]
pub enum Pace {
    /// As fast as it can.
    Unpaced,
    /// At a multiple of the market's speed, with commands from a channel.
    Paced(Multiplier, Receiver<RunCommand>),
}

/// A run that began, whatever its end; its folder is complete.
#[derive(Debug)]
pub struct FinishedRun {
    /// What it was made from.
    pub manifest: Manifest,
    /// What came out.
    pub totals: RunTotals,
    /// Wall time of loading strategy and data.
    pub loading: Duration,
    /// Wall time of the run itself.
    pub running: Duration,
}

/// How a request ended.
#[derive(Debug)]
pub enum RequestOutcome {
    /// The strategy refused its configuration. Nothing was replayed, and an earlier run in the folder
    /// was left: it is worth more than an empty one.
    Refused(Box<Fault>),
    /// It was ended before its first row. Nothing was replayed, and the folder is as it was.
    Interrupted,
    /// A run.
    Finished(Box<FinishedRun>),
}

impl RunRequest {
    /// Loads the strategy and the data, replays, and writes the folder. The strategy comes first: it
    /// is quick, and its errors should not wait for the data.
    ///
    /// # Errors
    /// [`RequestError`]; a folder of an earlier run is as it was.
    pub fn run(
        &self,
        pace: Pace,
        observer: &mut dyn RunObserver,
    ) -> Result<RequestOutcome, RequestError> {
        let watch = Stopwatch::start();
        let module = self.strategies.load(&self.strategy)?;
        let data = self.data.load(observer)?;
        let loading = watch.elapsed();
        let options = self.options(&data);
        let mut folder = match &self.out {
            Some(out) => Some(RunFolder::create(out, &self.data.instruments)?),
            None => None,
        };
        let watch = Stopwatch::start();
        let sink: &mut dyn RunSink = match &mut folder {
            Some(folder) => folder,
            None => &mut TotalsOnly,
        };
        let totals = self.replay(&module, &data, &options, sink, pace, observer)?;
        let running = watch.elapsed();
        if let RunStatus::Failed(fault) = &totals.status
            && matches!(fault.kind, FaultKind::Refused(_))
        {
            return Ok(RequestOutcome::Refused(fault.clone()));
        }
        if totals.status == RunStatus::Interrupted && totals.span.is_none() {
            return Ok(RequestOutcome::Interrupted);
        }
        let manifest = self.manifest(&options, &totals, &module, &data);
        if let Some(folder) = folder {
            folder.finish(&manifest, &totals)?;
        }
        Ok(RequestOutcome::Finished(Box::new(FinishedRun { manifest, totals, loading, running })))
    }

    /// The options of the run over these data.
    #[must_use]
    pub fn options(&self, data: &DataSet) -> ReplayOptions {
        ReplayOptions {
            instruments: data.instruments.clone(),
            cash: self.cash,
            model: ExecutionModel { orders_max: self.limits.orders, ..self.model },
            ex_rights: data.ex_rights.clone(),
            window: self.window,
            config_json: config_json(&self.parameters),
            warnings_max: self.limits.warnings,
            base_prices: data.base_prices.clone(),
            tick_changes: data.tick_changes.clone(),
            calendar: data.calendar.clone(),
        }
    }

    pub(crate) fn replay(
        &self,
        module: &StrategyModule,
        data: &DataSet,
        options: &ReplayOptions,
        sink: &mut dyn RunSink,
        pace: Pace,
        observer: &mut dyn RunObserver,
    ) -> Result<RunTotals, RequestError> {
        let mut instance = module.instantiate(self.limits)?;
        let mut clock = SystemClock::default();
        let mut driver: Box<dyn RunDriver + '_> = match pace {
            Pace::Unpaced => Box::new(Unpaced),
            Pace::Paced(multiplier, commands) => {
                Box::new(Paced::new(multiplier, commands, &mut clock))
            }
        };
        observer.run_begins(data.total, data.bars_from.is_some());
        let mut since_progress = Stopwatch::start();
        let watch = |position: RunPosition| {
            if position.next_row.is_none() || since_progress.elapsed() >= PROGRESS_EVERY {
                since_progress = Stopwatch::start();
                observer.run_goes_on(position);
            }
            observer.is_cancelled().then_some(RunCommand::Stop)
        };
        let mut driver = Watched::new(driver.as_mut(), watch);
        let totals = replay(data.series.days(), &mut instance, options, sink, &mut driver);
        observer.run_ends();
        Ok(totals?)
    }

    pub(crate) fn manifest(
        &self,
        options: &ReplayOptions,
        totals: &RunTotals,
        module: &StrategyModule,
        data: &DataSet,
    ) -> Manifest {
        let range = (data.range.0.to_string(), data.range.1.to_string());
        let component = component_identity(module);
        let mut manifest =
            manifest(options, totals, component, data.inputs.clone(), range, &self.limits);
        manifest.notes.splice(0..0, data.notes.iter().cloned());
        Manifest {
            granularity: self.data.granularity.as_str().to_owned(),
            bars_from: data.bars_from.map(str::to_owned),
            lot_asked: self.data.choices.lots.to_string(),
            ticks_asked: self.data.choices.ticks.to_string(),
            ..manifest
        }
    }
}

/// The parameters of a strategy as the JSON object that its init gets.
#[must_use]
pub fn config_json(parameters: &BTreeMap<String, Value>) -> String {
    Value::Object(parameters.clone().into_iter().collect()).to_string()
}

/// What a strategy is, for manifests.
#[must_use]
pub fn component_identity(module: &StrategyModule) -> ComponentIdentity {
    let artefact = module.artefact();
    ComponentIdentity {
        name: artefact.name().to_owned(),
        sha256: artefact.sha256().to_owned(),
        imports: artefact.imports().to_vec(),
    }
}
