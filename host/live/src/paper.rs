//! A strategy on the live market without a yen at stake: its orders go to the simulated exchange, which the live
//! trades feed (P119). What a request for a replay is in `replay::request`, this is for a paper run.
//!
//! [`PaperRun::prepare`] loads the strategy and what is known of the instruments. [`ReadyRun::run`] runs it over a
//! stream of rows until that stops, with a journal. The run's folder is there from the start and stays, whatever ends
//! the run (P111); only a strategy that refuses its configuration leaves nothing behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use domain::fault::{Fault, FaultKind};
use domain::limits::WATCHDOG_MS;
use domain::strategy::StrategyRuntime;
use domain::{InstrumentId, JstDate, Money};
use exchange::ExecutionModel;
use replay::data_set::{DataRequest, DataSet, Granularity};
use replay::instruments::InstrumentChoices;
use replay::stream::MarketStream;
use replay::{ReplayOptions, RequestError, RunObserver, RunRequest, limit_values};
use results::output::Manifest;
use results::sink::{RunSink, Tee};
use results::{RunFolder, RunStatus, RunTotals};
use sandbox::{Limits, StrategyInstance, StrategyModule};
use serde_json::Value;
use thiserror::Error;
use trader::{OrderLimits, Strategies};

use crate::feed::FeedRows;
use crate::journal::{
    Header, JOURNAL_VERSION, Journal, Journaled, JournaledStream, KnownDays, RowKind, RunKind,
    STRATEGY_FILE,
};

/// Rows handed to the strategy at once: it decides on each before the next is there.
const WINDOW: u32 = 1;

/// What runs on paper, and how.
#[derive(Debug, Clone)]
pub struct PaperRun {
    /// Whether its orders go to the simulated exchange or to a broker; [`ReadyRun::run_real`] runs the latter, for
    /// which cash and model mean nothing.
    pub kind: RunKind,
    /// The run's id.
    pub run_id: String,
    /// The strategy's id.
    pub strategy_id: String,
    /// The strategy: a built-in one's name, or the path of a `.wasm` file.
    pub strategy: String,
    /// Where strategies are.
    pub strategies: Strategies,
    /// Parameters of the strategy, each given once.
    pub parameters: BTreeMap<String, Value>,
    /// What is traded, in the order in which the strategy counts them; 1 to 4, none twice.
    pub instruments: Vec<InstrumentId>,
    /// A folder with the vendor's files and `instruments.csv`; none where there is none.
    pub data: Option<PathBuf>,
    /// Lots and price steps that are not to be found.
    pub choices: InstrumentChoices,
    /// Trades or minute bars.
    pub rows: FeedRows,
    /// The day in Japan on which it begins, by the engine's clock.
    pub first: JstDate,
    /// Money in the account at the start.
    pub cash: Money,
    /// How the exchange fills orders.
    pub model: ExecutionModel,
    /// What the strategy may use and cause. Where they have no deadline of a call, it is 1 s (P116).
    pub limits: Limits,
    /// What its orders may be (P95, P96).
    pub orders: OrderLimits,
    /// The run's folder, of which there must be nothing yet.
    pub folder: PathBuf,
}

