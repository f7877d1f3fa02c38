//! Bars made from trades, by the same definition as the vendor's own bar files: a minute bar holds
//! the trades from the start of a minute up to but not including the next, a daily bar those of one
//! date in Japan. A span without a trade has no bar.

use domain::market::{Bar, BarGranularity, Trade};
use domain::price::UNITS_PER_YEN;
use domain::time::{NANOS_PER_MINUTE, TsNanos};
use domain::{InstrumentIx, Price, Quantity, session};

/// A bar made from trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeBar {
    /// The bar, timed by its end.
    pub bar: Bar,
    /// Price times shares over its trades, in 1/10,000 yen.
    pub turnover: i128,
}

/// The start of the span that a trade belongs to.
fn span_of(granularity: BarGranularity, timestamp: u64) -> u64 {
    match granularity {
        // Japan is a whole number of minutes away from UTC.
        BarGranularity::Minute => timestamp / NANOS_PER_MINUTE,
        BarGranularity::Day => TsNanos::from_nanos(timestamp).jst_day(),
    }
}

/// The timestamp of a bar: the end of its minute, or the official close of its day.
fn end_of(granularity: BarGranularity, timestamp: u64) -> TsNanos {
    match granularity {
        BarGranularity::Minute => TsNanos::from_nanos(
            (timestamp / NANOS_PER_MINUTE).saturating_add(1).saturating_mul(NANOS_PER_MINUTE),
        ),
        BarGranularity::Day => session::close_after(TsNanos::from_nanos(timestamp)),
    }
}

/// The bar of a span that is not over: the one maker of bars, for columns of files and for trades that come one by
/// one.
#[derive(Debug, Clone, Copy)]
pub struct GrowingBar {
    span: u64,
    made: MadeBar,
}

impl GrowingBar {
    /// The bar that begins with a trade.
    #[must_use]
    pub fn begin(granularity: BarGranularity, trade: &Trade) -> Self {
        let mut bar = Self {
            span: span_of(granularity, trade.ts_event.nanos()),
            made: MadeBar {
                bar: Bar {
                    ts_event: end_of(granularity, trade.ts_event.nanos()),
                    instrument: trade.instrument,
                    granularity,
                    open: trade.price,
                    high: trade.price,
                    low: trade.price,
                    close: trade.price,
                    volume: Quantity::ZERO,
                },
                turnover: 0,
            },
        };
        bar.add(trade.price, trade.quantity);
        bar
    }

    /// Takes a trade of its span.
    #[inline]
    fn add(&mut self, price: Price, quantity: Quantity) {
        let bar = &mut self.made.bar;
        bar.high = bar.high.max(price);
        bar.low = bar.low.min(price);
        bar.close = price;
        bar.volume = Quantity::new(bar.volume.shares().saturating_add(quantity.shares()));
        self.made.turnover += i128::from(price.units()) * i128::from(quantity.shares());
    }

    /// Takes an instrument's next trade. Gives the bar before it where the trade begins another one: that bar is
    /// final.
    pub fn take(
        growing: &mut Option<Self>,
        granularity: BarGranularity,
        trade: &Trade,
    ) -> Option<MadeBar> {
        match growing {
            Some(bar) if bar.span == span_of(granularity, trade.ts_event.nanos()) => {
                bar.add(trade.price, trade.quantity);
                None
            }
            _ => growing.replace(Self::begin(granularity, trade)).map(|ended| ended.made),
        }
    }

    /// The bar as it is so far.
    #[must_use]
    pub const fn so_far(&self) -> MadeBar {
        self.made
    }
}

/// Adds the bars of trades in time order, given as columns of equal length, to `out`.
///
/// # Panics
/// When a column is shorter than the first.
pub fn make_bars(
    granularity: BarGranularity,
    instrument: InstrumentIx,
    ts_event: &[u64],
    price: &[i64],
    quantity: &[u64],
    out: &mut Vec<MadeBar>,
) {
    let mut from = 0;
    while let Some(&first) = ts_event.get(from) {
        let span = span_of(granularity, first);
        let rest = &ts_event[from..];
        let to = from + rest.partition_point(|&timestamp| span_of(granularity, timestamp) <= span);
        let trade = Trade {
            ts_event: TsNanos::from_nanos(first),
            instrument,
            price: Price::from_units(price[from]),
            quantity: Quantity::new(quantity[from]),
        };
        let mut bar = GrowingBar::begin(granularity, &trade);
        let others = from + 1..to;
        for (&price, &quantity) in price[others.clone()].iter().zip(&quantity[others]) {
            bar.add(Price::from_units(price), Quantity::new(quantity));
        }
        out.push(bar.made);
        from = to;
    }
}

