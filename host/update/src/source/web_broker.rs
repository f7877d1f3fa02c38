//! The web broker's daily history (Tachibana e-shiten, `CLMMfdsGetMarketPriceHistory`): one issue in
//! one call, about twenty years at once.
//!
//! What brokers send is for venue components to read. This file is the one exception: the daily
//! history is asked for before there is a session of the venue in this program, with the virtual
//! price address of a login made elsewhere, which lives for a day. Once the venue's component gives
//! daily rows, the job takes them from there and this file goes.

use domain::clock::wall_now;
use domain::time::NANOS_PER_SECOND;
use domain::{JstDate, TsNanos};
use encoding_rs::SHIFT_JIS;
use http_client::limits::{SHOWN_CHARS, TRIES};
use http_client::{HeaderMap, HttpClient, Network, RequestPolicy, checked_address};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::check::{Asked, price, shares};
use super::error::malformed;
use super::{Answer, DailySource, SourceError, slowed};
use crate::limits::{ANSWER_ROWS_MAX, FACTOR_MAX};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// The array of rows: the name that the service uses, and the one that its manual gives.
const LISTS: [&str; 2] = ["aCLMMfdsMarketPriceHistory", "aCLMMfdsGetMarketPriceHistory"];
/// The numbers by which the service says that it is busy for the moment.
const BUSY: [&str; 2] = ["-2", "-3"];
/// How far the service's factor of a split, of which it does not say how it is rounded, may be from the
/// quotient of its shares: 0.33 is one third, and 0.5 is not.
const FACTOR_ROUNDING: f64 = 0.02;
/// The columns that tell of a split.
const SPLIT_COLUMNS: [&str; 3] = ["pSPUO", "pSPUC", "pSPUK"];
/// The Tokyo exchange.
const MARKET: &str = "00";

/// What is encoded in a query: every character but letters, digits and `-._`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// What is told when the source is asked (rule W2).
const SHARED: &str = "web_broker was asked with the price address of a login; that login must not be \
                      shared with a trading program, because their request numbers disturb each other \
                      and a new login ends the other's session";

/// Bytes of the shortest part of an address that is kept out of texts; shorter ones are words like
/// `price`, without which a text would lose its sense.
const SECRET_BYTES_MIN: usize = 12;
/// Characters of a wrong date that a message shows.
const DATE_SHOWN_CHARS: usize = 20;

/// The web broker's daily history.
pub struct WebBrokerSource {
    network: Network,
    client: HttpClient,
    address: SecretString,
    /// Number of the last request; it must rise from login to login, so it follows the clock.
    number: u64,
    /// It was told that the login must not be shared.
    is_told: bool,
}

impl WebBrokerSource {
    /// The source behind the virtual price address of a login, asked at most `rate` times a minute.
    ///
    /// # Errors
    /// A text that says why requests cannot be made; it does not hold the address.
    pub fn new(
        network: &Network,
        address: SecretString,
        rate: u32,
        policy: RequestPolicy,
    ) -> Result<Self, String> {
        let url = checked_address(address.expose_secret())?;
        if url.query().is_some() {
            return Err("the price address must not have a query".to_owned());
        }
        let mut client = HttpClient::new(&url, policy, rate)?;
        client.hide(&address);
        // The secret is one part of the path.
        let parts = url.path().split('/').filter(|part| part.len() >= SECRET_BYTES_MIN);
        parts.for_each(|part| client.hide(&SecretString::from(part.to_owned())));
        Ok(Self { network: network.clone(), client, address, number: 0, is_told: false })
    }

    fn ask(&mut self, code: IssueCode) -> Result<Value, SourceError> {
        if self.number == 0 {
            tracing::warn!("{SHARED}");
        }
        let (address, number) = (&self.address, &mut self.number);
        let prepare = || -> Result<_, SourceError> {
            let now = wall_now();
            *number = (*number + 1).max(now.nanos() / NANOS_PER_SECOND);
            let mut url = checked_address(address.expose_secret()).map_err(SourceError::Closed)?;
            url.set_query(Some(&query(code, *number, now)));
            Ok(url)
        };
        let page = self.network.get(&mut self.client, &HeaderMap::new(), prepare)?;
        let text = SHIFT_JIS.decode_without_bom_handling_and_without_replacement(&page.body);
        let text = text.ok_or_else(|| malformed(&self.client, "not Shift-JIS text"))?;
        serde_json::from_str(&text)
            .map_err(|error| malformed(&self.client, format!("as JSON: {error}")))
    }
}

