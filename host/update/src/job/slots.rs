//! The sources of a run: which can be asked, and which have shown to be of no use.

use domain::JstDate;
use http_client::HttpError;
use marketdata::calendar_file::CalendarRows;

use super::report::{Reason, Report, SourceState};
use crate::limits::FAILURES_IN_A_ROW_MAX;
use crate::row::{IssueCode, SourceKind};
use crate::source::{Answer, DailySource, IssueList, Reach, SourceError};

/// A source of a run.
pub enum SourceSlot {
    /// It can be asked.
    Ready(Box<dyn DailySource>),
    /// It cannot, and why.
    NotConfigured(SourceKind, String),
}

impl SourceSlot {
    fn kind(&self) -> SourceKind {
        match self {
            Self::Ready(source) => source.kind(),
            Self::NotConfigured(kind, _) => *kind,
        }
    }
}

/// Why a question had no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The user wants the run to end.
    Stopped,
    /// It has nothing for the day.
    Empty,
    /// The source did not give one.
    Failed {
        reason: Reason,
        /// It may have something, but does not answer now.
        is_outage: bool,
        /// It answered with what cannot be used (rule `unusable`).
        is_odd: bool,
        /// The first and last date that its subscription covers, where it said so.
        covered: Option<(JstDate, JstDate)>,
    },
}

/// What is wrong with the vendor's key, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyTrouble {
    /// There is none that can be used.
    Missing(String),
    /// The vendor does not take it.
    Refused(String),
}

struct Slot {
    slot: SourceSlot,
    given_up: Option<String>,
    /// It does not take the key.
    refuses_key: bool,
    failures_in_a_row: u32,
    asked: u64,
    cached: u64,
    failed: u64,
}

/// All sources of a run, in the order in which they are asked.
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Lists of issues are asked for no more.
    lists_are_out: bool,
}

impl Slots {
    pub(super) fn new(mut sources: Vec<SourceSlot>) -> Self {
        sources.sort_by_key(SourceSlot::kind);
        let slot = |slot| Slot {
            slot,
            given_up: None,
            refuses_key: false,
            failures_in_a_row: 0,
            asked: 0,
            cached: 0,
            failed: 0,
        };
        Self { slots: sources.into_iter().map(slot).collect(), lists_are_out: false }
    }

    /// The indices of all sources, in the order in which they are asked.
    pub(super) fn indices(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }

    /// Which source stands there.
    pub(super) fn kind(&self, index: usize) -> SourceKind {
        self.slots[index].slot.kind()
    }

    /// The source that can give whole days.
    pub(super) fn with_days(&self) -> Option<usize> {
        let has_days =
            |slot: &Slot| matches!(&slot.slot, SourceSlot::Ready(source) if source.has_days());
        self.slots.iter().position(has_days)
    }

    /// Why a source is not asked; `None` where it can be.
    pub(super) fn out(&self, index: usize) -> Option<Reason> {
        let slot = &self.slots[index];
        let why = match &slot.slot {
            SourceSlot::NotConfigured(_, why) => Some(why),
            SourceSlot::Ready(_) => slot.given_up.as_ref(),
        };
        why.map(|why| Reason::new(slot.slot.kind(), why))
    }

    /// What is wrong with the vendor's key (rule `key`).
    pub(super) fn key_trouble(&self) -> Option<KeyTrouble> {
        let vendor = self.slots.iter().find(|slot| slot.slot.kind() == SourceKind::Vendor)?;
        match (&vendor.slot, &vendor.given_up) {
            (SourceSlot::NotConfigured(_, why), _) => Some(KeyTrouble::Missing(why.clone())),
            (_, Some(why)) if vendor.refuses_key => Some(KeyTrouble::Refused(why.clone())),
            _ => None,
        }
    }

    /// Asks for a whole day.
    pub(super) fn day(&mut self, index: usize, date: JstDate) -> Result<Answer, NoAnswer> {
        let span = tracing::debug_span!("fetch_day", source = %self.kind(index), %date);
        let _entered = span.enter();
        self.ask(index, |source| source.day(date))
    }

    /// Forgets what a source keeps of a day; what cannot be forgotten is told.
    pub(super) fn forget_day(&mut self, index: usize, date: JstDate) -> Result<(), String> {
        match &mut self.slots[index].slot {
            SourceSlot::Ready(source) => source.forget_day(date),
            SourceSlot::NotConfigured(..) => Ok(()),
        }
    }

    /// The issues that were listed on a date, from the source that has whole days. Such a question
    /// counts neither for nor against the source.
    pub(super) fn issue_list(
        &mut self,
        on: JstDate,
    ) -> Option<Result<Option<IssueList>, SourceError>> {
        if self.lists_are_out {
            return None;
        }
        let answer = self.lister()?.issue_list(on);
        let is_of_day =
            |error| matches!(error, &SourceError::Odd(_) | &SourceError::NotCovered { .. });
        // A subscription without lists has none tomorrow either.
        self.lists_are_out = answer.as_ref().is_err_and(|error| !is_of_day(error));
        Some(answer)
    }

