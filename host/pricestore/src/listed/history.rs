//! All lists by date, kept as what changed from one to the next: most of a list is as in the one before.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use domain::JstDate;

use super::IssueInfo;
use super::database::ListedError;
use crate::limits::{CODE_BYTES_MAX, LISTED_CODES_MAX, LISTED_SPANS_MAX};

/// From a list on, what lists say of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The date of the first list that says so.
    pub from: JstDate,
    /// What it says; none where the issue is not listed any more.
    pub info: Option<Arc<IssueInfo>>,
}

/// What all lists between two dates say of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// The issue.
    pub code: &'a str,
    /// The date of the first list that says so.
    pub from: JstDate,
    /// The day before the first later list that says something else; none where there is no such.
    pub to: Option<JstDate>,
    /// What they say.
    pub info: &'a IssueInfo,
}

/// All lists that are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedHistory {
    /// The date of each list, and how many issues it has.
    lists: BTreeMap<JstDate, u64>,
    /// The changes of each issue, ascending; the first one says something, and no two in a row say the
    /// same.
    issues: BTreeMap<Box<str>, Vec<Change>>,
}

impl ListedHistory {
    /// Lists that were taken apart into spans. Spans of an issue follow each other.
    ///
    /// # Errors
    /// Where the spans are none of such lists, or too many.
    pub fn from_spans<'a>(
        lists: BTreeMap<JstDate, u64>,
        spans: impl IntoIterator<Item = (&'a str, JstDate, Option<JstDate>, Arc<IssueInfo>)>,
    ) -> Result<Self, ListedError> {
        let mut history = Self { lists, issues: BTreeMap::new() };
        let mut count = 0;
        for (code, from, to, info) in spans {
            count += 1;
            if count > LISTED_SPANS_MAX {
                return Err(ListedError::too_many("spans", LISTED_SPANS_MAX));
            }
            history.append(code, from, to, info)?;
        }
        history.check_limits()?;
        Ok(history)
    }

    fn append(
        &mut self,
        code: &str,
        from: JstDate,
        to: Option<JstDate>,
        info: Arc<IssueInfo>,
    ) -> Result<(), ListedError> {
        let wrong = |what: &str| {
            let code = crate::text::excerpt(code);
            Err(ListedError::Form(format!("the issue `{code}` from {from} on: {what}")))
        };
        if code.is_empty() || code.len() > CODE_BYTES_MAX {
            return wrong("its code is not valid");
        }
        if !self.lists.contains_key(&from) {
            return wrong("there is no list of this date");
        }
        let until = to.map(|to| to.succ_opt().filter(|until| *until > from));
        let until = match until {
            None => None,
            Some(Some(until)) if self.lists.contains_key(&until) => Some(until),
            Some(_) => return wrong("it does not end before a list"),
        };
        let changes = self.issues.entry(code.into()).or_default();
        match changes.last() {
            Some(last) if last.info.is_some() || last.from > from => {
                return wrong("it begins before its previous span ends");
            }
            Some(last) if last.from == from => _ = changes.pop(),
            _ => {}
        }
        // What says nothing new is left out; all before it is tidy.
        if changes.last().and_then(|last| last.info.as_ref()) != Some(&info) {
            changes.push(Change { from, info: Some(info) });
        }
        changes.extend(until.map(|until| Change { from: until, info: None }));
        Ok(())
    }

    /// Puts in the list of a date, in the place of one that was there; tells whether that changed
    /// anything. Lists may come in any order.
    ///
    /// # Errors
    /// [`ListedError::TooMany`]; nothing is of use then.
    pub fn insert(
        &mut self,
        date: JstDate,
        list: BTreeMap<Box<str>, IssueInfo>,
    ) -> Result<bool, ListedError> {
        let next = self.lists.range((Excluded(date), Unbounded)).next().map(|(date, _)| *date);
        let issues = list.len() as u64;
        let mut is_new = self.lists.insert(date, issues) != Some(issues);
        for (code, changes) in &mut self.issues {
            if !list.contains_key(code) {
                is_new |= set(changes, date, next, None);
            }
        }
        for (code, info) in list {
            is_new |= set(self.issues.entry(code).or_default(), date, next, Some(info));
        }
        self.issues.retain(|_, changes| !changes.is_empty());
        self.check_limits()?;
        Ok(is_new)
    }

