//! Which days are wanted.

use domain::JstDate;
use domain::session::is_weekday;

/// The last `count` weekdays up to `last`, ascending. Which of them have trading is for the sources
/// to say; no list of holidays is kept.
#[must_use]
pub fn last_weekdays(last: JstDate, count: u32) -> Vec<JstDate> {
    let mut days = Vec::new();
    let mut date = Some(last);
    while let Some(day) = date.filter(|_| days.len() < count as usize) {
        if is_weekday(day) {
            days.push(day);
        }
        date = day.pred_opt();
    }
    days.reverse();
    days
}

/// The weekdays from one date to another, both included, ascending.
pub(super) fn weekdays(from: JstDate, to: JstDate) -> impl Iterator<Item = JstDate> {
    from.iter_days().take_while(move |day| *day <= to).filter(|day| is_weekday(*day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekends_are_left_out() {
        let date = |text: &str| text.parse().unwrap();
        let texts = |days: Vec<JstDate>| days.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = ["2026-01-01", "2026-01-02", "2026-01-05"];
        assert_eq!(texts(last_weekdays(date("2026-01-05"), 3)), expected);
        assert_eq!(texts(last_weekdays(date("2026-01-04"), 2)), expected[..2]);
        assert_eq!(texts(last_weekdays(date("2026-01-04"), 0)), [""; 0]);
        assert_eq!(last_weekdays(date("2026-01-05"), 1_000).len(), 1_000);
        let between = weekdays(date("2026-01-01"), date("2026-01-05")).collect();
        assert_eq!(texts(between), expected);
        assert_eq!(weekdays(date("2026-01-05"), date("2026-01-01")).count(), 0);
    }
}
