//! Paced runs over a clock that tests turn, and a sink that writes everything down.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use domain::strategy::StrategyRuntime;
use replay::driver::{Paced, WallClock};
use replay::{MarketDay, ReplayOptions, RunCommand, RunDriver, replay};
use results::RunResult;
use results::sink::{InMemory, LiveRecords, Record, RunSink};

use super::words;

/// A clock that stands still until somebody waits; commands come at set times.
#[derive(Default)]
pub(crate) struct TestClock {
    pub(crate) now: Duration,
    /// The earliest last.
    pub(crate) commands: Vec<(Duration, RunCommand)>,
    pub(crate) waits: Vec<Duration>,
}

impl WallClock for TestClock {
    fn elapsed(&mut self) -> Duration {
        self.now
    }

    fn wait(&mut self, _: &Receiver<RunCommand>, deadline: Duration) -> Option<RunCommand> {
        let next = self.commands.pop_if(|(time, _)| *time < deadline);
        let until = next.as_ref().map_or(deadline, |(time, _)| (*time).max(self.now));
        self.waits.push(until - self.now);
        self.now = until;
        next.map(|(_, command)| command)
    }
}

/// Keeps a run and what its subscribers are told.
#[derive(Default)]
pub(crate) struct Witness {
    rows: InMemory,
    /// Order events, fills as markers, signals and warnings of clients.
    pub(crate) events: Vec<String>,
    /// Trades and bars: time in nanoseconds, instrument, price.
    pub(crate) market: Vec<(u64, u16, String)>,
    /// Rows of the market and order events with their markers, in the order in which they are told.
    pub(crate) stream: Vec<String>,
    /// Time in nanoseconds, cash, equity.
    pub(crate) buying_power: Vec<(u64, String, String)>,
}

impl RunSink for Witness {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        let events_before = self.events.len();
        match record {
            Record::OrderEvent { event, .. } => self.events.push(words(event)),
            Record::Fill(fill) => self.events.push(format!(
                "marker {} {} {} {}@{}",
                fill.client_order_id, fill.trade_id, fill.side, fill.quantity, fill.price
            )),
            Record::Signal(ts_event, signal) => {
                self.events.push(format!("signal {} {}", signal.kind.as_str(), ts_event.nanos()));
            }
            Record::ClientWarning { client_order_id, text, .. } => {
                self.events.push(format!("warning {client_order_id}: {text}"));
            }
            Record::Trade(trade) => {
                let row = (trade.ts_event.nanos(), trade.instrument.0, trade.price.to_string());
                self.market.push(row);
            }
            Record::Bar(bar) => {
                self.market.push((bar.ts_event.nanos(), bar.instrument.0, bar.close.to_string()));
            }
            Record::BuyingPower(row) => {
                assert_eq!(row.cash, row.buying_power);
                let ts_event = row.ts_event.nanos();
                self.buying_power.push((ts_event, row.cash.to_string(), row.equity.to_string()));
            }
            _ => {}
        }
        self.stream.extend(self.events[events_before..].iter().cloned());
        match record {
            Record::Trade(trade) => self.stream.push(format!("row {}", trade.price)),
            Record::Bar(bar) => self.stream.push(format!("row {}", bar.close)),
            _ => {}
        }
        self.rows.take(record)
    }

    fn live_records(&self) -> LiveRecords {
        LiveRecords { market: true, buying_power: true }
    }
}

impl Witness {
    /// Runs with a driver and gives what is kept.
    pub(crate) fn run<'a>(
        &mut self,
        days: Vec<MarketDay<'a>>,
        strategy: &mut dyn StrategyRuntime,
        options: &ReplayOptions,
        driver: &mut dyn RunDriver,
    ) -> RunResult {
        let totals = replay(days, strategy, options, self, driver).unwrap();
        std::mem::take(&mut self.rows).into_result(totals)
    }

    /// Runs at a speed, without commands.
    pub(crate) fn paced(
        &mut self,
        days: Vec<MarketDay<'_>>,
        strategy: &mut dyn StrategyRuntime,
        options: &ReplayOptions,
        speed: &str,
    ) -> RunResult {
        let mut clock = TestClock::default();
        let (_sender, commands) = channel();
        let mut driver = Paced::new(speed.parse().unwrap(), commands, &mut clock);
        self.run(days, strategy, options, &mut driver)
    }
}
