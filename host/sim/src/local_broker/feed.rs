//! What moves the market: trades of files, or a walk of prices, paced by the clock.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::{self, Stopwatch};
use domain::session::TradingHours;
use domain::{JstDate, Price, Random, TsNanos};
use replay::data_set::DataSet;
use replay::{MarketDay, Multiplier, TradingDay};

use super::config::FirstDay;
use super::gateway::Gateway;
use super::server::Shared;
use crate::web_broker::NewDay;

/// How long a market that is held waits before it looks again.
const HELD: Duration = Duration::from_millis(5);
/// The longest sleep without a look at whether the server goes on.
const NAP: Duration = Duration::from_millis(20);
/// Rows that are handed over under one lock where nothing paces them.
const BATCH: usize = 64;
/// The smallest and largest step of a walk, in price steps.
const STEP_MAX: u64 = 3;

/// Paces rows of a market's time by the clock.
struct Pace {
    speed: Multiplier,
    watch: Stopwatch,
    due: Duration,
    before: Option<TsNanos>,
}

impl Pace {
    fn new(speed: Multiplier) -> Self {
        Self { speed, watch: Stopwatch::start(), due: Duration::ZERO, before: None }
    }

    /// Waits until a row is due; tells whether the server goes on.
    fn wait(&mut self, shared: &Shared, time: TsNanos) -> bool {
        if self.speed == Multiplier::UNPACED {
            return !shared.stop.is_cancelled();
        }
        let before = self.before.replace(time).unwrap_or(time);
        let gap = u128::from(time.nanos().saturating_sub(before.nanos()));
        let gap = gap * 1_000 / u128::from(self.speed.thousandths());
        self.due += Duration::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX));
        loop {
            let elapsed = self.watch.elapsed();
            if shared.stop.is_cancelled() {
                return false;
            }
            if elapsed >= self.due {
                return true;
            }
            clock::sleep((self.due - elapsed).min(NAP));
        }
    }

    /// The market was held: it goes on from here.
    fn again(&mut self) {
        (self.watch, self.due, self.before) = (Stopwatch::start(), Duration::ZERO, None);
    }
}

/// Waits while the market is held; tells whether the server goes on.
fn wait_for_turn(shared: &Shared, pace: &mut Pace) -> bool {
    let mut was_held = false;
    loop {
        if shared.stop.is_cancelled() {
            return false;
        }
        if shared.gateway().lets_feed_run() {
            if was_held {
                pace.again();
            }
            return true;
        }
        was_held = true;
        clock::sleep(HELD);
    }
}

/// A day is over; tells which.
fn end_day(shared: &Shared) -> JstDate {
    let mut gateway = shared.gateway();
    gateway.close_day();
    gateway.market_runs &= !gateway.config.holds_each_day;
    gateway.day
}

fn end_market(shared: &Shared) {
    shared.gateway().market_over = true;
}

/// Plays the days of the files, until the server stops.
pub(crate) fn play_files(shared: &Arc<Shared>, data: &DataSet, speed: Multiplier) {
    let mut pace = Pace::new(speed);
    let mut is_first = true;
    for day in data.series.days() {
        let (Some(date), MarketDay::Trades(parts)) = (day.date(), &day) else { continue };
        if !wait_for_turn(shared, &mut pace) {
            return;
        }
        let on = {
            let mut gateway = shared.gateway();
            if !is_first {
                let own = gateway.config.first_day != FirstDay::OfFiles;
                let next = if own { gateway.next_business_day() } else { date };
                gateway.begin_day(&NewDay::with_sessions_of(next, date));
            }
            gateway.day
        };
        is_first = false;
        pace.again();
        if !play_day(shared, (date, on), parts, &mut pace) {
            return;
        }
        end_day(shared);
    }
    end_market(shared);
}

