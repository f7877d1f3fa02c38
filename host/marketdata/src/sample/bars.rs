//! The bar files of a sample: the bars of its trades, in the vendor's layout.

use std::io::{self, Write};
use std::path::Path;

use atomic_file::AtomicFile;
use domain::market::BarGranularity;
use domain::time::NANOS_PER_MINUTE;
use domain::{InstrumentIx, JstDate, TsNanos, VendorCode};
use flate2::write::GzEncoder;

use crate::bars::{MadeBar, make_bars};

use super::compressed;
use super::market::Print;

const MINUTE_HEADER: &[u8] = b"Date,Time,Code,O,H,L,C,Vo,Va\n";
const DAY_HEADER: &[u8] = b"Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n";
const NANOS_PER_MICRO: u64 = 1_000;

/// The two bar files of one month, while they are written.
pub(super) struct MonthBars {
    minute: GzEncoder<AtomicFile>,
    day: GzEncoder<AtomicFile>,
}

/// A finished file under its temporary name, or why it could not be written.
type Finished = (BarGranularity, io::Result<AtomicFile>);

impl MonthBars {
    /// Starts both files in `folder`.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let mut minute = compressed(AtomicFile::create_in(folder)?);
        minute.write_all(MINUTE_HEADER)?;
        let mut day = compressed(AtomicFile::create_in(folder)?);
        day.write_all(DAY_HEADER)?;
        Ok(Self { minute, day })
    }

    /// Takes the trades of one code on one day.
    pub(super) fn take(
        &mut self,
        date: JstDate,
        code: VendorCode,
        prints: &[Print],
    ) -> io::Result<()> {
        let midnight = TsNanos::from_jst(date, 0).unwrap_or_default().nanos();
        let ts: Vec<u64> =
            prints.iter().map(|print| midnight + print.micros * NANOS_PER_MICRO).collect();
        let price: Vec<i64> = prints.iter().map(|print| print.price.units()).collect();
        let quantity: Vec<u64> = prints.iter().map(|print| print.quantity).collect();
        let bars_of = |granularity| {
            let mut bars = Vec::new();
            make_bars(granularity, InstrumentIx(0), &ts, &price, &quantity, &mut bars);
            bars
        };
        for made in bars_of(BarGranularity::Minute) {
            // The vendor names a minute by its start.
            let minute = made.bar.ts_event.jst_nanos_of_day() / NANOS_PER_MINUTE - 1;
            let (hour, minute) = (minute / 60, minute % 60);
            let prices = prices(&made);
            let (volume, turnover) = (made.bar.volume, made.turnover_text());
            writeln!(
                self.minute,
                "{date},{hour:02}:{minute:02},{code},{prices},{volume},{turnover}"
            )?;
        }
        for made in bars_of(BarGranularity::Day) {
            let prices = prices(&made);
            let (volume, turnover) = (made.bar.volume, made.turnover_text());
            writeln!(self.day, "{date},{code},{prices},0,0,{volume},{turnover},1.0")?;
        }
        Ok(())
    }

    /// Ends both files.
    pub(super) fn finish(self) -> [Finished; 2] {
        [(BarGranularity::Minute, self.minute.finish()), (BarGranularity::Day, self.day.finish())]
    }
}

fn prices(made: &MadeBar) -> String {
    let bar = made.bar;
    format!("{},{},{},{}", bar.open, bar.high, bar.low, bar.close)
}
