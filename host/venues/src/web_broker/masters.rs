//! Masters: the business days, the issues and the price steps of a day (specification 4, P4, P35, P36).

use std::collections::BTreeMap;

use domain::order_mapping::{BrokerRequest, Field, field};
use domain::{JstDate, Price, Quantity};
use serde::{Deserialize, Serialize};

use crate::web_broker::limits::{ISSUES_MAX, MASTERS_BYTES_MAX, MASTERS_TIME, TICK_TABLES_MAX};
use crate::web_broker::master_records::Records;
use crate::web_broker::request::date;
use crate::web_broker::ticks::Ticks;
use crate::web_broker::transport::{Answered, CallFailure, Transport, failure};

/// Business days after today in the date master.
const NEXT_DAYS: usize = 10;
/// Bands of a table of price steps.
const BANDS: usize = 20;
/// The Tokyo market.
const TOKYO: &str = "00";
/// `sYusenSizyou` of an issue that is not listed.
const NOT_LISTED: &str = "9";
/// Prefix of the request for one master, from release v4r10 on.
pub(crate) const MASTER_QUESTION: &str = "CLMStkGet";

/// Why there are no masters. No text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MastersError {
    /// There is no session.
    #[error("not logged in")]
    NotLoggedIn,
    /// Neither the stream nor single requests gave masters.
    #[error("no masters: {stream}; then, one by one: {direct}")]
    Unavailable {
        /// Why the stream failed.
        stream: String,
        /// Why the single requests failed.
        direct: String,
    },
    /// The single requests of a release without the stream failed.
    #[error("no masters: {0}")]
    Single(String),
}

/// The masters of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Masters {
    /// The Japanese date of the request.
    #[serde(with = "one_date")]
    pub date: JstDate,
    /// Business days; `None` if the broker did not send them.
    pub days: Option<BusinessDays>,
    issues: BTreeMap<String, Issue>,
    ticks: BTreeMap<u32, Ticks>,
    /// The broker's status when the masters came; it is not stored on the disk.
    #[serde(skip)]
    system_status: Option<String>,
}

/// Business days (`CLMDateZyouhou` of `sDayKey` 001).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusinessDays {
    /// The broker's business day (`sTheDay`).
    #[serde(with = "one_date")]
    pub today: JstDate,
    /// The days that follow (`sYokuEigyouDay_1` to `_10`), in order.
    #[serde(with = "dates")]
    pub next: Vec<JstDate>,
}

/// An issue of the Tokyo market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// `7203`, `130A`.
    pub symbol: String,
    /// Its name in Japanese.
    pub name: String,
    /// Shares of a lot (`sBaibaiTani`), above 0. It is 1 if the broker sends no lots and checks them itself.
    pub lot: Quantity,
    /// Highest price of the day (`sNehabaMax`), if there is one.
    pub upper_limit: Option<Price>,
    /// Lowest price of the day (`sNehabaMin`), if there is one.
    pub lower_limit: Option<Price>,
    /// Number of its table of price steps (`sYobineTaniNumber`); 0 where it is unknown.
    pub ticks: u32,
}

impl Masters {
    /// An issue by its code.
    #[must_use]
    pub fn issue(&self, symbol: &str) -> Option<&Issue> {
        self.issues.get(symbol)
    }

    /// Whether there are issues at all.
    #[must_use]
    pub fn has_issues(&self) -> bool {
        !self.issues.is_empty()
    }

    /// The number of issues.
    #[must_use]
    pub fn issue_count(&self) -> usize {
        self.issues.len()
    }

    /// The price steps of an issue; `None` if the broker did not send them.
    #[must_use]
    pub fn ticks(&self, issue: &Issue) -> Option<&Ticks> {
        self.ticks.get(&issue.ticks)
    }

    /// Whether the broker was open (`CLMSystemStatus`: 1) or closed (0) when the masters came from it. `None`
    /// if it did not say, and for masters from the disk.
    #[must_use]
    pub fn system_is_open(&self) -> Option<bool> {
        match self.system_status.as_deref()? {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        }
    }

    /// Whether nothing is missing, so that they can be used for a whole day.
    pub(crate) fn is_whole(&self) -> bool {
        self.days.is_some() && self.has_issues() && !self.ticks.is_empty()
    }
}

