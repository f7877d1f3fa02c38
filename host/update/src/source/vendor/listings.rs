//! What the vendor lists besides prices: the issues of a date, and the exchange's calendar.

use domain::JstDate;
use marketdata::calendar_file::CalendarRows;
use marketdata::{ListedIssue, Master};
use serde::Deserialize;

use super::super::check::{compact, date};
use super::super::error::malformed;
use super::{SourceError, VendorSource};

/// An issue as the vendor writes it. Keys that are not named here are of no use to us.
#[derive(Debug, Deserialize)]
struct IssueText {
    #[serde(rename = "Date")]
    date: String,
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "CoName")]
    name: String,
    #[serde(rename = "ScaleCat")]
    scale: String,
    #[serde(rename = "Mkt")]
    market: String,
}

/// A date of the calendar as the vendor writes it.
#[derive(Debug, Deserialize)]
struct DayText {
    #[serde(rename = "Date")]
    date: String,
    #[serde(rename = "HolDiv")]
    division: String,
}

impl VendorSource {
    /// The issues that are listed on a date, by code; none where the vendor has no list of that date.
    ///
    /// # Errors
    /// Why there is no answer that can be used.
    pub fn listed_issues(&mut self, on: JstDate) -> Result<Option<Master>, SourceError> {
        let texts: Vec<IssueText> = self.pages("equities/master", &[("date", compact(on))])?;
        let mut issues = Vec::with_capacity(texts.len());
        for (row, text) in texts.into_iter().enumerate() {
            let wrong = |what: String| malformed(&self.client, format!("issue {row}, {what}"));
            let code = domain::VendorCode::new(&text.code)
                .map_err(|error| wrong(format!("Code: {error}")))?;
            if date(&text.date) != Some(on) {
                return Err(wrong(format!("Date: not {on}")));
            }
            let IssueText { name, scale, market, .. } = text;
            issues.push(ListedIssue { code, name, scale, market });
        }
        issues.sort_by_key(|issue| issue.code);
        if let Some(pair) = issues.windows(2).find(|pair| pair[0].code == pair[1].code) {
            let what = format!("the issue {} comes twice", pair[0].code);
            return Err(SourceError::Malformed(what));
        }
        Ok((!issues.is_empty()).then_some(Master { date: on, issues }))
    }

    /// The exchange's calendar from one date to another, both included, as far as the vendor has it.
    ///
    /// # Errors
    /// Why there is no answer that can be used.
    pub fn calendar(&mut self, from: JstDate, to: JstDate) -> Result<CalendarRows, SourceError> {
        let query = [("from", compact(from)), ("to", compact(to))];
        let texts: Vec<DayText> = self.pages("markets/calendar", &query)?;
        let mut rows = CalendarRows::new();
        for (row, text) in texts.into_iter().enumerate() {
            let wrong = |what: &str| malformed(&self.client, format!("day {row}, {what}"));
            let day = date(&text.date).ok_or_else(|| wrong("Date: no date"))?;
            if !(from..=to).contains(&day) {
                return Err(wrong("Date: not asked for"));
            }
            if !matches!(text.division.as_str(), "0" | "1" | "2" | "3") {
                return Err(wrong("HolDiv: not 0, 1, 2 or 3"));
            }
            if rows.insert(day, text.division).is_some() {
                return Err(wrong("Date: comes twice"));
            }
        }
        Ok(rows)
    }
}
