//! The web broker's daily history (`CLMMfdsGetMarketPriceHistory`): one issue in one call, about twenty
//! years at once. It goes through the venue's own transport, with a login of the run, under the lock of
//! the account that an engine holds too.

use std::time::Duration;

use domain::JstDate;
use domain::clock::Stopwatch;
use domain::order_mapping::{BrokerRequest, Field, field};
use http_client::limits::{SHOWN_CHARS, TRIES};
use http_client::{Network, RequestPolicy, one_line};
use venues::web_broker::{
    Answered, CallFailure, Called, Credentials, NumbersError, Transport, TransportError,
    WebBrokerConfig,
};

use super::check::{Asked, price, shares};
use super::{Answer, DailySource, SourceError};
use crate::limits::{ANSWER_ROWS_MAX, FACTOR_MAX};
use crate::row::{DailyRow, IssueCode, SourceKind};

/// The request.
const HISTORY: &str = "CLMMfdsGetMarketPriceHistory";
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
/// How long the end of a run waits for the end of its session at the broker.
const LOGOUT_TIME: Duration = Duration::from_secs(3);

/// What is told when the source is asked.
const SHARED: &str = "the run logged in at the web broker; a login ends every other session of the same user, \
                      so programs on another machine, or with another config folder, must log in again";

/// Characters of a wrong date that a message shows.
const DATE_SHOWN_CHARS: usize = 20;

/// How the web broker is reached.
#[derive(Debug)]
pub struct WebBrokerAccess {
    /// Where it is. Its `state_dir` is the config folder of the engine that trades with the same account,
    /// whose lock is there.
    pub config: WebBrokerConfig,
    /// What its login needs.
    pub credentials: Credentials,
}

/// The web broker's daily history. It logs in when it is asked first, and out when it is dropped.
pub struct WebBrokerSource {
    network: Network,
    access: WebBrokerAccess,
    session: Option<Transport>,
    /// Time between two requests.
    interval: Duration,
    last_request: Option<Stopwatch>,
    /// The first pause before a question is repeated; each later one is twice as long.
    back_off: Duration,
    /// [`SHARED`] is to be told.
    is_news: bool,
}

impl WebBrokerSource {
    /// The source, asked at most `rate` times a minute.
    #[must_use]
    pub fn new(
        network: &Network,
        access: WebBrokerAccess,
        rate: u32,
        policy: RequestPolicy,
    ) -> Self {
        Self {
            network: network.clone(),
            access,
            session: None,
            interval: Duration::from_secs(60) / rate.max(1),
            last_request: None,
            back_off: policy.back_off,
            is_news: false,
        }
    }

    /// The session of the run, begun where there is none.
    fn session(&mut self) -> Result<&mut Transport, SourceError> {
        if self.session.is_none() {
            let access = &self.access;
            // Rows are digits, so that it does not matter whether the dialect decodes texts.
            let mut transport = Transport::new(&access.config, true).map_err(|error| {
                SourceError::Closed(match error {
                    TransportError::Numbers(NumbersError::Taken(path)) => format!(
                        "skipped, an engine or another run holds the account ({} is locked); run again after \
                         its end",
                        path.display()
                    ),
                    other => other.to_string(),
                })
            })?;
            tracing::warn!("{SHARED}");
            self.is_news = true;
            let login = self.network.complete(transport.login(&access.credentials))?;
            login
                .map_err(|error| SourceError::Closed(one_line(&error.to_string(), SHOWN_CHARS)))?;
            self.session = Some(transport);
        }
        // There is one now.
        self.session.as_mut().ok_or_else(|| SourceError::Closed("not logged in".to_owned()))
    }

    /// Asks once.
    fn call(&mut self, request: &BrokerRequest) -> Result<Called, SourceError> {
        self.session()?;
        if let Some(last) = &self.last_request {
            self.network.pause(self.interval.saturating_sub(last.elapsed()))?;
        }
        self.last_request = Some(Stopwatch::start());
        let network = self.network.clone();
        Ok(network.complete(self.session()?.call_price(request))?)
    }

    /// Asks, and again where the broker says that it is busy. What has no clear answer is not sent again
    /// (specification 4, P7).
    fn ask(&mut self, code: IssueCode) -> Result<Answered, SourceError> {
        let fields = [("sIssueCode", code.as_str()), ("sSizyouC", MARKET)];
        let fields = fields.map(|(name, value)| Field::new(name, value)).to_vec();
        let request = BrokerRequest { id: HISTORY.to_owned(), fields, ..Default::default() };
        let (mut tries, mut pause) = (1, self.back_off);
        loop {
            match self.call(&request)?.result {
                Ok(answered)
                    if tries == TRIES || !BUSY.contains(&answered.answer.errno.as_str()) =>
                {
                    return Ok(answered);
                }
                Ok(_) => {}
                Err(CallFailure::NotLoggedIn) => {
                    return Err(SourceError::Closed("not logged in".to_owned()));
                }
                Err(failure) => {
                    return Err(SourceError::Malformed(one_line(
                        &failure.to_string(),
                        SHOWN_CHARS,
                    )));
                }
            }
            self.network.pause(pause)?;
            (tries, pause) = (tries + 1, pause * 2);
        }
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
        let answered = self.ask(code)?;
        if let Some(refusal) = refusal(&answered) {
            return Err(refusal);
        }
        // The whole history comes back; all of it is checked, though only a part was asked for.
        let all = Asked { code: Some(code), from: JstDate::MIN, to: JstDate::MAX };
        let mut answer = all.accept(rows(&answered, code)?)?;
        answer.rows.retain(|row| (from..=to).contains(&row.date));
        Ok(answer)
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.is_news).then(|| SHARED.to_owned()).into_iter().collect()
    }
}

