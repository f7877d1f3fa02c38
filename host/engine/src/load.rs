//! Loads data for a replay, on a thread of its own (specification 2, `LoadReplayData`; pins P63, P64).

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use domain::clock::Stopwatch;
use domain::limits::INSTRUMENTS_MAX;
use domain::text::with_causes;
use domain::{InstrumentId, JstDate, TickTable};
use ipc::{EngineMode, Granularity, LoadReplayData, ProgressKind, SessionState, error_code};
use marketdata::DataError;
use replay::data_set::{self, DataRequest, DataSet};
use replay::instruments::InstrumentChoices;
use replay::{MarketDay, RequestError, RunObserver};

use crate::ledger::RequestContext;
use crate::limits::UPDATE_EVERY;
use crate::present::session as present;
use crate::session::{CommandContext, Core, Loaded, Shared, UnderWay};

/// Why data are not loaded, as a code and in words.
pub(crate) type Refusal = (&'static str, String);

pub(crate) fn invalid(text: impl Into<String>) -> Refusal {
    (error_code::VALIDATION_ERROR, text.into())
}

/// The instruments that a command names: `first` and, where there is one, the list that it begins. `kind` is what is to
/// have them, in words.
pub(crate) fn instruments(
    kind: &str,
    first: &str,
    list: Option<&[String]>,
) -> Result<Vec<InstrumentId>, Refusal> {
    let given: Vec<&str> = match list {
        None => vec![first],
        Some(list) => list.iter().map(String::as_str).collect(),
    };
    if given.first() != Some(&first) {
        let text = format!("INSTRUMENT_IDS: its first entry must be instrument_id, `{first}`");
        return Err(invalid(text));
    }
    if given.len() > INSTRUMENTS_MAX {
        let text = format!(
            "the command names {} instruments; {kind} takes at most {INSTRUMENTS_MAX}",
            given.len()
        );
        return Err((error_code::TOO_MANY_INSTRUMENTS, text));
    }
    let mut ids = Vec::new();
    for text in given {
        let id: InstrumentId = text.parse().map_err(|why| {
            invalid(format!("INSTRUMENT_ID: `{text}` is not an instrument: {why}"))
        })?;
        if ids.contains(&id) {
            return Err(invalid(format!(
                "INSTRUMENT_IDS: `{text}` is in the list twice; name it once"
            )));
        }
        ids.push(id);
    }
    Ok(ids)
}

/// A range of dates.
pub(crate) fn dates(start: &str, end: &str) -> Result<(JstDate, JstDate), Refusal> {
    let date = |field: &str, text: &str| {
        // Also what else would be read as a date, like 2025-1-6, is none.
        let read = text.parse::<JstDate>().map_err(drop);
        let read = read.and_then(|date| {
            if date.to_string() == text && text.len() == 10 { Ok(date) } else { Err(()) }
        });
        read.map_err(|_| invalid(format!("{field}: `{text}` is not a date; write YYYY-MM-DD")))
    };
    let (first, last) = (date("START_DATE", start)?, date("END_DATE", end)?);
    if first > last {
        return Err(invalid(format!("START_DATE: {first} is after end_date, {last}")));
    }
    Ok((first, last))
}

/// What a granularity is called where data are read.
pub(crate) const fn granularity(wire: Granularity) -> data_set::Granularity {
    match wire {
        Granularity::Trade => data_set::Granularity::Trade,
        Granularity::Minute => data_set::Granularity::Minute,
        Granularity::Daily => data_set::Granularity::Day,
    }
}

impl Shared {
    /// Begins to load data.
    pub(crate) fn load(self: &Arc<Self>, to: &CommandContext<'_>, load: &LoadReplayData) {
        let mut core = self.lock();
        let checked = instruments("a replay", &load.instrument_id, load.instrument_ids.as_deref())
            .and_then(|ids| Ok((ids, dates(&load.start_date, &load.end_date)?)));
        let (ids, (start, end)) = match checked {
            Ok(checked) => checked,
            Err((code, why)) => return core.error(to, code, &why),
        };
        if self.config.mode == EngineMode::Live {
            let text = "this engine trades; for a replay start one with --mode replay";
            return core.error(to, error_code::VALUE_ERROR, text);
        }
        if let Some(reason) = core.not_free() {
            return core.busy(to, reason);
        }
        let others = core.loaded.iter().filter(|loaded| !ids.contains(&loaded.id)).count();
        if others + ids.len() > INSTRUMENTS_MAX {
            let text = format!(
                "{others} instruments are loaded and the command adds {}; a replay takes at most \
                 {INSTRUMENTS_MAX}",
                ids.len()
            );
            return core.error(to, error_code::TOO_MANY_INSTRUMENTS, &text);
        }
        core.under_way = Some(UnderWay::Load);
        drop(core);
        let (shared, request, granularity) = (Arc::clone(self), to.request(), load.granularity);
        thread::spawn(move || {
            let load =
                AssertUnwindSafe(|| shared.load_all(&request, &ids, (start, end), granularity));
            let loaded = catch_unwind(load).unwrap_or_else(|_| Err(internal()));
            shared.loaded(&request, loaded);
        });
    }

    /// Loads instruments one by one.
    fn load_all(
        self: &Arc<Self>,
        request: &RequestContext,
        ids: &[InstrumentId],
        (start, end): (JstDate, JstDate),
        wire: Granularity,
    ) -> Result<(Vec<Loaded>, Days), Refusal> {
        let mut observer = ProgressReport::new(Arc::clone(self), request.request_id.clone());
        observer.loads = ids.len() as u64;
        let mut days = Days::default();
        let mut all = Vec::new();
        for id in ids {
            let part = DataRequest {
                folder: self.config.data.clone().unwrap_or_default(),
                cache: self.config.strategies.cache.clone(),
                instruments: vec![id.clone()],
                start: Some(start),
                end: Some(end),
                granularity: granularity(wire),
                choices: InstrumentChoices::default(),
            };
            let data = part.load(&mut observer).map_err(refusal)?;
            days.add(&data, start, end);
            observer.end_load();
            all.push(Loaded {
                id: id.clone(),
                name: id.to_string(),
                start,
                end,
                granularity: wire,
                lot: data.instruments.first().map(|instrument| instrument.lot).unwrap_or_default(),
                ticks: data.instruments.first().map_or(TickTable::Normal, |first| first.ticks),
                base_price: data.base_prices.first().copied().flatten(),
                rows: rows_by_day(&data),
                series: Arc::new(data.series),
            });
        }
        Ok((all, days))
    }

    /// Ends a load.
    fn loaded(&self, request: &RequestContext, loaded: Result<(Vec<Loaded>, Days), Refusal>) {
        let mut core = self.lock();
        core.under_way = None;
        let now = self.started.elapsed();
        let to = request.command_context("LoadReplayData", now);
        let (new, days) = match loaded {
            Ok(loaded) => loaded,
            Err((code, why)) => return core.error(&to, code, &why),
        };
        let core = &mut *core;
        for loaded in new.iter().cloned() {
            match core.loaded.iter_mut().find(|old| old.id == loaded.id) {
                Some(old) => *old = loaded,
                None => core.loaded.push(loaded),
            }
        }
        core.state = SessionState::Loaded;
        core.epoch += 1;
        core.run = None;
        let Core { hub, loaded, epoch, .. } = core;
        let event =
            present::data_loaded(&request.request_id, (loaded, &new), days.counts(), *epoch);
        let Some(event) = event else { return };
        let instruments = loaded.len();
        let (trades_loaded, bars_loaded) = Loaded::counts_of(&new);
        tracing::info!(instruments, trades_loaded, bars_loaded, "loaded");
        hub.broadcast(&event);
    }
}

impl Core {
    /// Why no data can be loaded and no run started now, if that is so.
    pub(crate) fn not_free(&self) -> Option<&'static str> {
        match (self.state(), self.under_way) {
            (SessionState::Running, _) => Some("a run is under way; stop it first"),
            (SessionState::Stopping, _) => Some("a run is ending; wait for EngineStopped"),
            (_, Some(UnderWay::Load)) => Some("data are loading; wait for ReplayDataLoaded"),
            (_, Some(UnderWay::Start)) => Some("a run is starting; wait for EngineStarted"),
            (SessionState::Idle | SessionState::Loaded, None) => None,
        }
    }
}

