//! Trades of files as the market, paced by the clock.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::{self, Stopwatch};
use domain::session::TradingHours;
use domain::{InstrumentId, JstDate, Price, TsNanos};
use replay::data_set::{DataRequest, DataSet, Granularity};
use replay::instruments::InstrumentChoices;
use replay::{MarketDay, Multiplier, RunObserver, TradingDay};

use super::ServerError;
use super::config::{Config, Issue, MarketData};
use super::server::Shared;

/// How long a market that is held waits before it looks again.
const HELD: Duration = Duration::from_millis(5);
/// The longest wait between two trades.
const SLEEP_MAX: Duration = Duration::from_millis(200);
/// Trades that are handed over under one lock where nothing paces them.
const BATCH: usize = 64;

struct Nobody;

impl RunObserver for Nobody {}

/// Reads the trades of the configuration's issues; their lots, price steps, names and base prices take the
/// place of those given.
pub(crate) fn load(config: &mut Config, wanted: &MarketData) -> Result<DataSet, ServerError> {
    let instruments: Vec<InstrumentId> = config
        .issues
        .iter()
        .map(|issue| format!("{}.TSE", issue.symbol).parse())
        .collect::<Result<_, _>>()
        .map_err(|error| ServerError::Config(format!("{error}")))?;
    let request = DataRequest {
        folder: wanted.folder.clone(),
        cache: wanted.cache.clone(),
        instruments,
        start: wanted.start,
        end: wanted.end,
        granularity: Granularity::Trade,
        choices: InstrumentChoices::default(),
    };
    let data = request.load(&mut Nobody).map_err(|error| ServerError::Data(Box::new(error)))?;
    let first = first_prices(&data);
    config.issues = (data.instruments.iter().zip(&data.base_prices).zip(first))
        .map(|((instrument, base), first)| {
            let id = instrument.id.as_str();
            let name = data.names.get(id).cloned();
            Issue {
                symbol: instrument.id.symbol().to_owned(),
                name: name.unwrap_or_else(|| instrument.id.symbol().to_owned()),
                lot: instrument.lot,
                ticks: instrument.ticks,
                // The price range needs a close before; the first trade is the nearest to it.
                base: instrument.ticks.floor(base.or(first).unwrap_or(Price::from_yen(1_000))),
            }
        })
        .collect();
    Ok(data)
}

fn first_prices(data: &DataSet) -> Vec<Option<Price>> {
    let mut first = vec![None; data.instruments.len()];
    for day in data.series.days() {
        let MarketDay::Trades(parts) = day else { break };
        for (first, part) in first.iter_mut().zip(&parts) {
            if first.is_none() && !part.is_empty() {
                *first = Some(part.price_at(0));
            }
        }
        if first.iter().all(Option::is_some) {
            break;
        }
    }
    first
}

/// Plays the days of the files, until the server stops.
pub(crate) fn play(shared: &Arc<Shared>, data: &DataSet, speed: Multiplier) {
    let mut is_first = true;
    for day in data.series.days() {
        let (Some(date), MarketDay::Trades(parts)) = (day.date(), &day) else { continue };
        if !wait_for_turn(shared) {
            return;
        }
        if !is_first {
            let mut broker = shared.broker();
            broker.end_day();
            broker.next_day(Some(date));
        }
        is_first = false;
        if !play_day(shared, date, parts, speed) {
            return;
        }
    }
    let mut broker = shared.broker();
    broker.end_day();
    broker.is_over = true;
    broker.tell_phase();
    broker.release();
}

/// Waits while the market is held; tells whether the server goes on.
fn wait_for_turn(shared: &Shared) -> bool {
    loop {
        if shared.stop.is_cancelled() {
            return false;
        }
        if shared.broker().market_runs {
            return true;
        }
        clock::sleep(HELD);
    }
}

/// Plays the trades of one date; tells whether the server goes on.
fn play_day(shared: &Shared, date: JstDate, parts: &[TradingDay<'_>], speed: Multiplier) -> bool {
    let hours = TradingHours::of(date);
    let mut next = vec![0; parts.len()];
    let (mut watch, mut due) = (Stopwatch::start(), Duration::ZERO);
    let mut before: Option<TsNanos> = None;
    loop {
        if !wait_for_turn(shared) {
            return false;
        }
        let mut batch = Vec::new();
        while batch.len() < if speed == Multiplier::UNPACED { BATCH } else { 1 } {
            let heads = parts.iter().zip(&next).enumerate();
            let heads = heads.filter(|(_, (part, row))| **row < part.len());
            let head = heads.map(|(index, (part, row))| (part.ts_at(*row), index)).min();
            let Some((time, index)) = head else { break };
            batch.push((time, index, next[index]));
            next[index] += 1;
        }
        let Some((time, _, _)) = batch.first().copied() else { return true };
        if speed != Multiplier::UNPACED {
            let gap = before.map_or(0, |before| gap_of(hours, before, time));
            // Inside a session times are below 10^14.
            let gap = Duration::from_nanos(gap.saturating_mul(1_000) / speed.thousandths());
            due += gap.min(SLEEP_MAX);
            let elapsed = watch.elapsed();
            if due > elapsed {
                clock::sleep(due - elapsed);
            } else if elapsed > due + SLEEP_MAX {
                // Held, or late: it goes on from here.
                (watch, due) = (Stopwatch::start(), Duration::ZERO);
            }
            before = Some(time);
        }
        let mut broker = shared.broker();
        let start = broker.hours.start;
        for (time, index, row) in batch {
            let part = &parts[index];
            let time = start.plus_nanos(time.nanos() - hours.start.nanos());
            broker.trade(index, time, part.price_at(row), part.quantity()[row]);
        }
    }
}

/// Time between two trades that is waited for: none over the lunch break.
fn gap_of(hours: TradingHours, before: TsNanos, now: TsNanos) -> u64 {
    let is_over_lunch = before < hours.afternoon_open && now >= hours.afternoon_open;
    if is_over_lunch { 0 } else { now.nanos().saturating_sub(before.nanos()) }
}