    fn check_limits(&self) -> Result<(), ListedError> {
        if self.issues.len() > LISTED_CODES_MAX {
            return Err(ListedError::too_many("issues", LISTED_CODES_MAX));
        }
        if self.issues.values().map(Vec::len).sum::<usize>() > LISTED_SPANS_MAX {
            return Err(ListedError::too_many("spans", LISTED_SPANS_MAX));
        }
        Ok(())
    }

    /// The date of each list, and how many issues it has.
    #[must_use]
    pub fn lists(&self) -> &BTreeMap<JstDate, u64> {
        &self.lists
    }

    /// The changes of each issue, ascending.
    pub fn issues(&self) -> impl Iterator<Item = (&str, &[Change])> {
        self.issues.iter().map(|(code, changes)| (code.as_ref(), changes.as_slice()))
    }

    /// What is known of an issue on a date.
    #[must_use]
    pub fn at(&self, code: &str, date: JstDate) -> Option<&IssueInfo> {
        at(self.issues.get(code)?, date).map(AsRef::as_ref)
    }

    /// Whether nothing of other lists would be lost if these took their place: each list is here, and says
    /// of each issue that it has what it says there.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        let has_lists = other.lists.keys().all(|date| self.lists.contains_key(date));
        has_lists && other.spans().all(|span| self.says(&span, &other.lists))
    }

    /// Whether on all of these dates inside of a span the same is said here.
    fn says(&self, span: &Span<'_>, dates: &BTreeMap<JstDate, u64>) -> bool {
        let changes = self.issues.get(span.code).map(Vec::as_slice).unwrap_or_default();
        let end = span.to.unwrap_or(JstDate::MAX);
        let mut from = span.from;
        loop {
            let next = changes.iter().map(|change| change.from).find(|date| *date > from);
            let next = next.filter(|next| *next <= end);
            let until = next.and_then(|next| next.pred_opt()).unwrap_or(end);
            let counts = dates.range(from..=until).next().is_some();
            if counts && at(changes, from).map(AsRef::as_ref) != Some(span.info) {
                return false;
            }
            match next {
                Some(next) => from = next,
                None => return true,
            }
        }
    }

    /// All spans, by code and date.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        self.issues.iter().flat_map(|(code, changes)| {
            let ends = changes.iter().skip(1).map(|next| next.from.pred_opt());
            let ends = ends.chain(std::iter::once(None));
            changes.iter().zip(ends).filter_map(move |(change, to)| {
                let info = change.info.as_deref()?;
                Some(Span { code, from: change.from, to, info })
            })
        })
    }
}

/// What holds on a date.
fn at(changes: &[Change], date: JstDate) -> Option<&Arc<IssueInfo>> {
    let after = changes.partition_point(|change| change.from <= date);
    changes.get(after.checked_sub(1)?)?.info.as_ref()
}

/// Puts in what the list of a date says; what the list after it says stays.
fn set(
    changes: &mut Vec<Change>,
    date: JstDate,
    next: Option<JstDate>,
    info: Option<IssueInfo>,
) -> bool {
    let before = at(changes, date).cloned();
    if before.as_deref() == info.as_ref() {
        return false;
    }
    if let Some(next) = next
        && let Err(place) = changes.binary_search_by_key(&next, |change| change.from)
    {
        changes.insert(place, Change { from: next, info: before });
    }
    let change = Change { from: date, info: info.map(Arc::new) };
    match changes.binary_search_by_key(&date, |change| change.from) {
        Ok(place) => changes[place] = change,
        Err(place) => changes.insert(place, change),
    }
    tidy(changes);
    true
}

/// Takes out what says nothing new.
fn tidy(changes: &mut Vec<Change>) {
    changes.dedup_by(|later, earlier| later.info == earlier.info);
    if changes.first().is_some_and(|first| first.info.is_none()) {
        changes.remove(0);
    }
}