/// Plays the trades of one date on another; tells whether the server goes on.
fn play_day(
    shared: &Shared,
    (date, on): (JstDate, JstDate),
    parts: &[TradingDay<'_>],
    pace: &mut Pace,
) -> bool {
    let (start, on_start) = (TradingHours::of(date).start, TradingHours::of(on).start);
    let mut next = vec![0; parts.len()];
    let size = if pace.speed == Multiplier::UNPACED { BATCH } else { 1 };
    loop {
        let mut batch = Vec::with_capacity(size);
        while batch.len() < size {
            let heads = parts.iter().zip(&next).enumerate();
            let heads = heads.filter(|(_, (part, row))| **row < part.len());
            let head = heads.map(|(index, (part, row))| (part.ts_at(*row), index)).min();
            let Some((time, index)) = head else { break };
            batch.push((time, index, next[index]));
            next[index] += 1;
        }
        let Some((first, _, _)) = batch.first().copied() else { return true };
        if !wait_for_turn(shared, pace) || !pace.wait(shared, first) {
            return false;
        }
        {
            let mut gateway = shared.gateway();
            for (time, index, row) in batch {
                let part = &parts[index];
                let time = on_start.plus_nanos(time.nanos() - start.nanos());
                gateway.trade(index, part.price_at(row), part.quantity()[row], time);
                while gateway.is_book_next() {
                    gateway.change_book(index, time);
                }
            }
        }
        shared.hand_over();
    }
}

/// A walk of prices over every issue that there is, also those that come later.
pub(crate) struct Walk {
    random: Random,
    mean_gap_nanos: u64,
    days: u32,
    /// When each issue has its next frame, in nanoseconds of the day.
    next: Vec<u64>,
}

impl Walk {
    pub(crate) fn new(seed: u64, days: u32, mean_gap_ms: u32) -> Self {
        let mean_gap_nanos = u64::from(mean_gap_ms.max(1)) * 1_000_000;
        Self { random: Random::new(&[seed, 2]), mean_gap_nanos, days, next: Vec::new() }
    }

    /// Walks, until the server stops.
    pub(crate) fn play(mut self, shared: &Arc<Shared>, speed: Multiplier) {
        let mut pace = Pace::new(speed);
        let mut ended = None;
        for _ in 0..self.days {
            if !wait_for_turn(shared, &mut pace) {
                return;
            }
            {
                let mut gateway = shared.gateway();
                // A command may have begun the next day while the market was held.
                if ended == Some(gateway.day) {
                    let date = gateway.next_business_day();
                    gateway.begin_day(&NewDay::with_sessions_of(date, date));
                }
            }
            pace.again();
            if !self.play_day(shared, &mut pace) {
                return;
            }
            ended = Some(end_day(shared));
        }
        end_market(shared);
    }

    /// Walks to the end of the day, and of another one that is begun meanwhile; tells whether the server
    /// goes on.
    fn play_day(&mut self, shared: &Shared, pace: &mut Pace) -> bool {
        let mut day = shared.gateway().day;
        self.next.clear();
        let size = if pace.speed == Multiplier::UNPACED { BATCH } else { 1 };
        loop {
            if !wait_for_turn(shared, pace) {
                return false;
            }
            let (hours, first) = {
                let gateway = shared.gateway();
                if gateway.day != day {
                    day = gateway.day;
                    self.next.clear();
                    pace.again();
                }
                let hours = TradingHours::of(day);
                self.invite(gateway.boards.len(), hours, gateway.market_time);
                (hours, self.earliest())
            };
            let Some((of_day, _)) = first else {
                // No issue was named yet.
                clock::sleep(HELD);
                continue;
            };
            let time = hours.start.plus_nanos(of_day);
            if time >= hours.close {
                return true;
            }
            if !pace.wait(shared, time) {
                return false;
            }
            {
                let mut gateway = shared.gateway();
                if gateway.day != day {
                    continue;
                }
                for _ in 0..size {
                    self.step(&mut gateway, hours);
                }
            }
            shared.hand_over();
        }
    }

    /// Issues that are new get their first time.
    fn invite(&mut self, issues: usize, hours: TradingHours, now: TsNanos) {
        while self.next.len() < issues {
            let from = now.max(hours.morning_open).nanos() - hours.start.nanos();
            let gap = self.random.below(2 * self.mean_gap_nanos);
            let time = self.outside_lunch(from.saturating_add(gap), hours);
            self.next.push(time);
        }
    }

    fn earliest(&self) -> Option<(u64, usize)> {
        self.next.iter().copied().zip(0..).min()
    }

    /// In the lunch break nothing happens.
    fn outside_lunch(&mut self, of_day: u64, hours: TradingHours) -> u64 {
        let of = |time: TsNanos| time.nanos() - hours.start.nanos();
        let is_lunch = (of(hours.morning_close)..of(hours.afternoon_open)).contains(&of_day);
        if is_lunch {
            of(hours.afternoon_open) + self.random.below(self.mean_gap_nanos)
        } else {
            of_day
        }
    }

    /// The next frame of the issue that has one first.
    fn step(&mut self, gateway: &mut Gateway, hours: TradingHours) {
        let Some((of_day, place)) = self.earliest() else { return };
        let time = hours.start.plus_nanos(of_day);
        if time >= hours.close {
            return;
        }
        let gap = self.random.below(2 * self.mean_gap_nanos) + 1;
        self.next[place] = self.outside_lunch(of_day + gap, hours);
        if gateway.is_book_next() {
            gateway.change_book(place, time);
            return;
        }
        let (price, shares) = self.next_trade(gateway, place);
        gateway.trade(place, price, shares, time);
    }

    /// A price some steps from the last, inside the day's range, and a number of lots: mostly few, and in one of eight
    /// as many as a fund's.
    fn next_trade(&mut self, gateway: &Gateway, place: usize) -> (Price, u64) {
        let board = &gateway.boards[place];
        let ticks = board.issue.ticks;
        let limits = domain::instrument::DailyLimits::around(board.previous_close).aligned(ticks);
        let away = i64::try_from(self.random.below(2 * STEP_MAX + 1)).unwrap_or_default();
        let steps = (away - i64::try_from(STEP_MAX).unwrap_or_default()) / 2;
        let price = limits.clamp(ticks.moved(board.price(), steps));
        let lots = match self.random.below(64) {
            many @ 56.. => 10 + 5 * (many - 56),
            few => 1 + few % 8,
        };
        (price, lots * board.issue.lot.shares())
    }
}
