//! Runs a replay from a request to its folder: data, strategy, options, run, results. The command line
//! and the engine both do it through here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use domain::Money;
use domain::clock::Stopwatch;
use domain::fault::{Fault, FaultKind};
use exchange::ExecutionModel;
use results::output::{FolderError, Manifest};
use results::sink::{RunSink, Tee, TotalsOnly};
use results::{RunFolder, RunStatus, RunTotals, WallClock};
use sandbox::{CallPath, Limits, SandboxError, StrategyInstance, StrategyModule};
use serde_json::Value;
use trader::{Loading, Strategies, StrategyError, component_identity, config_json};

use crate::data_set::{DataRequest, DataSet};
use crate::driver::{RunCommand, RunDriver, RunPosition, Watched};
use crate::error::RequestError;
use crate::manifest::{begun, manifest};
use crate::observer::{PROGRESS_EVERY, RunObserver};
use crate::options::ReplayOptions;
use crate::run::replay;

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
    /// The time of the outside for the audit log, where people take part in the run.
    pub wall_clock: Option<WallClock>,
}

/// A run that began, whatever its end; its folder is complete, or as it was ([`Self::is_earlier_kept`]).
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
    /// Whether the folder still has an earlier run: that one has ended, and this one was interrupted.
    pub is_earlier_kept: bool,
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
    /// Loads the strategy and the data, replays, and writes the folder. `driver` paces the run and commands
    /// it; `live` takes every row too, before the folder does.
    ///
    /// At which row of a window a strategy has failed nobody can tell, and what it may use is counted by the
    /// window. So a run with a larger window whose strategy fails is made again with window 1, where the driver
    /// can be rewound and no `live` sink has heard of the first one. That is the run then: what comes of it does
    /// not depend on the window either. The same holds for the batches in which trades may be handed over with
    /// window 1, and for the one step in which a strategy is told of its orders.
    ///
    /// # Errors
    /// [`RequestError`]; a folder of an earlier run is as it was.
    pub fn run(
        &self,
        driver: &mut dyn RunDriver,
        live: Option<&mut dyn RunSink>,
        observer: &mut dyn RunObserver,
    ) -> Result<RequestOutcome, RequestError> {
        let watch = Stopwatch::start();
        let (module, data) = self.load(observer)?;
        let loading = watch.elapsed();
        let mut options = self.options(&data);
        let mut folder = self.out.as_deref().map(|out| self.folder(out)).transpose()?;
        let watch = Stopwatch::start();
        let mut nothing = TotalsOnly;
        let is_watched = live.is_some();
        let can_be_made_again = !is_watched && driver.rewind();
        // What fails in a larger window is told by the run with window 1.
        if !can_be_made_again {
            options.window = 1;
        }
        let are_trades = self.data.granularity.bars().is_none();
        let first = if can_be_made_again {
            let is_strict = are_trades && options.window == 1;
            module.instantiate_quick(self.limits, is_strict)
        } else {
            module.instantiate(self.limits)
        }?;
        let (mut totals, mut is_rough) = match live {
            None => {
                let kept = kept(&mut folder, &mut nothing);
                self.replay(first, &data, &options, kept, driver, observer)?
            }
            Some(live) => {
                let mut both = Tee { first: kept(&mut folder, &mut nothing), second: live };
                self.replay(first, &data, &options, &mut both, driver, observer)?
            }
        };
        is_rough |= options.window > 1;
        // What a strategy refuses in its init it refuses in any window.
        let has_failed = matches!(&totals.status, RunStatus::Failed(fault)
            if !matches!(fault.kind, FaultKind::Refused(_)));
        if has_failed && is_rough && can_be_made_again {
            if observer.is_cancelled() {
                // What was replayed is kept; where the strategy fails nobody waits for.
                totals.status = RunStatus::Interrupted;
            } else if driver.rewind() {
                observer.run_is_made_again(options.window);
                options.window = 1;
                // What the first one has written goes before there is another one.
                drop(folder);
                folder = self.out.as_deref().map(|out| self.folder(out)).transpose()?;
                let kept = kept(&mut folder, &mut nothing);
                let again = module.instantiate(self.limits)?;
                (totals, _) = self.replay(again, &data, &options, kept, driver, observer)?;
            }
        }
        let running = watch.elapsed();
        if let RunStatus::Failed(fault) = &totals.status
            && matches!(fault.kind, FaultKind::Refused(_))
        {
            return Ok(RequestOutcome::Refused(fault.clone()));
        }
        // What a person has begun and ended is kept, however short it was.
        let is_nothing = totals.status == RunStatus::Interrupted && totals.span.is_none();
        if is_nothing && self.wall_clock.is_none() {
            return Ok(RequestOutcome::Interrupted);
        }
        let manifest = self.manifest(&options, Some(&totals), &module, &data);
        // Where commands end a run they do so each time; where a user did not wait, what has ended is worth more.
        let is_cut = totals.status == RunStatus::Interrupted && observer.is_cancelled();
        let is_earlier_kept = is_cut && folder.as_ref().is_some_and(RunFolder::has_ended_run);
        if let Some(folder) = folder.filter(|_| !is_earlier_kept) {
            folder.finish(&manifest, &totals)?;
        }
        let finished = FinishedRun { manifest, totals, loading, running, is_earlier_kept };
        Ok(RequestOutcome::Finished(Box::new(finished)))
    }

    pub(crate) fn folder(&self, out: &Path) -> Result<RunFolder, FolderError> {
        let folder = RunFolder::create(out, &self.data.instruments)?;
        match self.wall_clock {
            Some(clock) => folder.with_people(clock),
            None => Ok(folder),
        }
    }

    /// The strategy and the data, loaded at the same time: to compile a strategy takes as long as to read a
    /// month of trades. Where both cannot be used the strategy's error is told, and it ends the loading of the
    /// data.
    ///
    /// # Errors
    /// [`RequestError`] of either, or when the observer wants an end.
    pub fn load(
        &self,
        observer: &mut dyn RunObserver,
    ) -> Result<(StrategyModule, DataSet), RequestError> {
        let (stop, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            let (stop, has_failed) = (&stop, &has_failed);
            let compile = move || {
                let module = self.load_strategy(None, &|| stop.load(Ordering::Relaxed));
                has_failed.store(module.is_err(), Ordering::Relaxed);
                // Who waits for it is there until it comes.
                _ = sender.send(module);
            };
            let started = thread::Builder::new().name("strategy".to_owned());
            if let Err(error) = started.spawn_scoped(scope, compile) {
                return Err(RequestError::Thread(error));
            }
            let data = self.data.load(&mut Loads { observer: &mut *observer, has_failed });
            let module = loop {
                match receiver.recv_timeout(PROGRESS_EVERY) {
                    Ok(module) => break module,
                    Err(RecvTimeoutError::Timeout) if observer.is_cancelled() => {
                        stop.store(true, Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    // It panicked, and so does the scope.
                    Err(RecvTimeoutError::Disconnected) => return Err(RequestError::Stopped),
                }
            };
            Ok((module?, data?))
        })
    }

    /// The strategy, ready to run, unless `stopped` says yes while it is compiled; the path none takes
    /// the direct one where that is proven.
    ///
    /// # Errors
    /// [`RequestError::Strategy`] when there is none or it cannot be used, [`RequestError::Stopped`].
    pub fn load_strategy(
        &self,
        call_path: Option<CallPath>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<StrategyModule, RequestError> {
        let loading = Loading { call_path, limits: self.limits, stopped };
        match self.strategies.load_with(&self.strategy, &loading) {
            Err(StrategyError::Sandbox(SandboxError::Stopped)) => Err(RequestError::Stopped),
            loaded => Ok(loaded?),
        }
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
            rejected_bytes_max: self.limits.rejected_bytes,
            folder_bytes_max: self.limits.folder_bytes,
            folder_bytes_per_day: self.limits.folder_bytes_per_day,
            base_prices: data.base_prices.clone(),
            unit_changes: data.unit_changes.clone(),
            split_dates_known: data.split_dates_known.clone(),
            calendar: data.calendar.clone(),
            dates: Some(data.range),
        }
    }

    /// Replays through a fresh instance. Tells besides whether the strategy failed in a way that does not tell
    /// exactly where.
    pub(crate) fn replay(
        &self,
        mut instance: StrategyInstance,
        data: &DataSet,
        options: &ReplayOptions,
        sink: &mut dyn RunSink,
        driver: &mut dyn RunDriver,
        observer: &mut dyn RunObserver,
    ) -> Result<(RunTotals, bool), RequestError> {
        observer.run_begins(data.total, data.bars_from.is_some());
        let mut since_progress = Stopwatch::start();
        let watch = |position: RunPosition| {
            if position.next_row.is_none() || since_progress.elapsed() >= PROGRESS_EVERY {
                since_progress = Stopwatch::start();
                observer.run_goes_on(position);
            }
            observer.is_cancelled().then_some(RunCommand::Stop)
        };
        let mut driver = Watched::new(driver, watch);
        let totals = replay(data.series.days(), &mut instance, options, sink, &mut driver);
        observer.run_ends();
        let totals = totals?;
        let is_rough = match &totals.status {
            RunStatus::Failed(fault) => instance.is_rough(fault),
            RunStatus::Completed | RunStatus::Interrupted => false,
        };
        Ok((totals, is_rough))
    }

    /// The manifest of the run over these data; without totals that of one that goes on.
    #[must_use]
    pub fn manifest(
        &self,
        options: &ReplayOptions,
        totals: Option<&RunTotals>,
        module: &StrategyModule,
        data: &DataSet,
    ) -> Manifest {
        let range = (data.range.0.to_string(), data.range.1.to_string());
        let (component, inputs) = (component_identity(module), data.inputs.clone());
        let mut manifest = match totals {
            Some(totals) => manifest(options, totals, component, inputs, range, &self.limits),
            None => begun(options, component, inputs, range, &self.limits),
        };
        manifest.notes.splice(0..0, data.notes.iter().cloned());
        Manifest {
            granularity: self.data.granularity.as_str().to_owned(),
            bars_from: data.bars_from.map(str::to_owned),
            lot_asked: self.data.choices.lots.to_string(),
            ticks_asked: self.data.choices.ticks.to_string(),
            settings: data.settings.clone(),
            names: (!data.names.is_empty()).then(|| data.names.clone()),
            ..manifest
        }
    }
}

/// Is told how the loading of the data goes on, and ends it where the strategy cannot be used.
struct Loads<'a> {
    observer: &'a mut dyn RunObserver,
    has_failed: &'a AtomicBool,
}

impl RunObserver for Loads<'_> {
    fn load_begins(&mut self, bytes: u64) {
        self.observer.load_begins(bytes);
    }

    fn file_begins(&mut self, name: &str, bytes: u64) {
        self.observer.file_begins(name, bytes);
    }

    fn file_read(&mut self, bytes: u64, rows: u64) {
        self.observer.file_read(bytes, rows);
    }

    fn file_ends(&mut self) {
        self.observer.file_ends();
    }

    fn is_cancelled(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || self.observer.is_cancelled()
    }
}

/// Where rows are kept.
fn kept<'a>(folder: &'a mut Option<RunFolder>, nothing: &'a mut TotalsOnly) -> &'a mut dyn RunSink {
    match folder {
        Some(folder) => folder,
        None => nothing,
    }
}
