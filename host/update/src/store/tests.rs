//! The store over real files.

mod corrections;
mod going_on;
mod opening;
mod publishing;
mod rows;
mod splitting;

use std::ops::ControlFlow;
use std::path::Path;

use domain::{JstDate, Money, Price};
use duckdb::{AccessMode, Config, Connection};
use pricestore::DataDir;

use super::WorkDatabase;
use crate::price_store::PriceStore;
use crate::row::{DailyRow, SourceKind};

/// A data directory of a test.
struct Fixture {
    folder: tempfile::TempDir,
    data: DataDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        Self { folder, data }
    }

    fn open(&self) -> WorkDatabase {
        WorkDatabase::open(&self.data).unwrap()
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work").join("mother.db")
    }

    fn issue(&self, code: &str) -> std::path::PathBuf {
        self.folder.path().join("jp").join("stocks_daily").join(format!("{code}.db"))
    }
}

fn day(text: &str) -> JstDate {
    text.parse().unwrap()
}

/// The business days of a long January, without any holiday.
fn days(count: u64) -> Vec<JstDate> {
    day("2025-01-01").iter_days().take(usize::try_from(count).unwrap()).collect()
}

fn row(code: &str, date: JstDate, yen: i64) -> DailyRow {
    let price = |offset| Some(Price::from_yen(yen + offset));
    DailyRow {
        date,
        code: code.parse().unwrap(),
        open: price(0),
        high: price(3),
        low: price(-2),
        close: price(1),
        volume: Some(1_000),
        turnover: Some(Money::from_yen(yen * 1_000)),
        adjustment_factor: Some(1.0),
        source: SourceKind::Vendor,
    }
}

/// One row for each code and day.
fn market(codes: &[&str], days: &[JstDate]) -> Vec<DailyRow> {
    let of_day = |date: &JstDate| codes.iter().map(|code| row(code, *date, 500)).collect();
    days.iter().flat_map(|date| -> Vec<DailyRow> { of_day(date) }).collect()
}

fn go_on(_: u64, _: u64, _: &'static str) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn publish_and_split(store: &mut WorkDatabase) {
    store.publish(&mut go_on).unwrap();
    store.split_to_individual(None, &mut go_on).unwrap();
}

/// Opens a published database as any reader does.
fn reader(path: &Path) -> Connection {
    let config = Config::default().access_mode(AccessMode::ReadOnly).unwrap();
    Connection::open_with_flags(path, config).unwrap()
}

/// The rows of an answer, as text.
fn lines(connection: &Connection, sql: &str) -> Vec<String> {
    let shown = format!("SELECT concat_ws('|', *COLUMNS(*)) FROM ({sql})");
    let mut statement = connection.prepare(&shown).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
