//! Hands what a journal has to a component again, and compares what it answers.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::fault::Fault;
use domain::limits::COMPONENT_BYTES_MAX;
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, StrategyRuntime};
use domain::{GuestLimit, OrderSide, TsNanos};
use sandbox::{
    Artefact, Limits, Sandbox, SandboxConfig, SandboxError, StrategyInstance, StrategyModule,
};
use serde::Serialize;
use thiserror::Error;

use super::reader::{JournalError, read};
use super::record::{Answer, Call, FaultRecord, Header, Input, Record, Row};

/// The copy of the component beside a journal.
pub const STRATEGY_FILE: &str = "strategy.wasm";

/// Why a journal cannot be reproduced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The component cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Component {
        /// Its file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The component is not the one of the run.
    #[error(
        "{} is not the component of this run ({found}, the run had {expected}); name it with \
         --component to see what it would have decided",
        path.display()
    )]
    Other {
        /// Its file.
        path: PathBuf,
        /// SHA-256 of the file.
        found: String,
        /// SHA-256 of the run's component.
        expected: String,
    },
    /// The component asks for what the journal does not have.
    #[error(
        "{} asks for its {what}, and the strategy of this run did not, so the journal does not have them; run it on \
         paper, or in a replay",
        path.display()
    )]
    NotRecorded {
        /// Its file.
        path: PathBuf,
        /// What it asks for.
        what: &'static str,
    },
    /// A limit that this program does not know, or cannot have.
    #[error("the journal has the limit {name}={value}, which this program cannot set")]
    Limit {
        /// Its name.
        name: String,
        /// Its value.
        value: u64,
    },
    /// The sandbox does not take it.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl ReproduceError {
    /// Whether the journal is damaged, or its component is another one (specification 4, P113: exit code 5).
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_damage(),
            Self::Other { .. } => true,
            _ => false,
        }
    }
}

/// What an output is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// It wanted something done.
    Action(Action),
    /// It wrote a line.
    Log(LogLine),
    /// It failed.
    Fault(FaultRecord),
}

/// One output of a strategy, and what it was an answer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The number of the call among all of them, from 0.
    pub call: u64,
    /// What it was called with.
    pub input: &'static str,
    /// The time of that, UTC nanoseconds; none in `init`.
    pub ts_event: Option<TsNanos>,
    /// What it was.
    pub output: OutputKind,
}

/// The first output that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its number among the outputs, from 0.
    pub index: u64,
    /// What the journal has; none where the component answered more.
    pub recorded: Option<Output>,
    /// What the component answered now; none where it answered less.
    pub reproduced: Option<Output>,
}

/// What came of it (specification 4, P113).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reproduced {
    /// Outputs that the journal has: actions, lines of the log, and the component's own fault.
    pub outputs: u64,
    /// Whether all of them came out again, and nothing else.
    pub identical: bool,
    /// The first one that did not.
    pub first_difference: Option<Difference>,
    /// Whether a crash has cut off the journal's end, which was left out.
    pub torn: bool,
    /// Whether the journal has the run's end; else the run goes on, or it was killed.
    #[serde(skip)]
    pub has_end: bool,
    /// The component's name; none where the run was killed before its journal had a line.
    #[serde(skip)]
    pub component: Option<String>,
}

/// Runs the component over the inputs of a journal and compares its outputs. `path` is the run's folder or its first
/// file; `component` is another component than the one beside it, and `cache` the cache folder.
///
/// # Errors
/// [`ReproduceError`].
pub fn reproduce(
    path: &Path,
    component: Option<&Path>,
    cache: Option<&Path>,
) -> Result<Reproduced, ReproduceError> {
    let mut records = match read(path) {
        // A header that is torn as the only line.
        Err(JournalError::Nothing(_)) => return Ok(Reproduced::NOTHING),
        read => read?,
    };
    let beside = records.folder().join(STRATEGY_FILE);
    let file = component.unwrap_or(&beside);
    let (module, limits) = load(file, records.header(), component.is_none(), cache)?;
    let mut again = Again {
        strategy: module.instantiate(limits)?,
        row: None,
        calls: 0,
        outputs: 0,
        difference: None,
        has_ended: false,
    };
    for record in &mut records {
        match record? {
            Record::Header(_) | Record::Host(_) => {}
            Record::Row(row) => again.row = Some(row),
            Record::Portfolio(view) => {
                if again.goes_on() {
                    again.strategy.set_portfolio(&view);
                }
            }
            Record::Call(call) => {
                if let Input::Init { capabilities, .. } = &call.input {
                    check_capabilities(file, module.capabilities(), *capabilities)?;
                }
                again.call(&call);
            }
        }
    }
    Ok(Reproduced {
        outputs: again.outputs,
        identical: again.difference.is_none(),
        first_difference: again.difference,
        torn: records.torn(),
        has_end: records.has_end(),
        component: Some(module.artefact().name().to_owned()),
    })
}

impl Reproduced {
    /// Of a run that was killed before its journal had a line.
    const NOTHING: Self = Self {
        outputs: 0,
        identical: true,
        first_difference: None,
        torn: true,
        has_end: false,
        component: None,
    };
}

