//! A run on the live market beside the simulated exchange, over the rows of its journal (specification 4, P120).
//!
//! - A replay: the strategy decides again. A paper run had the simulated exchange too, so the same comes out: orders,
//!   fills (price, quantity, millisecond) and signals.
//! - A fill model: the run's own orders are executed again one by one, each at its instant. So one other fill changes no
//!   later order, and the run's fills judge the model.
//!
//! Both sides are told as the strategy saw them, so the journal alone is enough. It is read once for the recorded side,
//! and once more for each replay and model. What is in memory is what a strategy may cause, which its limits bound.

mod fills;
mod orders;
mod page;
mod rows;
mod told;

use std::path::Path;

use domain::strategy::StrategyRuntime;
use domain::{ExchangeCalendar, GuestLimit, Money, OrderCommand, OrderEventKind, OrderStatus};
use exchange::{ExecutionModel, Preset, SameDayRoundTrips};
use replay::{ReplayError, ReplayOptions};
use results::sink::TotalsOnly;
use sandbox::Limits;
use serde::Serialize;
use thiserror::Error;

use crate::journal::{
    Header, HostRecord, Input, JournalError, Record, Records, ReproduceError, RunKind,
    STRATEGY_FILE, load_component, read,
};
use orders::{Listener, OrderRows, Orders};
use rows::JournalRows;
use told::{Retold, Tale};

pub use fills::{FillCounts, FillPair, FilledAt};
pub use told::{Told, ToldKind};

/// The page of a comparison in the run's folder.
pub const COMPARE_FILE: &str = "compare.html";

/// Cash for orders that are executed again: a fill model is not judged by money. With it nothing passes what an account
/// may be worth.
const ENOUGH_CASH: Money = Money::from_yen(50_000_000_000_000);

/// Why a run cannot be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The journal or the component cannot be used.
    #[error(transparent)]
    Reproduce(#[from] ReproduceError),
    /// The simulated run has no results.
    #[error(transparent)]
    Run(#[from] ReplayError),
    /// Another component was named for a run with real orders.
    #[error(
        "the run had real orders: its cash and its position were the broker's, so another component cannot be replayed; \
         `kumiki replay journal RUN_DIR --component FILE` shows what it would have decided"
    )]
    RealOrders,
}

impl From<JournalError> for CompareError {
    fn from(error: JournalError) -> Self {
        Self::Reproduce(error.into())
    }
}

impl CompareError {
    /// Whether the journal is damaged elsewhere than in its tail, or its component is another one: exit code 5.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Reproduce(error) => error.is_damage(),
            Self::Run(_) | Self::RealOrders => false,
        }
    }
}

/// How many of something each side has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Those of the run.
    pub recorded: u64,
    /// Those of the simulated run.
    pub simulated: u64,
}

/// The first thing that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// Its number among commands, signals, order events and faults, from 0.
    pub index: u64,
    /// What the run did; none where the simulated one did more.
    pub recorded: Option<Told>,
    /// What the simulated run did; none where it did less.
    pub simulated: Option<Told>,
}

/// The run beside its strategy in the simulated exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayCompared {
    /// `strict`, `realistic`, `optimistic`, or `own` where the run had values of its own.
    pub model: String,
    /// Whether orders, fills and signals are the same.
    pub identical: bool,
    /// The first that is not.
    pub first_difference: Option<FirstDifference>,
    /// Orders that the strategy asked for.
    pub orders: Counts,
    /// Signals.
    pub signals: Counts,
    /// Fills.
    pub fills: FillCounts,
    /// All fills side by side, in the order of their times.
    #[serde(skip)]
    pub pairs: Vec<FillPair>,
}

/// The run's own orders, executed by a fill model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelCompared {
    /// `strict`, `realistic` or `optimistic`.
    pub model: String,
    /// Orders of the run that were executed again.
    pub orders: u64,
    /// Those of them that the simulated exchange rejected.
    pub rejected: u64,
    /// Orders that the run's side or its venue refused. They were never in the market and are left out.
    pub left_out: u64,
    /// Fills.
    pub fills: FillCounts,
    /// All fills side by side, in the order of their times.
    #[serde(skip)]
    pub pairs: Vec<FillPair>,
}

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedLive {
    /// The run's id.
    pub run_id: String,
    /// Paper or live.
    pub run_kind: RunKind,
    /// The strategy: its name, or the file that took its place.
    pub component: String,
    /// Whether a replay gives the same; none without a replay.
    pub identical: Option<bool>,
    /// Whether a crash has cut off the journal's end, which was left out.
    pub torn: bool,
    /// Whether the journal has the run's end; else the run goes on, or it was killed.
    pub ended: bool,
    /// The strategy in the simulated exchange.
    pub replays: Vec<ReplayCompared>,
    /// The run's orders by each fill model.
    pub models: Vec<ModelCompared>,
    #[serde(skip)]
    instruments: Vec<String>,
}

