//! Where daily prices come from: three sources over the network behind one trait, and the vendor's
//! files on disk.

mod check;
mod error;
mod files;
mod public;
mod vendor;
mod web_broker;

use std::collections::BTreeMap;
use std::time::Duration;

use domain::JstDate;
use http_client::{HttpClient, Slowed};
use marketdata::calendar_file::CalendarRows;
use pricestore::listed::IssueInfo;

use crate::row::{DailyRow, IssueCode, SourceKind};

pub use error::{Reach, SourceError};
pub use files::{FileRows, read_daily_file};
pub use public::{PUBLIC_URL, PublicSource};
pub use vendor::{VENDOR_URL, VendorSource};
pub use web_broker::{WebBrokerAccess, WebBrokerSource};

/// What stands in a calendar for a day of which the vendor says nothing known (rule `unusable`).
pub(crate) const UNKNOWN_DIVISION: &str = "?";

/// The issues of a date, and what is said of each.
pub type IssueList = BTreeMap<IssueCode, IssueInfo>;

/// A source of daily prices (specification 3, "Source order"). A call takes as long as the source
/// needs, pauses and repeated requests included; cancelling its network ends it early.
pub trait DailySource {
    /// Which one it is.
    fn kind(&self) -> SourceKind;

    /// Whether the source can give a whole day in one call.
    fn has_days(&self) -> bool {
        false
    }

    /// All issues of one day. No row means that the source has no data for the day, as on holidays.
    ///
    /// # Errors
    /// Why there is no answer that can be used; that there is no such call, where
    /// [`Self::has_days`] says so.
    fn day(&mut self, _date: JstDate) -> Result<Answer, SourceError> {
        Err(SourceError::NoSuchCall("call for a whole day"))
    }

    /// One issue from one date to another, both included. No row means that the source has none.
    ///
    /// # Errors
    /// Why there is no answer that can be used.
    fn issue(&mut self, code: IssueCode, from: JstDate, to: JstDate)
    -> Result<Answer, SourceError>;

    /// Forgets what is kept of a day, because it was not complete.
    ///
    /// # Errors
    /// In words, why it is kept still.
    fn forget_day(&mut self, _date: JstDate) -> Result<(), String> {
        Ok(())
    }

    /// The issues that were listed on a date; none where the source has no list of that date.
    ///
    /// # Errors
    /// Why there is no answer that can be used.
    fn issue_list(&mut self, _on: JstDate) -> Result<Option<IssueList>, SourceError> {
        Err(SourceError::NoSuchCall("list of issues"))
    }

    /// The exchange's calendar from one date to another, both included, as far as the source has it.
    ///
    /// # Errors
    /// Why there is no answer that can be used.
    fn exchange_calendar(
        &mut self,
        _from: JstDate,
        _to: JstDate,
    ) -> Result<CalendarRows, SourceError> {
        Err(SourceError::NoSuchCall("calendar"))
    }

    /// What happened besides, as a damaged cache file, for the report; given once. It was an event when
    /// it happened.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// What is told of a source that had to be asked more slowly than was set.
fn slowed(kind: SourceKind, client: &HttpClient) -> Option<String> {
    let Slowed { too_many, longest, now } = client.slowed()?;
    let times = if too_many == 1 { "once".to_owned() } else { format!("{too_many} times") };
    Some(format!(
        "{kind} refused requests {times} as too many, so the run asked at most {}, and {} at the end; set a \
         lower rate",
        often(longest),
        often(now)
    ))
}

/// How often something happens, for people.
fn often(interval: Duration) -> String {
    match Duration::from_secs(60).as_micros() / interval.as_micros().max(1) {
        0 => format!("every {} s", interval.as_secs()),
        rate => format!("{rate} times a minute"),
    }
}

/// What a source knows. Every row is checked, and there is one of each issue and date, by date and
/// code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Checked rows by date and code, of one source.
    pub rows: Vec<DailyRow>,
    /// Rows of a whole day that cannot be used and were left out; they are few.
    pub odd: Vec<OddRow>,
    /// Whether they were kept on this machine by an earlier run.
    pub cached: bool,
}

/// A row that cannot be used, in texts that hold no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddRow {
    /// The issue and date as the source wrote them, and its place.
    pub row: String,
    /// The values of the row; the report cuts it to [`crate::limits::ODD_ROW_BYTES_MAX`].
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl std::fmt::Display for OddRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "row of {}: {}", self.row, self.reason)
    }
}