/// Reads a component and makes it ready, with the limits of the run but for the clock.
pub(crate) fn load(
    file: &Path,
    header: &Header,
    is_of_run: bool,
    cache: Option<&Path>,
) -> Result<(StrategyModule, Limits), ReproduceError> {
    let unreadable = |source| ReproduceError::Component { path: file.to_owned(), source };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(unreadable)?;
    opened.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let found = sandbox::sha256(&bytes);
    if is_of_run && found != header.sha256 {
        let expected = header.sha256.clone();
        return Err(ReproduceError::Other { path: file.to_owned(), found, expected });
    }
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(unreadable(io::Error::other(format!(
            "it has more than {COMPONENT_BYTES_MAX} bytes"
        ))));
    }
    let limits = header.limits.iter().try_fold(Limits::default(), |limits, (name, &value)| {
        let changed = GuestLimit::of_name(name).and_then(|limit| limits.with(limit, value));
        changed.ok_or_else(|| ReproduceError::Limit { name: name.clone(), value })
    })?;
    let config = SandboxConfig {
        cache_folder: cache.map(|cache| cache.join("components")),
        strategy_limits: limits,
        ..SandboxConfig::default()
    };
    let name = match is_of_run {
        true => header.component.clone(),
        false => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let artefact = Artefact::from_bytes(&name, bytes)?;
    Ok((Sandbox::new(config)?.prepare(artefact)?, limits))
}

/// The journal has the answers to what the component may ask for.
fn check_capabilities(
    file: &Path,
    wanted: Capabilities,
    recorded: Capabilities,
) -> Result<(), ReproduceError> {
    let missing = if wanted.working_orders && !recorded.working_orders {
        "working orders"
    } else if wanted.portfolio && !(recorded.portfolio || recorded.working_orders) {
        "positions"
    } else {
        return Ok(());
    };
    Err(ReproduceError::NotRecorded { path: file.to_owned(), what: missing })
}

/// A component that is called again.
struct Again {
    strategy: StrategyInstance,
    /// The last row.
    row: Option<Row>,
    /// Calls so far.
    calls: u64,
    /// Recorded outputs so far.
    outputs: u64,
    difference: Option<Difference>,
    /// It, or the host for it, has failed.
    has_ended: bool,
}

impl Again {
    /// Whether it is called any more: until it answers something else.
    const fn goes_on(&self) -> bool {
        self.difference.is_none() && !self.has_ended
    }

    /// Makes a call again.
    fn call(&mut self, call: &Call<'_>) {
        let number = self.calls;
        self.calls += 1;
        if call.answer.fault.as_ref().is_some_and(FaultRecord::is_hosts) {
            // The clock ended it, so what it would have answered is not known.
            self.has_ended = true;
            return;
        }
        let ts_event = call.input.ts_event_after(self.row);
        let place = |output| Output { call: number, input: call.input.name(), ts_event, output };
        let recorded: Vec<Output> = outputs(&call.answer).map(place).collect();
        if self.goes_on() {
            let answer = self.answer(&call.input);
            let reproduced: Vec<Output> = outputs(&answer).map(place).collect();
            self.has_ended = answer.fault.is_some();
            self.difference = difference(self.outputs, &recorded, &reproduced);
        }
        self.outputs += recorded.len() as u64;
    }

    /// What it answers now.
    fn answer(&mut self, input: &Input<'_>) -> Answer<'static> {
        let strategy = &mut self.strategy;
        let given = match input {
            Input::Init { config, instruments, .. } => {
                strategy.init(config, instruments).map(|()| Vec::new())
            }
            Input::Start(now) => strategy.start(*now),
            Input::Row => self.row.map_or_else(|| Ok(Vec::new()), |row| advance(strategy, row)),
            Input::OrderEvents(events) => strategy.on_order_events(events),
            Input::AccountEvents(events) => strategy.on_account_events(events),
            Input::Stop(now) => strategy.stop(*now),
        };
        let log = strategy.take_log().into();
        match given {
            Ok(actions) => Answer { actions: actions.into(), log, fault: None },
            Err(fault) => {
                Answer { log, fault: Some(FaultRecord::from(fault.as_ref())), ..Answer::default() }
            }
        }
    }
}

/// Hands over a row.
fn advance(strategy: &mut StrategyInstance, row: Row) -> Result<Vec<Action>, Box<Fault>> {
    let (window, aggressor): (_, Option<OrderSide>) = match row {
        Row::Trade { trade, aggressor } => (Window::OneTrade(trade), aggressor),
        Row::Bar(bar) => (Window::OneBar(bar), None),
    };
    strategy.set_aggressor(aggressor);
    strategy.advance(window, 1).map(|outcome| outcome.actions)
}

/// The outputs of an answer, in order.
fn outputs<'a>(answer: &'a Answer<'_>) -> impl Iterator<Item = OutputKind> + use<'a> {
    let actions = answer.actions.iter().cloned().map(OutputKind::Action);
    let lines = answer.log.iter().cloned().map(OutputKind::Log);
    actions.chain(lines).chain(answer.fault.iter().cloned().map(OutputKind::Fault))
}

/// The first output of a call that is another one; `before` outputs came before it.
fn difference(before: u64, recorded: &[Output], reproduced: &[Output]) -> Option<Difference> {
    let is_same = |index: &usize| match (recorded.get(*index), reproduced.get(*index)) {
        (Some(one), Some(other)) => match (&one.output, &other.output) {
            (OutputKind::Fault(one), OutputKind::Fault(other)) => one.is_same(other),
            (one, other) => one == other,
        },
        _ => false,
    };
    let index = (0..recorded.len().max(reproduced.len())).find(|index| !is_same(index))?;
    Some(Difference {
        index: before + index as u64,
        recorded: recorded.get(index).cloned(),
        reproduced: reproduced.get(index).cloned(),
    })
}
