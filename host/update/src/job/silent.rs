//! Rows that tell no factor, of sources that should: what they leave open is told once a run (rule R5 of
//! [`SourceKind`]).

use std::collections::BTreeMap;

use domain::JstDate;

use super::Job;
use crate::row::{DailyRow, IssueCode, SourceKind};

/// How many rows of each source, and the first.
#[derive(Debug, Default)]
pub(super) struct SilentRows(BTreeMap<SourceKind, (u64, JstDate, IssueCode)>);

impl SilentRows {
    /// Counts those of these rows. A source that adjusts its prices itself never has a factor.
    pub(super) fn look_at(&mut self, source: SourceKind, rows: &[DailyRow]) {
        let rows = rows.iter().filter(|row| row.adjustment_factor.is_none());
        for row in rows.filter(|_| !source.is_adjusted()) {
            self.0.entry(source).or_insert((0, row.date, row.code)).0 += 1;
        }
    }
}

impl Job<'_> {
    /// Tells of them.
    pub(super) fn tell_silent_rows(&mut self) {
        for (source, (rows, date, code)) in std::mem::take(&mut self.silent).0 {
            self.note(format!(
                "{rows} rows of {source} tell no adjustment factor, the first of {code} on {date}: a \
                 factor that is known stays; where none is, nobody knows of a split on these days, and \
                 nothing is adjusted across them"
            ));
        }
    }
}
