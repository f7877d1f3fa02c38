//! Rows that the vendor takes back: a whole day of it has them no more. What proves that, and what does
//! not, are the rules R6 and R7 of [`SourceKind`](crate::SourceKind).

use std::collections::BTreeSet;

use domain::JstDate;

use super::slots::Slots;
use super::{Job, UpdateError};
use crate::limits::{COMPLETE_PERCENT, LOST_ISSUES_MIN, TAKEN_BACK_PERCENT_MAX};
use crate::row::IssueCode;
use crate::source::Answer;

/// What becomes of the rows that a whole day no longer has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// The vendor took these back.
    gone: BTreeSet<IssueCode>,
    /// Why the others stay.
    why_others_stay: &'static str,
}

/// Judges the `missing` ones of `stored` issues with a row of the vendor's, by what it gave of the day and
/// what it lists for its date.
fn judge(
    stored: usize,
    missing: &BTreeSet<IssueCode>,
    given: &BTreeSet<IssueCode>,
    listed: Option<&BTreeSet<IssueCode>>,
    is_published: bool,
) -> Verdict {
    let nothing = |why_others_stay| Verdict { gone: BTreeSet::new(), why_others_stay };
    let Some(listed) = listed else {
        return nothing(
            "there is no list of the issues of the day, so they may have been forgotten",
        );
    };
    let found = given.intersection(listed).count() as u64;
    if found * 100 < listed.len() as u64 * COMPLETE_PERCENT {
        return nothing("others are missing too, which are listed");
    }
    let gone: BTreeSet<IssueCode> = missing.difference(listed).copied().collect();
    // Of a day that nobody has seen yet there is nothing to protect.
    let is_much =
        gone.len() >= LOST_ISSUES_MIN && gone.len() * 100 > stored * TAKEN_BACK_PERCENT_MAX;
    if is_published && is_much {
        return nothing("they are more than 1 % of the day's");
    }
    Verdict { gone, why_others_stay: "their issues are listed, so they were forgotten" }
}

impl Job<'_> {
    /// The rows of a day that the vendor takes back with a whole answer; told which are missing and stay.
    pub(super) fn taken_back(
        &mut self,
        slots: &mut Slots,
        date: JstDate,
        answer: &Answer,
    ) -> Result<Vec<(JstDate, IssueCode)>, UpdateError> {
        // What was kept on this machine may be older than what is stored.
        let is_news = !answer.cached && answer.odd.is_empty() && !answer.rows.is_empty();
        if !is_news || !self.options.codes.is_empty() || !self.known.dates.contains_key(&date) {
            return Ok(Vec::new());
        }
        let stored = self.store.rows().vendor_codes_of(date)?;
        let given: BTreeSet<IssueCode> = answer.rows.iter().map(|row| row.code).collect();
        let missing: BTreeSet<IssueCode> = stored.difference(&given).copied().collect();
        let Some(first) = missing.first() else { return Ok(Vec::new()) };
        if !self.listed.contains_key(&date) && !self.lists_failed {
            self.list_days.insert(date);
            self.ask_for_list(slots, date, &given);
        }
        let Verdict { gone, why_others_stay } = match self.accept(date) {
            true => Verdict { gone: missing.clone(), why_others_stay: "" },
            false => {
                let is_published = self.state.is_publishable(date);
                judge(stored.len(), &missing, &given, self.listed.get(&date), is_published)
            }
        };
        let stay = missing.len() - gone.len();
        if stay > 0 {
            self.note(format!(
                "the vendor no longer has {stay} rows of {date} that are stored, and they stay: \
                 {why_others_stay}; the first row that is missing is of {first}"
            ));
        }
        Ok(gone.into_iter().map(|code| (date, code)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(numbers: std::ops::Range<u32>) -> BTreeSet<IssueCode> {
        numbers.map(|number| number.to_string().parse().unwrap()).collect()
    }

    #[test]
    fn a_row_is_taken_back_by_a_whole_day_and_its_list() {
        let check = |missing, given, listed: Option<std::ops::Range<u32>>| {
            let listed = listed.map(codes);
            let verdict = judge(200, &codes(missing), &codes(given), listed.as_ref(), true);
            (verdict.gone.len(), verdict.why_others_stay)
        };
        // R6.
        assert_eq!(check(1_198..1_200, 1_000..1_198, Some(1_000..1_198)).0, 2);
        // R7.
        let stays = |found: (usize, &str), words: &str| {
            assert!(found.0 == 0 && found.1.contains(words), "{found:?}");
        };
        stays(check(1_198..1_200, 1_000..1_198, None), "no list");
        stays(check(1_198..1_200, 1_000..1_198, Some(1_000..1_200)), "are listed");
        stays(check(1_197..1_200, 1_000..1_197, Some(1_000..1_197)), "more than 1 %");
        stays(check(1_198..1_200, 1_000..1_198, Some(1_000..1_202)), "others are missing");
        // R6, of a day that was not published.
        let (given, listed) = (codes(1_000..1_100), codes(1_000..1_100));
        let verdict = judge(200, &codes(1_100..1_200), &given, Some(&listed), false);
        assert_eq!(verdict.gone.len(), 100);
        // Of two, one is still listed.
        assert_eq!(check(1_198..1_200, 1_000..1_198, Some(1_000..1_199)).0, 1);
    }
}