/// Collects records in any order.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Whether the lots in the master of issues are right.
    has_lots: bool,
    days: Option<BusinessDays>,
    names: BTreeMap<String, (String, Quantity)>,
    markets: BTreeMap<String, Market>,
    /// By number, with the first day of each.
    ticks: BTreeMap<u32, (JstDate, Ticks)>,
    system_status: Option<String>,
    /// Records that could not be read.
    unread: usize,
}

#[derive(Debug)]
struct Market {
    upper_limit: Option<Price>,
    lower_limit: Option<Price>,
    ticks: u32,
}

impl Collector {
    /// A collector without records.
    pub(crate) fn new(has_lots: bool) -> Self {
        Self {
            has_lots,
            days: None,
            names: BTreeMap::new(),
            markets: BTreeMap::new(),
            ticks: BTreeMap::new(),
            system_status: None,
            unread: 0,
        }
    }

    /// Takes a record of a kind. An unreadable record is counted, and its issue is then unknown.
    pub(crate) fn take(&mut self, kind: &str, record: &[Field], today: JstDate) {
        let taken = match kind {
            "CLMDateZyouhou" => self.take_days(record),
            "CLMIssueMstKabu" => self.take_name(record),
            "CLMIssueSizyouMstKabu" => self.take_market(record),
            "CLMYobine" => self.take_ticks(record, today),
            "CLMSystemStatus" => {
                self.system_status = field(record, "sSystemStatus").map(str::to_owned);
                Some(())
            }
            _ => Some(()),
        };
        self.unread += usize::from(taken.is_none());
    }

    fn take_days(&mut self, record: &[Field]) -> Option<()> {
        // The key 002 counts from the next day.
        if field(record, "sDayKey")? != "001" {
            return Some(());
        }
        let today = date(field(record, "sTheDay")?)?;
        let name = |number| format!("sYokuEigyouDay_{number}");
        let next = (1..=NEXT_DAYS).map(|number| date(field(record, &name(number))?));
        let next: Vec<JstDate> = next.collect::<Option<_>>()?;
        let rises = next.is_sorted_by(|one, other| one < other);
        if !rises || next.first().is_none_or(|first| *first <= today) {
            return None;
        }
        self.days = Some(BusinessDays { today, next });
        Some(())
    }

    fn take_name(&mut self, record: &[Field]) -> Option<()> {
        let symbol = symbol(record)?;
        let lot: u64 = match self.has_lots {
            // An issue that is no longer traded may have no lot.
            true => field(record, "sBaibaiTani")?.trim().parse().ok().filter(|lot| *lot > 0)?,
            false => 1,
        };
        if self.names.len() >= ISSUES_MAX {
            return None;
        }
        if field(record, "sYusenSizyou").map(str::trim) == Some(NOT_LISTED) {
            return Some(());
        }
        let name = field(record, "sIssueName").unwrap_or_default().trim().to_owned();
        self.names.insert(symbol, (name, Quantity::new(lot)));
        Some(())
    }

    fn take_market(&mut self, record: &[Field]) -> Option<()> {
        if field(record, "sZyouzyouSizyou").is_some_and(|market| market != TOKYO) {
            return Some(());
        }
        let symbol = symbol(record)?;
        let limit = |name| {
            let price: Price = field(record, name)?.trim().parse().ok()?;
            (price.units() > 0).then_some(price)
        };
        if self.markets.len() >= ISSUES_MAX {
            return None;
        }
        let ticks = field(record, "sYobineTaniNumber")?.trim().parse().ok()?;
        let (upper_limit, lower_limit) = (limit("sNehabaMax"), limit("sNehabaMin"));
        self.markets.insert(symbol, Market { upper_limit, lower_limit, ticks });
        Some(())
    }

    fn take_ticks(&mut self, record: &[Field], today: JstDate) -> Option<()> {
        let number: u32 = field(record, "sYobineTaniNumber")?.trim().parse().ok()?;
        let since = date(field(record, "sTekiyouDay")?).unwrap_or(JstDate::MIN);
        let newer = self.ticks.get(&number).is_none_or(|(other, _)| *other <= since);
        if since > today || !newer {
            return Some(());
        }
        let price = |name: &str, band: usize| -> Option<Price> {
            field(record, &format!("{name}_{band}"))?.trim().parse().ok()
        };
        let mut bands = Vec::new();
        for band in 1..=BANDS {
            let (up_to, step) = (price("sKizunPrice", band)?, price("sYobineTanka", band)?);
            // Unused bands are filled with zeroes.
            if up_to.units() == 0 {
                break;
            }
            bands.push((up_to, step));
        }
        if self.ticks.len() >= TICK_TABLES_MAX {
            return None;
        }
        self.ticks.insert(number, (since, Ticks::new(bands).ok()?));
        Some(())
    }

