//! Trades of files as the market, paced by the clock.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::{self, Stopwatch};
use domain::session::TradingHours;
use domain::{JstDate, TsNanos};
use replay::data_set::DataSet;
use replay::{MarketDay, Multiplier, TradingDay};

use super::days::NewDay;
use super::server::Shared;

/// How long a market that is held waits before it looks again.
const HELD: Duration = Duration::from_millis(5);
/// The longest wait between two trades.
const SLEEP_MAX: Duration = Duration::from_millis(200);
/// Trades that are handed over under one lock where nothing paces them.
const BATCH: usize = 64;

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
            let next = broker.next_date();
            broker.begin_day(&NewDay::with_sessions_of(next, date));
        }
        is_first = false;
        if !play_day(shared, date, parts, speed) {
            return;
        }
    }
    shared.broker().close_day();
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
