//! Nothing is lost when a strategy fails, and nothing half done is left when the disk does.

use std::fs;
use std::io;

use crate::common::folder::{buy_and_sell, lines, two_days, write};
use crate::common::{Script, options};
use domain::account::PortfolioView;
use domain::fault::{Fault, FaultKind, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{Instrument, OrderEvent, TsNanos};
use replay::{ReplayError, TradingDay, Unpaced, replay};
use results::RunFolder;
use results::RunStatus;
use results::sink::{Record, RunSink, TotalsOnly};
use serde_json::Value;

/// Does as its script says until it has seen `trades` trades; then it fails.
struct FailsAfter {
    script: Script,
    trades: u64,
    told_fills: u64,
}

impl FailsAfter {
    fn fault() -> Box<Fault> {
        Box::new(Fault {
            component: "script".to_owned(),
            sha256: String::new(),
            export: "advance",
            ts_event: None,
            kind: FaultKind::Trap("unreachable".to_owned()),
            backtrace: Vec::new(),
        })
    }
}

impl StrategyRuntime for FailsAfter {
    fn identity(&self) -> Identity {
        self.script.identity()
    }

    fn capabilities(&self) -> Capabilities {
        self.script.capabilities()
    }

    fn init(&mut self, config: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        self.script.init(config, instruments)
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        self.script.start(now)
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        self.trades -= 1;
        if self.trades == 0 { Err(Self::fault()) } else { self.script.advance(window, limit) }
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.told_fills += 1;
        self.script.on_order_events(events)
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Err(Self::fault())
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        vec![LogLine {
            ts_event: None,
            level: domain::strategy::LogLevel::Panic,
            message: "last words".to_owned(),
        }]
    }
}

#[test]
fn nothing_is_lost_when_a_strategy_fails_at_the_last_trade() {
    // Row 6 fills the sale, and the strategy fails when it is shown that very row.
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let mut strategy = FailsAfter { script: buy_and_sell(), trades: 6, told_fills: 0 };
    let totals = write(&folder, &mut strategy, &options());
    assert!(matches!(totals.status, RunStatus::Failed(_)));
    assert_eq!(totals.fill_count, 2);
    let events = lines(&folder, "events.jsonl");
    assert_eq!(events.last().unwrap()["event"], "PositionClosed");
    let csv = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(csv("fills.csv").lines().count(), 3);
    assert_eq!(csv("log.csv").lines().last().unwrap(), ",PANIC,last words");
    let manifest: Value = serde_json::from_str(&csv("manifest.json")).unwrap();
    assert_eq!((&manifest["partial"], &manifest["status"]), (&true.into(), &"failed".into()));
    assert!(csv("report.html").contains("\"partial\":true"));
    // The day has one trade that the strategy has handled, at 1,004; the fill came with the next.
    assert_eq!(csv("round_trips.csv").lines().count(), 2);
    assert_eq!(csv("days.csv").lines().count(), 3);
}

#[test]
fn nothing_is_lost_when_a_strategy_fails_at_its_stop() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let mut strategy = FailsAfter { script: buy_and_sell(), trades: 99, told_fills: 0 };
    let totals = write(&folder, &mut strategy, &options());
    assert!(matches!(totals.status, RunStatus::Failed(_)));
    assert_eq!((totals.order_counts.filled, totals.performance.trips.count), (2, 1));
}

/// A disk that is full after some rows.
struct FullAfter(usize);

impl RunSink for FullAfter {
    fn take(&mut self, _: Record<'_>) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_result() {
    let market = two_days();
    let go = |sink: &mut dyn RunSink| {
        let days = TradingDay::split(&market.ts, &market.price, &market.quantity);
        replay(days, &mut buy_and_sell(), &options(), sink, &mut Unpaced)
    };
    let error = go(&mut FullAfter(3)).unwrap_err();
    assert!(
        matches!(&error, ReplayError::Results(why) if why.kind() == io::ErrorKind::StorageFull)
    );
    assert!(error.to_string().starts_with("cannot write the results: "), "{error}");
    assert_eq!(go(&mut TotalsOnly).unwrap().fill_count, 2);
}

#[test]
fn a_folder_that_was_begun_and_not_finished_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let writer = RunFolder::create(&folder, &[options().instruments[0].id.clone()]).unwrap();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    drop(writer);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}
