//! What days of the last weeks had: others are held against it (rules E3 and E8 to E11 of the job), and so is
//! each row (Q5 of [`SourceKind`](crate::SourceKind)).

use std::collections::BTreeMap;

use domain::{JstDate, Price};

use super::rules::days_between;
use super::{Job, UpdateError};
use crate::limits::{ACCEPTED_ODD_DAYS, FAR_TIMES, FAR_YEN_MIN, REPEATED_DAYS, VOLUME_TIMES};
use crate::row::{DailyRow, IssueCode};

/// Dates between the first and the last of days that are looked up together: those of ten business days and of long
/// holidays between them.
const TOGETHER_DAYS_MAX: usize = 45;

/// What a row had.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Open, high, low and close.
    pub(super) prices: [Option<Price>; 4],
    /// Shares; 0 where none is told.
    volume: u64,
    /// Whether there is a turnover; nothing where the source never tells one.
    has_turnover: Option<bool>,
    factor: Option<f64>,
    is_adjusted: bool,
}

impl From<&DailyRow> for Seen {
    fn from(row: &DailyRow) -> Self {
        Self {
            prices: row.prices(),
            volume: row.volume.unwrap_or(0),
            has_turnover: row.source.tells_turnover().then_some(row.turnover.is_some()),
            factor: row.adjustment_factor,
            is_adjusted: row.source.is_adjusted(),
        }
    }
}

impl Seen {
    pub(super) const fn is_traded(&self) -> bool {
        self.volume > 0
    }

    /// Whether what was traded is the same: prices and volume; the prices alone where they moved, because no issue
    /// has the same four of a whole day twice but by chance.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let [_, high, low, _] = self.prices;
        self.prices == other.prices && (self.volume == other.volume || high != low)
    }

    /// Shares; 0 where none is told.
    pub(super) const fn volume(&self) -> u64 {
        self.volume
    }

    /// Whether there is a turnover; nothing where the source never tells one.
    pub(super) const fn has_turnover(&self) -> Option<bool> {
        self.has_turnover
    }

    /// Whether it had more than one price; nothing where a price is not told.
    pub(super) fn has_moved(&self) -> Option<bool> {
        let [_, high, low, _] = self.prices;
        Some(high? != low?)
    }

    pub(super) const fn close(&self) -> Option<Price> {
        self.prices[3]
    }

    pub(super) fn prices(&self) -> impl Iterator<Item = Price> {
        self.prices.into_iter().flatten()
    }

    pub(super) const fn factor(&self) -> Option<f64> {
        self.factor
    }

    /// Whether its source has adjusted its prices.
    pub(super) const fn is_adjusted(&self) -> bool {
        self.is_adjusted
    }
}

/// What a day had, by issue.
pub(super) type SeenDay = BTreeMap<IssueCode, Seen>;

pub(super) fn seen(rows: &[DailyRow]) -> SeenDay {
    rows.iter().map(|row| (row.code, Seen::from(row))).collect()
}

/// Whether one of these volumes is so many times the other.
const fn is_volume_apart(one: u64, other: u64, times: u64) -> bool {
    let (least, most) = if one < other { (one, other) } else { (other, one) };
    least > 0 && least.saturating_mul(times) <= most
}

/// Whether nobody would take one of these volumes for the other.
pub(super) const fn is_far_volume(one: u64, other: u64) -> bool {
    is_volume_apart(one, other, VOLUME_TIMES)
}

/// Issues whose volumes are so many times away from those of another day, and all that have both.
pub(super) fn far_volumes(found: &SeenDay, others: &SeenDay, times: u64) -> (u64, u64) {
    let (mut far, mut all) = (0, 0);
    for (code, Seen { volume, .. }) in found {
        let other = others.get(code).map_or(0, |other| other.volume);
        all += u64::from(*volume > 0 && other > 0);
        far += u64::from(is_volume_apart(*volume, other, times));
    }
    (far, all)
}

