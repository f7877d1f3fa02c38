//! What the forms of pages show: stored data, strategies and their parameters, trading units, runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use domain::instrument::DailyLimits;
use domain::{InstrumentId, JstDate, Money, Price};
use ipc::{
    DataCatalog, DataSpan, Decimal, EngineMode, Event, GetHistory, Granularity, Instrument,
    NamedInstrument, ParameterKind, RunRow, Runs, Strategies, StrategyFile, StrategyParameter,
    StrategyParameters, TickBand, error_code,
};
use marketdata::{FileKind, InstrumentTable, Inventory, Period};
use results::output::{MANIFEST_FILE, REPORT_FILE, SUMMARY_FILE, read_json};
use serde_json::Value;
use trader::Loading;
use trader::trial::{self, reported_parameters};

use crate::live::WEB_BROKER;
use crate::load::{Refusal, invalid};
use crate::present::market::history;
use crate::session::{CommandContext, Shared};
use crate::startup::EngineConfig;

/// Runs of an answer; further ones are older.
const RUNS_MAX: usize = 200;
/// Instruments of an answer: the exchange has fewer.
const INSTRUMENTS_TOLD_MAX: usize = 10_000;

/// The report of a run, where there is one.
pub(super) fn report_of(config: &EngineConfig, run_id: &str) -> Option<PathBuf> {
    // A name of a run is a name, not a path.
    let is_name = run_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let report = config.cache_dir.join(crate::start::RUNS).join(run_id).join(REPORT_FILE);
    (is_name && !run_id.is_empty() && report.is_file()).then_some(report)
}

