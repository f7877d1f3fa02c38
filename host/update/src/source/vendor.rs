//! The market-data vendor (J-Quants, version 2 of its interface): all issues of a day in one call,
//! or one issue over a range.

mod listings;
mod page;

use domain::JstDate;
use http_client::{
    HeaderMap, HeaderName, HttpClient, HttpError, Network, RequestPolicy, Url, secret_header,
};
use marketdata::calendar_file::CalendarRows;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use self::page::Page;
use super::check::{Asked, compact, date, decimal, money, price, shares};
use super::error::malformed;
use super::{Answer, DailySource, IssueList, OddRow, SourceError, slowed};
use crate::cache::{Cached, DayCache};
use crate::limits::{
    ANSWER_ROWS_MAX, ODD_CELL_CHARS_MAX, ODD_ROW_BYTES_MAX, PAGE_KEY_CHARS_MAX, PAGES_MAX,
};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// Where the vendor is.
pub const VENDOR_URL: &str = "https://api.jquants.com/v2";

/// The header that holds the key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// The vendor's way to say that a request was right and that there is nothing.
const NO_DATA: u16 = 210;
/// The words before the two dates with which the vendor refuses what a subscription does not cover.
const COVERS: &str = "covers the following dates";

/// The market-data vendor.
pub struct VendorSource {
    network: Network,
    client: HttpClient,
    base: Url,
    headers: HeaderMap,
    cache: Option<DayCache>,
    fresh: bool,
    today: JstDate,
    notes: Vec<String>,
}

impl VendorSource {
    /// A day that is kept on this machine.
    fn kept_day(&mut self, date: JstDate) -> Option<Answer> {
        if self.fresh {
            return None;
        }
        let asked = Asked { code: None, from: date, to: date };
        let found = match self.cache.as_ref()?.load(date) {
            Cached::Missing => return None,
            Cached::Rows(rows) => asked.accept(rows).map_err(|error| error.to_string()),
            Cached::Damaged(what) => Err(what),
        };
        match found {
            Ok(answer) => Some(Answer { cached: true, ..answer }),
            Err(what) => {
                self.note(format!("a cache file is damaged and fetched again: {what}"));
                None
            }
        }
    }

    /// The vendor at `base`, asked at most `rate` times a minute. Days before `today` are kept in
    /// `cache`.
    ///
    /// # Errors
    /// A text that says why requests cannot be made.
    pub fn new(
        network: &Network,
        base: &Url,
        key: &SecretString,
        rate: u32,
        policy: RequestPolicy,
        cache: Option<DayCache>,
        today: JstDate,
    ) -> Result<Self, String> {
        let mut client = HttpClient::new(base, policy, rate)?;
        client.hide(key);
        let mut headers = HeaderMap::new();
        headers.insert(KEY_HEADER, secret_header(key)?);
        let (network, base, notes) = (network.clone(), base.clone(), Vec::new());
        Ok(Self { network, client, base, headers, cache, fresh: false, today, notes })
    }

    /// Asks anew for days that are kept already.
    #[must_use]
    pub fn fresh(self, fresh: bool) -> Self {
        Self { fresh, ..self }
    }

    /// Asks for daily prices.
    fn ask(&mut self, asked: Asked, query: &[(&str, String)]) -> Result<Answer, SourceError> {
        let texts: Vec<Value> = self.pages("equities/bars/daily", query).map_err(uncovered)?;
        let told = |place: usize, reason| odd_row(&texts[place], place, reason, &self.client);
        let read = texts.iter().map(RowText::read);
        // One odd row of a day does not make single requests for all issues.
        let answer = asked.accept_day(read.collect(), told);
        answer.map_err(|error| error.redacted(&self.client))
    }

