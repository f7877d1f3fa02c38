//! A run at a multiple of the market's own speed, with commands from outside (specification 2,
//! "Speed pacing in the streaming loop").
//!
//! Between two rows lie `min(max(dt, 1 ms) / multiplier, 200 ms)` of wall time; over the lunch break,
//! after the close and between business days none. The sleeps follow an absolute schedule: what a row
//! takes longer than its turn, the next sleeps make good again, up to [`CATCH_UP_MAX`].

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use domain::TsNanos;
use domain::calendar::next_pause_end;
use domain::clock::{self, Stopwatch};

use super::{Multiplier, RunCommand, RunDriver, RunPosition};

/// Time between two rows at least (specification 2, `MIN_TICK_DT_SEC` 0.001).
const MIN_TICK_NANOS: u64 = 1_000_000;
/// The longest sleep between two rows (specification 2, `SLEEP_CAP_SEC` 0.200).
pub const SLEEP_CAP: Duration = Duration::from_millis(200);
/// A run that is less than this ahead of its schedule does not wait: a system sleeps some 50 us too
/// long each time, so a sleep for each row of a dense stream would take many times what was asked for.
pub const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// How far behind its schedule a run hurries; what it is late beyond that is given up.
pub const CATCH_UP_MAX: Duration = Duration::from_millis(200);
/// How often cash and equity are told, on the wall clock (specification 2, `ReplayBuyingPower`).
pub const BUYING_POWER_EVERY: Duration = Duration::from_secs(1);
/// Rows of a run without pace between two looks at the commands: what a strategy takes for so many rows is what a
/// command waits.
const ROWS_WITHOUT_PACE: u64 = 256;
/// Rows without a wait between two readings of the wall clock.
const ROWS_BETWEEN_READINGS: u32 = 1_024;

/// The time of the outside.
pub trait WallClock {
    /// Time since some instant before the run.
    fn elapsed(&mut self) -> Duration;

    /// Waits until [`Self::elapsed`] reaches `deadline` or a command comes, and gives that command.
    fn wait(&mut self, commands: &Receiver<RunCommand>, deadline: Duration) -> Option<RunCommand>;
}

/// The machine's own clock.
#[derive(Debug)]
pub struct SystemClock(Stopwatch);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Stopwatch::start())
    }
}

impl WallClock for SystemClock {
    fn elapsed(&mut self) -> Duration {
        self.0.elapsed()
    }

    fn wait(&mut self, commands: &Receiver<RunCommand>, deadline: Duration) -> Option<RunCommand> {
        let left = |watch: &Stopwatch| deadline.saturating_sub(watch.elapsed());
        match commands.recv_timeout(left(&self.0)) {
            Ok(command) => Some(command),
            Err(RecvTimeoutError::Timeout) => None,
            // Nobody can send any more: the rest of the time is still to be waited.
            Err(RecvTimeoutError::Disconnected) => {
                clock::sleep(left(&self.0));
                None
            }
        }
    }
}

/// Drives a run row by row at a multiple of the market's speed. Commands act between two rows, at
/// once: one that comes during a wait ends it, and a new speed shortens or lengthens what is left.
pub struct Paced<'c> {
    clock: &'c mut dyn WallClock,
    commands: Receiver<RunCommand>,
    multiplier: Multiplier,
    /// The row whose turn is computed: rows done before it.
    row: Option<u64>,
    /// When the row before had its turn, on the wall clock.
    turn_before: Duration,
    /// When the row has its turn.
    turn: Duration,
    /// Time of the market between the two, in nanoseconds; `None` over a pause of the market.
    gap_nanos: Option<u64>,
    /// Time of the row before, in nanoseconds; 0 before the first.
    row_before: u64,
    /// From this time of the market on, a pause lies between the row before and the next.
    pause_end: u64,
    /// The last reading of the clock; it may be later by now.
    now: Duration,
    rows_since_reading: u32,
    reported_buying_power: Duration,
}

