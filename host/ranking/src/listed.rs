//! Names, markets and sectors as answers show them: of each issue on each date, ready to be written. What
//! is shown on a date is a rule of [`pricestore::listed`].

use std::collections::BTreeMap;

use domain::JstDate;
use pricestore::listed::{IssueField, ListedHistory};

use crate::rows::quoted;

/// What answers show of an issue beside its prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedField {
    /// Its name in Japanese.
    Name,
    /// Its name in English.
    NameEn,
    /// Its market.
    Market,
    /// Its sector of 33.
    Sector33,
}

/// How many of them there are.
pub(crate) const LISTED_FIELDS: usize = ListedField::ALL.len();
/// Bytes of `null`.
const NULL_BYTES: u64 = 4;

impl ListedField {
    /// All of them, in the order of columns.
    pub const ALL: [Self; 4] = [Self::Name, Self::NameEn, Self::Market, Self::Sector33];

    /// Its name in GraphQL, in columns and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::NameEn => "nameEn",
            Self::Market => "market",
            Self::Sector33 => "sector33",
        }
    }

    const fn stored(self) -> IssueField {
        match self {
            Self::Name => IssueField::Name,
            Self::NameEn => IssueField::NameEn,
            Self::Market => IssueField::Market,
            Self::Sector33 => IssueField::Sector33,
        }
    }
}

/// A text, and the same as a JSON string.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownText {
    plain: Box<str>,
    json: Box<str>,
}

/// What holds of an issue from a date on: places of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    from: JstDate,
    texts: [Option<u32>; LISTED_FIELDS],
}

/// What is known of all issues; nothing where there are no lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedInfo {
    texts: Vec<ShownText>,
    issues: BTreeMap<Box<str>, Vec<Shown>>,
    /// Bytes of the longest text of each field as JSON.
    longest: [u64; LISTED_FIELDS],
}

impl Default for ListedInfo {
    fn default() -> Self {
        let longest = [NULL_BYTES; LISTED_FIELDS];
        Self { texts: Vec::new(), issues: BTreeMap::new(), longest }
    }
}

/// One issue on all dates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IssueOnDates<'a> {
    info: &'a ListedInfo,
    shown: &'a [Shown],
}

impl ListedInfo {
    /// What these lists say.
    #[must_use]
    pub fn new(history: &ListedHistory) -> Self {
        let mut info = Self::default();
        let mut places: BTreeMap<&str, u32> = BTreeMap::new();
        for (code, changes) in history.issues() {
            let shown = changes.iter().map(|change| {
                let texts = ListedField::ALL.map(|field| {
                    let text = change.info.as_deref()?.text(field.stored())?;
                    let place = *places.entry(text).or_insert_with(|| info.add(text));
                    let bytes = info.texts.get(place as usize)?.json.len() as u64;
                    let longest = &mut info.longest[field as usize];
                    *longest = bytes.max(*longest);
                    Some(place)
                });
                Shown { from: change.from, texts }
            });
            let shown = shown.collect();
            info.issues.insert(code.into(), shown);
        }
        info
    }

    fn add(&mut self, text: &str) -> u32 {
        // Four texts of each span at most, whose number has a limit.
        let place = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(ShownText { plain: text.into(), json: quoted(text).into() });
        place
    }

    /// Whether nothing is known of any issue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    /// What is shown of an issue on a date.
    #[must_use]
    pub fn text(&self, code: &str, date: JstDate, field: ListedField) -> Option<&str> {
        self.issue(code).text(date, field)
    }

    /// An issue; one that no list has says nothing.
    pub(crate) fn issue(&self, code: &str) -> IssueOnDates<'_> {
        let shown = self.issues.get(code).map(Vec::as_slice).unwrap_or_default();
        IssueOnDates { info: self, shown }
    }

    /// Bytes that a value of each field takes at most in JSON.
    pub(crate) fn longest(&self) -> [u64; LISTED_FIELDS] {
        self.longest
    }
}

impl<'a> IssueOnDates<'a> {
    fn shown(self, date: JstDate, field: ListedField) -> Option<&'a ShownText> {
        let after = self.shown.partition_point(|shown| shown.from <= date);
        let place = self.shown.get(after.checked_sub(1)?)?.texts[field as usize]?;
        self.info.texts.get(place as usize)
    }

    /// The text on a date.
    pub(crate) fn text(self, date: JstDate, field: ListedField) -> Option<&'a str> {
        Some(&self.shown(date, field)?.plain)
    }

    /// The same as a JSON string.
    pub(crate) fn json(self, date: JstDate, field: ListedField) -> Option<&'a str> {
        Some(&self.shown(date, field)?.json)
    }
}

#[cfg(test)]
mod tests {
    use pricestore::listed::IssueInfo;

    use super::*;

    #[test]
    fn texts_of_a_date_are_found() {
        let date = |text: &str| -> JstDate { text.parse().unwrap() };
        let mut history = ListedHistory::default();
        let named = |name: &str| {
            let info = IssueInfo::default().with(IssueField::Name, name);
            [(Box::from("1301"), info.with(IssueField::Market, "a\"b\\"))].into()
        };
        history.insert(date("2025-01-06"), named("極洋")).unwrap();
        history.insert(date("2025-01-08"), named("Kyokuyo Co., Ltd.")).unwrap();
        history.insert(date("2025-01-10"), BTreeMap::new()).unwrap();
        let info = ListedInfo::new(&history);
        let name = |on: &str| info.text("1301", date(on), ListedField::Name);
        assert_eq!(name("2025-01-05"), None);
        assert_eq!(name("2025-01-07"), Some("極洋"));
        assert_eq!(name("2025-01-09"), Some("Kyokuyo Co., Ltd."));
        assert_eq!(name("2025-01-10"), None);
        assert_eq!(info.text("1302", date("2025-01-07"), ListedField::Name), None);
        assert_eq!(info.text("1301", date("2025-01-07"), ListedField::Sector33), None);
        let market = info.issue("1301").json(date("2025-01-07"), ListedField::Market);
        assert_eq!(market, Some(r#""a\"b\\""#));
        assert_eq!(info.longest(), [19, 4, 8, 4]);
        assert_eq!((info.is_empty(), ListedInfo::default().is_empty()), (false, true));
        assert_eq!(info.texts.len(), 3, "a text is kept once");
    }
}