impl DailySource for WebBrokerSource {
    fn kind(&self) -> SourceKind {
        SourceKind::WebBroker
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        let mut answer = self.ask(code)?;
        for _ in 1..TRIES {
            if !BUSY.contains(&field(&answer, "p_errno")) {
                break;
            }
            answer = self.ask(code)?;
        }
        let client = &self.client;
        let found = refusal(&answer, client).map_or_else(|| rows(&answer, code, client), Err);
        let found = found.and_then(|rows| {
            // The whole history comes back; all of it is checked, though only a part was asked for.
            let all = Asked { code: Some(code), from: JstDate::MIN, to: JstDate::MAX };
            let mut answer = all.accept(rows)?;
            answer.rows.retain(|row| (from..=to).contains(&row.date));
            Ok(answer)
        });
        found.map_err(|error| error.redacted(client))
    }

    fn take_notes(&mut self) -> Vec<String> {
        let is_news = self.number > 0 && !std::mem::replace(&mut self.is_told, self.number > 0);
        let shared = is_news.then(|| SHARED.to_owned());
        shared.into_iter().chain(slowed(SourceKind::WebBroker, &self.client)).collect()
    }
}

/// The query: a whole encoded JSON object. All of it is ASCII, which is the same in Shift-JIS.
fn query(code: IssueCode, number: u64, now: TsNanos) -> String {
    let of_day = now.jst_nanos_of_day() / 1_000_000;
    let (seconds, millis) = (of_day / 1_000, of_day % 1_000);
    let timestamp = format!(
        "{}-{:02}:{:02}:{:02}.{millis:03}",
        now.jst_date().format("%Y.%m.%d"),
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    let json = serde_json::json!({
        "p_no": number.to_string(),
        "p_sd_date": timestamp,
        "sCLMID": "CLMMfdsGetMarketPriceHistory",
        "sIssueCode": code.as_str(),
        "sSizyouC": MARKET,
        "sJsonOfmt": "5",
    });
    utf8_percent_encode(&json.to_string(), ENCODED).to_string()
}

fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer.get(name).and_then(Value::as_str).unwrap_or_default().trim()
}

/// What the service says against a request, in its status 200.
fn refusal(answer: &Value, client: &HttpClient) -> Option<SourceError> {
    if !answer.is_object() {
        return Some(SourceError::Malformed("no JSON object".to_owned()));
    }
    let number = field(answer, "p_errno");
    let words = client.words(field(answer, "p_err"), SHOWN_CHARS);
    match number {
        "" | "0" | "1" => {}
        "2" => {
            let what = "the session behind the price address has ended; log in and set it anew";
            return Some(SourceError::Closed(format!("{what} (p_errno 2: {words})")));
        }
        "9" | "-12" | "-62" => {
            let what = format!("the service is closed at this hour (p_errno {number}: {words})");
            return Some(SourceError::Closed(what));
        }
        _ => {
            let message = format!("p_errno {number}: {words}");
            // An answer of this kind tells nothing about other issues.
            return Some(SourceError::Busy { what: message });
        }
    }
    let result = field(answer, "sResultCode");
    if matches!(result, "" | "0") {
        return None;
    }
    let words = client.words(field(answer, "sResultText"), SHOWN_CHARS);
    Some(SourceError::Busy { what: format!("sResultCode {result}: {words}") })
}

fn rows(
    answer: &Value,
    code: IssueCode,
    client: &HttpClient,
) -> Result<Vec<DailyRow>, SourceError> {
    let malformed = |what: String| SourceError::Malformed(what);
    let list = match LISTS.iter().find_map(|name| answer.get(name)) {
        Some(Value::Array(list)) => list,
        // The service writes an empty list as an empty text.
        Some(Value::String(text)) if text.is_empty() => return Ok(Vec::new()),
        None if field(answer, "p_errno") == "1" => return Ok(Vec::new()),
        _ => return Err(malformed(format!("no list {}", LISTS[0]))),
    };
    let of = field(answer, "sIssueCode");
    if !of.is_empty() && of != code.as_str() {
        let of = client.words(of, SHOWN_CHARS);
        return Err(malformed(format!("asked for {code}, found {of}")));
    }
    if list.len() > ANSWER_ROWS_MAX {
        return Err(SourceError::TooLarge { what: "rows", limit: ANSWER_ROWS_MAX });
    }
    list.iter()
        .enumerate()
        .map(|(index, row)| {
            read(row, code, client).map_err(|what| malformed(format!("row {}: {what}", index + 1)))
        })
        .collect()
}