/// The dates of a load.
#[derive(Debug, Default)]
struct Days {
    with_rows: BTreeSet<JstDate>,
    business: BTreeSet<JstDate>,
}

impl Days {
    /// Dates with rows, and business days without.
    fn counts(&self) -> (u64, u64) {
        let missing = self.business.difference(&self.with_rows).count();
        (self.with_rows.len() as u64, missing as u64)
    }

    fn add(&mut self, data: &DataSet, start: JstDate, end: JstDate) {
        self.with_rows.extend(data.series.calendar().days());
        let all = start.iter_days().take_while(|day| *day <= end);
        self.business.extend(all.filter(|day| data.calendar.is_business_day(*day)));
    }
}

/// Trades or bars of each date.
fn rows_by_day(data: &DataSet) -> Vec<(JstDate, u64)> {
    let dates = data.series.calendar();
    let rows = data.series.days().map(|day| match &day {
        MarketDay::Trades(parts) => parts.iter().map(|part| part.len() as u64).sum(),
        MarketDay::Bars(bars) => bars.len() as u64,
    });
    dates.days().iter().copied().zip(rows).collect()
}

fn refusal(error: RequestError) -> Refusal {
    let code = match &error {
        RequestError::NoData(_) | RequestError::Data(DataError::NoTradeFiles { .. }) => {
            error_code::DATA_NOT_FOUND
        }
        RequestError::Instrument(_) => error_code::VALIDATION_ERROR,
        _ => error_code::DATA_UNREADABLE,
    };
    (code, with_causes(&error))
}

