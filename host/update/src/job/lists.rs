//! The lists of issues that a run is given: weighed, kept by date, and published before the prices.

use std::collections::BTreeSet;

use domain::JstDate;

use super::report::{DoubtKind, DoubtReport};
use super::rules::{Doubt, ListEvidence, are_alike, days_between, meet};
use super::{Job, UpdateError};
use crate::limits::DOUBTED_LISTS_MAX;
use crate::row::IssueCode;
use crate::source::IssueList;

impl Job<'_> {
    /// Uses a list, or remembers that it is not believed (rules L1 to L5). The issues are those that have
    /// rows of its date.
    pub(super) fn weigh(&mut self, date: JstDate, list: IssueList, rows: &BTreeSet<IssueCode>) {
        let issues = list.len() as u64;
        let (evidence, when) = self.evidence(date, &list, rows);
        let is_known = self.doubted.contains_key(&date);
        let checked = match evidence.check() {
            // The user has looked at it.
            Err(Doubt::Shrunk { .. }) if self.accept(date) => Ok(()),
            other => other,
        };
        match checked {
            Ok(()) => {
                self.keep_list(date, &list);
                self.listed.insert(date, list.into_keys().collect());
                self.doubted.remove(&date);
                // What was doubted before it is settled.
                self.state.doubted.retain(|doubted, _| *doubted > date);
            }
            Err(doubt) => {
                let keeps_names = doubt == Doubt::Grown { keeps_names: true };
                if !is_known {
                    self.tell_doubt(date, issues, evidence.before.unwrap_or(0), when, doubt);
                }
                if keeps_names {
                    self.keep_list(date, &list);
                }
                self.state.doubted.insert(date, issues);
                while self.state.doubted.len() > DOUBTED_LISTS_MAX {
                    self.state.doubted.pop_first();
                }
                self.doubted.insert(date, list);
            }
        }
    }

    /// Weighs a list that was not believed once more: more rows may be there by now, or a later list.
    pub(super) fn weigh_again(&mut self, date: JstDate, rows: &BTreeSet<IssueCode>) {
        if let Some(list) = self.doubted.get(&date).cloned() {
            self.weigh(date, list, rows);
        }
    }

    /// What tells whether a list is believed, and when there were as many issues as it is held against.
    pub(super) fn evidence(
        &self,
        date: JstDate,
        list: &IssueList,
        rows: &BTreeSet<IssueCode>,
    ) -> (ListEvidence, JstDate) {
        let mut lists = self.lists.lists().range(..date).rev();
        let last_list = lists.find(|(day, _)| !self.state.doubted.contains_key(day));
        let mut before = self.complete_rows.range(..date).rev();
        // The first days of all may be short themselves.
        let is_told = |day| !self.first_days.contains_key(day) && !self.is_forced(*day);
        let last_day = before.clone().find(|(day, _)| is_told(*day));
        // Rule C10: a list that no complete day has met is less than the user's word.
        let begin = before.find(|(day, _)| self.state.begins.contains(day));
        let begin = begin.filter(|(day, _)| self.has_no_complete_day_before(**day));
        let begin = begin.filter(|(day, _)| last_list.is_none_or(|(list, _)| list <= *day));
        let known = begin.or(last_list).or(last_day).map(|(day, issues)| (*day, *issues));
        let issues = list.len() as u64;
        let later = self
            .lists
            .lists()
            .range(date..)
            .find(|(day, _)| **day != date && !self.state.doubted.contains_key(day));
        let earlier = self.doubted_before.range(..date).any(|(_, of)| are_alike(*of, issues));
        let evidence = ListEvidence {
            issues,
            before: known.map(|(_, issues)| issues),
            days_between: known.map_or(0, |(day, _)| days_between(date, day)),
            is_met: meet(rows, &list.keys().copied().collect()),
            is_confirmed: earlier || later.is_some_and(|(_, of)| are_alike(*of, issues)),
        };
        (evidence, known.map_or(date, |(day, _)| day))
    }

    fn tell_doubt(&mut self, date: JstDate, issues: u64, before: u64, when: JstDate, doubt: Doubt) {
        let what = format!(
            "the list of issues of {date} has {issues} issues where there were {before} on {when}"
        );
        let until = match doubt {
            Doubt::Shrunk { by_much: true } => {
                let (kind, what) = (DoubtKind::List, format!("{what}, and is not used"));
                let advice = "its day is held against the days before; where so many were delisted, take \
                              the list with --accept and the date";
                let doubt = DoubtReport { date, kind, what, advice: advice.to_owned() };
                self.report.doubts.push(doubt);
                "it is not used unless --accept names its date"
            }
            Doubt::Shrunk { by_much: false } => {
                "it is not used until the rows of its date have the same issues or the list of a later \
                 date has as many"
            }
            Doubt::Grown { keeps_names: false } => {
                "it is used for its own day only, because the rows of that do not have them"
            }
            Doubt::Grown { keeps_names: true } => {
                "it is used for names and its own day only, because the rows of that do not have them"
            }
        };
        let held = match doubt {
            Doubt::Shrunk { .. } => "the day is held against the days before",
            Doubt::Grown { .. } => "the day is not complete without them unless --accept names it",
        };
        self.note(format!("{what}; {until}, and {held}"));
    }

    /// Keeps the list of a date.
    pub(super) fn keep_list(&mut self, date: JstDate, list: &IssueList) {
        let list = list.iter().map(|(code, info)| (code.as_str().into(), info.clone())).collect();
        match self.lists.insert(date, list) {
            Ok(is_new) => self.lists_are_new |= is_new,
            Err(error) => {
                self.note(format!("the list of issues of {date} is not kept: {error}"));
                return;
            }
        }
        self.report.listed.lists += 1;
    }

    /// Stores the lists that are new. Before the rows of their dates, so that a day that is complete has
    /// the list that it was held against.
    pub(super) fn store_lists(&mut self) -> Result<(), UpdateError> {
        if std::mem::take(&mut self.lists_are_new) {
            self.store.rows().store_listed(&self.lists)?;
        }
        Ok(())
    }

    /// Publishes the lists, unless the user wants the run to end. They go before the prices: what they say
    /// counts from their date on, so who sees them early sees nothing else of the days before.
    pub(super) fn publish_lists(&mut self) -> Result<(), UpdateError> {
        self.store_lists()?;
        if !self.cancel.is_cancelled() {
            self.report.listed.published = self.store.publish_listed()?;
        }
        Ok(())
    }
}
