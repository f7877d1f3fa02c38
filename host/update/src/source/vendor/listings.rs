//! What the vendor lists besides prices: the issues of a date, and the exchange's calendar.

use domain::{JstDate, VendorCode};
use marketdata::calendar_file::CalendarRows;
use marketdata::{ListedIssue, Master};
use pricestore::listed::{IssueField, IssueInfo, TextFault};
use serde::{Deserialize, Deserializer};

use super::super::check::{compact, date};
use super::super::error::malformed;
use super::{IssueList, SourceError, VendorSource};

/// An issue as the vendor writes it. Keys that are not named here are of no use to us. Only date and code must be
/// there.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct IssueText {
    #[serde(rename = "Date")]
    date: String,
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "CoName", deserialize_with = "or_empty")]
    name: String,
    #[serde(rename = "ScaleCat", deserialize_with = "or_empty")]
    scale: String,
    #[serde(rename = "Mkt", deserialize_with = "or_empty")]
    market: String,
    #[serde(flatten)]
    more: IssueWords,
}

/// A text that may be null, which is an empty one.
fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// What else it says of an issue; only names and rankings need it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct IssueWords {
    #[serde(rename = "CoNameEn")]
    name_en: Option<String>,
    #[serde(rename = "MktNm")]
    market: Option<String>,
    #[serde(rename = "S33")]
    sector33_code: Option<String>,
    #[serde(rename = "S33Nm")]
    sector33: Option<String>,
    #[serde(rename = "S17")]
    sector17_code: Option<String>,
    #[serde(rename = "S17Nm")]
    sector17: Option<String>,
}

impl IssueText {
    /// What is kept of it, and what is not fit to be shown, with the reason.
    fn info(&self) -> (IssueInfo, Option<(IssueField, TextFault)>) {
        let IssueWords { name_en, market, sector33_code, sector33, sector17_code, sector17 } =
            &self.more;
        let words = [
            (IssueField::Name, Some(&self.name)),
            (IssueField::NameEn, name_en.as_ref()),
            (IssueField::MarketCode, Some(&self.market)),
            (IssueField::Market, market.as_ref()),
            (IssueField::Sector33Code, sector33_code.as_ref()),
            (IssueField::Sector33, sector33.as_ref()),
            (IssueField::Sector17Code, sector17_code.as_ref()),
            (IssueField::Sector17, sector17.as_ref()),
            (IssueField::Size, Some(&self.scale)),
        ];
        let (mut info, mut odd) = (IssueInfo::default(), None);
        for (field, text) in words {
            let set = info.set(field, text.map(String::as_str).unwrap_or_default());
            odd = odd.or(set.err().map(|fault| (field, fault)));
        }
        (info, odd)
    }
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
        let issues = self.issue_texts(on)?.into_iter().map(|(code, text)| {
            let IssueText { name, scale, market, .. } = text;
            ListedIssue { code, name, scale, market }
        });
        let issues: Vec<ListedIssue> = issues.collect();
        Ok((!issues.is_empty()).then_some(Master { date: on, issues }))
    }

    /// The same as the update job keeps it. A text that is not fit to be shown costs itself only, and is
    /// told.
    pub(super) fn list_of(&mut self, on: JstDate) -> Result<Option<IssueList>, SourceError> {
        let (mut list, mut odd) = (IssueList::new(), Vec::new());
        for (code, text) in self.issue_texts(on)? {
            let (info, fault) = text.info();
            odd.extend(fault.map(|(field, fault)| (code, field, fault)));
            list.insert(code.into(), info);
        }
        if let Some((code, field, fault)) = odd.first() {
            let (count, field) = (odd.len(), field.column());
            self.note(format!(
                "the list of issues of {on}: {count} issues have a text that is left out; the first is \
                 the {field} of {code}: {fault}"
            ));
        }
        Ok((!list.is_empty()).then_some(list))
    }

    /// The issues as the vendor writes them, by code.
    fn issue_texts(&mut self, on: JstDate) -> Result<Vec<(VendorCode, IssueText)>, SourceError> {
        let texts: Vec<IssueText> = self.pages("equities/master", &[("date", compact(on))])?;
        let mut issues = Vec::with_capacity(texts.len());
        for (row, text) in texts.into_iter().enumerate() {
            let wrong = |what: String| malformed(&self.client, format!("issue {row}, {what}"));
            let code =
                VendorCode::new(&text.code).map_err(|error| wrong(format!("Code: {error}")))?;
            if date(&text.date) != Some(on) {
                return Err(wrong(format!("Date: not {on}")));
            }
            issues.push((code, text));
        }
        issues.sort_by_key(|(code, _)| *code);
        // The same issue twice, as where pages overlap, is one.
        issues.dedup();
        if let Some(pair) = issues.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let what = format!("the issue {} comes twice", pair[0].0);
            return Err(SourceError::Malformed(what));
        }
        Ok(issues)
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