    /// Why there is no list, where that is worth knowing.
    pub(super) fn list_problem(error: &SourceError) -> Option<String> {
        let is_expected =
            matches!(error, SourceError::NoSuchCall(_) | SourceError::NotCovered { .. });
        (!is_expected && error.reach() != Reach::Run).then(|| error.to_string())
    }

    /// The exchange's calendar, from the source that has whole days, as above.
    pub(super) fn exchange_calendar(
        &mut self,
        from: JstDate,
        to: JstDate,
    ) -> Option<Result<CalendarRows, SourceError>> {
        Some(self.lister()?.exchange_calendar(from, to))
    }

    fn lister(&mut self) -> Option<&mut Box<dyn DailySource>> {
        let place = self.with_days()?;
        let slot = &mut self.slots[place];
        match &mut slot.slot {
            SourceSlot::Ready(source) if slot.given_up.is_none() => Some(source),
            _ => None,
        }
    }

    /// Asks for an issue.
    pub(super) fn issue(
        &mut self,
        index: usize,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, NoAnswer> {
        let span =
            tracing::debug_span!("fetch_issue", source = %self.kind(index), %code, %from, %to);
        let _entered = span.enter();
        self.ask(index, |source| source.issue(code, from, to))
    }

    fn ask(
        &mut self,
        index: usize,
        ask: impl FnOnce(&mut dyn DailySource) -> Result<Answer, SourceError>,
    ) -> Result<Answer, NoAnswer> {
        if let Some(reason) = self.out(index) {
            let is_outage = matches!(self.slots[index].slot, SourceSlot::Ready(_));
            return Err(NoAnswer::Failed { reason, is_outage, is_odd: false, covered: None });
        }
        let slot = &mut self.slots[index];
        let SourceSlot::Ready(source) = &mut slot.slot else { return Err(NoAnswer::Stopped) };
        slot.asked += 1;
        let error = match ask(source.as_mut()) {
            Ok(answer) => {
                slot.cached += u64::from(answer.cached);
                slot.failures_in_a_row = 0;
                tracing::debug!(rows = answer.rows.len(), cached = answer.cached, "answered");
                return Ok(answer);
            }
            Err(error) => error,
        };
        let reach = error.reach();
        if reach == Reach::Run {
            slot.asked -= 1;
            return Err(NoAnswer::Stopped);
        }
        // What is outside of a subscription is no failure of the source.
        slot.failed += u64::from(!matches!(error, SourceError::NotCovered { .. }));
        slot.refuses_key |= matches!(error, SourceError::Http(HttpError::Key { .. }));
        let text = error.to_string();
        tracing::info!(%error, ?reach, "a source gave nothing");
        match reach {
            Reach::Source => slot.given_up = Some(text.clone()),
            Reach::Request => slot.failures_in_a_row += 1,
            Reach::Dates | Reach::Run => {}
        }
        let is_odd = matches!(error, SourceError::Odd(_));
        if is_odd {
            // A source that answers is not down.
            slot.failures_in_a_row = 0;
        }
        if slot.failures_in_a_row >= FAILURES_IN_A_ROW_MAX {
            slot.given_up =
                Some(format!("{} failures in a row; last: {text}", slot.failures_in_a_row));
        }
        let source = slot.slot.kind();
        if let Some(why) = &slot.given_up {
            tracing::warn!(%source, why, "the run no longer asks a source");
        }
        let reason = Reason::new(source, &text);
        let covered = match error {
            SourceError::NotCovered { first, last } => Some((first, last)),
            _ => None,
        };
        let is_outage = reach != Reach::Dates;
        Err(NoAnswer::Failed { reason, is_outage, is_odd, covered })
    }

    /// What the sources want to be known.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        let notes = self.slots.iter_mut().map(|slot| match &mut slot.slot {
            SourceSlot::Ready(source) => source.take_notes(),
            SourceSlot::NotConfigured(..) => Vec::new(),
        });
        notes.flatten().collect()
    }

    /// Writes down how each source did.
    pub(super) fn report(&self, report: &mut Report) {
        for slot in &self.slots {
            let part = report.source(slot.slot.kind());
            (part.asked, part.cached, part.failed) = (slot.asked, slot.cached, slot.failed);
            (part.state, part.reason) = match (&slot.slot, &slot.given_up) {
                (SourceSlot::NotConfigured(_, why), _) => {
                    (SourceState::NotConfigured, Some(why.clone()))
                }
                (_, Some(why)) => (SourceState::GivenUp, Some(why.clone())),
                _ if slot.asked + slot.cached > 0 => (SourceState::Asked, None),
                _ => (SourceState::NotNeeded, None),
            };
        }
    }
}