/// A row; all values are texts, and a value that is not there is empty or a star.
fn read(row: &Value, code: IssueCode, client: &HttpClient) -> Result<DailyRow, String> {
    let cell = |name: &str| match row.get(name) {
        Some(Value::String(text)) => Ok(text.trim()),
        Some(_) => Err(format!("{name} is no text")),
        None => Err(format!("{name} is missing")),
    };
    let price_of = |name: &str| match cell(name)? {
        "" | "*" => Ok(None),
        text => price(text).map(Some).map_err(|what| format!("{name}: {what}")),
    };
    let date = cell("sDate")?;
    let volume = match cell("pDV")? {
        "" | "*" => None,
        text => Some(shares(text).map_err(|what| format!("pDV: {what}"))?),
    };
    Ok(DailyRow {
        date: compact_date(date)
            .ok_or_else(|| format!("`{}` is no date", client.words(date, DATE_SHOWN_CHARS)))?,
        code,
        open: price_of("pDOP")?,
        high: price_of("pDHP")?,
        low: price_of("pDLP")?,
        close: price_of("pDPP")?,
        volume,
        turnover: None,
        adjustment_factor: split(row)?,
        source: SourceKind::WebBroker,
    })
}

/// The factor of the day (rule A3). Only the row of the day of a split has one: `pSPUO` shares became
/// `pSPUC`, and `pSPUK` is the quotient, rounded. On other days the columns are there and not set, which
/// is a factor of 1; a row without the columns does not tell.
fn split(row: &Value) -> Result<Option<f64>, String> {
    let number = |name: &str| {
        let text = match row.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(format!("{name} is no text")),
        };
        match text.parse::<f64>() {
            _ if matches!(text, "" | "*") => Ok(None),
            Ok(0.0) => Ok(None),
            Ok(number) if number > 0.0 && number <= FACTOR_MAX => Ok(Some(number)),
            _ => Err(format!("{name} is no number above 0 and up to {FACTOR_MAX}")),
        }
    };
    let by_shares = match (number("pSPUO")?, number("pSPUC")?) {
        (Some(before), Some(after)) => Some(before / after),
        (None, None) => None,
        _ => return Err("only one of pSPUO and pSPUC is there".to_owned()),
    };
    match (number("pSPUK")?, by_shares) {
        (Some(factor), Some(shares)) if (factor / shares - 1.0).abs() > FACTOR_ROUNDING => {
            Err(format!("pSPUK is {factor}, but pSPUO by pSPUC {shares}"))
        }
        (None, None) => {
            let is_told = SPLIT_COLUMNS.iter().any(|name| row.get(name).is_some());
            Ok(is_told.then_some(1.0))
        }
        // The quotient is not rounded.
        (factor, shares) => Ok(shares.or(factor)),
    }
}

/// `YYYYMMDD`.
fn compact_date(text: &str) -> Option<JstDate> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse().ok();
    JstDate::from_ymd_opt(i32::try_from(part(0..4)?).ok()?, part(4..6)?, part(6..8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_one_encoded_object() {
        let now = TsNanos::from_jst("2026-01-05".parse().unwrap(), 61_001_234_567).unwrap();
        let text = query("130A".parse().unwrap(), 7, now);
        let expected = "%7B%22p_no%22%3A%227%22%2C%22p_sd_date%22%3A%222026.01.05-00%3A01%3A01.001%22%2C\
             %22sCLMID%22%3A%22CLMMfdsGetMarketPriceHistory%22%2C%22sIssueCode%22%3A%22130A%22%2C\
             %22sSizyouC%22%3A%2200%22%2C%22sJsonOfmt%22%3A%225%22%7D";
        assert_eq!(text, expected);
    }

    #[test]
    fn dates_are_eight_digits() {
        assert_eq!(compact_date("20260105"), "2026-01-05".parse().ok());
        for wrong in ["2026-1-5", "20260230", "2026010", "202601055", "2026０1"] {
            assert_eq!(compact_date(wrong), None, "{wrong}");
        }
    }
}