/// The last close of an issue before a day with this factor, as it compares with that day, in parts of a yen: the
/// closes of days before it, the nearest first, with the factors of those without one. Nothing where nobody knows.
fn close_before<'a>(
    code: IssueCode,
    factor: f64,
    days: impl Iterator<Item = &'a SeenDay>,
) -> Option<f64> {
    let mut factor = factor;
    for seen in days.filter_map(|day| day.get(&code)) {
        if seen.is_adjusted {
            return None;
        }
        if let Some(close) = seen.close() {
            // Prices are at most billions of yen: a float holds them well enough for this.
            return Some(close.units() as f64 * factor);
        }
        factor *= seen.factor?;
    }
    None
}

/// Whether a price is further from a close than any day ever took one.
fn is_far(price: Price, base: f64) -> bool {
    let price = price.units() as f64;
    let is_near = (price - base).abs() <= Price::from_yen(FAR_YEN_MIN).units() as f64;
    !is_near && !(base / FAR_TIMES..=base * FAR_TIMES).contains(&price)
}

/// What days had that others are held against: those of the last weeks, so that each is read once.
#[derive(Debug, Default)]
pub(super) struct SeenDays(BTreeMap<JstDate, SeenDay>);

impl SeenDays {
    /// Days that are kept: those before a day and one after it.
    const KEPT: usize = REPEATED_DAYS + 2;

    /// A day gets other rows.
    pub(super) fn forget(&mut self, date: JstDate) {
        self.0.remove(&date);
    }

    pub(super) fn get(&self, date: JstDate) -> Option<&SeenDay> {
        self.0.get(&date)
    }

    fn keep(&mut self, date: JstDate, day: SeenDay) {
        while self.0.len() >= Self::KEPT {
            // The one that is furthest away.
            let ends = [self.0.keys().next(), self.0.keys().next_back()].into_iter().flatten();
            let Some(far) = ends.copied().max_by_key(|end| days_between(*end, date)) else { break };
            self.0.remove(&far);
        }
        self.0.insert(date, day);
    }
}

/// A row with a price that is too far from the last close before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FarRow {
    pub(super) code: IssueCode,
    price: Price,
    /// The last close as it compares with the day, in parts of a yen.
    base: f64,
}

impl std::fmt::Display for FarRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base = Price::from_units(self.base.round() as i64);
        write!(
            f,
            "a price of {} yen, over {FAR_TIMES} times away from the last close of {base} yen, splits counted in",
            self.price
        )
    }
}

