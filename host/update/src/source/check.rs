//! Rules that every row of every source must hold.

use domain::price::UNITS_PER_YEN;
use domain::{JstDate, Money, Price};

use super::{Answer, OddRow, SourceError};
use crate::limits::{ANSWER_ROWS_MAX, FACTOR_MAX, ODD_PERCENT_MAX, PRICE_YEN_MAX, VOLUME_MAX};
use crate::row::{DailyRow, IssueCode};

/// What one answer may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// The one issue; any where none is named.
    pub(super) code: Option<IssueCode>,
    /// First trading date (JST).
    pub(super) from: JstDate,
    /// Last trading date, included.
    pub(super) to: JstDate,
}

impl Asked {
    /// Checks the rows of an answer and puts them in order; they may come in any.
    pub(super) fn accept(self, mut rows: Vec<DailyRow>) -> Result<Answer, SourceError> {
        if rows.len() > ANSWER_ROWS_MAX {
            return Err(SourceError::TooLarge { what: "rows", limit: ANSWER_ROWS_MAX });
        }
        for row in &rows {
            if let Some(problem) = self.problem(row) {
                let (code, date) = (row.code, row.date);
                let what = format!("row of {code} on {date}: {problem}");
                return Err(SourceError::Malformed(what));
            }
        }
        rows.sort_unstable_by_key(|row| (row.date, row.code));
        if let Some(pair) = rows
            .windows(2)
            .find(|pair| (pair[0].date, pair[0].code) == (pair[1].date, pair[1].code))
        {
            let (code, date) = (pair[0].code, pair[0].date);
            return Err(SourceError::Malformed(format!("two rows of {code} on {date}")));
        }
        Ok(Answer { rows, ..Answer::default() })
    }

    /// As [`Asked::accept`]: rows that could not be read, or cannot be used, are left out; of a whole day
    /// only as long as they are few (rule `unusable`). `told` describes the
    /// row at a place of the answer, of which this is wrong.
    ///
    /// [`SourceKind`]: crate::row::SourceKind
    pub(super) fn accept_day(
        self,
        read: Vec<Result<DailyRow, String>>,
        told: impl Fn(usize, String) -> OddRow,
    ) -> Result<Answer, SourceError> {
        let all = read.len();
        if all > ANSWER_ROWS_MAX {
            return Err(SourceError::TooLarge { what: "rows", limit: ANSWER_ROWS_MAX });
        }
        // Of an answer about other issues nobody can tell what it is about.
        let of_others =
            read.iter().flatten().find(|row| self.code.is_some_and(|code| code != row.code));
        if let (Some(row), Some(asked)) = (of_others, self.code) {
            let (code, date) = (row.code, row.date);
            let what = format!("row of {code} on {date}: asked for {asked}");
            return Err(SourceError::Malformed(what));
        }
        let (mut good, mut odd) = (Vec::with_capacity(all), Vec::new());
        for (place, row) in read.into_iter().enumerate() {
            match row.and_then(|row| self.problem(&row).map_or(Ok(row), Err)) {
                Ok(row) => good.push((row, place)),
                Err(reason) => odd.push((place, reason)),
            }
        }
        good.sort_unstable_by_key(|(row, place)| (row.date, row.code, *place));
        // The same row twice, as where pages overlap, is one.
        good.dedup_by(|(one, _), (other, _)| one == other);
        let mut rows = Vec::with_capacity(good.len());
        // Of two rows for one issue nobody can tell which is right.
        for same in
            good.chunk_by(|(one, _), (next, _)| (one.date, one.code) == (next.date, next.code))
        {
            match same {
                [(row, _)] => rows.push(*row),
                twice => odd.extend(twice.iter().map(|(_, place)| (*place, TWICE.to_owned()))),
            }
        }
        odd.sort_unstable();
        let first = || told(odd[0].0, odd[0].1.clone()).to_string();
        // One odd row of an issue's few is more than one in a hundred, and still only one.
        if self.code.is_none()
            && let Some(what) = too_many_odd(odd.len(), all, first)
        {
            return Err(SourceError::Odd(what));
        }
        let odd = odd.into_iter().map(|(place, reason)| told(place, reason)).collect();
        Ok(Answer { rows, odd, cached: false })
    }

    /// What is wrong with a row, by itself or as an answer.
    fn problem(self, row: &DailyRow) -> Option<String> {
        if !(self.from..=self.to).contains(&row.date) {
            return Some(format!("asked for {} to {}", self.from, self.to));
        }
        match self.code.filter(|code| *code != row.code) {
            Some(asked) => Some(format!("asked for {asked}")),
            None => row_problem(row),
        }
    }
}