/// The recorded side.
#[derive(Debug, Default)]
struct Recorded {
    tale: Tale,
    /// Records of the journal after its header.
    records: usize,
    /// The journal says how the run ended. Else it may have done more than the journal has.
    has_end: bool,
    /// The journal has the record of the run's end.
    ended: bool,
    torn: bool,
}

/// Compares what a journal has with the simulated exchange over its rows. `path` is the run's folder or the first file
/// of its journal, and `cache` the cache folder.
///
/// A paper run is replayed with its own model. `presets` are fill models for the run's own orders; a run with real
/// orders is held against all where none is named. Another `component` than the one of a paper run is replayed with
/// `presets`, else with the model of the run.
///
/// # Errors
/// [`CompareError`].
pub fn compare(
    path: &Path,
    component: Option<&Path>,
    presets: &[Preset],
    cache: Option<&Path>,
) -> Result<ComparedLive, CompareError> {
    let records = read(path)?;
    let beside = records.folder().join(STRATEGY_FILE);
    let file = component.unwrap_or(&beside);
    let (module, limits) = load_component(file, records.header(), component.is_none(), cache)?;
    let compared = compare_with(path, presets, component.is_some(), &limits, &mut |run| {
        let mut instance = module.instantiate(limits).map_err(ReproduceError::from)?;
        run(&mut instance)
    })?;
    Ok(ComparedLive { component: module.artefact().name().to_owned(), ..compared })
}

/// Runs a strategy once.
type RunOnce<'a> = dyn FnMut(&mut dyn StrategyRuntime) -> Result<(), CompareError> + 'a;