    /// The collected masters: an issue must be in both masters.
    pub(crate) fn masters(self, today: JstDate) -> Masters {
        if self.unread > 0 {
            tracing::warn!(
                records = self.unread,
                "the engine cannot read some records of the masters"
            );
        }
        let mut issues = BTreeMap::new();
        for (symbol, (name, lot)) in self.names {
            let Some(market) = self.markets.get(&symbol) else {
                continue;
            };
            let Market { upper_limit, lower_limit, ticks } = *market;
            let issue =
                Issue { symbol: symbol.clone(), name, lot, upper_limit, lower_limit, ticks };
            issues.insert(symbol, issue);
        }
        let ticks = self.ticks.into_iter().map(|(number, (_, ticks))| (number, ticks)).collect();
        let (days, system_status) = (self.days, self.system_status);
        Masters { date: today, days, issues, ticks, system_status }
    }
}

fn symbol(record: &[Field]) -> Option<String> {
    let symbol = field(record, "sIssueCode")?.trim();
    let is_symbol = (4..=9).contains(&symbol.len())
        && symbol.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    is_symbol.then(|| symbol.to_owned())
}

/// Loads the masters from the broker: by the stream of all, else one by one.
pub(crate) async fn ask(
    transport: &mut Transport,
    today: JstDate,
) -> Result<Masters, MastersError> {
    if !transport.is_logged_in() {
        return Err(MastersError::NotLoggedIn);
    }
    if !transport.addresses.release().has_master_stream() {
        return single(transport, today).await.map_err(MastersError::Single);
    }
    let stream = match stream(transport, today).await {
        Ok(masters) if masters.has_issues() => return Ok(masters),
        Ok(_) => "the stream of the masters holds no issues".to_owned(),
        Err(why) => why,
    };
    tracing::warn!(why = stream, "the engine asks for the masters one by one");
    let direct = direct(transport, today).await;
    direct.map_err(|direct| MastersError::Unavailable { stream, direct })
}

/// Loads all masters by one answer that does not end, but says when it is complete.
async fn stream(transport: &mut Transport, today: JstDate) -> Result<Masters, String> {
    let request = BrokerRequest { id: "CLMEventDownload".to_owned(), ..Default::default() };
    let text_of = |failure: CallFailure| failure.to_string();
    let address = transport.master_address(&request).map_err(text_of)?;
    let opened = transport.http.open(&address, MASTERS_BYTES_MAX, MASTERS_TIME).await;
    let mut body = opened.map_err(|error| text_of(failure(&error)))?;
    let (mut records, mut collector) = (Records::default(), Collector::new(true));
    let mut ended = None;
    while let Some(piece) = body.chunk().await.map_err(|error| text_of(failure(&error)))? {
        let taken = records.take(&piece, |record| {
            ended = take_record(transport, record, &mut collector, today);
            ended.is_none()
        });
        taken.map_err(|error| error.to_string())?;
        match ended {
            None => {}
            Some(Ok(())) => return Ok(collector.masters(today)),
            Some(Err(why)) => return Err(why),
        }
    }
    Err("the stream of the masters ended before it was complete".to_owned())
}

/// Takes a record; returns how the stream ends if this record ends it.
fn take_record(
    transport: &Transport,
    record: &[u8],
    collector: &mut Collector,
    today: JstDate,
) -> Option<Result<(), String>> {
    let read = match transport.read("CLMEventDownload", record) {
        Ok(read) => read,
        Err(why) => return Some(Err(why)),
    };
    if !read.answer.errno.is_empty() {
        return Some(Err(format!("p_errno {}", read.answer.errno)));
    }
    match field(&read.answer.fields, "sCLMID") {
        Some("CLMEventDownloadComplete") => Some(Ok(())),
        Some(kind) => {
            collector.take(kind, &read.answer.fields, today);
            None
        }
        None => Some(Err("a record of the masters has no sCLMID".to_owned())),
    }
}

