//! A job for tests that kill it: stores one more state of a made-up market after the other, and
//! publishes and splits each. It goes on where the last one has ended.
//!
//! In the state `n` there are `20 + n` days with a row of every issue. The volume says what belongs
//! together: it is `n` on the first day, which is corrected in every state, and on the last.

#![allow(clippy::print_stdout, reason = "tells the test how far it is")]

use std::ops::ControlFlow;

use domain::{JstDate, Price};
use pricestore::DataDir;
use tests::market::{CODES, DAYS_BEFORE, code, volume};
use update::store::WorkDatabase;
use update::{DailyRow, PriceStore, SourceKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("which data directory?")?;
    let rounds = arguments.next().ok_or("how many rounds?")?;
    let rounds: u64 = rounds.to_string_lossy().parse()?;
    let mut store = WorkDatabase::open(&DataDir::new(folder))?;
    println!("opened {}", store.opening());
    let mut go_on = |_, _, _| ControlFlow::Continue(());
    for _ in 0..rounds {
        let state = (store.rows().known()?.dates.len() as u64).saturating_sub(DAYS_BEFORE) + 1;
        let applied = store.apply(&rows(state))?;
        let published = store.publish(&mut go_on)?;
        println!("published {}", published.number);
        let split = store.split_to_individual(applied.first_changed(), &mut go_on)?;
        println!("split {}", split.written);
    }
    Ok(())
}

/// The rows that are new or corrected in a state; in the first one, all of them.
fn rows(state: u64) -> Vec<DailyRow> {
    let last = DAYS_BEFORE + state - 1;
    let days: Vec<u64> = if state == 1 { (0..=last).collect() } else { vec![0, last] };
    let rows = days.into_iter().flat_map(|day| (0..CODES).map(move |issue| row(issue, day, state)));
    rows.flatten().collect()
}

fn row(issue: u64, day: u64, state: u64) -> Option<DailyRow> {
    let first = JstDate::from_ymd_opt(2025, 1, 1)?;
    let price = Some(Price::from_yen(100 + i64::try_from(issue).ok()?));
    Some(DailyRow {
        date: first.iter_days().nth(usize::try_from(day).ok()?)?,
        code: code(issue).parse().ok()?,
        open: price,
        high: price,
        low: price,
        close: price,
        volume: Some(volume(day, state)),
        turnover: None,
        adjustment_factor: Some(1.0),
        source: SourceKind::Files,
    })
}