impl Shared {
    /// Stored data by the names of the files, and known instruments.
    pub(super) fn catalog(&self, request_id: &str) -> Result<Event<'static>, Refusal> {
        let (mut files, mut names) = (Vec::new(), BTreeMap::new());
        if let (EngineMode::Replay, Some(folder)) = (self.config.mode, &self.config.data) {
            let unreadable = |error: &dyn std::fmt::Display| {
                (error_code::DATA_UNREADABLE, format!("{}: {error}", folder.display()))
            };
            let stored = Inventory::of(folder).map_err(|error| unreadable(&error))?;
            for (kind, granularity) in [
                (FileKind::Trades, Granularity::Trade),
                (FileKind::MinuteBars, Granularity::Minute),
                (FileKind::DailyBars, Granularity::Daily),
            ] {
                let periods = stored.of_kind(kind).filter_map(|file| file.period);
                files.extend(spans(granularity, periods.collect()));
            }
            let table = InstrumentTable::read(folder).map_err(|error| unreadable(&error))?;
            let rows = table.iter().flat_map(InstrumentTable::all).take(INSTRUMENTS_TOLD_MAX);
            names.extend(rows.map(|row| (row.code.instrument_id().to_string(), row.name.clone())));
        }
        let named = |(id, name): (String, String)| NamedInstrument {
            instrument_id: id.into(),
            name: (!name.trim().is_empty()).then(|| name.into()),
        };
        Ok(Event::DataCatalog(DataCatalog {
            request_id: request_id.to_owned().into(),
            files,
            instruments: names.into_iter().map(named).collect(),
        }))
    }

    pub(super) fn strategies(&self, request_id: &str) -> Result<Event<'static>, Refusal> {
        let names = self.config.strategies.names();
        let strategies = names
            .into_iter()
            .map(|name| StrategyFile { strategy_file: name.clone().into(), name: name.into() });
        Ok(Event::Strategies(Strategies {
            request_id: request_id.to_owned().into(),
            strategies: strategies.collect(),
        }))
    }

    /// The parameters that a strategy reports; it runs under the limits of every strategy.
    pub(super) fn parameters_of(
        &self,
        request_id: &str,
        file: &str,
    ) -> Result<Event<'static>, Refusal> {
        let failed = |text: String| (error_code::STRATEGY_LOAD_FAILED, text);
        let stopped = || self.shutdown.is_cancelled();
        let limits = self.config.limits;
        let loading = Loading { call_path: None, limits, stopped: &stopped };
        let module = self
            .config
            .strategies
            .load_with(file, &loading)
            .map_err(|error| failed(domain::text::with_causes(&error)))?;
        let reported = reported_parameters(&module, limits, "{}", &[trial::instrument()])
            .map_err(|error| failed(domain::text::with_causes(&error)))?
            .ok_or_else(|| {
                let text = format!(
                    "`{file}` does not start without parameters, so its defaults are unknown; see its own page"
                );
                (error_code::STRATEGY_INIT_FAILED, text)
            })?;
        let parameters = reported.into_iter().map(|(name, value)| {
            let default = serde_json::from_str(&value).unwrap_or(Value::String(value));
            let kind = match &default {
                Value::Number(number) if number.is_f64() => ParameterKind::Number,
                Value::Number(_) => ParameterKind::Integer,
                Value::Bool(_) => ParameterKind::Boolean,
                _ => ParameterKind::Text,
            };
            StrategyParameter { name: name.into(), default, kind }
        });
        Ok(Event::StrategyParameters(StrategyParameters {
            request_id: request_id.to_owned().into(),
            strategy_file: file.to_owned().into(),
            parameters: parameters.collect(),
        }))
    }

    /// Runs whose folders are there, newest first: a name begins with its time.
    pub(super) fn runs(&self, request_id: &str) -> Result<Event<'static>, Refusal> {
        let folder = self.config.cache_dir.join(crate::start::RUNS);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.join(MANIFEST_FILE).is_file())
            .collect();
        folders.sort();
        let runs = folders.iter().rev().filter_map(|folder| {
            let run_id = folder.file_name()?.to_str()?.to_owned();
            let manifest = read_json(folder, MANIFEST_FILE).ok()?;
            let report = folder.join(REPORT_FILE).is_file();
            let summary = read_json(folder, SUMMARY_FILE).ok();
            let equity = summary.as_ref().and_then(|summary| summary["equity_end"].as_str());
            Some(run_row(run_id, &manifest, equity, report))
        });
        let runs = runs.take(RUNS_MAX).collect();
        Ok(Event::Runs(Runs { request_id: request_id.to_owned().into(), runs }))
    }

    /// What was traded so far. The time of the question counts, not that of the answer: what comes after it is told as
    /// ever.
    pub(super) fn history(self: &Arc<Self>, to: &CommandContext<'_>, asked: GetHistory) {
        let past = self.lock().past_of(self.config.mode, &asked);
        match past {
            Ok(past) => self.in_background(to, move |_, id| {
                let rows = past.rows(&asked);
                Ok(history(id, asked, rows))
            }),
            Err((code, text)) => self.lock().error(to, code, &text),
        }
    }

    /// Trading units of an instrument, as orders at the venue have them.
    pub(super) fn instrument(&self, to: &CommandContext<'_>, venue: &str, instrument_id: &str) {
        let units = match instrument_id.parse::<InstrumentId>() {
            Ok(id) => self.units(venue, &id),
            Err(why) => {
                Err(invalid(format!("INSTRUMENT_ID: `{instrument_id}` is no instrument: {why}")))
            }
        };
        let mut core = self.lock();
        match units {
            Ok(units) => {
                let event = Event::Instrument(Instrument {
                    request_id: to.request_id.unwrap_or_default().into(),
                    venue: venue.into(),
                    instrument_id: instrument_id.into(),
                    ..units
                });
                core.hub.send(to.client, &event);
            }
            Err((code, text)) => core.error(to, code, &text),
        }
    }

    fn units(&self, venue: &str, id: &InstrumentId) -> Result<Instrument<'static>, Refusal> {
        let empty = Instrument {
            request_id: "".into(),
            venue: "".into(),
            instrument_id: "".into(),
            name: None,
            lot: 1,
            ticks: Vec::new(),
            base_price: None,
            lower_limit: None,
            upper_limit: None,
        };
        match (self.config.mode, venue) {
            (EngineMode::Replay, crate::VENUE) => {
                let core = self.lock();
                let loaded = core.loaded.iter().find(|loaded| loaded.id == *id);
                let loaded = loaded.ok_or_else(|| {
                    (error_code::NOT_LOADED, format!("{id} is not loaded; send LoadReplayData"))
                })?;
                let run = core.run.as_ref();
                let market = run.and_then(|run| {
                    run.markets.iter().find(|market| market.instrument_id == loaded.name)
                });
                let base = market.map_or(loaded.base_price, |market| market.base_price);
                let limits = base.map(|base| DailyLimits::around(base).aligned(loaded.ticks));
                let bands = loaded.ticks.bands();
                Ok(Instrument {
                    lot: loaded.lot.shares(),
                    ticks: ticks(bands),
                    base_price: base.map(Decimal::from),
                    lower_limit: limits.map(|limits| limits.low.into()),
                    upper_limit: limits.map(|limits| limits.high.into()),
                    ..empty
                })
            }
            (EngineMode::Live, WEB_BROKER) => {
                let no_masters = || {
                    let text = "web_broker: it has sent no list of issues yet; log in first";
                    (error_code::VENUE_NOT_READY, text.to_owned())
                };
                let masters = self.live.masters().ok_or_else(no_masters)?;
                let issue = masters.issue(id.symbol()).ok_or_else(|| {
                    invalid(format!("INSTRUMENT_ID: the broker's list of issues has no {id}"))
                })?;
                let bands = masters.ticks(issue).map(|ticks| ticks.bands().to_vec());
                Ok(Instrument {
                    name: (!issue.name.is_empty()).then(|| issue.name.clone().into()),
                    lot: issue.lot.shares(),
                    ticks: ticks(bands.into_iter().flatten()),
                    lower_limit: issue.lower_limit.map(Decimal::from),
                    upper_limit: issue.upper_limit.map(Decimal::from),
                    ..empty
                })
            }
            _ => Err((
                error_code::VENUE_NOT_AVAILABLE,
                format!("VENUE: `{venue}` takes no orders here; write replay or web_broker"),
            )),
        }
    }
}