/// A fault of the engine itself, which is in its log.
pub(crate) fn internal() -> Refusal {
    (error_code::INTERNAL_ERROR, "the engine failed; its log on standard error says how".to_owned())
}

/// Sends clients the progress of a request, and passes the engine's end on.
pub(crate) struct ProgressReport {
    shared: Arc<Shared>,
    request_id: String,
    since: Option<Stopwatch>,
    /// Loads that the request takes, one for each instrument, those that are done, and the bytes of each.
    loads: u64,
    loads_done: u64,
    bytes: u64,
    /// Bytes of the files of this load before the present one, and of that.
    before: u64,
    file: u64,
    /// What a run counts: rows or days, and how many there are.
    run: (&'static str, u64),
    /// Whether the request ends with a run that is to end, before the commands that still wait.
    pub(crate) ends_with_run: bool,
}

impl ProgressReport {
    pub(crate) const fn new(shared: Arc<Shared>, request_id: String) -> Self {
        Self {
            shared,
            request_id,
            since: None,
            loads: 1,
            loads_done: 0,
            bytes: 0,
            before: 0,
            file: 0,
            run: ("rows", 0),
            ends_with_run: false,
        }
    }

    /// Sends the progress of the loads, without other files that a load reads.
    fn report_load(&mut self, read: u64) {
        let bytes = self.bytes.max(1);
        let done = self.loads_done * bytes + read.min(bytes);
        self.report(ProgressKind::Load, done, self.loads * bytes, "bytes");
    }

    fn report(&mut self, kind: ProgressKind, done: u64, total: u64, unit: &str) {
        if self.since.is_some_and(|since| since.elapsed() < UPDATE_EVERY) {
            return;
        }
        self.since = Some(Stopwatch::start());
        let event = present::progress(&self.request_id, kind, (done, total), unit);
        let newest = Some(crate::outbox::Newest::Progress);
        self.shared.lock().hub.broadcast_newest(&event, newest);
    }
}

impl ProgressReport {
    /// Sends that a load is complete, also if it took no time.
    fn end_load(&mut self) {
        self.since = None;
        self.loads_done += 1;
        self.report_load(0);
    }

    /// Sends that a run has handled all rows.
    pub(crate) fn end_run(&mut self) {
        self.since = None;
        let (unit, total) = self.run;
        self.report(ProgressKind::Run, total, total, unit);
    }
}

impl RunObserver for ProgressReport {
    fn load_begins(&mut self, bytes: u64) {
        (self.bytes, self.before) = (bytes, 0);
    }

    fn file_begins(&mut self, _: &str, bytes: u64) {
        self.file = bytes;
    }

    fn file_read(&mut self, bytes: u64, _: u64) {
        self.report_load(self.before + bytes);
    }

    fn file_ends(&mut self) {
        self.before += self.file;
    }

    fn run_begins(&mut self, total: u64, counts_days: bool) {
        self.run = (if counts_days { "days" } else { "rows" }, total);
    }

    fn run_goes_on(&mut self, position: replay::RunPosition) {
        let (unit, total) = self.run;
        let done = if unit == "days" { position.days_done } else { position.rows_done };
        // A run's progress comes after its begin.
        self.shared.begin_run();
        self.report(ProgressKind::Run, done, total, unit);
    }

    fn is_cancelled(&self) -> bool {
        self.shared.shutdown.is_cancelled()
            || (self.ends_with_run && self.shared.is_stopping.load(Ordering::Relaxed))
    }
}