/// Why a paper run comes to nothing, or has no results.
#[derive(Debug, Error)]
pub enum PaperError {
    /// The strategy, the data folder, an option or the results.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The journal or the copy of the component cannot be written into the run's folder.
    #[error("cannot write into {folder}: {source}")]
    Folder {
        /// The run's folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// How a paper run ended.
#[derive(Debug)]
pub enum PaperOutcome {
    /// The strategy did not accept its configuration, or failed in its init. Nothing is left behind.
    Refused(Box<Fault>),
    /// It ran, and its folder is complete.
    Ended(Box<EndedRun>),
}

/// A paper run that has ended.
#[derive(Debug)]
pub struct EndedRun {
    /// What it was made from.
    pub manifest: Manifest,
    /// What came out.
    pub totals: RunTotals,
}

impl PaperRun {
    /// Loads the strategy and what is known of the instruments. It changes nothing.
    ///
    /// # Errors
    /// [`RequestError`]: of the strategy as of a request for a replay, which `observer` may end.
    pub fn prepare(self, observer: &mut dyn RunObserver) -> Result<ReadyRun, RequestError> {
        let limits = Limits { watchdog: self.limits.watchdog.or(Some(DEADLINE)), ..self.limits };
        let request = RunRequest {
            data: DataRequest {
                folder: self.data.clone().unwrap_or_default(),
                cache: self.strategies.cache.clone(),
                instruments: self.instruments.clone(),
                start: Some(self.first),
                end: None,
                granularity: match self.rows {
                    FeedRows::Trades => Granularity::Trade,
                    FeedRows::Minutes => Granularity::Minute,
                },
                choices: self.choices.clone(),
            },
            strategy: self.strategy.clone(),
            strategies: self.strategies.clone(),
            parameters: self.parameters.clone(),
            cash: self.cash,
            model: self.model,
            limits,
            window: WINDOW,
            out: None,
            wall_clock: None,
        };
        let module = request.load_strategy(None, &|| observer.is_cancelled())?;
        let data = request.data.load_for_live(self.first, observer)?;
        // Its days are those on which rows come.
        let options = ReplayOptions { dates: None, ..request.options(&data) };
        options.check()?;
        Ok(ReadyRun { run: self, request, module, data, options })
    }
}

/// How long a call may take where the limits do not say.
const DEADLINE: Duration = Duration::from_millis(WATCHDOG_MS);

/// A paper run that may begin.
pub struct ReadyRun {
    run: PaperRun,
    request: RunRequest,
    module: StrategyModule,
    data: DataSet,
    options: ReplayOptions,
}

impl ReadyRun {
    /// What it runs with: instruments with lots and price steps, base prices, model.
    #[must_use]
    pub const fn options(&self) -> &ReplayOptions {
        &self.options
    }

    /// The strategy.
    #[must_use]
    pub const fn module(&self) -> &StrategyModule {
        &self.module
    }

    /// Where lots, price steps and base prices came from, in words.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.data.notes
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.run.folder
    }

    pub(crate) fn instruments(&self) -> &[InstrumentId] {
        &self.run.instruments
    }

    pub(crate) const fn order_limits(&self) -> OrderLimits {
        self.run.orders
    }

    pub(crate) const fn first(&self) -> JstDate {
        self.run.first
    }

    pub(crate) fn instantiate(&self) -> Result<StrategyInstance, RequestError> {
        Ok(self.module.instantiate(self.request.limits)?)
    }

    /// Runs the strategy over what `source` gives until that ends it. `sink` takes every record after the folder has
    /// it.
    ///
    /// # Errors
    /// [`PaperError`]: when the folder cannot be made there is none; when the account cannot be counted any more, what is
    /// there stays. A folder that cannot be written while it runs is a fault `JOURNAL` of the run (P128).
    pub fn run(
        &self,
        source: &mut dyn MarketStream,
        sink: &mut dyn RunSink,
    ) -> Result<PaperOutcome, PaperError> {
        let path = &self.run.folder;
        let instance = self.instantiate()?;
        let begun = self.manifest(None);
        let mut folder = RunFolder::create_live(path, &self.run.instruments, &begun)
            .map_err(RequestError::from)?;
        let journal = self.begin_journal().map_err(|source| {
            remove_folder(path);
            PaperError::Folder { folder: path.clone(), source }
        })?;
        let mut strategy = Journaled::new(instance, journal.clone());
        let mut source = JournaledStream::new(source, journal.clone());
        let mut both = Tee { first: &mut folder, second: sink };
        let ran = replay::stream::stream(
            &mut source,
            &mut strategy,
            &self.options,
            self.run.orders,
            &mut both,
        );
        let kept = journal.finish();
        match ran {
            Ok(totals) => Ok(self.end(folder, &strategy, totals, kept)),
            Err(error) => {
                let (status, fault) = (FAILED.to_owned(), Some(error.to_string()));
                end_folder(path, &Manifest { partial: false, status, fault, ..begun });
                Err(RequestError::Replay(error).into())
            }
        }
    }

    /// Completes the folder of a run that has ended; `kept` tells why its records are not all on the disk. That is a
    /// fault `JOURNAL` (P128): a run that did something which nobody can make again has not gone well. A fault that came
    /// before it stays.
    pub(crate) fn end(
        &self,
        folder: RunFolder,
        strategy: &dyn StrategyRuntime,
        mut totals: RunTotals,
        kept: Result<(), String>,
    ) -> PaperOutcome {
        let path = &self.run.folder;
        match (&totals.status, kept) {
            (RunStatus::Failed(fault), _) if fault.export == "init" => {
                let fault = fault.clone();
                drop(folder);
                remove_folder(path);
                return PaperOutcome::Refused(fault);
            }
            (RunStatus::Completed | RunStatus::Interrupted, Err(text)) => {
                totals.status = RunStatus::Failed(journal_fault(strategy, &totals, text));
            }
            _ => {}
        }
        let mut manifest = self.manifest(Some(&totals));
        if let Err(error) = folder.finish(&manifest, &totals) {
            if !matches!(totals.status, RunStatus::Failed(_)) {
                let text = format!("cannot write the results: {error}");
                totals.status = RunStatus::Failed(journal_fault(strategy, &totals, text));
                manifest = self.manifest(Some(&totals));
            }
            end_folder(path, &manifest);
        }
        PaperOutcome::Ended(Box::new(EndedRun { manifest, totals }))
    }

    /// Puts the component beside the journal, and begins that.
    pub(crate) fn begin_journal(&self) -> io::Result<Journal> {
        let Self { run, options, .. } = self;
        let artefact = self.module.artefact();
        let file = run.strategies.find(&run.strategy).map_err(io::Error::other)?;
        let bytes = fs::read(&file)?;
        if sandbox::sha256(&bytes) != artefact.sha256() {
            let text =
                format!("{} has changed since it was loaded; start the run again", file.display());
            return Err(io::Error::other(text));
        }
        fs::write(run.folder.join(STRATEGY_FILE), bytes)?;
        let header = Header {
            version: JOURNAL_VERSION,
            part: 0,
            after: 0,
            kumiki_version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: sandbox::ENGINE.to_owned(),
            run_kind: run.kind,
            run_id: run.run_id.clone(),
            strategy_id: run.strategy_id.clone(),
            component: artefact.name().to_owned(),
            sha256: artefact.sha256().to_owned(),
            parameters: options.config_json.clone(),
            instruments: options.instruments.clone(),
            base_prices: options.base_prices.clone(),
            days: KnownDays::of(options, run.first),
            granularity: match run.rows {
                FeedRows::Trades => RowKind::Trade,
                FeedRows::Minutes => RowKind::Minute,
            },
            cash: options.cash,
            model: (run.kind == RunKind::Paper).then_some(options.model),
            order_limits: run.orders,
            limits: limit_values(&self.request.limits),
        };
        Journal::create(&run.folder, header, run.first)
    }

    pub(crate) fn manifest(&self, totals: Option<&RunTotals>) -> Manifest {
        let manifest = self.request.manifest(&self.options, totals, &self.module, &self.data);
        let last = totals.and_then(|totals| totals.span).map(|(_, last)| last.jst_date());
        let fault = totals.and_then(|totals| match &totals.status {
            RunStatus::Failed(fault) => Some(fault_text(fault)),
            _ => None,
        });
        Manifest {
            fault,
            run_kind: Some(run_kind(self.run.kind).to_owned()),
            // P111: until the run's end.
            partial: totals.is_none(),
            end: last.unwrap_or(self.run.first).max(self.run.first).to_string(),
            ..manifest
        }
    }
}

/// The kind of a run in a manifest.
const fn run_kind(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Paper => "paper",
        RunKind::Live => "live",
    }
}

