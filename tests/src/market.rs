//! A made-up market whose states can be told apart by its volumes. The job that is killed writes
//! it (`src/bin/update_job.rs`), and readers hold what they see against it.

use std::collections::BTreeMap;

/// Issues; each has a row on every day.
pub const CODES: u64 = 24;
/// Days before the first state. State `n` has `n` more.
pub const DAYS_BEFORE: u64 = 20;

/// The code of an issue; some have letters.
#[must_use]
pub fn code(issue: u64) -> String {
    let letter = if issue.is_multiple_of(3) { 'A' } else { '5' };
    format!("{}{letter}", 130 + issue)
}

/// Shares traded on a day (from 0) in a state (from 1).
#[must_use]
pub fn volume(day: u64, state: u64) -> u64 {
    match day {
        0 => state,
        day if day < DAYS_BEFORE => 1_000 + day,
        day => day + 1 - DAYS_BEFORE,
    }
}

/// The state to which rows belong: pairs of date and volume, of so many issues.
///
/// # Errors
/// When they belong to none: a day is not complete, or days of different states are mixed.
pub fn state_of(rows: impl IntoIterator<Item = (String, u64)>, codes: u64) -> Result<u64, String> {
    let mut days: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (date, volume) in rows {
        days.entry(date).or_default().push(volume);
    }
    let count = days.len() as u64;
    let state = count.checked_sub(DAYS_BEFORE).filter(|state| *state > 0);
    let state = state.ok_or_else(|| format!("there are only {count} days"))?;
    for (day, (date, volumes)) in (0..).zip(&days) {
        if volumes.len() as u64 != codes {
            return Err(format!("{date} has {} of {codes} rows", volumes.len()));
        }
        let expected = volume(day, state);
        if let Some(other) = volumes.iter().find(|volume| **volume != expected) {
            return Err(format!("{date} of state {state} has {other} instead of {expected}"));
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(state: u64, codes: u64) -> Vec<(String, u64)> {
        let days = 0..DAYS_BEFORE + state;
        let of_day = |day| (0..codes).map(move |_| (format!("day {day:03}"), volume(day, state)));
        days.flat_map(of_day).collect()
    }

    #[test]
    fn states_are_told_apart() {
        assert_eq!(state_of(rows(1, 3), 3), Ok(1));
        assert_eq!(state_of(rows(30, 1), 1), Ok(30));
        assert_eq!(state_of(rows(0, 1), 1).unwrap_err(), "there are only 20 days");
        let mut mixed = rows(30, 2);
        mixed[0].1 = 29;
        assert_eq!(state_of(mixed, 2).unwrap_err(), "day 000 of state 30 has 29 instead of 30");
        let mut thin = rows(30, 2);
        thin.remove(99);
        assert_eq!(state_of(thin, 2).unwrap_err(), "day 049 has 1 of 2 rows");
    }
}
