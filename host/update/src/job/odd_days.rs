//! Whole days that no market ever had: they are not taken unless the user accepts them by their date (rules E1
//! to E5, E8 to E12 and E16 to E21 of the job; E6 and E7 are about corrections). Strange ones are taken and told (rules Z1
//! to Z3, Z6, Z8 and Z9).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use domain::JstDate;

use super::oddity::{
    Equal, Jump, Oddity, Range, Usual, Value, alike, are_others, columns, fewer, foreign,
    greatest_share, is_beside, jump, market_move, odd_rows, odd_volumes, off_tick, priced,
    priceless, repeated, replaced, same, turnovers, unlisted, volumes, without_volume,
};
use super::plan::last_weekdays;
use super::refusal::is_too_much;
use super::report::{DayOutcome, DoubtKind, DoubtReport};
use super::rules::{Standard, days_between, is_day_without_trading};
use super::seen::{SeenDay, seen};
use super::{Job, UpdateError};
use crate::limits::{
    BESIDE_DAYS_MAX, BETTER_DAYS_MAX, FAR_MARKET_MOVE_PERCENT_MAX, GONE_PERCENT_MAX,
    LOOKED_FOR_FOUND_MIN, LOOKED_FOR_ISSUES, LOST_ISSUES_MIN, MARKET_MOVE_PERCENT_MAX,
    MASTER_DAYS_MAX, NAMED_ISSUES_MAX, ODD_DAY_ISSUES_MIN, ODD_PRICED_PERCENT_MIN,
    PRICED_PERCENT_MIN, REPEATED_DAYS, REPLACED_PERCENT_MAX, REPORT_ROWS_MAX,
    STRANGE_VOLUMES_PERCENT_MAX, VOLUME_TIMES,
};
use crate::row::{DailyRow, IssueCode};

/// What happens next to a day that is odd, and what the user can do.
pub(super) const ADVICE: &str = "the next run asks for it again; look at what the vendor says of it, and take it \
                                 as it is with --accept and the date";

/// What the user can do about a day that is strange.
const STRANGE: &str = "it is published as it came; look at what the vendor says of it, and ask again with --days and \
                       --refetch";

