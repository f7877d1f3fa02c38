//! The third, public source: one issue's history as CSV over HTTP, in the layout of Stooq
//! (`Date,Open,High,Low,Close,Volume`; symbols like `7203.jp`).
//!
//! Its prices are already adjusted by the source, so that they may have more digits than 1/10,000
//! yen; these are rounded away. It tells no turnover and no adjustment factors. It wants a key since
//! 2026, as the query parameter `apikey`, which is sent where one is configured.

use csv::{ReaderBuilder, StringRecord};
use domain::JstDate;
use http_client::limits::SHOWN_CHARS;
use http_client::{HeaderMap, HttpClient, HttpResponse, Network, RequestPolicy, Url};
use secrecy::{ExposeSecret, SecretString};

use super::check::{Asked, compact, date, rounded_price, rounded_shares};
use super::{Answer, DailySource, SourceError, slowed};
use crate::limits::ANSWER_ROWS_MAX;
use crate::row::{DailyRow, IssueCode, SourceKind};

/// Where the public source is.
pub const PUBLIC_URL: &str = "https://stooq.com/q/d/l/";

/// The one header line that is understood.
const HEADER: &str = "Date,Open,High,Low,Close,Volume";
/// The source's way to say that there is nothing.
const NO_DATA: &str = "No data";
/// The source's way to say that a day's allowance is used up, with status 200.
const USED_UP: &str = "Exceeded the daily hits limit";

/// The public source.
pub struct PublicSource {
    network: Network,
    client: HttpClient,
    base: Url,
    key: Option<SecretString>,
}

impl PublicSource {
    /// The source at `base`, asked at most `rate` times a minute.
    ///
    /// # Errors
    /// A text that says why requests cannot be made.
    pub fn new(
        network: &Network,
        base: &Url,
        key: Option<SecretString>,
        rate: u32,
        policy: RequestPolicy,
    ) -> Result<Self, String> {
        let mut client = HttpClient::new(base, policy, rate)?;
        if let Some(key) = &key {
            client.hide(key);
        }
        Ok(Self { network: network.clone(), client, base: base.clone(), key })
    }

    fn address(&self, code: IssueCode, from: JstDate, to: JstDate) -> Url {
        let mut url = self.base.clone();
        let mut pairs = url.query_pairs_mut();
        pairs
            .append_pair("s", &format!("{}.jp", code.as_str().to_ascii_lowercase()))
            .append_pair("d1", &compact(from))
            .append_pair("d2", &compact(to))
            .append_pair("i", "d");
        if let Some(key) = &self.key {
            pairs.append_pair("apikey", key.expose_secret());
        }
        drop(pairs);
        url
    }
}

impl DailySource for PublicSource {
    fn kind(&self) -> SourceKind {
        SourceKind::Public
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        let url = self.address(code, from, to);
        let prepare = || -> Result<Url, SourceError> { Ok(url.clone()) };
        let page = self.network.get(&mut self.client, &HeaderMap::new(), prepare)?;
        let asked = Asked { code: Some(code), from, to };
        read(&page, code, &self.client)
            .and_then(|rows| asked.accept(rows))
            .map_err(|error| error.redacted(&self.client))
    }

    fn take_notes(&mut self) -> Vec<String> {
        slowed(SourceKind::Public, &self.client).into_iter().collect()
    }
}

/// The rows of an answer; every line must be one.
fn read(
    page: &HttpResponse,
    code: IssueCode,
    client: &HttpClient,
) -> Result<Vec<DailyRow>, SourceError> {
    let text = str::from_utf8(&page.body)
        .map_err(|_| SourceError::Malformed("not UTF-8 text".to_owned()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = text.trim_start();
    if start.starts_with('<') || page.content_type.starts_with("text/html") {
        let what = "a web page instead of CSV; the source may need a key (KUMIKI_PUBLIC_API_KEY)";
        return Err(SourceError::Malformed(what.to_owned()));
    }
    if start.trim_end() == NO_DATA {
        return Ok(Vec::new());
    }
    if start.starts_with(USED_UP) {
        return Err(SourceError::Closed("the day's allowance of requests is used up".to_owned()));
    }
    let header = text.lines().next().unwrap_or_default();
    if header != HEADER {
        let found = client.words(header, SHOWN_CHARS);
        let what = format!("expected the header {HEADER}, found `{found}`");
        return Err(SourceError::Malformed(what));
    }
    // What was cut off inside of a line would still be a number.
    if !text.ends_with('\n') {
        return Err(SourceError::Malformed("it ends in the middle of a line".to_owned()));
    }
    let mut rows = Vec::new();
    // The source quotes nothing, so a quote is a wrong character as any other.
    let mut lines = ReaderBuilder::new().quoting(false).flexible(true).from_reader(text.as_bytes());
    for record in lines.records() {
        // The text is UTF-8 and in memory.
        let record = record.map_err(|error| SourceError::Malformed(error.to_string()))?;
        if rows.len() >= ANSWER_ROWS_MAX {
            return Err(SourceError::TooLarge { what: "rows", limit: ANSWER_ROWS_MAX });
        }
        rows.push(read_record(&record, code).map_err(|what| {
            let cells: Vec<&str> = record.iter().collect();
            let found = client.words(&cells.join(","), SHOWN_CHARS);
            let line = record.position().map_or(0, csv::Position::line);
            SourceError::Malformed(format!("line {line}, `{found}`: {what}"))
        })?);
    }
    Ok(rows)
}

fn read_record(record: &StringRecord, code: IssueCode) -> Result<DailyRow, String> {
    let cells: Vec<&str> = record.iter().collect();
    let &[at, open, high, low, close, volume] = cells.as_slice() else {
        return Err(format!("expected 6 cells, found {}", cells.len()));
    };
    Ok(DailyRow {
        date: date(at).ok_or("no date")?,
        code,
        open: Some(rounded_price(open)?),
        high: Some(rounded_price(high)?),
        low: Some(rounded_price(low)?),
        close: Some(rounded_price(close)?),
        volume: Some(rounded_shares(volume)?),
        turnover: None,
        adjustment_factor: None,
        source: SourceKind::Public,
    })
}