/// The status of a run that ended with a fault, as manifests have it.
const FAILED: &str = "failed";

/// A fault of a live run in words; what is the host's begins with its name (specification 4, P116 and P128).
#[must_use]
pub fn fault_text(fault: &Fault) -> String {
    match &fault.kind {
        kind @ (FaultKind::TooSlow(_) | FaultKind::Journal(_) | FaultKind::Halt(_)) => {
            kind.to_string()
        }
        _ => fault.to_string(),
    }
}

/// Writes the last manifest into a folder that cannot be completed, as far as the disk lets it (P128).
fn end_folder(folder: &Path, manifest: &Manifest) {
    if let Err(error) = RunFolder::end_live(folder, manifest) {
        tracing::warn!(%error, "the manifest does not say that its run has ended");
    }
}

/// Removes the folder of a run that did not begin. Everything in it is the run's own.
pub fn remove_folder(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!(%error, folder = %folder.display(), "cannot remove the folder of a run that did not begin");
    }
}

pub(crate) fn journal_fault(
    strategy: &dyn StrategyRuntime,
    totals: &RunTotals,
    text: String,
) -> Box<Fault> {
    let identity = strategy.identity();
    Box::new(Fault {
        component: identity.component,
        sha256: identity.sha256,
        export: "stop",
        ts_event: totals.span.map(|(_, last)| last),
        kind: FaultKind::Journal(text),
        backtrace: Vec::new(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
