//! What a dialect says, in the host's words. It is held against the contract here: what does not fit it is
//! a fault, not a value.

use domain::ShortText;
use domain::fault::FaultKind;
use domain::guest_limit::GuestLimit;
use domain::limits::{
    DIALECT_HOSTS_MAX, DIALECT_REQUEST_FIELDS_MAX, DIALECT_REQUEST_LISTS_MAX,
    DIALECT_REQUEST_ROWS_MAX, DIALECT_TAGS_MAX, DIALECT_TEXT_BYTES_MAX,
};
use domain::order::{OrderSide, OrderStatus, OrderType, ReasonCode, Rejection, TimeInForce};
use domain::order_mapping::{
    BrokerAccepted, BrokerFill, BrokerFrame, BrokerNotice, BrokerOutcome, BrokerRequest, BrokerRow,
    DialectDescription, Field, FieldList, Funding, ListedFill, NoticeKind, OrderPlan, TaxAccount,
    VenuePhase, Verdict,
};
use domain::price::{Price, Quantity};
use domain::text::{on_one_line, steers};
use domain::time::{JstDate, NANOS_PER_SECOND, TsNanos};

use super::super::to_guest::same_cases;
use super::{wit, wit_venue};
use crate::formula::description;

/// What a dialect is asked to make a request for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    New,
    Modify,
    Cancel,
    CancelAll,
    List,
    Fills,
}

impl Operation {
    /// The broker's name of the request.
    const fn id(self) -> &'static str {
        match self {
            Self::New => "CLMKabuNewOrder",
            Self::Modify => "CLMKabuCorrectOrder",
            Self::Cancel => "CLMKabuCancelOrder",
            Self::CancelAll => "CLMKabuCancelOrderAll",
            Self::List => "CLMOrderList",
            Self::Fills => "CLMOrderListDetail",
        }
    }

    /// Whether it changes nothing at the broker.
    const fn only_asks(self) -> bool {
        matches!(self, Self::List | Self::Fills)
    }
}

/// A value that fits the contract, or what breaks it.
pub(super) type Answered<T> = Result<T, FaultKind>;
/// A name of the broker's, or why it is none.
type Small = Result<ShortText, String>;

/// Bytes of a name: of a request, a field, an order, a position or a fill.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of an order's number, of an issue's code and of a fill's number, as the venue's own are: a longer word
/// is none, and may be a secret of the session's.
const NUMBER_BYTES_MAX: usize = 16;
const ISSUE_BYTES_MAX: usize = 9;
const FILL_BYTES_MAX: usize = 24;
/// Bytes of what stands before the colon of a reason.
const TAG_BYTES_MAX: usize = 24;
/// What a record takes beside its texts.
const RECORD_BYTES: usize = 16;
/// Fields that the host adds to every request.
const SESSION_FIELDS: [&str; 4] = ["p_no", "p_sd_date", "sCLMID", "sJsonOfmt"];

same_cases!(wit::Side => OrderSide { Buy, Sell });
same_cases!(wit::OrderType => OrderType { Market, Limit, StopMarket, StopLimit });
same_cases!(wit::TimeInForce => TimeInForce { Day, Gtd, AtTheOpen, AtTheClose });
same_cases!(wit::OrderStatus => OrderStatus {
    Submitted, Accepted, PartiallyFilled, Filled, PendingUpdate, PendingCancel, Canceled, Expired,
    Rejected,
});
same_cases!(wit::ReasonCode => ReasonCode {
    ValidationError, VenueUnsupported, SecondPasswordInvalid, MarketClosed, InsufficientFunds,
    VenueRejected, InternalError,
});
same_cases!(wit::Funding => Funding { Cash, MarginNew, MarginRepay });
same_cases!(wit::Account => TaxAccount { Specific, General, Nisa, NisaGrowth });
same_cases!(wit::NoticeKind => NoticeKind {
    Accepted, UpdateAccepted, CancelAccepted, Rejected, UpdateRefused, CancelRefused, Updated, Canceled,
    Filled, Expired, FillCanceled, Changed,
});
same_cases!(wit::VenuePhase => VenuePhase { Open, Closed, NightClosing, Unknown });

fn broken<T>(what: impl Into<String>) -> Answered<T> {
    Err(FaultKind::Protocol(what.into()))
}

