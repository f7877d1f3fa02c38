//! The days of a run. The exchange's calendar makes them, rows do not: on a business day without any row
//! sessions open and close, and orders end, as on every other. Whatever counts days takes them from here.

use std::iter::Peekable;

use domain::{ExchangeCalendar, JstDate};

/// The days of a run in order, each with its rows: every business day from the first to the last date, and
/// every date that has rows.
pub struct RunDays<'c, I: Iterator> {
    rows: Peekable<I>,
    calendar: &'c ExchangeCalendar,
    /// Business days are looked for from here on; none before the first rows of a run without dates.
    from: Option<JstDate>,
    last: Option<JstDate>,
}

impl<'c, T, I: Iterator<Item = (JstDate, T)>> RunDays<'c, I> {
    /// The days from the first to the last of `dates`, else from the first to the last date of the rows,
    /// which come in order.
    pub fn new(
        rows: impl IntoIterator<IntoIter = I>,
        dates: Option<(JstDate, JstDate)>,
        calendar: &'c ExchangeCalendar,
    ) -> Self {
        let (from, last) = dates.unzip();
        Self { rows: rows.into_iter().peekable(), calendar, from, last }
    }

    /// The rows that come next, on whatever date.
    pub fn next_rows(&mut self) -> Option<&T> {
        self.rows.peek().map(|(_, rows)| rows)
    }
}

impl<T, I: Iterator<Item = (JstDate, T)>> Iterator for RunDays<'_, I> {
    type Item = (JstDate, Option<T>);

    fn next(&mut self) -> Option<Self::Item> {
        let of_rows = self.rows.peek().map(|(date, _)| *date);
        let open = self.from.and_then(|from| self.calendar.business_day_from(from));
        let is_next = |open: &JstDate| match of_rows {
            Some(date) => *open < date,
            None => self.last.is_some_and(|last| *open <= last),
        };
        let day = match open.filter(is_next) {
            Some(date) => (date, None),
            None => self.rows.next().map(|(date, rows)| (date, Some(rows)))?,
        };
        self.from = day.0.succ_opt();
        Some(day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    /// The days as text; `+` behind those with rows.
    fn days(rows: &[&str], dates: Option<(&str, &str)>, calendar: &ExchangeCalendar) -> String {
        let rows: Vec<_> = rows.iter().map(|day| (date(day), ())).collect();
        let dates = dates.map(|(first, last)| (date(first), date(last)));
        let days = RunDays::new(rows, dates, calendar);
        let text = |(date, rows): (JstDate, Option<()>)| {
            format!("{}{}", date.format("%m-%d"), if rows.is_some() { "+" } else { "" })
        };
        days.map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn business_days_lie_between_rows_and_up_to_the_dates_asked_for() {
        let by_law = ExchangeCalendar::default();
        // The 11th and 12th are a weekend, the 13th is a holiday.
        let rows = ["2025-01-08", "2025-01-14"];
        assert_eq!(days(&rows, None, &by_law), "01-08+ 01-09 01-10 01-14+");
        let dates = Some(("2025-01-04", "2025-01-18"));
        let expected = "01-06 01-07 01-08+ 01-09 01-10 01-14+ 01-15 01-16 01-17";
        assert_eq!(days(&rows, dates, &by_law), expected);
        assert_eq!(days(&[], Some(("2025-01-11", "2025-01-14")), &by_law), "01-14");
        assert_eq!(days(&[], Some(("2025-01-11", "2025-01-13")), &by_law), "");
        assert_eq!(days(&[], None, &by_law), "");
    }

    #[test]
    fn rows_make_a_day_of_a_closed_date() {
        let by_law = ExchangeCalendar::default();
        let rows = ["2025-01-10", "2025-01-11", "2025-01-13", "2025-01-14"];
        assert_eq!(days(&rows, None, &by_law), "01-10+ 01-11+ 01-13+ 01-14+");
        // Open on the holiday and closed on the day after.
        let open = [("2025-01-13", true), ("2025-01-14", false), ("2025-01-15", true)];
        let listed = ExchangeCalendar::listed(open.map(|(day, is_open)| (date(day), is_open)));
        let listed = listed.unwrap();
        let rows = ["2025-01-10", "2025-01-16"];
        assert_eq!(days(&rows, None, &listed), "01-10+ 01-13 01-15 01-16+");
        assert_eq!(days(&["2025-01-14"], None, &listed), "01-14+");
    }
}