    /// Asks for all pages of an answer; no rows where the vendor has none.
    fn pages<T: DeserializeOwned>(
        &mut self,
        call: &str,
        query: &[(&str, String)],
    ) -> Result<Vec<T>, SourceError> {
        let mut rows = Vec::new();
        let mut page_key: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let (base, key) = (&self.base, page_key.as_deref());
            let prepare = || -> Result<Url, SourceError> { Ok(address(base, call, query, key)) };
            let page = self.network.get(&mut self.client, &self.headers, prepare);
            let page = page.map_err(|error| told_which(error, call))?;
            if page.status == NO_DATA {
                return Ok(rows);
            }
            let wrong = |error| malformed(&self.client, format!("as JSON: {error}"));
            let page: Page = serde_json::from_slice(&page.body).map_err(wrong)?;
            if page.data.is_too_large || rows.len() + page.data.rows.len() > ANSWER_ROWS_MAX {
                return Err(SourceError::TooLarge { what: "rows", limit: ANSWER_ROWS_MAX });
            }
            for row in page.data.rows {
                rows.push(T::deserialize(row).map_err(wrong)?);
            }
            match page.pagination_key.filter(|key| !key.is_empty()) {
                None => return Ok(rows),
                Some(key) if key.len() > PAGE_KEY_CHARS_MAX => {
                    let what = format!("a pagination key of more than {PAGE_KEY_CHARS_MAX} bytes");
                    return Err(SourceError::Malformed(what));
                }
                Some(key) if page_key.as_deref() == Some(key.as_str()) => {
                    let what = "the same page again and again".to_owned();
                    return Err(SourceError::Malformed(what));
                }
                Some(key) => page_key = Some(key),
            }
        }
        Err(SourceError::TooLarge { what: "pages", limit: PAGES_MAX })
    }

    /// Something worth knowing at once and in the report.
    fn note(&mut self, line: String) {
        tracing::warn!("{line}");
        self.notes.push(line);
    }

    fn keep(&mut self, date: JstDate, rows: &[DailyRow]) {
        let Some(cache) = self.cache.as_ref().filter(|_| date < self.today && !rows.is_empty())
        else {
            return;
        };
        if let Err(error) = cache.store(date, rows) {
            let path = cache.path(date);
            self.note(format!("cannot keep {date} in {}: {error}", path.display()));
        }
    }
}

/// What a refusal says of the dates that the subscription covers, where it does; any other error as it
/// is.
fn uncovered(error: SourceError) -> SourceError {
    let SourceError::Http(HttpError::Refused { message, .. }) = &error else { return error };
    let Some((_, words)) = message.split_once(COVERS) else { return error };
    let is_digit = |c: char| c.is_ascii_digit() || c == '-';
    let mut dates = words.split(|c: char| !is_digit(c)).filter_map(date);
    match (dates.next(), dates.next()) {
        (Some(first), Some(last)) if first <= last => SourceError::NotCovered { first, last },
        _ => error,
    }
}

/// The same refusal, with what it is about: 403 stands for a key, a plan and a path alike, and only the vendor's
/// words tell them apart.
fn told_which(error: SourceError, call: &str) -> SourceError {
    let SourceError::Http(HttpError::Key { status, message }) = error else { return error };
    let words = message.to_ascii_lowercase();
    let which = if status == 401 || words.contains("api key") {
        "the vendor does not accept the key, `kumiki key list` shows where it comes from".to_owned()
    } else if words.contains("subscription") || words.contains("plan") {
        format!("the key's plan does not include {call}, check your plan at the vendor")
    } else {
        format!(
            "the key, its plan or the path {call} is wrong, and the vendor does not say which; check `kumiki \
             key list`, your plan and --vendor-url"
        )
    };
    HttpError::Key { status, message: format!("{which}: {message}") }.into()
}