/// Ends the session, as well as that goes in a short time, also where the user has ended the run.
impl Drop for WebBrokerSource {
    fn drop(&mut self) {
        let Some(transport) = self.session.as_mut().filter(|session| session.is_logged_in()) else {
            return;
        };
        match self.network.complete_within(LOGOUT_TIME, transport.logout()) {
            Some(Ok(())) => {}
            Some(Err(failure)) => tracing::info!(%failure, "no logout at the web broker"),
            None => tracing::info!("no logout at the web broker in time"),
        }
    }
}

/// What the service says against a request, in its status 200.
fn refusal(answered: &Answered) -> Option<SourceError> {
    let answer = &answered.answer;
    let shown = one_line(&answer.error_text, SHOWN_CHARS);
    match answer.errno.trim() {
        "" | "1" => {}
        "2" => {
            let what = "the session at the broker has ended, for example by another login of the same user";
            return Some(SourceError::Closed(format!("{what} (p_errno 2: {shown})")));
        }
        number @ ("9" | "-12" | "-62") => {
            let what = format!("the service is closed at this hour (p_errno {number}: {shown})");
            return Some(SourceError::Closed(what));
        }
        number => {
            // An answer of this kind tells nothing about other issues.
            let number = one_line(number, DATE_SHOWN_CHARS);
            return Some(SourceError::Busy { what: format!("p_errno {number}: {shown}") });
        }
    }
    let result = cell(&answer.fields, "sResultCode").unwrap_or_default();
    if matches!(result, "" | "0") {
        return None;
    }
    let shown = one_line(field(&answer.fields, "sResultText").unwrap_or_default(), SHOWN_CHARS);
    let result = one_line(result, DATE_SHOWN_CHARS);
    Some(SourceError::Busy { what: format!("sResultCode {result}: {shown}") })
}

fn rows(answered: &Answered, code: IssueCode) -> Result<Vec<DailyRow>, SourceError> {
    let malformed = |what: String| SourceError::Malformed(what);
    let answer = &answered.answer;
    let Some(list) = LISTS.iter().find_map(|name| answered.lists.get(*name)) else {
        if answer.errno.trim() == "1" {
            return Ok(Vec::new());
        }
        return Err(malformed(format!("no list {}", LISTS[0])));
    };
    let of = cell(&answer.fields, "sIssueCode").unwrap_or_default();
    if of != code.as_str() && !list.is_empty() {
        let of = one_line(of, SHOWN_CHARS);
        return Err(malformed(format!("asked for {code}, found {of}")));
    }
    if list.len() > ANSWER_ROWS_MAX {
        return Err(SourceError::TooLarge { what: "rows", limit: ANSWER_ROWS_MAX });
    }
    list.iter()
        .enumerate()
        .map(|(index, row)| {
            read(row, code).map_err(|what| malformed(format!("row {}: {what}", index + 1)))
        })
        .collect()
}

fn cell<'a>(row: &'a [Field], name: &str) -> Option<&'a str> {
    field(row, name).map(str::trim)
}

/// A row; all values are texts, and a value that is not there is empty or a star.
fn read(row: &[Field], code: IssueCode) -> Result<DailyRow, String> {
    let cell = |name: &str| cell(row, name).ok_or_else(|| format!("{name} is missing"));
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
            .ok_or_else(|| format!("`{}` is no date", one_line(date, DATE_SHOWN_CHARS)))?,
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

/// The factor of the day (rule `adjusted`). Only the row of the day of a split has one: `pSPUO` shares became
/// `pSPUC`, and `pSPUK` is the quotient, rounded. On other days the columns are there and not set, which
/// is a factor of 1; a row without the columns does not tell.
fn split(row: &[Field]) -> Result<Option<f64>, String> {
    let number = |name: &str| {
        let text = cell(row, name).unwrap_or_default();
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
            let is_told = SPLIT_COLUMNS.iter().any(|name| cell(row, name).is_some());
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
    fn dates_are_eight_digits() {
        assert_eq!(compact_date("20260105"), "2026-01-05".parse().ok());
        for wrong in ["2026-1-5", "20260230", "2026010", "202601055", "2026０1"] {
            assert_eq!(compact_date(wrong), None, "{wrong}");
        }
    }
}