/// The same with a strategy that `with_strategy` makes anew for each run.
fn compare_with(
    path: &Path,
    presets: &[Preset],
    is_other: bool,
    limits: &Limits,
    with_strategy: &mut dyn FnMut(&mut RunOnce<'_>) -> Result<(), CompareError>,
) -> Result<ComparedLive, CompareError> {
    let records = read(path)?;
    let header = records.header().clone();
    let recorded = Recorded::read(records)?;
    let (replayed, filled) = match (is_other, header.model) {
        (true, None) => return Err(CompareError::RealOrders),
        (true, Some(_)) => (models_of(&header, presets), Vec::new()),
        (false, None) => (Vec::new(), models_of(&header, presets)),
        (false, Some(_)) if presets.is_empty() => (models_of(&header, &[]), Vec::new()),
        (false, Some(_)) => (models_of(&header, &[]), models_of(&header, presets)),
    };
    let mut replays = Vec::new();
    for (name, model) in replayed {
        let options = options(&header, model, limits);
        let mut simulated = Tale::default();
        with_strategy(&mut |strategy| {
            let mut rows = JournalRows::new(read(path)?, recorded.records);
            let mut retold = Retold::new(strategy);
            let (limits, sink) = (header.order_limits, &mut TotalsOnly);
            replay::stream::stream(&mut rows, &mut retold, &options, limits, sink)?;
            simulated = retold.tale;
            rows.into_error().map_or(Ok(()), |error| Err(error.into()))
        })?;
        replays.push(recorded.beside(name, &simulated));
    }
    let orders = Orders::of(&recorded.tale.told);
    let mut models = Vec::new();
    for (name, model) in filled {
        let mut rows = OrderRows::new(read(path)?, recorded.records, &orders);
        let mut listener = Listener::default();
        let (options, held) = (options_of_orders(&header, model, limits), orders.held());
        let sink = &mut TotalsOnly;
        replay::stream::execute_again(&mut rows, &mut listener, &options, &held, sink)?;
        rows.into_error().map_or(Ok(()), Err)?;
        models.push(recorded.filled(name, &orders, &listener.tale));
    }
    Ok(ComparedLive {
        run_id: header.run_id,
        run_kind: header.run_kind,
        component: header.component,
        identical: (!replays.is_empty()).then(|| replays.iter().any(|replay| replay.identical)),
        torn: recorded.torn,
        ended: recorded.ended,
        replays,
        models,
        instruments: header.instruments.iter().map(|one| one.id.to_string()).collect(),
    })
}

/// The models of a comparison by their names: the asked ones, else that of a paper run, else all.
fn models_of(header: &Header, asked: &[Preset]) -> Vec<(&'static str, ExecutionModel)> {
    let orders = header.limits.get(GuestLimit::Orders.name()).copied();
    let with_orders = |model: ExecutionModel| ExecutionModel {
        orders_max: orders.and_then(|orders| orders.try_into().ok()).unwrap_or(model.orders_max),
        ..model
    };
    let named = |preset: Preset| (preset.as_str(), with_orders(preset.model()));
    match (asked, header.model) {
        ([], None) => Preset::ALL.map(named).to_vec(),
        ([], Some(own)) => {
            let name = Preset::ALL.map(named).into_iter().find(|(_, model)| *model == own);
            vec![(name.map_or("own", |(name, _)| name), own)]
        }
        (asked, _) => asked.iter().copied().map(named).collect(),
    }
}

/// The options of the simulated run: those of the recorded one.
fn options(header: &Header, model: ExecutionModel, limits: &Limits) -> ReplayOptions {
    let known = ReplayOptions {
        instruments: header.instruments.clone(),
        cash: header.cash,
        model,
        ex_rights: Vec::new(),
        window: 1,
        config_json: header.parameters.clone(),
        warnings_max: limits.warnings,
        rejected_bytes_max: limits.rejected_bytes,
        folder_bytes_max: limits.folder_bytes,
        folder_bytes_per_day: limits.folder_bytes_per_day,
        base_prices: header.base_prices.clone(),
        unit_changes: Vec::new(),
        split_dates_known: Vec::new(),
        calendar: ExchangeCalendar::default(),
        dates: None,
    };
    header.days.set_in(known)
}

/// The options of a run in which orders are executed again. Whether the account may send them is no question: they were
/// sent.
fn options_of_orders(header: &Header, model: ExecutionModel, limits: &Limits) -> ReplayOptions {
    let same_day_round_trips = SameDayRoundTrips::Allow;
    ReplayOptions {
        cash: ENOUGH_CASH,
        rejected_bytes_max: u64::MAX,
        folder_bytes_max: u64::MAX,
        ..options(header, ExecutionModel { same_day_round_trips, ..model }, limits)
    }
}

impl Recorded {
    fn read(mut records: Records) -> Result<Self, JournalError> {
        let (mut recorded, mut row) = (Self::default(), None);
        for record in &mut records {
            recorded.records += 1;
            match record? {
                Record::Row(next) => row = Some(next),
                Record::Call(call) => {
                    let fault = call.answer.fault.as_ref();
                    let is_own = fault.is_some_and(|fault| !fault.is_hosts());
                    recorded.has_end |= is_own || matches!(call.input, Input::Stop(_));
                    recorded.tale.call(&call, row);
                }
                Record::Host(HostRecord::Failed(_)) => recorded.has_end = true,
                Record::Host(HostRecord::End) => {
                    (recorded.has_end, recorded.ended) = (true, true);
                }
                Record::Host(_) | Record::Header(_) | Record::Portfolio(_) => {}
            }
        }
        recorded.torn = records.torn();
        Ok(recorded)
    }

    /// Puts a simulated run beside it.
    fn beside(&self, model: &str, simulated: &Tale) -> ReplayCompared {
        let (ours, theirs) = (&self.tale.told, &simulated.told);
        // Of what the journal does not have any more nothing is known.
        let all = if self.has_end { ours.len().max(theirs.len()) } else { ours.len() };
        let is_same = |index: &usize| match (ours.get(*index), theirs.get(*index)) {
            (Some(one), Some(other)) => one.is_same(other),
            _ => false,
        };
        let first = (0..all).find(|index| !is_same(index));
        let compared = if self.has_end || first.is_some() { theirs } else { &theirs[..all] };
        let counts = |counted: fn(&ToldKind) -> bool| {
            let of = |told: &[Told]| told.iter().filter(|one| counted(&one.told)).count() as u64;
            Counts { recorded: of(ours), simulated: of(compared) }
        };
        let (pairs, fills) = fills::paired(ours, compared);
        ReplayCompared {
            model: model.to_owned(),
            identical: first.is_none(),
            first_difference: first.map(|index| FirstDifference {
                index: index as u64,
                recorded: ours.get(index).cloned(),
                simulated: theirs.get(index).cloned(),
            }),
            orders: counts(|told| matches!(told, ToldKind::Command(OrderCommand::Submit(_)))),
            signals: counts(|told| matches!(told, ToldKind::Signal(_))),
            fills,
            pairs,
        }
    }

    /// Puts what a fill model makes of its orders beside it.
    fn filled(&self, model: &str, orders: &Orders, simulated: &Tale) -> ModelCompared {
        let (pairs, fills) = fills::paired(&self.tale.told, &simulated.told);
        let is_rejected = |told: &&Told| match &told.told {
            ToldKind::Event(event) => {
                matches!(event.kind, OrderEventKind::Rejected(_))
                    && event.status == OrderStatus::Rejected
            }
            _ => false,
        };
        ModelCompared {
            model: model.to_owned(),
            orders: orders.executed,
            rejected: simulated.told.iter().filter(is_rejected).count() as u64,
            left_out: orders.left_out,
            fills,
            pairs,
        }
    }
}

#[cfg(test)]
mod tests;
