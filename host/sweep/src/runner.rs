//! One run of a sweep: a fresh strategy over a range of days, down to its numbers.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use domain::adjustment::ExRights;
use domain::strategy::StrategyRuntime;
use domain::threads::panic_text;
use domain::{Instrument, InstrumentIx, JstDate, Price};

use crate::score::{Score, cut, score};
use replay::driver::{RunCommand, Unpaced, Watched};
use replay::{MarketDay, ReplayError, ReplayOptions, RunDays, replay};
use results::RunStatus;
use results::sink::TotalsOnly;

/// Trades handed over at once where nothing may be seen before its time.
const STRICT_WINDOW: u32 = 1;

/// Gives a fresh strategy; an error is the host's, not the strategy's.
pub type Instantiate<'a> = dyn Fn(Attempt) -> Result<Box<dyn StrategyRuntime>, String> + Sync + 'a;

/// Which attempt at a run a strategy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The first, which may be quick: where it fails nothing of it is used.
    First {
        /// Whether the strategy is to have one trade at a time.
        is_strict: bool,
    },
    /// The one after a failure, whose words hold.
    Again,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It went through.
    Scored(Box<Score>),
    /// The strategy failed, or made the engine fail; the others go on.
    Failed(String),
    /// It was stopped from outside and left nothing.
    Stopped,
}

impl Outcome {
    /// The numbers of a run that went through.
    pub(crate) fn score(self) -> Option<Score> {
        match self {
            Self::Scored(score) => Some(*score),
            Self::Failed(_) | Self::Stopped => None,
        }
    }
}