/// Loads each master by a request of its own, the only way from release v4r10 on. The vendor says that its lots
/// are wrong there, so it checks quantities itself.
async fn single(transport: &mut Transport, today: JstDate) -> Result<Masters, String> {
    let mut collector = Collector::new(false);
    for (name, is_needed) in [
        ("DateZyouhou", false),
        ("IssueMstKabu", true),
        ("IssueSizyouMstKabu", true),
        ("Yobine", false),
    ] {
        match single_one(transport, name).await {
            Ok(rows) => {
                let kind = format!("CLM{name}");
                rows.iter().for_each(|row| collector.take(&kind, row, today));
            }
            Err(why) if is_needed => return Err(why),
            Err(why) => tracing::warn!(master = name, why, "a master is missing"),
        }
    }
    let masters = collector.masters(today);
    if masters.has_issues() { Ok(masters) } else { Err("they hold no issues".to_owned()) }
}

async fn single_one(transport: &mut Transport, name: &str) -> Result<Vec<Vec<Field>>, String> {
    let request = BrokerRequest { id: format!("{MASTER_QUESTION}{name}"), ..Default::default() };
    let called = transport.call_master(&request).await;
    let Answered { answer, mut lists } = called.result.map_err(|failure| failure.to_string())?;
    if !answer.errno.is_empty() {
        return Err(format!("{name}: p_errno {}: {}", answer.errno, answer.error_text));
    }
    // The vendor's documents have the second name of the list of days, its service the first.
    let list =
        lists.remove(&format!("aCLMStk{name}")).or_else(|| lists.remove(&format!("aCLM{name}")));
    list.ok_or_else(|| format!("{name}: the answer does not hold it"))
}

/// Loads each master by a request in the form of the vendor's samples (`CLMMfdsGetMasterData`). The answer has
/// a list with the name of the records. Price steps are missing there, so orders with prices fail.
async fn direct(transport: &mut Transport, today: JstDate) -> Result<Masters, String> {
    let next = (1..=NEXT_DAYS).map(|number| format!("sYokuEigyouDay_{number}"));
    let days = ["sDayKey".to_owned(), "sTheDay".to_owned()].into_iter().chain(next);
    let days: Vec<String> = days.collect();
    let masters = [
        ("CLMDateZyouhou", days.join(","), false),
        ("CLMIssueMstKabu", "sIssueCode,sIssueName,sBaibaiTani".to_owned(), true),
        (
            "CLMIssueSizyouMstKabu",
            "sIssueCode,sZyouzyouSizyou,sNehabaMin,sNehabaMax,sYobineTaniNumber".to_owned(),
            true,
        ),
    ];
    let mut collector = Collector::new(true);
    for (kind, columns, is_needed) in masters {
        match direct_one(transport, kind, &columns).await {
            Ok(rows) => rows.iter().for_each(|row| collector.take(kind, row, today)),
            Err(why) if is_needed => return Err(why),
            Err(why) => tracing::warn!(kind, why, "a master is missing"),
        }
    }
    let masters = collector.masters(today);
    if masters.has_issues() { Ok(masters) } else { Err("they hold no issues".to_owned()) }
}

async fn direct_one(
    transport: &mut Transport,
    kind: &str,
    columns: &str,
) -> Result<Vec<Vec<Field>>, String> {
    let fields = vec![Field::new("sTargetCLMID", kind), Field::new("sTargetColumn", columns)];
    let id = "CLMMfdsGetMasterData".to_owned();
    let request = BrokerRequest { id, fields, ..Default::default() };
    let called = transport.call_master(&request).await;
    let Answered { answer, mut lists } = called.result.map_err(|failure| failure.to_string())?;
    if !answer.errno.is_empty() {
        return Err(format!("{kind}: p_errno {}", answer.errno));
    }
    lists.remove(kind).ok_or_else(|| format!("{kind}: the answer does not hold it"))
}

/// A date in the cache's file.
mod one_date {
    use domain::JstDate;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(date: &JstDate, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(date)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<JstDate, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Dates in the cache's file.
mod dates {
    use domain::JstDate;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(dates: &[JstDate], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(dates.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<JstDate>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests;