impl Job<'_> {
    /// The complete days before a day that it is held against, the nearest first. Odd ones that the user has accepted
    /// are none of them, until they are so many in a row that the market is so (rule E13).
    pub(super) fn complete_before(&self, date: JstDate) -> impl Iterator<Item = JstDate> {
        let before = || self.complete_rows.range(..date).rev().map(|(day, _)| *day);
        let odd = before().take_while(|day| self.state.odd.contains(day)).count();
        let is_so = odd >= ACCEPTED_ODD_DAYS;
        let days = before().take(if is_so { odd } else { usize::MAX });
        days.filter(move |day| is_so || !self.state.odd.contains(day))
    }

    /// The same days, as many as are compared; they are looked up.
    pub(super) fn days_compared(&mut self, date: JstDate) -> Result<Vec<JstDate>, UpdateError> {
        let before: Vec<JstDate> = self.complete_before(date).take(REPEATED_DAYS).collect();
        self.look_up(&before)?;
        Ok(before)
    }

    /// Sees to it that these days are known.
    pub(super) fn look_up(&mut self, days: &[JstDate]) -> Result<(), UpdateError> {
        let is_wanted = |day: &&JstDate| self.seen_days.get(**day).is_none();
        let wanted: Vec<JstDate> = days.iter().filter(is_wanted).copied().collect();
        let stored = wanted.iter().filter(|day| !self.is_on_its_way(**day));
        // A few days that are far apart are looked up one by one.
        let ends = stored.clone().min().zip(stored.clone().max());
        let ends = ends.filter(|(first, last)| {
            first != last && days_between(**first, **last) <= TOGETHER_DAYS_MAX as u64
        });
        if let Some((first, last)) = ends {
            let together: Vec<JstDate> = stored.copied().collect();
            let rows = self.store.rows().rows_between(*first, *last)?;
            for day in together {
                let rows = rows.get(&day).map(Vec::as_slice).unwrap_or_default();
                self.seen_days.keep(day, seen(rows));
            }
        }
        for day in wanted {
            if self.seen_days.get(day).is_none() {
                let rows = self.rows_of(day)?;
                self.seen_days.keep(day, seen(&rows));
            }
        }
        Ok(())
    }

    /// Rows with prices that are too far from the last close before them (rules E11 and Q5).
    pub(super) fn far_rows(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
    ) -> Result<Vec<FarRow>, UpdateError> {
        let before = self.days_compared(date)?;
        let days: Vec<&SeenDay> =
            before.iter().filter_map(|day| self.seen_days.get(*day)).collect();
        let far = rows.iter().filter_map(|row| {
            let factor = row.adjustment_factor.filter(|_| !row.source.is_adjusted())?;
            let base = close_before(row.code, factor, days.iter().copied())?;
            let mut prices = row.prices().into_iter().flatten();
            let price = prices.find(|price| is_far(*price, base))?;
            Some(FarRow { code: row.code, price, base })
        });
        Ok(far.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::SourceKind;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    fn code() -> IssueCode {
        "7203".parse().unwrap()
    }

    fn day(close: Option<i64>, factor: Option<f64>) -> SeenDay {
        let mut row = DailyRow::bare(date("2026-01-09"), code(), SourceKind::Vendor);
        (row.close, row.adjustment_factor) = (close.map(Price::from_yen), factor);
        seen(&[row])
    }

    #[test]
    fn days_that_are_held_against_are_read_once_and_few_are_kept() {
        let mut days = SeenDays::default();
        let first = date("2026-01-05");
        for day in first.iter_days().take(60) {
            days.keep(day, SeenDay::new());
        }
        assert_eq!(days.0.len(), SeenDays::KEPT);
        assert!(days.0.keys().all(|day| days_between(*day, first) > 30), "the last ones");
        days.forget(*days.0.keys().next().unwrap());
        assert_eq!(days.0.len(), SeenDays::KEPT - 1);
    }

    #[test]
    fn the_last_close_counts_the_factors_between() {
        let check = |factor: f64, days: &[SeenDay]| {
            close_before(code(), factor, days.iter()).map(|units| units / 10_000.0)
        };
        let known = day(Some(1_000), Some(1.0));
        assert_eq!(check(1.0, std::slice::from_ref(&known)), Some(1_000.0));
        assert_eq!(check(0.5, std::slice::from_ref(&known)), Some(500.0));
        // A day on which it was not traded, and was split; one without a row; one that tells no factor.
        let split = day(None, Some(0.1));
        assert_eq!(check(1.0, &[split.clone(), known.clone()]), Some(100.0));
        assert_eq!(check(1.0, &[SeenDay::new(), split, known.clone()]), Some(100.0));
        assert_eq!(check(1.0, &[day(None, None), known]), None);
        assert_eq!(check(1.0, &[]), None);
        let mut adjusted = day(Some(1_000), Some(1.0));
        adjusted.get_mut(&code()).unwrap().is_adjusted = true;
        assert_eq!(check(1.0, &[adjusted]), None);
    }

    #[test]
    fn a_price_is_far_over_ten_times_away_and_sixty_yen() {
        let check = |price: i64, base: f64| is_far(Price::from_yen(price), base * 10_000.0);
        assert!(!check(10_000, 1_000.0) && check(10_001, 1_000.0));
        assert!(!check(100, 1_000.0) && check(99, 1_000.0));
        assert!(!check(61, 1.0) && check(62, 1.0) && !check(1, 50.0));
    }

    #[test]
    fn a_volume_is_far_a_hundred_times_away() {
        assert!(!is_far_volume(100, 9_999) && is_far_volume(100, 10_000));
        assert!(is_far_volume(10_000, 100) && !is_far_volume(0, 1_000_000));
    }
}
