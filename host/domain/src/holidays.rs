//! Public holidays of Japan and the exchange's own closures at the year's turn, by rule, from 2000 on.
//!
//! Source: the Act on National Holidays (Act No. 178 of 1948) with its amendments to 2020, the acts for the
//! accession of 2019 and for the Olympic Games of 2020 and 2021, the observatory's formula for the
//! equinoxes of 1980 to 2099, and the exchange's business regulations (31 December to 3 January).

use chrono::{Datelike, Weekday};

use crate::time::JstDate;

/// The first year of which the rules tell.
pub const FIRST_YEAR: i32 = 2000;

/// Whether the exchange is closed on `date`: a weekend, a public holiday, or the year's turn.
#[must_use]
pub fn is_closed(date: JstDate) -> bool {
    matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
        || matches!((date.month(), date.day()), (12, 31) | (1, 2 | 3))
        || is_public_holiday(date)
}

/// Whether `date` is a public holiday: one with a name, a substitute for one on a Sunday, or a day
/// between two of them.
#[must_use]
pub fn is_public_holiday(date: JstDate) -> bool {
    is_named(date) || is_substitute(date) || is_between(date)
}

/// The day after a holiday on a Sunday; since 2007 the first day after it that is no holiday itself.
fn is_substitute(date: JstDate) -> bool {
    if date.year() < 2007 {
        return date.weekday() == Weekday::Mon && date.pred_opt().is_some_and(is_named);
    }
    let before = std::iter::successors(date.pred_opt(), JstDate::pred_opt);
    let mut row = before.take_while(|day| is_named(*day));
    !is_named(date) && row.any(|day| day.weekday() == Weekday::Sun)
}

/// A day between two holidays, which is one itself.
fn is_between(date: JstDate) -> bool {
    let is_plain = date.weekday() != Weekday::Sun && !is_named(date) && !is_substitute(date);
    is_plain && date.pred_opt().is_some_and(is_named) && date.succ_opt().is_some_and(is_named)
}

/// Whether `date` is a holiday with a name of its own.
fn is_named(date: JstDate) -> bool {
    let (year, month, day) = (date.year(), date.month(), date.day());
    let is_monday = |nth: u32| date.weekday() == Weekday::Mon && (day - 1) / 7 + 1 == nth;
    match month {
        // New Year's Day, Coming of Age Day.
        1 => day == 1 || is_monday(2),
        // Foundation Day, the Emperor's Birthday.
        2 => day == 11 || (year >= 2020 && day == 23),
        3 => day == spring_equinox(year),
        // Showa Day (before 2007 Greenery Day), and the abdication of 2019.
        4 => day == 29 || (year == 2019 && day == 30),
        // Constitution Day, Greenery Day, Children's Day, and the accession of 2019.
        5 => day == 3 || day == 5 || (year >= 2007 && day == 4) || (year == 2019 && day <= 2),
        7 => marine_day(year, day, is_monday(3)),
        8 => mountain_day(year, day),
        9 => respect_for_the_aged_day(year, day, is_monday(3)) || day == autumn_equinox(year),
        // Sports Day (moved for the Olympic Games), and the enthronement of 2019.
        10 => match year {
            2020 | 2021 => false,
            2019 => is_monday(2) || day == 22,
            _ => is_monday(2),
        },
        // Culture Day, Labour Thanksgiving Day.
        11 => day == 3 || day == 23,
        // The birthday of the Emperor until 2019.
        12 => year <= 2018 && day == 23,
        _ => false,
    }
}

/// Marine Day; in the years of the Olympic Games Sports Day lies beside it.
fn marine_day(year: i32, day: u32, is_third_monday: bool) -> bool {
    match year {
        2020 => day == 23 || day == 24,
        2021 => day == 22 || day == 23,
        ..=2002 => day == 20,
        _ => is_third_monday,
    }
}

fn mountain_day(year: i32, day: u32) -> bool {
    match year {
        ..=2015 => false,
        2020 => day == 10,
        2021 => day == 8,
        _ => day == 11,
    }
}

fn respect_for_the_aged_day(year: i32, day: u32, is_third_monday: bool) -> bool {
    if year <= 2002 { day == 15 } else { is_third_monday }
}