/// Why a day is refused of which so many rows are odd (rule `unusable`); none where they are few.
pub(super) fn too_many_odd(
    odd: usize,
    all: usize,
    first: impl FnOnce() -> String,
) -> Option<String> {
    (odd * 100 > all * ODD_PERCENT_MAX).then(|| {
        let first = first();
        format!("{odd} of {all} rows are odd, more than {ODD_PERCENT_MAX} %; the first: {first}")
    })
}

/// What is wrong with rows of the same issue and date.
pub(super) const TWICE: &str = "there are two rows of the issue";

/// What is wrong with a row by itself.
pub(super) fn row_problem(row: &DailyRow) -> Option<String> {
    let DailyRow { open, high, low, close, volume, turnover, adjustment_factor, .. } = *row;
    if let Some(factor) = adjustment_factor
        && !(FACTOR_MAX.recip()..=FACTOR_MAX).contains(&factor)
    {
        let most = FACTOR_MAX;
        return Some(format!(
            "an adjustment factor of {factor:e}; expected one from 1/{most} to {most}"
        ));
    }
    if turnover.is_some_and(|turnover| turnover < Money::ZERO) {
        return Some("a turnover below 0".to_owned());
    }
    if volume.is_some_and(|volume| volume > VOLUME_MAX) {
        return Some(format!("a volume above {VOLUME_MAX}"));
    }
    let (open, high, low, close) = match (open, high, low, close) {
        (Some(open), Some(high), Some(low), Some(close)) => (open, high, low, close),
        (None, None, None, None) if volume.unwrap_or(0) == 0 => {
            let traded = turnover.is_some_and(|turnover| turnover > Money::ZERO);
            return traded.then(|| "a turnover without prices".to_owned());
        }
        (None, None, None, None) => return Some("a volume without prices".to_owned()),
        _ => return Some("some of the four prices are missing".to_owned()),
    };
    let highest = Price::from_yen(PRICE_YEN_MAX);
    if low <= Price::from_units(0) || high > highest {
        return Some(format!("prices from {low} to {high}; expected above 0 and up to {highest}"));
    }
    if volume.is_none() {
        return Some("prices without a volume".to_owned());
    }
    let outside = [open, close].into_iter().find(|price| *price < low || *price > high);
    if low > high || outside.is_some() {
        return Some(format!(
            "open {open}, high {high}, low {low}, close {close}: not all inside low to high"
        ));
    }
    None
}

/// A date as `YYYY-MM-DD`, with all zeros.
pub(super) fn date(text: &str) -> Option<JstDate> {
    (text.len() == 10).then(|| text.parse().ok()).flatten()
}

/// A date as `YYYYMMDD`, which requests name.
pub(super) fn compact(date: JstDate) -> String {
    date.format("%Y%m%d").to_string()
}

/// A JSON number as an exact decimal text. The shortest text of a double gives back what stood in
/// the answer for every number of up to 15 digits, which prices in 1/10,000 yen do not exceed.
pub(super) fn decimal(number: f64) -> String {
    number.to_string()
}

/// A price from a decimal text.
pub(super) fn price(text: &str) -> Result<Price, String> {
    let price: Price =
        text.parse().map_err(|error: domain::price::DecimalError| error.to_string())?;
    let highest = Price::from_yen(PRICE_YEN_MAX);
    if price > Price::from_units(0) && price <= highest {
        return Ok(price);
    }
    Err(format!("`{text}` is no price above 0 and up to {highest}"))
}

/// A price from a decimal text that may have more digits than 1/10,000 yen, which are rounded away.
pub(super) fn rounded_price(text: &str) -> Result<Price, String> {
    price(&rounded(text, 4))
}

/// A whole number of shares from a decimal text.
pub(super) fn shares(text: &str) -> Result<u64, String> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    };
    let digits = !whole.is_empty() && whole.bytes().all(|digit| digit.is_ascii_digit());
    let shares = digits.then(|| whole.parse().ok()).flatten();
    shares
        .filter(|shares| *shares <= VOLUME_MAX)
        .ok_or_else(|| format!("`{text}` is no whole number of shares up to {VOLUME_MAX}"))
}

/// As [`shares`]; a fraction is rounded.
pub(super) fn rounded_shares(text: &str) -> Result<u64, String> {
    shares(&rounded(text, 0))
}

