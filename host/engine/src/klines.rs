//! One-minute bars that grow with the trades of a replay (specification 4, P75).

use domain::market::Trade;
use domain::time::NANOS_PER_MINUTE;
use domain::{Price, TsNanos};
use ipc::{Decimal, Kline};

/// The bar of the minute of an instrument's last trade.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrowingBar {
    /// Minutes since 1970 UTC.
    minute: u64,
    open: Price,
    high: Price,
    low: Price,
    close: Price,
    volume: u64,
    /// Price times shares, in 1/10,000 yen.
    turnover: i128,
}

impl GrowingBar {
    /// Takes a trade into the bar of an instrument. Gives the bar of an earlier minute, which is final
    /// then.
    pub(crate) fn take(bar: &mut Option<Self>, trade: &Trade) -> Option<Self> {
        let minute = trade.ts_event.nanos() / NANOS_PER_MINUTE;
        let (price, shares) = (trade.price, trade.quantity.shares());
        let value = i128::from(price.units()) * i128::from(shares);
        match bar {
            Some(bar) if bar.minute == minute => {
                bar.high = bar.high.max(price);
                bar.low = bar.low.min(price);
                bar.close = price;
                bar.volume = bar.volume.saturating_add(shares);
                bar.turnover += value;
                None
            }
            _ => bar.replace(Self {
                minute,
                open: price,
                high: price,
                low: price,
                close: price,
                volume: shares,
                turnover: value,
            }),
        }
    }

    /// The bar as it is told.
    pub(crate) fn kline(&self, is_final: bool) -> Kline {
        let time = |minute: u64| TsNanos::from_nanos(minute * NANOS_PER_MINUTE).millis();
        Kline {
            open_time_ms: time(self.minute),
            close_time_ms: time(self.minute + 1),
            open: self.open.into(),
            high: self.high.into(),
            low: self.low.into(),
            close: self.close.into(),
            volume: shares(self.volume),
            turnover: i64::try_from(self.turnover).ok().map(Decimal::from_units),
            is_final,
        }
    }
}

/// Shares as a decimal number; the largest where they do not fit, which no market has.
pub(crate) fn shares(count: u64) -> Decimal {
    Decimal::from_shares(domain::Quantity::new(count)).unwrap_or(Decimal::from_units(i64::MAX))
}

#[cfg(test)]
mod tests {
    use domain::{InstrumentIx, Quantity};

    use super::*;

    #[test]
    fn bars_end_with_the_first_trade_of_a_later_minute() {
        let trade = |seconds: u64, yen: i64, shares: u64| Trade {
            ts_event: TsNanos::from_nanos(seconds * 1_000_000_000),
            instrument: InstrumentIx(0),
            price: Price::from_yen(yen),
            quantity: Quantity::new(shares),
        };
        let mut bar = None;
        for (trade, ended) in [
            (trade(60, 100, 100), None),
            (trade(70, 103, 200), None),
            (trade(119, 99, 100), None),
            (trade(300, 101, 100), Some(("100", "103", "99", "99", "400", "40500"))),
        ] {
            let told = GrowingBar::take(&mut bar, &trade).map(|bar| bar.kline(true));
            let told = told.map(|kline| {
                assert_eq!((kline.open_time_ms, kline.close_time_ms), (60_000, 120_000));
                [kline.open, kline.high, kline.low, kline.close, kline.volume]
                    .iter()
                    .chain(&kline.turnover)
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
            });
            let ended =
                ended.map(|(o, h, l, c, v, t)| [o, h, l, c, v, t].map(str::to_owned).to_vec());
            assert_eq!(told, ended);
        }
        assert_eq!(bar.unwrap().kline(false).open_time_ms, 300_000);
    }
}
