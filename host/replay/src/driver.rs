//! What drives a run from outside: nothing, the wall clock and people, or a record of what they did.
//!
//! A run asks its driver at fixed points, named by a [`RunPosition`], and executes the commands that it
//! is given before it goes on. What follows depends on the commands and their positions alone, so a run
//! whose commands were [`Recorded`] can be made again by [`Scripted`], at any speed and window.

mod multiplier;
mod paced;

use domain::{OrderCommand, TsNanos};
use results::output::commands::RecordedCommand;

pub use multiplier::Multiplier;
pub use paced::{BUYING_POWER_EVERY, CATCH_UP_MAX, Paced, SHORTEST_SLEEP, SLEEP_CAP};
pub use paced::{SystemClock, WallClock};

/// Rows that a run takes at most without asking its driver.
pub const ROWS_BETWEEN_POLLS_MAX: u64 = 16_384;
/// Commands that are taken at one position; the others wait for the next row.
pub const COMMANDS_PER_POSITION_MAX: usize = 1_024;

/// Where a run is when it asks its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPosition {
    /// Rows (trades or bars) that the strategy has seen.
    pub rows_done: u64,
    /// Days that are done.
    pub days_done: u64,
    /// The virtual time: that of the last event handled.
    pub now: TsNanos,
    /// The time of the row that comes next, in UTC; `None` at the end of a day.
    pub next_row: Option<TsNanos>,
}

impl RunPosition {
    /// What tells positions of one run apart, in their order: the end of a day comes before the row
    /// that follows it.
    #[must_use]
    pub const fn key(&self) -> PositionKey {
        PositionKey { rows_done: self.rows_done, is_before_row: self.next_row.is_some() }
    }
}

/// A position without its times; sorts as a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositionKey {
    /// Rows that the strategy has seen.
    pub rows_done: u64,
    /// Whether a row comes next; else it is the end of a day.
    pub is_before_row: bool,
}

/// What a driver wants of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunCommand {
    /// Do something with the orders of clients.
    Order(OrderCommand),
    /// Go on at another speed. The driver itself keeps to it; the run does nothing.
    SetSpeed(Multiplier),
    /// Tell cash and equity to the sink.
    ReportBuyingPower,
    /// End here and keep what there is.
    Stop,
}

/// Drives a run.
pub trait RunDriver {
    /// The next command at this position; `None` to go on. Asked before the first row of each day, at
    /// the end of each day, and after [`Self::rows_until_poll`] rows; it may take its time.
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand>;

    /// Rows that the run may take before it asks again, at least 1; told after a poll before a row.
    fn rows_until_poll(&self, at: RunPosition) -> u64 {
        let _ = at;
        ROWS_BETWEEN_POLLS_MAX
    }

    /// Goes back to its beginning, where it can drive another run as it drove this one. Tells whether it could.
    fn rewind(&mut self) -> bool {
        false
    }
}

impl<D: RunDriver + ?Sized> RunDriver for &mut D {
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand> {
        (**self).poll(at)
    }

    fn rows_until_poll(&self, at: RunPosition) -> u64 {
        (**self).rows_until_poll(at)
    }

    fn rewind(&mut self) -> bool {
        (**self).rewind()
    }
}

/// As fast as it can go, with no commands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unpaced;

impl RunDriver for Unpaced {
    fn poll(&mut self, _: RunPosition) -> Option<RunCommand> {
        None
    }

    fn rewind(&mut self) -> bool {
        true
    }
}

/// Asks `watch` first, for progress and for stopping, then another driver.
#[derive(Debug)]
pub struct Watched<D, F> {
    driver: D,
    watch: F,
}

impl<D: RunDriver, F: FnMut(RunPosition) -> Option<RunCommand>> Watched<D, F> {
    /// A driver that is asked whenever `watch` wants nothing. `watch` must come to an end with its
    /// commands: it is asked again after each.
    pub const fn new(driver: D, watch: F) -> Self {
        Self { driver, watch }
    }
}

impl<D: RunDriver, F: FnMut(RunPosition) -> Option<RunCommand>> RunDriver for Watched<D, F> {
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand> {
        (self.watch)(at).or_else(|| self.driver.poll(at))
    }

    fn rows_until_poll(&self, at: RunPosition) -> u64 {
        self.driver.rows_until_poll(at)
    }

    fn rewind(&mut self) -> bool {
        self.driver.rewind()
    }
}