impl<'c> Paced<'c> {
    /// A driver that starts at a speed and takes commands from a channel.
    pub fn new(
        multiplier: Multiplier,
        commands: Receiver<RunCommand>,
        clock: &'c mut dyn WallClock,
    ) -> Self {
        let now = clock.elapsed();
        Self {
            clock,
            commands,
            multiplier,
            row: None,
            turn_before: now,
            turn: now,
            gap_nanos: None,
            row_before: 0,
            pause_end: 0,
            now,
            rows_since_reading: 0,
            reported_buying_power: now,
        }
    }

    /// Computes the turn of a new row. `before` is the time of what was handled last.
    fn take_row(&mut self, rows_done: u64, row: TsNanos, before: TsNanos) {
        if self.row.is_none() {
            // What came before, like loading the data, is no time of the run.
            self.read_clock();
            (self.turn, self.reported_buying_power) = (self.now, self.now);
        }
        let skipped = self.row.is_some_and(|row| rows_done > row + 1);
        self.row = Some(rows_done);
        if skipped {
            // Rows without pace were not seen.
            self.row_before = before.nanos();
            self.pause_end = next_pause_end(before).nanos();
        }
        let nanos = row.nanos();
        let gap = nanos.saturating_sub(self.row_before);
        self.row_before = nanos;
        self.gap_nanos = (nanos < self.pause_end).then_some(gap);
        if self.gap_nanos.is_none() {
            self.pause_end = next_pause_end(row).nanos();
        }
        // Rows that a flood of commands let through early do not put the schedule off.
        let (earliest, latest) = (self.now.saturating_sub(CATCH_UP_MAX), self.now + SLEEP_CAP);
        self.turn_before = self.turn.clamp(earliest, latest);
        self.set_turn();
        self.rows_since_reading += 1;
        if skipped || self.rows_since_reading >= ROWS_BETWEEN_READINGS {
            self.read_clock();
        }
    }

    fn set_turn(&mut self) {
        let sleep = self.gap_nanos.map_or(0, |gap| sleep_nanos(gap, self.multiplier));
        self.turn = self.turn_before + Duration::from_nanos(sleep);
    }

    fn read_clock(&mut self) {
        self.now = self.clock.elapsed();
        self.rows_since_reading = 0;
    }

    /// A command that is there, or that comes before the row has its turn.
    fn next_command(&mut self) -> Option<RunCommand> {
        match self.commands.try_recv() {
            Ok(command) => return Some(command),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
        if self.turn < self.now + SHORTEST_SLEEP {
            return None;
        }
        self.read_clock();
        if self.turn < self.now + SHORTEST_SLEEP {
            return None;
        }
        let command = self.clock.wait(&self.commands, self.turn);
        self.read_clock();
        command
    }
}

impl RunDriver for Paced<'_> {
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand> {
        if let Some(row) = at.next_row
            && self.row != Some(at.rows_done)
        {
            self.take_row(at.rows_done, row, at.now);
        }
        let command = self.next_command();
        if let Some(RunCommand::SetSpeed(multiplier)) = command {
            self.multiplier = multiplier;
            self.set_turn();
        }
        if command.is_none() && self.now >= self.reported_buying_power + BUYING_POWER_EVERY {
            self.reported_buying_power = self.now;
            return Some(RunCommand::ReportBuyingPower);
        }
        command
    }

    fn rows_until_poll(&self, _: RunPosition) -> u64 {
        if self.multiplier == Multiplier::UNPACED { ROWS_WITHOUT_PACE } else { 1 }
    }
}

/// `min(max(dt, 1 ms) / multiplier, 200 ms)`, in nanoseconds.
#[inline]
fn sleep_nanos(dt: u64, multiplier: Multiplier) -> u64 {
    let scaled = multiplier.divide(dt.max(MIN_TICK_NANOS));
    scaled.min(SLEEP_CAP.as_nanos() as u64)
}

#[cfg(test)]
mod tests;