/// Spans of files that touch each other, as one.
fn spans(granularity: Granularity, mut periods: Vec<Period>) -> Vec<DataSpan<'static>> {
    periods.sort_by_key(|period| period.first());
    let mut joined: Vec<(JstDate, JstDate)> = Vec::new();
    for period in periods {
        match joined.last_mut() {
            Some((_, last)) if last.succ_opt().is_none_or(|next| period.first() <= next) => {
                *last = (*last).max(period.last());
            }
            _ => joined.push((period.first(), period.last())),
        }
    }
    let span = |(first, last): (JstDate, JstDate)| DataSpan {
        granularity,
        start_date: first.to_string().into(),
        end_date: last.to_string().into(),
    };
    joined.into_iter().map(span).collect()
}

/// Price steps as they are sent: the last band has no end.
fn ticks(bands: impl Iterator<Item = (Price, Price)>) -> Vec<TickBand> {
    let mut bands: Vec<TickBand> = bands
        .map(|(up_to, tick)| TickBand { up_to: Some(up_to.into()), tick: tick.into() })
        .collect();
    if let Some(last) = bands.last_mut() {
        last.up_to = None;
    }
    bands
}

fn run_row(
    run_id: String,
    manifest: &Value,
    equity: Option<&str>,
    report: bool,
) -> RunRow<'static> {
    let text = |name: &str| manifest[name].as_str().filter(|text| !text.is_empty());
    let owned = |name: &str| text(name).map(|text| text.to_owned().into());
    let instruments = text("instrument_id").unwrap_or_default().split(',').map(str::trim);
    RunRow {
        run_id: run_id.into(),
        run_kind: text("run_kind").unwrap_or("replay").to_owned().into(),
        strategy_id: manifest["component"]["name"].as_str().map(|name| name.to_owned().into()),
        instrument_ids: instruments
            .filter(|id| !id.is_empty())
            .map(|id| id.to_owned().into())
            .collect(),
        start_date: owned("start"),
        end_date: owned("end"),
        status: text("status").unwrap_or("unknown").to_owned().into(),
        final_equity: equity.and_then(|equity| equity.parse::<Money>().ok()).map(Decimal::from),
        report,
    }
}
