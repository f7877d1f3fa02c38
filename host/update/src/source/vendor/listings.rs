//! What the vendor lists besides prices: the issues of a date, and the exchange's calendar.

use std::collections::BTreeMap;

use domain::{JstDate, VendorCode};
use http_client::HttpClient;
use marketdata::calendar_file::CalendarRows;
use marketdata::{ListedIssue, Master};
use pricestore::listed::{IssueField, IssueInfo, TextFault};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::super::check::{TWICE, compact, date, too_many_odd};
use super::super::error::malformed;
use super::{IssueList, OddRow, SourceError, VendorSource, odd_row};
use crate::limits::NAMED_ISSUES_MAX;
use crate::source::UNKNOWN_DIVISION;

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
    #[serde(rename = "ProdCat", default, deserialize_with = "or_empty")]
    product: String,
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
    /// Reads an issue of the list of a date; what is wrong with it, in words.
    fn read(text: &Value, on: JstDate) -> Result<(VendorCode, Self), String> {
        let issue = Self::deserialize(text).map_err(|error| error.to_string())?;
        let code = VendorCode::new(&issue.code).map_err(|error| format!("Code: {error}"))?;
        if date(&issue.date) != Some(on) {
            return Err(format!("Date: not {on}"));
        }
        Ok((code, issue))
    }

    /// What is kept of it, free of the key, and what is not fit to be shown, with the reason.
    fn info(&self, client: &HttpClient) -> (IssueInfo, Option<(IssueField, TextFault)>) {
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
            let text = client.redacted(text.map(String::as_str).unwrap_or_default());
            let set = info.set(field, &text);
            odd = odd.or(set.err().map(|fault| (field, fault)));
        }
        (info, odd)
    }
}