/// Day of March.
fn spring_equinox(year: i32) -> u32 {
    equinox(year, 20_843_100)
}

/// Day of September.
fn autumn_equinox(year: i32) -> u32 {
    equinox(year, 23_248_800)
}

/// The observatory's approximation: the day in 1980, in millionths, moves by 0.242194 a year and goes
/// back by one in each leap year.
fn equinox(year: i32, in_1980: i32) -> u32 {
    let years = year - 1980;
    let day = (in_1980 + 242_194 * years).div_euclid(1_000_000) - years.div_euclid(4);
    // Between 18 and 24 for every year of this rule's range.
    day.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weekdays of a year on which the exchange was closed, as `month/day`.
    fn closed_weekdays(year: i32) -> String {
        let first = JstDate::from_ymd_opt(year, 1, 1).unwrap();
        let is_weekday = |day: &JstDate| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
        let days = first.iter_days().take_while(|day| day.year() == year);
        let closed = days.filter(is_weekday).filter(|day| is_closed(*day));
        closed.map(|day| format!("{}/{}", day.month(), day.day())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_exchange_s_closures_of_ten_years_are_known() {
        // As the exchange announced them.
        for (year, days) in [
            (
                2015,
                "1/1 1/2 1/12 2/11 4/29 5/4 5/5 5/6 7/20 9/21 9/22 9/23 10/12 11/3 11/23 12/23 12/31",
            ),
            (2018, "1/1 1/2 1/3 1/8 2/12 3/21 4/30 5/3 5/4 7/16 9/17 9/24 10/8 11/23 12/24 12/31"),
            (
                2019,
                "1/1 1/2 1/3 1/14 2/11 3/21 4/29 4/30 5/1 5/2 5/3 5/6 7/15 8/12 9/16 9/23 10/14 \
                    10/22 11/4 12/31",
            ),
            (
                2020,
                "1/1 1/2 1/3 1/13 2/11 2/24 3/20 4/29 5/4 5/5 5/6 7/23 7/24 8/10 9/21 9/22 11/3 \
                    11/23 12/31",
            ),
            (2021, "1/1 1/11 2/11 2/23 4/29 5/3 5/4 5/5 7/22 7/23 8/9 9/20 9/23 11/3 11/23 12/31"),
            (2022, "1/3 1/10 2/11 2/23 3/21 4/29 5/3 5/4 5/5 7/18 8/11 9/19 9/23 10/10 11/3 11/23"),
            (2023, "1/2 1/3 1/9 2/23 3/21 5/3 5/4 5/5 7/17 8/11 9/18 10/9 11/3 11/23"),
            (
                2024,
                "1/1 1/2 1/3 1/8 2/12 2/23 3/20 4/29 5/3 5/6 7/15 8/12 9/16 9/23 10/14 11/4 12/31",
            ),
            (
                2025,
                "1/1 1/2 1/3 1/13 2/11 2/24 3/20 4/29 5/5 5/6 7/21 8/11 9/15 9/23 10/13 11/3 \
                    11/24 12/31",
            ),
            (
                2026,
                "1/1 1/2 1/12 2/11 2/23 3/20 4/29 5/4 5/5 5/6 7/20 8/11 9/21 9/22 9/23 10/12 \
                    11/3 11/23 12/31",
            ),
        ] {
            assert_eq!(closed_weekdays(year), days, "{year}");
        }
    }

    #[test]
    fn the_substitutes_and_days_between_of_older_years() {
        let is_holiday = |text: &str| is_public_holiday(text.parse().unwrap());
        // The 4th of May lay between two holidays until 2006.
        assert!(is_holiday("2004-05-04") && is_holiday("2006-05-04"));
        assert!(is_holiday("2009-09-22"), "between two holidays");
        assert!(is_holiday("2008-05-06"), "for the 4th, over the 5th");
        assert!(is_holiday("2001-02-12") && !is_holiday("2001-02-13"));
        assert!(is_holiday("2002-07-20") && !is_holiday("2003-07-20") && is_holiday("2003-07-21"));
    }
}