fn within(what: &'static str, used: usize, allowed: usize) -> Answered<()> {
    if used > allowed {
        let (used, allowed) = (used as u64, allowed as u64);
        return Err(FaultKind::Limit { what, used, allowed });
    }
    Ok(())
}

/// Reads one answer, and counts what it takes.
pub(super) struct Reader {
    bytes_left: usize,
    bytes_allowed: usize,
}

impl Reader {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes_left: bytes, bytes_allowed: bytes }
    }

    /// Takes a text within the limits.
    fn take(&mut self, text: &str) -> Answered<()> {
        within("bytes in one text", text.len(), DIALECT_TEXT_BYTES_MAX)?;
        let left = self.bytes_left.checked_sub(text.len() + RECORD_BYTES);
        let (limit, allowed) = (GuestLimit::Result, self.bytes_allowed as u64);
        let used = allowed + 1;
        self.bytes_left = left.ok_or(FaultKind::Budget { limit, used, allowed })?;
        Ok(())
    }

    /// A text on one line.
    fn line(&mut self, what: &str, text: String) -> Answered<String> {
        self.take(&text)?;
        match text.contains(steers) {
            false => Ok(text),
            true => broken(format!("{what} has control characters: `{}`", on_one_line(&text))),
        }
    }

    /// Words of the dialect's for people: what would steer a terminal is spelled.
    fn words(&mut self, text: &str) -> Answered<String> {
        self.take(text)?;
        Ok(on_one_line(text).into_owned())
    }

    /// A name: letters, digits, `-`, `_` and `.`.
    fn name(&mut self, what: &str, text: String) -> Answered<String> {
        self.take(&text)?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(text);
        }
        broken(format!(
            "{what} `{}` is not 1 to {NAME_BYTES_MAX} letters, digits and `-_.`",
            on_one_line(&text)
        ))
    }

    /// A name of the broker's: letters, digits, `-` and `.`. One that does not fit is the broker's mistake,
    /// not the dialect's; the words on it do not repeat it.
    fn small(&mut self, what: &str, text: String, bytes_max: usize) -> Answered<Small> {
        let text = self.name(what, text)?;
        let fits = text.len() <= bytes_max && !text.contains('_');
        let none = || format!("{what} is not 1 to {bytes_max} letters, digits, `-` and `.`");
        Ok(if fits { Ok(text.into()) } else { Err(none()) })
    }

    fn names(&mut self, what: &str, texts: Vec<String>) -> Answered<Vec<String>> {
        within("names", texts.len(), DIALECT_REQUEST_ROWS_MAX)?;
        texts.into_iter().map(|text| self.name(what, text)).collect()
    }

    /// A reason: what stands before the colon is capitals, digits and underscores only. A code that is longer
    /// than any is not shown.
    fn reason(&mut self, text: String) -> Answered<String> {
        let text = self.line("a reason", text)?;
        let (tag, words) = text.split_once(':').unwrap_or_default();
        let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        if tag.is_empty() || !tag.bytes().all(fits) {
            return broken(format!(
                "the reason `{text}` does not begin with capitals, digits or underscores and a colon"
            ));
        }
        let tag = if tag.len() > TAG_BYTES_MAX { "UNREADABLE_CODE" } else { tag };
        // The same length as every other reason.
        Ok(Rejection::new(ReasonCode::InternalError, format!("{tag}:{words}")).text)
    }

    /// A price above 0 in its shortest form.
    fn price(&mut self, text: &str) -> Answered<Price> {
        self.take(text)?;
        match text.parse::<Price>() {
            Ok(price) if price.units() > 0 && price.to_string() == text => Ok(price),
            _ => broken(format!("`{}` is no price", on_one_line(text))),
        }
    }

    fn price_of(&mut self, text: Option<String>) -> Answered<Option<Price>> {
        text.map(|text| self.price(&text)).transpose()
    }

    fn date(&mut self, text: &str) -> Answered<JstDate> {
        self.take(text)?;
        let is_date = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
        let date = is_date.then(|| JstDate::parse_from_str(text, "%Y%m%d").ok()).flatten();
        match date {
            Some(date) => Ok(date),
            None => broken(format!("`{}` is no date", on_one_line(text))),
        }
    }

    fn date_of(&mut self, text: Option<String>) -> Answered<Option<JstDate>> {
        text.map(|text| self.date(&text)).transpose()
    }

    fn business_day(&mut self, text: Option<String>) -> Answered<Option<ShortText>> {
        let Some(text) = text else { return Ok(None) };
        self.date(&text)?;
        Ok(Some(text.into()))
    }

    /// A Japanese time to the second.
    fn time(&mut self, text: &str) -> Answered<TsNanos> {
        self.take(text)?;
        let no_time = || FaultKind::Protocol(format!("`{}` is no time", on_one_line(text)));
        if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(no_time());
        }
        let (date, of_day) = text.split_at(8);
        let date = self.date(date).map_err(|_| no_time())?;
        let number: u64 = of_day.parse().map_err(|_| no_time())?;
        let (hours, minutes, seconds) = (number / 10_000, number / 100 % 100, number % 100);
        if hours > 23 || minutes > 59 || seconds > 59 {
            return Err(no_time());
        }
        let seconds = (hours * 60 + minutes) * 60 + seconds;
        TsNanos::from_jst(date, seconds * NANOS_PER_SECOND).ok_or_else(no_time)
    }

    fn tags(&mut self, what: &str, tags: Vec<String>) -> Answered<Vec<String>> {
        within("tags", tags.len(), DIALECT_TAGS_MAX)?;
        tags.into_iter().map(|tag| self.line(what, tag)).collect()
    }

    /// What the dialect says, or its refusal.
    pub(super) fn answer_of<W, T>(
        &mut self,
        found: Result<W, wit::Refusal>,
        read: impl FnOnce(&mut Self, W) -> Answered<T>,
    ) -> Answered<Result<T, Rejection>> {
        match found {
            Ok(found) => read(self, found).map(Ok),
            Err(refusal) => self.refusal(refusal).map(Err),
        }
    }

    /// What the dialect reads, or why it cannot.
    pub(super) fn or_words<W, T>(
        &mut self,
        found: Result<W, String>,
        read: impl FnOnce(&mut Self, W) -> Answered<Result<T, String>>,
    ) -> Answered<Result<T, String>> {
        match found {
            Ok(found) => read(self, found),
            Err(text) => self.words(&text).map(Err),
        }
    }

    fn refusal(&mut self, refusal: wit::Refusal) -> Answered<Rejection> {
        let text = self.reason(refusal.text)?;
        Ok(Rejection::new(refusal.code.into(), text))
    }

    /// What a dialect says of itself; one of 1.0 says nothing of hosts and fills.
    pub(super) fn description(
        &mut self,
        found: wit::Description,
        scope: Option<wit_venue::Scope>,
    ) -> Answered<DialectDescription> {
        use domain::limits::{
            FORMULA_NAME_BYTES_MAX, FORMULA_TEXT_BYTES_MAX, FORMULA_WORD_BYTES_MAX,
        };
        description::word("its name", &found.name, FORMULA_NAME_BYTES_MAX, b'-')?;
        description::text("its version", &found.version, FORMULA_WORD_BYTES_MAX)?;
        description::text("its summary", &found.summary, FORMULA_TEXT_BYTES_MAX)?;
        let scope = scope.map(|scope| (scope.hosts, scope.fill_rows));
        let (hosts, fill_rows) = scope.unwrap_or_default();
        within("hosts", hosts.len(), DIALECT_HOSTS_MAX)?;
        let hosts = hosts.into_iter().map(|host| self.name("a host", host));
        let hosts = hosts.collect::<Answered<_>>()?;
        let fill_rows = fill_rows.map(|name| self.name("the field of the fills", name));
        Ok(DialectDescription {
            hosts,
            fill_rows: fill_rows.transpose()?,
            order_rows: self.name("the field of the rows", found.order_rows)?,
            name: found.name,
            version: found.version,
            summary: found.summary,
            decodes_answers: found.decodes_answers,
            refused_change_rejects: found.refused_change_rejects,
        })
    }

    pub(super) fn plan(&mut self, found: wit::OrderPlan) -> Answered<OrderPlan> {
        let positions = self.names("the position", found.positions)?;
        if (1..positions.len()).any(|index| positions[..index].contains(&positions[index])) {
            return broken("it names a position twice");
        }
        Ok(OrderPlan {
            funding: found.funding.into(),
            account: found.account.map(Into::into),
            positions,
            needs_cash: found.needs_cash,
            unknown_tags: self.tags("an unknown tag", found.unknown_tags)?,
        })
    }

    fn fields(&mut self, found: Vec<wit::Field>) -> Answered<Vec<Field>> {
        within("fields of a request", found.len(), DIALECT_REQUEST_FIELDS_MAX)?;
        let mut fields: Vec<Field> = Vec::with_capacity(found.len());
        for wit::Field { name, value } in found {
            let name = self.name("the field", name)?;
            if fields.iter().any(|other| other.name == name) {
                return broken(format!("it makes a request with two fields `{name}`"));
            }
            let value = self.line(&format!("the field `{name}`"), value)?;
            fields.push(Field { name, value });
        }
        Ok(fields)
    }

    /// A request for one operation, under the broker's own name of it: no other one may be asked for in its
    /// place.
    pub(super) fn request(
        &mut self,
        found: wit::Request,
        operation: Operation,
    ) -> Answered<BrokerRequest> {
        let id = self.name("the request", found.id)?;
        if id != operation.id() {
            return broken(format!("it makes the request `{id}`; expected `{}`", operation.id()));
        }
        if found.password_field.is_some() && operation.only_asks() {
            return broken("it wants the second password for a list");
        }
        let fields = self.fields(found.fields)?;
        within("lists of a request", found.lists.len(), DIALECT_REQUEST_LISTS_MAX)?;
        let mut lists: Vec<FieldList> = Vec::with_capacity(found.lists.len());
        for list in found.lists {
            let name = self.name("the list", list.name)?;
            within("records of a list", list.rows.len(), DIALECT_REQUEST_ROWS_MAX)?;
            let rows =
                list.rows.into_iter().map(|row| self.fields(row)).collect::<Answered<_>>()?;
            lists.push(FieldList { name, rows });
        }
        let password = found.password_field;
        let password_field = password.map(|name| self.name("the field", name)).transpose()?;
        let mut names: Vec<&str> = SESSION_FIELDS.to_vec();
        names.extend(password_field.as_deref());
        names.extend(fields.iter().map(|field| field.name.as_str()));
        for (index, list) in lists.iter().map(|list| list.name.as_str()).enumerate() {
            if lists[..index].iter().any(|other| other.name == list) {
                return broken(format!("it makes a request with two lists `{list}`"));
            }
            names.push(list);
        }
        let own = SESSION_FIELDS.len();
        if let Some(index) =
            (own..names.len()).find(|&index| names[..index].contains(&names[index]))
        {
            let name = names[index];
            return broken(format!("`{name}` of a request belongs to the host, or is there twice"));
        }
        Ok(BrokerRequest { id, fields, lists, password_field })
    }

    pub(super) fn outcome(&mut self, found: wit::Outcome) -> Answered<BrokerOutcome> {
        let verdict = match found.verdict {
            wit::Verdict::Accepted(accepted) => Verdict::Accepted(self.accepted(accepted)?),
            wit::Verdict::NoData => Verdict::NoData,
            wit::Verdict::Refused(refusal) => Verdict::Refused(self.refusal(refusal)?),
            wit::Verdict::WrongPassword((counts, text)) => {
                Verdict::WrongPassword { counts, text: self.reason(text)? }
            }
            wit::Verdict::SessionExpired => Verdict::SessionExpired,
            wit::Verdict::Unknown(text) => Verdict::Unknown(self.words(&text)?),
        };
        Ok(BrokerOutcome { verdict, venue_closed: found.venue_closed })
    }

    fn accepted(&mut self, found: wit::Accepted) -> Answered<BrokerAccepted> {
        let wit::Accepted { venue_order_id, business_day, warning_code, warning_text } = found;
        let id = venue_order_id.map(|id| self.name("the order", id)).transpose()?;
        Ok(BrokerAccepted {
            venue_order_id: id.map(Into::into),
            business_day: self.business_day(business_day)?,
            warning_code: warning_code.map(|text| self.line("a warning", text)).transpose()?,
            warning_text: warning_text.map(|text| self.line("a warning", text)).transpose()?,
        })
    }

    pub(super) fn row(&mut self, found: wit::OrderRow) -> Answered<Result<BrokerRow, String>> {
        let (quantity, filled, leaves) = (found.quantity, found.filled, found.leaves);
        let adds_up = filled.checked_add(leaves).is_some_and(|sum| sum <= quantity);
        // A broker may list an order that is over with a quantity of 0.
        let is_none = quantity == 0 && !OrderStatus::from(found.status).is_final();
        if is_none || !adds_up {
            return broken(format!(
                "{filled} shares filled and {leaves} open of an order for {quantity}"
            ));
        }
        let number = self.small("the order", found.venue_order_id, NUMBER_BYTES_MAX)?;
        let symbol = self.small("the issue", found.symbol, ISSUE_BYTES_MAX)?;
        let row = BrokerRow {
            venue_order_id: number.clone().unwrap_or_default(),
            business_day: self.business_day(found.business_day)?,
            symbol: symbol.clone().unwrap_or_default(),
            side: found.side.into(),
            order_type: found.order_type.into(),
            quantity: Quantity::new(quantity),
            filled: Quantity::new(filled),
            leaves: Quantity::new(leaves),
            price: self.price_of(found.price)?,
            trigger_price: self.price_of(found.trigger_price)?,
            time_in_force: found.time_in_force.into(),
            expire_date: self.date_of(found.expire_date)?,
            status: found.status.into(),
            time: self.time(&found.time)?,
            tags: self.tags("a tag", found.tags)?,
        };
        Ok(number.and(symbol).map(|_| row))
    }

    pub(super) fn frame(&mut self, found: wit::Frame) -> Answered<Result<BrokerFrame, String>> {
        Ok(Ok(match found {
            wit::Frame::KeepAlive => BrokerFrame::KeepAlive,
            wit::Frame::Ended(number) => BrokerFrame::Ended(self.words(&number)?),
            wit::Frame::Order(notice) => {
                return Ok(self.notice(notice)?.map(BrokerFrame::Order));
            }
            wit::Frame::Venue(phase) => BrokerFrame::Venue(phase.into()),
            wit::Frame::Other => BrokerFrame::Other,
        }))
    }

    fn notice(&mut self, found: wit::Notice) -> Answered<Result<BrokerNotice, String>> {
        let kind = NoticeKind::from(found.kind);
        if found.fill.is_some() != (kind == NoticeKind::Filled) {
            return broken("a notice of a fill needs a fill, and other notices have none");
        }
        let number = self.small("the order", found.venue_order_id, NUMBER_BYTES_MAX)?;
        let symbol = self.small("the issue", found.symbol, ISSUE_BYTES_MAX)?;
        let fill = found.fill.map(|fill| self.fill(fill)).transpose()?.transpose();
        let notice = BrokerNotice {
            kind,
            venue_order_id: number.clone().unwrap_or_default(),
            business_day: self.business_day(found.business_day)?,
            symbol: symbol.clone().unwrap_or_default(),
            side: found.side.map(Into::into),
            quantity: found.quantity.map(Quantity::new),
            fill: fill.clone().unwrap_or_default(),
            time: found.time.map(|text| self.time(&text)).transpose()?,
            reason: found.reason.map(|text| self.reason(text)).transpose()?,
        };
        Ok(number.and(symbol).and(fill).map(|_| notice))
    }

    pub(super) fn listed_fill(&mut self, found: &wit_venue::ListedFill) -> Answered<ListedFill> {
        if found.quantity == 0 {
            return broken("a fill of no shares");
        }
        Ok(ListedFill {
            quantity: Quantity::new(found.quantity),
            price: self.price(&found.price)?,
            time: found.time.as_deref().map(|text| self.time(text)).transpose()?,
        })
    }

    fn fill(&mut self, found: wit::Fill) -> Answered<Result<BrokerFill, String>> {
        if found.quantity == 0 {
            return broken("a fill of no shares");
        }
        let trade_id = self.small("the fill", found.trade_id, FILL_BYTES_MAX)?;
        let (quantity, price) = (Quantity::new(found.quantity), self.price(&found.price)?);
        Ok(trade_id.map(|trade_id| BrokerFill { trade_id, quantity, price }))
    }
}

#[cfg(test)]
mod tests;