/// What a list has.
struct IssueTexts {
    issues: Vec<(VendorCode, IssueText)>,
    odd: Vec<OddRow>,
    all: usize,
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
        let IssueTexts { issues, odd, .. } = self.issue_texts(on)?;
        // Whoever writes a list down does not look at it again.
        if let Some(first) = odd.first() {
            return Err(SourceError::Malformed(first.to_string()));
        }
        let issues = issues.into_iter().map(|(code, text)| {
            let IssueText { name, scale, market, product, .. } = text;
            ListedIssue { code, name, scale, market, product }
        });
        let issues: Vec<ListedIssue> = issues.collect();
        Ok((!issues.is_empty()).then_some(Master { date: on, issues }))
    }

    /// The same as the update job keeps it. A text that is not fit to be shown, or a row that cannot be used,
    /// costs itself only, and is told; of rows more than a few cost the list (rule
    /// `unusable`).
    pub(super) fn list_of(&mut self, on: JstDate) -> Result<Option<IssueList>, SourceError> {
        let IssueTexts { issues, odd, all } = self.issue_texts(on)?;
        if let Some(what) = too_many_odd(odd.len(), all, || odd[0].to_string()) {
            return Err(SourceError::Odd(what));
        }
        if let Some(first) = odd.first() {
            let named: Vec<String> =
                odd.iter().take(NAMED_ISSUES_MAX).map(ToString::to_string).collect();
            let (count, named, text) = (odd.len(), named.join("; "), &first.text);
            self.note(format!(
                "the list of issues of {on}: {count} of {all} rows are left out: {named}; the first is {text}"
            ));
        }
        let (mut list, mut odd) = (IssueList::new(), Vec::new());
        for (code, text) in issues {
            let (info, fault) = text.info(&self.client);
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

    /// The issues as the vendor writes them, by code; rows that cannot be used, in their order; and how many rows
    /// there are.
    fn issue_texts(&mut self, on: JstDate) -> Result<IssueTexts, SourceError> {
        let texts: Vec<Value> = self.pages("equities/master", &[("date", compact(on))])?;
        let (mut issues, mut odd) = (Vec::with_capacity(texts.len()), Vec::new());
        for (place, text) in texts.iter().enumerate() {
            match IssueText::read(text, on) {
                Ok((code, issue)) => issues.push((code, issue, place)),
                Err(what) => odd.push((place, what)),
            }
        }
        issues.sort_by_key(|(code, _, place)| (*code, *place));
        // The same issue twice, as where pages overlap, is one.
        issues.dedup_by(|next, one| (next.0, &next.1) == (one.0, &one.1));
        // Two rows that differ say alike that it is listed: the first is taken.
        issues.dedup_by(|next, one| {
            let is_other = next.0 == one.0;
            odd.extend(is_other.then(|| (next.2, TWICE.to_owned())));
            is_other
        });
        odd.sort_unstable();
        let told = |(place, what)| odd_row(&texts[place], place, what, &self.client);
        Ok(IssueTexts {
            issues: issues.into_iter().map(|(code, issue, _)| (code, issue)).collect(),
            odd: odd.into_iter().map(told).collect(),
            all: texts.len(),
        })
    }

    /// The exchange's calendar from one date to another, both included, as far as the vendor has it.
    ///
    /// # Errors
    /// Why there is no answer that can be used.
    pub fn calendar(&mut self, from: JstDate, to: JstDate) -> Result<CalendarRows, SourceError> {
        let (rows, odd) = self.calendar_days(from, to)?;
        // Whoever writes a calendar down does not look at it again.
        match odd.into_iter().next() {
            Some(first) => Err(malformed(&self.client, unknown_division(first))),
            None => Ok(rows),
        }
    }

    /// The same as the update job keeps it: days that tell nothing known cost themselves only, and are told;
    /// more than a few cost the calendar (rule `unusable`).
    pub(super) fn calendar_of(
        &mut self,
        from: JstDate,
        to: JstDate,
    ) -> Result<CalendarRows, SourceError> {
        let (mut rows, odd) = self.calendar_days(from, to)?;
        let all = rows.len() + odd.len();
        let first = || {
            odd.iter().next().map(|(day, row)| unknown_division((*day, *row))).unwrap_or_default()
        };
        if let Some(what) = too_many_odd(odd.len(), all, first) {
            return Err(malformed(&self.client, what));
        }
        if !odd.is_empty() {
            let (count, first) = (odd.len(), first());
            self.note(format!(
                "the vendor's calendar: {count} of {all} days are left out; the first: {first}"
            ));
        }
        rows.extend(odd.into_keys().map(|day| (day, UNKNOWN_DIVISION.to_owned())));
        Ok(rows)
    }

    /// The days of a calendar, and the places of those that tell nothing known.
    fn calendar_days(
        &mut self,
        from: JstDate,
        to: JstDate,
    ) -> Result<(CalendarRows, BTreeMap<JstDate, usize>), SourceError> {
        let query = [("from", compact(from)), ("to", compact(to))];
        let texts: Vec<DayText> = self.pages("markets/calendar", &query)?;
        let (mut rows, mut odd) = (CalendarRows::new(), BTreeMap::new());
        for (row, text) in texts.into_iter().enumerate() {
            let wrong = |what: &str| malformed(&self.client, format!("day {row}, {what}"));
            let day = date(&text.date).ok_or_else(|| wrong("Date: no date"))?;
            if !(from..=to).contains(&day) {
                return Err(wrong("Date: not asked for"));
            }
            let is_known = matches!(text.division.as_str(), "0" | "1" | "2" | "3");
            let came_before = match is_known {
                true => rows.insert(day, text.division).is_some() || odd.contains_key(&day),
                false => odd.insert(day, row).is_some() || rows.contains_key(&day),
            };
            if came_before {
                return Err(wrong("Date: comes twice"));
            }
        }
        Ok((rows, odd))
    }
}

/// What is wrong with a day of the calendar, and its place there.
fn unknown_division((day, row): (JstDate, usize)) -> String {
    format!("day {row}, HolDiv: not 0, 1, 2 or 3, of {day}")
}
