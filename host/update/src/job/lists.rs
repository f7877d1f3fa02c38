//! The lists of issues that a run is given: kept by date, and published before the prices.

use domain::JstDate;

use super::{Job, UpdateError};
use crate::source::IssueList;

impl Job<'_> {
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
            self.store.store_listed(&self.lists)?;
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