/// Keeps the commands of another driver with their positions.
#[derive(Debug)]
pub struct Recorded<D> {
    driver: D,
    commands: Vec<(PositionKey, RunCommand)>,
}

impl<D: RunDriver> Recorded<D> {
    /// A driver whose commands are kept.
    pub const fn new(driver: D) -> Self {
        Self { driver, commands: Vec::new() }
    }

    /// The commands so far, in order.
    pub fn into_commands(self) -> Vec<(PositionKey, RunCommand)> {
        self.commands
    }
}

impl<D: RunDriver> RunDriver for Recorded<D> {
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand> {
        let command = self.driver.poll(at)?;
        self.commands.push((at.key(), command.clone()));
        Some(command)
    }

    fn rows_until_poll(&self, at: RunPosition) -> u64 {
        self.driver.rows_until_poll(at)
    }
}

/// Gives recorded commands at the positions where they were given, whatever the window.
#[derive(Debug, Clone)]
pub struct Scripted {
    commands: Vec<(PositionKey, RunCommand)>,
    /// Commands that were given.
    given: usize,
}

impl Scripted {
    /// A script of commands. They are sorted by position; those of one position keep their order.
    #[must_use]
    pub fn new(mut commands: Vec<(PositionKey, RunCommand)>) -> Self {
        commands.sort_by_key(|(position, _)| *position);
        Self { commands, given: 0 }
    }

    /// Whether one of its commands ends the run.
    #[must_use]
    pub fn stops(&self) -> bool {
        self.commands.iter().any(|(_, command)| *command == RunCommand::Stop)
    }

    /// Commands that the run has not come to.
    #[must_use]
    pub fn left(&self) -> usize {
        self.commands.len() - self.given
    }

    fn next(&self) -> Option<&(PositionKey, RunCommand)> {
        self.commands.get(self.given)
    }
}

/// What clients did to a run, as its folder keeps it.
impl From<Vec<RecordedCommand>> for Scripted {
    fn from(commands: Vec<RecordedCommand>) -> Self {
        let of = |recorded: RecordedCommand| {
            let RecordedCommand { rows_done, is_before_row, command } = recorded;
            let command = command.map_or(RunCommand::Stop, RunCommand::Order);
            (PositionKey { rows_done, is_before_row }, command)
        };
        Self::new(commands.into_iter().map(of).collect())
    }
}

impl RunDriver for Scripted {
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand> {
        // A position that the run never came to (its data are other ones) is caught up with.
        let (_, command) = self.next().filter(|(position, _)| *position <= at.key())?;
        let command = command.clone();
        self.given += 1;
        Some(command)
    }

    fn rows_until_poll(&self, at: RunPosition) -> u64 {
        let next = self.next().map_or(u64::MAX, |(position, _)| position.rows_done);
        next.saturating_sub(at.rows_done).clamp(1, ROWS_BETWEEN_POLLS_MAX)
    }

    fn rewind(&mut self) -> bool {
        self.given = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rows_done: u64, is_before_row: bool) -> RunPosition {
        let next_row = is_before_row.then(TsNanos::default);
        RunPosition { rows_done, days_done: 0, now: TsNanos::default(), next_row }
    }

    #[test]
    fn the_end_of_a_day_comes_before_the_next_row() {
        assert!(at(5, false).key() < at(5, true).key());
        assert!(at(5, true).key() < at(6, false).key());
    }

    #[test]
    fn a_script_asks_for_its_positions() {
        let stop = |rows, before| (at(rows, before).key(), RunCommand::Stop);
        let mut script = Scripted::new(vec![stop(20_000, true), stop(7, true), stop(7, false)]);
        assert_eq!(script.rows_until_poll(at(0, true)), 7);
        assert_eq!(script.poll(at(0, true)), None);
        assert_eq!(script.poll(at(7, false)), Some(RunCommand::Stop));
        assert_eq!(script.poll(at(7, false)), None);
        assert_eq!(script.poll(at(7, true)), Some(RunCommand::Stop));
        assert_eq!(script.rows_until_poll(at(7, true)), ROWS_BETWEEN_POLLS_MAX);
        assert_eq!(script.rows_until_poll(at(20_000, true)), 1, "never none");
        assert!(script.rewind());
        assert_eq!(script.rows_until_poll(at(0, true)), 7);
        assert_eq!(script.poll(at(7, true)), Some(RunCommand::Stop));
    }
}