impl Job<'_> {
    /// What is odd about a day with these rows that is not complete; nothing where the user accepts it.
    pub(super) fn oddity(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        standard: Option<&Standard>,
    ) -> Result<Option<Oddity>, UpdateError> {
        let odd = match self.oddities(date, rows, standard)?.into_iter().next() {
            Some(odd) => Some(odd),
            // As with lists: history is long, and all of it is looked through for each day.
            None if self.days.len() > MASTER_DAYS_MAX => None,
            None => self.repeated_anywhere(date, rows)?,
        };
        Ok(if odd.is_some() && self.accept_odd(date) { None } else { odd })
    }

    /// What is odd about a complete day with these rows instead of the known ones, and was not or less so with those
    /// (rule E14); nothing where the user accepts it.
    pub(super) fn oddity_beside_known(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        known: &[DailyRow],
        standard: Option<&Standard>,
    ) -> Result<Option<Oddity>, UpdateError> {
        let found = self.oddities(date, rows, standard)?;
        if found.is_empty() {
            self.state.odd.remove(&date);
        }
        let of_known =
            if found.is_empty() { Vec::new() } else { self.oddities(date, known, standard)? };
        let is_new = |odd: &Oddity| !of_known.iter().any(|known| odd.is_no_odder_than(known));
        let odd = match found.into_iter().find(is_new) {
            None if are_others(rows, known) => {
                let odd = self.repeated_anywhere(date, rows)?;
                let of_known = match odd {
                    Some(_) => self.repeated_anywhere(date, known)?,
                    None => None,
                };
                odd.filter(|odd| of_known.is_none_or(|known| !odd.is_no_odder_than(&known)))
            }
            odd => odd,
        };
        Ok(odd.filter(|_| !self.accept_odd(date)))
    }

    /// Whether this run's user accepts what is odd about a day; then nothing strange is told of it either.
    fn accept_odd(&mut self, date: JstDate) -> bool {
        let is_accepted = self.accept(date) && self.accept_for_good(date);
        if is_accepted {
            self.state.odd.insert(date);
        }
        is_accepted
    }

    /// Whether a day has what was traded on any other complete day, also one that is on its way to the store (rule E3).
    fn repeated_anywhere(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
    ) -> Result<Option<Oddity>, UpdateError> {
        let found = seen(rows);
        let mut waiting: BTreeMap<JstDate, Vec<DailyRow>> = BTreeMap::new();
        let judged = self.judged.iter().flat_map(|(_, rows)| rows);
        for row in self.batch.rows.values().flatten().chain(judged) {
            if row.date != date && self.complete_rows.contains_key(&row.date) {
                waiting.entry(row.date).or_default().push(*row);
            }
        }
        let mut waiting = waiting.into_iter();
        let odd = waiting.find_map(|(day, others)| repeated(&found, (day, &seen(&others))));
        if odd.is_some() {
            return Ok(odd);
        }
        let moved: Vec<&DailyRow> = rows
            .iter()
            .filter(|row| row.high != row.low && row.volume.is_some_and(|volume| volume > 0))
            .collect();
        if moved.len() < LOOKED_FOR_ISSUES {
            return Ok(None);
        }
        // All over the market: a part of it may be of that day.
        let looked_for =
            (0..LOOKED_FOR_ISSUES).map(|place| *moved[place * moved.len() / LOOKED_FOR_ISSUES]);
        let looked_for: Vec<DailyRow> = looked_for.collect();
        for day in self.store.rows().days_with(&looked_for, LOOKED_FOR_FOUND_MIN)? {
            if day == date || !self.complete_rows.contains_key(&day) {
                continue;
            }
            let others = seen(&self.store.rows().rows_of(day)?);
            if let Some(odd) = repeated(&found, (day, &others)) {
                return Ok(Some(odd));
            }
        }
        Ok(None)
    }

    /// All that is odd about a day with these rows, whatever the user accepts, in the order in which it is told.
    fn oddities(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        standard: Option<&Standard>,
    ) -> Result<Vec<Oddity>, UpdateError> {
        let codes: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
        let of_list = match standard {
            Some(Standard::Listed(listed)) => unlisted(&codes, listed),
            // Without a list those of the day before, where too few of them are there besides.
            Some(known @ Standard::Before { day, .. }) if !known.is_met(&codes, true) => {
                foreign(&codes, &day.codes)
            }
            _ => None,
        };
        let mut odd: Vec<Oddity> = of_list.into_iter().chain(odd_rows(rows)).collect();
        let far = self.far_rows(date, rows)?.len();
        if is_too_much(far, rows.len() as u64) {
            odd.push(Oddity::Far { issues: far as u64, of: rows.len() as u64 });
        }
        let before = self.days_compared(date)?;
        let found = seen(rows);
        let last = before.first().copied().filter(|day| is_beside(*day, date));
        let beside = last.and_then(|day| Some((day, self.seen_days.get(day)?)));
        odd.extend(
            beside.map(|beside| self.odd_beside(date, &found, beside)).into_iter().flatten(),
        );
        let after = self.complete_rows.range(date..).map(|(day, _)| *day).find(|day| *day != date);
        self.look_up(after.as_slice())?;
        for day in before.iter().copied().chain(after) {
            let others = self.seen_days.get(day);
            odd.extend(others.and_then(|others| repeated(&found, (day, others))));
        }
        // Whole rows of another day have its closes too, and what is wrong with prices or volumes makes turnovers
        // wrong: that is told first.
        let beside = last.and_then(|day| Some((day, self.seen_days.get(day)?)));
        if let Some(beside) = beside {
            odd.extend(same(Value::Close, &found, beside));
            odd.extend(same(Value::Volume, &found, beside));
            let near = before.iter().filter(|day| is_beside(**day, date));
            let near = near.filter_map(|day| Some((*day, self.seen_days.get(*day)?)));
            odd.extend(fewer(Usual::Moves, &found, near.clone()));
            odd.extend(fewer(Usual::Turnover, &found, near));
            odd.extend(Equal::ALL.iter().filter_map(|what| columns(*what, &found, beside)));
        }
        odd.extend(turnovers(rows).into_iter().chain(alike(rows)).chain(off_tick(rows)));
        Ok(odd)
    }

    /// What is odd about a day beside the complete day before it (rules E8 to E10 and E20).
    fn odd_beside(
        &self,
        date: JstDate,
        found: &SeenDay,
        beside: (JstDate, &SeenDay),
    ) -> Vec<Oddity> {
        // Nothing was traded then (rule C8).
        let then = (beside.0, priced(beside.1));
        let priceless = priceless(found, then, ODD_PRICED_PERCENT_MIN).map(Oddity::Priceless);
        let priceless = priceless.filter(|_| !is_day_without_trading(date));
        // After missing days limits are around closes that nobody knows; but no market moves further in a quarter.
        let days = self.business_days(beside.0, date);
        let range = Range::Daily { times: if days > 1 { 2 } else { 1 } };
        let jump = jump(found, beside, range, self.is_young(date)).filter(Jump::is_odd);
        let volumes = odd_volumes(found, beside).map(Oddity::Volumes);
        let replaced = replaced(found, beside, REPLACED_PERCENT_MAX, ODD_DAY_ISSUES_MIN);
        let odd = priceless.into_iter().chain(jump.map(Oddity::Jump)).chain(volumes);
        odd.chain(replaced.map(Oddity::Replaced)).collect()
    }

    /// Tells what is strange about a day with these rows that is complete (rules Z1 to Z3, Z6, Z8 and Z9), beside the complete
    /// day before it. `stored` has rows of days that were looked up together.
    pub(super) fn tell_strange(
        &mut self,
        date: JstDate,
        rows: &[DailyRow],
        stored: &BTreeMap<JstDate, Vec<DailyRow>>,
    ) -> Result<(), UpdateError> {
        let before = self.complete_before(date).next();
        let Some(day) = before.filter(|day| is_beside(*day, date)) else {
            return Ok(());
        };
        let is_told = |doubt: &DoubtReport| doubt.date == date && doubt.kind == DoubtKind::Strange;
        let is_out =
            self.report.doubts.len() >= REPORT_ROWS_MAX || self.report.doubts.iter().any(is_told);
        if is_out {
            return Ok(());
        }
        let others = match (self.seen_days.get(day), stored.get(&day)) {
            (Some(known), _) => Cow::Borrowed(known),
            (None, Some(rows)) if !self.is_on_its_way(day) => Cow::Owned(seen(rows)),
            _ => Cow::Owned(seen(&self.rows_of(day)?)),
        };
        let (found, beside) = (seen(rows), (day, &*others));
        let most = self.most_priced(date, stored).unwrap_or((day, priced(&others)));
        let Some(what) = self.strange(date, &found, beside, most) else { return Ok(()) };
        if self.accept_for_good(date) {
            return Ok(());
        }
        self.note(format!("{date} is published and looks strange: {what}"));
        let (kind, advice) = (DoubtKind::Strange, STRANGE.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what, advice });
        Ok(())
    }

    /// Of the ten complete days before a day, as far as their rows are at hand, the one on which the
    /// greatest share had a price: the rows with one, and all (rule Z1).
    fn most_priced(
        &self,
        date: JstDate,
        stored: &BTreeMap<JstDate, Vec<DailyRow>>,
    ) -> Option<(JstDate, (u64, u64))> {
        let before = self.complete_before(date).take(REPEATED_DAYS);
        let before = before.filter(|day| is_beside(*day, date));
        greatest_share(before.filter_map(|day| {
            let of_rows = |rows: &Vec<DailyRow>| {
                let count = rows.iter().filter(|row| row.close.is_some()).count();
                (count as u64, rows.len() as u64)
            };
            let share = match (self.seen_days.get(day), stored.get(&day)) {
                (Some(known), _) => priced(known),
                (None, Some(rows)) if !self.is_on_its_way(day) => of_rows(rows),
                _ => return None,
            };
            Some((day, share))
        }))
    }

    /// What is strange about a day beside the complete day before it (rules Z2, Z3, Z6, Z8 and Z9), and beside the one
    /// with the most prices (rule Z1).
    fn strange(
        &self,
        date: JstDate,
        found: &SeenDay,
        beside: (JstDate, &SeenDay),
        most: (JstDate, (u64, u64)),
    ) -> Option<String> {
        let priceless = priceless(found, most, PRICED_PERCENT_MIN);
        if let Some(priceless) = priceless.filter(|_| !is_day_without_trading(date)) {
            return Some(priceless.to_string());
        }
        if let Some(quiet) = without_volume(found) {
            return Some(quiet.to_string());
        }
        // A split on a missing day is told by nobody.
        let is_next = self.is_next_business_day(beside.0, date);
        if is_next {
            let jump = |range| jump(found, beside, range, self.is_young(date));
            let beyond = || jump(Range::Daily { times: 1 }).filter(Jump::is_strange);
            if let Some(jump) = jump(Range::Any).or_else(beyond) {
                return Some(jump.to_string());
            }
        }
        let percent = if is_next { MARKET_MOVE_PERCENT_MAX } else { FAR_MARKET_MOVE_PERCENT_MAX };
        if let Some(market) = market_move(found, beside, percent, self.is_young(date)) {
            return Some(market);
        }
        let volumes = volumes(found, beside, VOLUME_TIMES, STRANGE_VOLUMES_PERCENT_MAX);
        if let Some(volumes) = volumes {
            return Some(volumes.to_string());
        }
        let gone = replaced(found, beside, GONE_PERCENT_MAX, LOST_ISSUES_MIN as u64);
        gone.map(|gone| gone.to_string())
    }

    /// The same of all complete days of the last weeks, so that each run tells of them.
    pub(super) fn tell_strange_days(&mut self) -> Result<(), UpdateError> {
        let mut days = last_weekdays(self.options.to, BETTER_DAYS_MAX);
        days.retain(|date| self.state.complete.contains(date));
        let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) else {
            return Ok(());
        };
        let before = self.complete_rows.range(..*first).next_back().map(|(day, _)| *day);
        let before = before.filter(|day| days_between(*day, *first) <= BESIDE_DAYS_MAX);
        let stored = self.store.rows().rows_between(before.unwrap_or(*first), *last)?;
        for date in days {
            let rows = stored.get(&date).map(Vec::as_slice).unwrap_or_default();
            self.tell_strange(date, rows, &stored)?;
        }
        Ok(())
    }

    /// Whether rows of a day may not be in the store yet.
    pub(super) fn is_on_its_way(&self, date: JstDate) -> bool {
        self.judged.as_ref().is_some_and(|(judged, _)| *judged == date)
            || self.batch.rows.values().flatten().any(|row| row.date == date)
    }

    /// Whether no business day lies between two dates.
    pub(super) fn is_next_business_day(&self, day: JstDate, date: JstDate) -> bool {
        let mut between = day.iter_days().skip(1).take_while(|one| *one < date);
        days_between(day, date) <= BESIDE_DAYS_MAX && !between.any(|one| self.is_open(one))
    }

    /// Business days from one date to a later one, that one included; at least 1.
    fn business_days(&self, day: JstDate, date: JstDate) -> i64 {
        let later = day.iter_days().skip(1).take_while(|one| *one <= date);
        later.filter(|one| self.is_open(*one)).count().max(1) as i64
    }

    /// The same of a day that did not come in one piece.
    pub(super) fn oddity_of_stored(
        &mut self,
        date: JstDate,
        standard: &Standard,
    ) -> Result<Option<Oddity>, UpdateError> {
        let rows = self.rows_of(date)?;
        self.oddity(date, &rows, Some(standard))
    }

    /// The rows of a day, also where they are still on their way to the store.
    pub(super) fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, UpdateError> {
        if let Some((judged, rows)) = &self.judged
            && *judged == date
        {
            return Ok(rows.clone());
        }
        let waiting = self.batch.rows.values().flatten().filter(|row| row.date == date);
        let waiting: Vec<DailyRow> = waiting.copied().collect();
        match waiting.is_empty() {
            true => Ok(self.store.rows().rows_of(date)?),
            false => Ok(waiting),
        }
    }

    /// Leaves an odd day out and says so.
    pub(super) fn leave_odd_day(&mut self, date: JstDate, odd: Oddity) {
        self.note(format!("{date} is odd and is not published: {odd}"));
        let (kind, advice) = (DoubtKind::Odd, ADVICE.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what: odd.to_string(), advice });
        self.odd_days.insert(date, odd);
        let day = self.day(date);
        day.outcome = Some(DayOutcome::Refused);
        day.why = Some(format!("it is odd, {odd}"));
    }

    /// Names rows of a day that is taken whose issues are not listed (rule E1).
    pub(super) fn tell_unlisted(&mut self, date: JstDate, codes: &BTreeSet<IssueCode>) {
        let Some(listed) = self.listed.get(&date) else { return };
        let unlisted: Vec<IssueCode> = codes.difference(listed).copied().collect();
        if unlisted.is_empty() {
            return;
        }
        let named: Vec<&str> =
            unlisted.iter().take(NAMED_ISSUES_MAX).map(IssueCode::as_str).collect();
        let more = if unlisted.len() > NAMED_ISSUES_MAX { ", ..." } else { "" };
        let what = format!(
            "{} of its rows are of issues that the vendor does not list for this date: {}{more}",
            unlisted.len(),
            named.join(", ")
        );
        self.note(format!("{date} is published, and {what}"));
        let advice = "they go once the vendor gives the day without them; ask for it again with --days \
                      and --refetch";
        let (kind, advice) = (DoubtKind::Unlisted, advice.to_owned());
        self.report.doubts.push(DoubtReport { date, kind, what, advice });
    }
}
