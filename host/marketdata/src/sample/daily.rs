//! Made-up daily prices of many issues, so that everything can be tried without a vendor. They have
//! what makes real data hard: issues that come and go, splits, days without a trade, suspensions and lost
//! rows, prices on a grid under daily limits (so values tie), stray zeros, a day on which the exchange
//! stood still and one on which hardly any row arrived.

mod series;

use domain::JstDate;

use super::calendar::trading_days;
use series::{Market, Series};

/// Codes of a sample of daily prices: as many as four digits and a few letters give.
pub const DAILY_CODES_MAX: usize = 9_000;

/// What a sample looks like. The same one gives the same rows on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailySample {
    /// Issues, 1 to [`DAILY_CODES_MAX`].
    pub codes: usize,
    /// Business days, at least 1.
    pub days: usize,
    /// Start of the random numbers.
    pub seed: u64,
    /// First business day, or the next one where it is none.
    pub first: JstDate,
}

impl Default for DailySample {
    fn default() -> Self {
        let first = JstDate::from_ymd_opt(2016, 1, 4).unwrap_or_default();
        Self { codes: 4_000, days: 2_450, seed: 7, first }
    }
}

/// One row of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct DailySampleRow<'a> {
    /// Trading date (JST).
    pub date: JstDate,
    /// The code, four places.
    pub code: &'a str,
    /// Open, high, low and close in yen, with one decimal at most.
    pub prices: [Option<f64>; 4],
    /// Shares traded on the day, in lots of 100; none where it is not known.
    pub volume: Option<f64>,
    /// What prices of the days before are multiplied by to compare them: 0.5 on the day on which one share
    /// became two, else 1.
    pub adjustment_factor: f64,
}

/// Gives every row of a sample, by issue and date, until one is refused.
///
/// # Errors
///
/// Returns why a row was refused.
pub fn try_each_row<E>(
    sample: &DailySample,
    mut give: impl FnMut(DailySampleRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let days: Vec<JstDate> = trading_days(sample.first).take(sample.days).collect();
    let market = Market::new(sample.seed, sample.days, sample.codes);
    for (place, code) in codes(sample.codes).iter().enumerate() {
        for row in Series::new(&market, place) {
            let date = days.get(row.day).copied().unwrap_or_default();
            let (prices, volume, adjustment_factor) = (row.prices, row.volume, row.factor);
            give(DailySampleRow { date, code, prices, volume, adjustment_factor })?;
        }
    }
    Ok(())
}

/// Codes in ascending order. One in 25 is of the newest kind, three digits and a letter.
fn codes(count: usize) -> Vec<String> {
    let newest = count / 25;
    let classic = count - newest;
    let spread = |place: usize| 1_301 + place * 8_696 / classic.max(1);
    let mut codes: Vec<String> = (0..classic).map(|place| spread(place).to_string()).collect();
    let letters = ['A', 'C', 'D', 'F'];
    codes.extend(
        (0..newest)
            .map(|place| format!("{}{}", 130 + place % 870, letters[place / 870 % letters.len()])),
    );
    codes.sort();
    codes
}

#[cfg(test)]
mod tests;