impl MadeBar {
    /// The turnover in yen as the vendor writes it: digits, and decimals where there are any.
    #[must_use]
    pub fn turnover_text(&self) -> String {
        let unit = i128::from(UNITS_PER_YEN);
        let (yen, rest) = (self.turnover / unit, self.turnover % unit);
        let text = format!("{yen}.{rest:04}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(date: &str, hour: u64, minute: u64, nanos: u64) -> u64 {
        let of_day = (hour * 60 + minute) * NANOS_PER_MINUTE + nanos;
        TsNanos::from_jst(date.parse().unwrap(), of_day).unwrap().nanos()
    }

    fn bars(granularity: BarGranularity, rows: &[(u64, i64, u64)]) -> Vec<(String, String)> {
        let ts: Vec<u64> = rows.iter().map(|row| row.0).collect();
        let price: Vec<i64> = rows.iter().map(|row| row.1 * UNITS_PER_YEN).collect();
        let quantity: Vec<u64> = rows.iter().map(|row| row.2).collect();
        let mut out = Vec::new();
        make_bars(granularity, InstrumentIx(3), &ts, &price, &quantity, &mut out);
        let words = |made: &MadeBar| {
            let Bar { open, high, low, close, volume, .. } = made.bar;
            assert_eq!((made.bar.granularity, made.bar.instrument), (granularity, InstrumentIx(3)));
            let values = format!("{open} {high} {low} {close} {volume} {}", made.turnover_text());
            (made.bar.ts_event.to_string(), values)
        };
        out.iter().map(words).collect()
    }

    #[test]
    fn minutes_hold_their_start_and_not_their_end() {
        let day = "2025-01-06";
        let rows = [
            (at(day, 9, 0, 0), 100, 10),
            (at(day, 9, 0, 1), 103, 1),
            (at(day, 9, 0, NANOS_PER_MINUTE - 1), 99, 5),
            (at(day, 9, 1, 0), 101, 2),
            (at(day, 15, 30, 12), 102, 7),
        ];
        let expected = [
            ("2025-01-06 09:01:00.000000 JST", "100 103 99 99 16 1598"),
            ("2025-01-06 09:02:00.000000 JST", "101 101 101 101 2 202"),
            ("2025-01-06 15:31:00.000000 JST", "102 102 102 102 7 714"),
        ];
        let found = bars(BarGranularity::Minute, &rows);
        let found: Vec<_> = found.iter().map(|(ts, text)| (ts.as_str(), text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn bars_end_with_the_first_trade_of_a_later_minute() {
        let trade = |seconds: u64, yen: i64, shares: u64| Trade {
            ts_event: TsNanos::from_nanos(seconds * 1_000_000_000),
            instrument: InstrumentIx(0),
            price: Price::from_yen(yen),
            quantity: Quantity::new(shares),
        };
        let mut growing = None;
        for (trade, ended) in [
            (trade(60, 100, 100), None),
            (trade(70, 103, 200), None),
            (trade(119, 99, 100), None),
            (trade(300, 101, 100), Some("100 103 99 99 400 40500")),
        ] {
            let made = GrowingBar::take(&mut growing, BarGranularity::Minute, &trade).map(|made| {
                let Bar { ts_event, open, high, low, close, volume, .. } = made.bar;
                assert_eq!(ts_event.nanos(), 120_000_000_000);
                format!("{open} {high} {low} {close} {volume} {}", made.turnover_text())
            });
            assert_eq!(made.as_deref(), ended);
        }
        assert_eq!(growing.unwrap().so_far().bar.ts_event.nanos(), 360_000_000_000);
    }

    #[test]
    fn days_end_at_their_own_close() {
        let rows = [
            (at("2024-11-01", 9, 0, 0), 100, 10),
            (at("2024-11-01", 15, 0, 3), 90, 10),
            (at("2024-11-05", 9, 0, 0), 95, 1),
        ];
        let found = bars(BarGranularity::Day, &rows);
        let timestamps: Vec<_> = found.iter().map(|(ts, _)| ts.as_str()).collect();
        assert_eq!(
            timestamps,
            ["2024-11-01 15:00:00.000000 JST", "2024-11-05 15:30:00.000000 JST"]
        );
        assert_eq!(found[0].1, "100 100 90 90 20 1900");
        assert_eq!(bars(BarGranularity::Day, &[]), []);
    }
}