/// The address of a page.
fn address(base: &Url, call: &str, query: &[(&str, String)], page_key: Option<&str>) -> Url {
    let mut url = base.clone();
    let path = format!("{}/{call}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    let mut pairs = url.query_pairs_mut();
    pairs.clear().extend_pairs(query);
    if let Some(key) = page_key {
        pairs.append_pair("pagination_key", key);
    }
    drop(pairs);
    url
}

impl DailySource for VendorSource {
    fn kind(&self) -> SourceKind {
        SourceKind::Vendor
    }

    fn has_days(&self) -> bool {
        true
    }

    fn day(&mut self, date: JstDate) -> Result<Answer, SourceError> {
        if let Some(answer) = self.kept_day(date) {
            return Ok(answer);
        }
        let asked = Asked { code: None, from: date, to: date };
        let answer = self.ask(asked, &[("date", compact(date))]);
        // Whoever answers and cannot be read is not asked thousands of times for single issues (rule `unusable`).
        let answer = answer.map_err(|error| match error {
            SourceError::Malformed(what) => SourceError::Odd(format!("it cannot be read: {what}")),
            other => other,
        })?;
        // A day without some of its rows is asked for again, so that what is wrong is told again; what an
        // earlier run kept of it is older.
        if answer.odd.is_empty() {
            self.keep(date, &answer.rows);
        } else if let Err(problem) = self.forget_day(date) {
            self.note(problem);
        }
        Ok(answer)
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        let query = [
            ("code", code.vendor_code().as_str().to_owned()),
            ("from", compact(from)),
            ("to", compact(to)),
        ];
        self.ask(Asked { code: Some(code), from, to }, &query)
    }

    fn forget_day(&mut self, date: JstDate) -> Result<(), String> {
        let Some(cache) = &self.cache else { return Ok(()) };
        cache
            .forget(date)
            .map_err(|error| format!("cannot remove {}: {error}", cache.path(date).display()))
    }

    fn issue_list(&mut self, on: JstDate) -> Result<Option<IssueList>, SourceError> {
        self.list_of(on).map_err(uncovered)
    }

    fn exchange_calendar(
        &mut self,
        from: JstDate,
        to: JstDate,
    ) -> Result<CalendarRows, SourceError> {
        self.calendar_of(from, to).map_err(uncovered)
    }

    fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(slowed(SourceKind::Vendor, &self.client));
        notes
    }
}

/// A row as the vendor writes it. Every key must be there; null is a value of its own.
#[derive(Debug, Deserialize)]
struct RowText {
    #[serde(rename = "Date")]
    date: String,
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "O", deserialize_with = "present")]
    open: Option<f64>,
    #[serde(rename = "H", deserialize_with = "present")]
    high: Option<f64>,
    #[serde(rename = "L", deserialize_with = "present")]
    low: Option<f64>,
    #[serde(rename = "C", deserialize_with = "present")]
    close: Option<f64>,
    #[serde(rename = "Vo", deserialize_with = "present")]
    volume: Option<f64>,
    #[serde(rename = "Va", deserialize_with = "present")]
    turnover: Option<f64>,
    #[serde(rename = "AdjFactor", deserialize_with = "present")]
    factor: Option<f64>,
}

/// A value that may be null but not missing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(from)
}

/// A row that cannot be used, in words that hold no key.
fn odd_row(text: &Value, place: usize, reason: String, client: &HttpClient) -> OddRow {
    let said = |name: &str| {
        let cell = text.get(name).and_then(Value::as_str).unwrap_or("?");
        client.words(cell, ODD_CELL_CHARS_MAX)
    };
    OddRow {
        row: format!("{} on {} (row {})", said("Code"), said("Date"), place + 1),
        text: client.words(&text.to_string(), ODD_ROW_BYTES_MAX),
        reason: client.redacted(&reason),
    }
}

impl RowText {
    /// Reads a row; what is wrong with it, in words.
    fn read(text: &Value) -> Result<DailyRow, String> {
        Self::deserialize(text).map_err(|error| error.to_string())?.values()
    }

    fn values(&self) -> Result<DailyRow, String> {
        let at = |name: &str, what: String| format!("{name}: {what}");
        let date = date(&self.date).ok_or_else(|| at("Date", "no date".to_owned()))?;
        let code = vendor_code(&self.code).ok_or_else(|| at("Code", "no code".to_owned()))?;
        let a_price = |name: &str, value: Option<f64>| {
            value.map(|value| price(&decimal(value)).map_err(|what| at(name, what))).transpose()
        };
        Ok(DailyRow {
            date,
            code,
            open: a_price("O", self.open)?,
            high: a_price("H", self.high)?,
            low: a_price("L", self.low)?,
            close: a_price("C", self.close)?,
            volume: self
                .volume
                .map(|value| shares(&decimal(value)).map_err(|what| at("Vo", what)))
                .transpose()?,
            turnover: self
                .turnover
                .map(|value| money(&decimal(value)).map_err(|what| at("Va", what)))
                .transpose()?,
            adjustment_factor: self.factor,
            source: SourceKind::Vendor,
        })
    }
}

/// The vendor's codes have five places.
fn vendor_code(text: &str) -> Option<IssueCode> {
    (text.len() == 5).then(|| domain::VendorCode::new(text).ok()).flatten().map(IssueCode::from)
}