/// Runs single runs. Threads share one: the data is read-only, each run has its own strategy.
pub trait Runner: Sync {
    /// Runs the strategy with these parameters over the trading days at these indexes. What comes out does not
    /// depend on the window, its error neither.
    ///
    /// # Errors
    /// When the host fails; the sweep ends then.
    fn run(
        &self,
        config_json: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String>;

    /// The same run with window 1: no trade is in the strategy's memory before its time.
    ///
    /// # Errors
    /// When the host fails; the sweep ends then.
    fn run_strictly(
        &self,
        config_json: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String>;
}

/// The runner of replays.
pub struct ReplayRunner<'a> {
    days: Vec<(JstDate, Option<MarketDay<'a>>)>,
    options: &'a ReplayOptions,
    instantiate: &'a Instantiate<'a>,
}

impl<'a> ReplayRunner<'a> {
    /// A runner over the days that a run with these rows has. The options' own configuration is not used.
    pub fn new(
        rows: impl IntoIterator<Item: Into<MarketDay<'a>>>,
        options: &'a ReplayOptions,
        instantiate: &'a Instantiate<'a>,
    ) -> Self {
        let rows = rows.into_iter().map(Into::<MarketDay<'a>>::into);
        let rows = rows.filter_map(|day| Some((day.date()?, day)));
        let days = RunDays::new(rows, options.dates, &options.calendar).collect();
        Self { days, options, instantiate }
    }
}

impl ReplayRunner<'_> {
    /// The last close of each instrument before a day, as shares are counted on that day; `instruments`
    /// are as on that day.
    fn base_prices(&self, day: usize, instruments: &[Instrument]) -> Vec<Option<Price>> {
        let first = |index: usize| self.days.get(index).map(|(date, _)| *date);
        let close_of = |index: usize| {
            // A run has at most 4 instruments.
            let instrument = InstrumentIx(index as u16);
            let before = || self.options.base_prices.get(index).copied().flatten();
            let closes = self.days[..day].iter().rev();
            let mut close = closes
                .filter_map(|(date, rows)| Some((*date, rows.as_ref()?.last_price(instrument)?)));
            // Those before all days are as shares are counted on the first of them.
            let close = close.next().or_else(|| first(0).zip(before()));
            let Some((date, price)) = close else { return before() };
            let until = first(day).unwrap_or(date);
            let splits = &self.options.ex_rights;
            let adjusted = ExRights::adjusted(splits, instrument, price, (date, until));
            // A price that splits made is no price of the first day's grid.
            let ticks = instruments[index].ticks;
            Some(if adjusted == price { price } else { ticks.nearest(adjusted) })
        };
        (0..instruments.len()).map(close_of).collect()
    }
}

impl Runner for ReplayRunner<'_> {
    fn run(
        &self,
        config_json: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String> {
        let window = self.options.window;
        let outcome = self.run_with(window, config_json, days.clone(), stop)?;
        // At which row of a window a strategy has failed nobody can tell.
        if matches!(outcome, Outcome::Failed(_)) && window > STRICT_WINDOW {
            return self.run_strictly(config_json, days, stop);
        }
        Ok(outcome)
    }

    fn run_strictly(
        &self,
        config_json: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String> {
        self.run_with(STRICT_WINDOW, config_json, days, stop)
    }
}

impl ReplayRunner<'_> {
    fn run_with(
        &self,
        window: u32,
        config_json: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String> {
        let first = Attempt::First { is_strict: window == STRICT_WINDOW };
        let outcome = self.attempt(first, window, config_json, days.clone(), stop)?;
        match outcome {
            // What it says of a failure may be rough; of one in a larger window the run with window 1 tells.
            Outcome::Failed(_) if window == STRICT_WINDOW => {
                self.attempt(Attempt::Again, window, config_json, days, stop)
            }
            done => Ok(done),
        }
    }

    fn attempt(
        &self,
        attempt: Attempt,
        window: u32,
        config_json: &str,
        days: Range<usize>,
        stop: &AtomicBool,
    ) -> Result<Outcome, String> {
        let mut strategy = (self.instantiate)(attempt)?;
        let first_day = days.start;
        let days = &self.days[days];
        let first = days.first().map(|(date, _)| *date);
        let instruments = self.options.instruments_on(first.unwrap_or_default());
        let options = ReplayOptions {
            window,
            config_json: config_json.to_owned(),
            base_prices: self.base_prices(first_day, &instruments),
            instruments,
            dates: first.zip(days.last().map(|(date, _)| *date)),
            ..self.options.clone()
        };
        let days = days.iter().filter_map(|(_, rows)| rows.clone());
        let work = || {
            let stop = |_| stop.load(Ordering::Relaxed).then_some(RunCommand::Stop);
            let driver = &mut Watched::new(Unpaced, stop);
            replay(days, strategy.as_mut(), &options, &mut TotalsOnly, driver)
        };
        // Parameters can be so extreme that exact money overflows, which stops instead of wrapping.
        // Nothing of this run is used afterwards.
        let result = match catch_unwind(AssertUnwindSafe(work)) {
            // Of this run alone: others have other parameters.
            Ok(Err(error @ ReplayError::Worth(_))) => {
                return Ok(Outcome::Failed(cut(error.to_string())));
            }
            Ok(result) => result.map_err(|error| error.to_string())?,
            Err(panic) => {
                return Ok(Outcome::Failed(cut(format!(
                    "the engine stopped: {}",
                    panic_text(&*panic)
                ))));
            }
        };
        Ok(match &result.status {
            RunStatus::Completed => Outcome::Scored(Box::new(score(&result))),
            RunStatus::Interrupted => Outcome::Stopped,
            RunStatus::Failed(fault) => Outcome::Failed(cut(fault.to_string())),
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::SWEEP_ERROR_TEXT_MAX;

    use super::*;

    #[test]
    fn error_texts_have_a_limit() {
        assert_eq!(cut("組".repeat(SWEEP_ERROR_TEXT_MAX)).chars().count(), SWEEP_ERROR_TEXT_MAX);
        let long = cut("組".repeat(SWEEP_ERROR_TEXT_MAX + 1));
        assert_eq!(long.chars().count(), SWEEP_ERROR_TEXT_MAX + 4);
    }
}