/// An amount of yen from a decimal text; what is finer than 1/10,000 yen is refused.
pub(super) fn money(text: &str) -> Result<Money, String> {
    text.parse().map_err(|error: domain::price::DecimalError| error.to_string())
}

/// Rounds a decimal text half up to so many digits after the point; what is no such text stays.
fn rounded(text: &str, digits: usize) -> String {
    let Some((whole, fraction)) = text.split_once('.') else { return text.to_owned() };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() <= digits || whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return text.to_owned();
    }
    let scale = UNITS_PER_YEN.unsigned_abs().min(10_u64.pow(u32::try_from(digits).unwrap_or(4)));
    let kept: Option<u64> = format!("{whole}{}", &fraction[..digits]).parse().ok();
    let up = u64::from(fraction.as_bytes()[digits] >= b'5');
    match kept.and_then(|kept| kept.checked_add(up)) {
        Some(kept) if digits > 0 => format!("{}.{:0digits$}", kept / scale, kept % scale),
        Some(kept) => kept.to_string(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::SourceKind;

    fn row(date: &str, code: &str) -> DailyRow {
        let yen = |yen| Some(Price::from_yen(yen));
        DailyRow {
            date: date.parse().unwrap(),
            code: code.parse().unwrap(),
            open: yen(100),
            high: yen(110),
            low: yen(90),
            close: yen(105),
            volume: Some(1_000),
            turnover: Some(Money::from_yen(100_000)),
            adjustment_factor: Some(1.0),
            source: SourceKind::Vendor,
        }
    }

    fn asked(code: Option<&str>) -> Asked {
        let date = |text: &str| text.parse().unwrap();
        let code = code.map(|code| code.parse().unwrap());
        Asked { code, from: date("2026-01-05"), to: date("2026-01-06") }
    }

    fn refused(change: impl Fn(&mut DailyRow)) -> String {
        let mut wrong = row("2026-01-05", "7203");
        change(&mut wrong);
        asked(None).accept(vec![wrong]).unwrap_err().to_string()
    }

    #[test]
    fn rows_come_in_any_order_and_leave_in_one() {
        let rows =
            vec![row("2026-01-06", "1301"), row("2026-01-05", "7203"), row("2026-01-05", "130A")];
        let answer = asked(None).accept(rows).unwrap();
        let found: Vec<_> =
            answer.rows.iter().map(|row| format!("{} {}", row.date, row.code)).collect();
        assert_eq!(found, ["2026-01-05 130A", "2026-01-05 7203", "2026-01-06 1301"]);
    }

    #[test]
    fn rows_that_were_not_asked_for_are_refused() {
        let check = |code, rows: &[DailyRow], part: &str| {
            let message = asked(code).accept(rows.to_vec()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        };
        check(None, &[row("2026-01-07", "7203")], "asked for 2026-01-05 to 2026-01-06");
        check(Some("1301"), &[row("2026-01-05", "7203")], "of 7203 on 2026-01-05: asked for 1301");
        let twice = row("2026-01-05", "7203");
        check(None, &[twice, row("2026-01-05", "1301"), twice], "two rows of 7203 on 2026-01-05");
        let many = vec![twice; ANSWER_ROWS_MAX + 1];
        check(None, &many, "more than 20000 rows");
    }

    #[test]
    fn few_odd_rows_of_a_day_are_left_out() {
        let day = |count: usize, wrong: usize| {
            let rows = (1_000..1_000 + count).map(|code| row("2026-01-05", &code.to_string()));
            let mut rows: Vec<DailyRow> = rows.collect();
            rows.iter_mut().take(wrong).for_each(|row| row.volume = None);
            rows.into_iter().map(Ok).collect::<Vec<Result<DailyRow, String>>>()
        };
        let told = |place: usize, reason| OddRow {
            row: format!("number {place}"),
            text: String::new(),
            reason,
        };
        let accept = |rows| asked(None).accept_day(rows, told);
        let answer = accept(day(200, 2)).unwrap();
        let found: Vec<String> = answer.odd.iter().map(ToString::to_string).collect();
        let why = "prices without a volume";
        assert_eq!(found, [format!("row of number 0: {why}"), format!("row of number 1: {why}")]);
        assert_eq!(answer.rows.len(), 198);
        let error = accept(day(200, 3)).unwrap_err().to_string();
        let part = "3 of 200 rows are odd, more than 1 %; the first: row of number 0: prices";
        assert!(error.contains(part), "{error}");
        // A row that could not be read counts as well, and of two rows of one issue none is used.
        let mut mixed = day(400, 0);
        mixed[1] = mixed[0].clone().map(|row| DailyRow { volume: Some(7), ..row });
        mixed[399] = Err("no code".to_owned());
        let answer = accept(mixed.clone()).unwrap();
        let odd: Vec<&str> = answer.odd.iter().map(|odd| odd.reason.as_str()).collect();
        assert_eq!((answer.rows.len(), odd), (397, vec![TWICE, TWICE, "no code"]));
        mixed.truncate(100);
        assert!(accept(mixed).is_err());
        // The same row on two pages is one row.
        let overlapping = accept([day(200, 0), day(2, 0)].concat()).unwrap();
        assert_eq!((overlapping.rows.len(), overlapping.odd), (200, Vec::new()));
        let of_other = |date| accept([day(199, 0), vec![Ok(row(date, "7203"))]].concat()).unwrap();
        assert_eq!(of_other("2026-01-06").odd, []);
        assert_eq!(of_other("2026-01-07").odd[0].reason, "asked for 2026-01-05 to 2026-01-06");
        assert_eq!(accept(Vec::new()), Ok(Answer::default()));
        assert!(matches!(accept(day(ANSWER_ROWS_MAX + 1, 0)), Err(SourceError::TooLarge { .. })));
    }

    #[test]
    fn impossible_rows_are_refused() {
        let yen = |yen| Some(Price::from_yen(yen));
        for (message, part) in [
            (refused(|row| row.high = yen(104)), "not all inside low to high"),
            (refused(|row| row.low = yen(101)), "not all inside low to high"),
            (refused(|row| row.low = yen(0)), "expected above 0"),
            (refused(|row| row.high = yen(PRICE_YEN_MAX + 1)), "expected above 0 and up to"),
            (refused(|row| row.close = None), "some of the four prices are missing"),
            (refused(|row| row.volume = None), "prices without a volume"),
            (refused(|row| row.volume = Some(VOLUME_MAX + 1)), "a volume above"),
            (refused(|row| row.turnover = Some(Money::from_yen(-1))), "a turnover below 0"),
            (refused(|row| row.adjustment_factor = Some(0.0)), "an adjustment factor of 0"),
            (refused(|row| row.adjustment_factor = Some(f64::NAN)), "an adjustment factor"),
        ] {
            assert!(message.contains(part), "{message}");
        }
        let empty = |row: &mut DailyRow| {
            (row.open, row.high, row.low, row.close) = (None, None, None, None);
        };
        let message = refused(|row| empty(row));
        assert!(message.contains("a volume without prices"), "{message}");
        let message = refused(|row| (empty(row), row.volume = None).1);
        assert!(message.contains("a turnover without prices"), "{message}");
        let mut quiet = row("2026-01-05", "7203");
        empty(&mut quiet);
        (quiet.volume, quiet.turnover) = (None, None);
        assert_eq!(asked(None).accept(vec![quiet]).unwrap().rows, [quiet]);
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(price(&decimal(1_234.5)).unwrap().units(), 12_345_000);
        assert_eq!(price(&decimal(0.1 + 0.2 - 0.000_000_000_000_000_04)).unwrap().units(), 3_000);
        for wrong in ["0", "-1", "0.00001", "1000000001", "NaN", "inf", ""] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
        assert_eq!((shares("1200"), shares("1200.0000")), (Ok(1_200), Ok(1_200)));
        for wrong in ["12.5", "-1", "", ".0", "1e3", "1000000000001"] {
            assert!(shares(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounding_goes_half_up() {
        for (text, digits, expected) in [
            ("1523.34565", 4, "1523.3457"),
            ("1523.34564999", 4, "1523.3456"),
            ("9.99995", 4, "10.0000"),
            ("12", 4, "12"),
            ("12.5", 4, "12.5"),
            ("12.5", 0, "13"),
            ("12.49", 0, "12"),
            ("1.x2345", 4, "1.x2345"),
            ("99999999999999999999.12345", 4, "99999999999999999999.12345"),
        ] {
            assert_eq!(rounded(text, digits), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_price_survives_json(units in 1..=PRICE_YEN_MAX * UNITS_PER_YEN) {
            let text = Price::from_units(units).to_string();
            let number: f64 = text.parse().unwrap();
            proptest::prop_assert_eq!(price(&decimal(number)).unwrap().units(), units);
        }
    }
}
