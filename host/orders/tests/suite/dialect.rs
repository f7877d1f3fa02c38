//! A dialect without a component: the fields of a request are the fields of an order.

use domain::fault::Identity;
use domain::order_mapping::{
    Allocation, BrokerAccepted, BrokerAnswer, BrokerChange, BrokerFill, BrokerFrame, BrokerNotice,
    BrokerOrder, BrokerOutcome, BrokerRequest, BrokerRow, DialectDescription, Field, Funding,
    ListedFill, Mapped, NoticeKind, OrderMapping, OrderPlan, VenuePhase, Verdict, field,
};
use domain::{
    OrderSide, OrderStatus, OrderType, Price, Quantity, ReasonCode, Rejection, ShortText, TsNanos,
};

pub(crate) struct PlainDialect(pub(crate) DialectDescription);

impl PlainDialect {
    pub(crate) fn new(refused_change_rejects: bool) -> Self {
        Self(DialectDescription {
            name: "plain".to_owned(),
            refused_change_rejects,
            order_rows: "rows".to_owned(),
            ..DialectDescription::default()
        })
    }
}

impl PlainDialect {
    /// One with a request for the fills of an order.
    pub(crate) fn with_details(refused_change_rejects: bool) -> Self {
        let mut made = Self::new(refused_change_rejects);
        made.0.fill_rows = Some("fills".to_owned());
        made
    }

    /// One that is made for these hosts.
    pub(crate) fn made_for(hosts: &[&str]) -> Self {
        let mut made = Self::new(false);
        made.0.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        made
    }
}

fn text<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The words of an order; the broker reads them.
pub(crate) fn words(order: &BrokerOrder) -> Vec<Field> {
    vec![
        Field::new("symbol", &*order.symbol),
        Field::new("side", order.side.as_str()),
        Field::new("type", order.order_type.as_str()),
        Field::new("quantity", order.quantity.shares().to_string()),
        Field::new("price", text(order.price)),
        Field::new("trigger", text(order.trigger_price)),
        Field::new("time", order.time_in_force.as_str()),
        Field::new("expire", text(order.expire_date)),
    ]
}

pub(crate) fn named<'a>(fields: &'a [Field], name: &str) -> &'a str {
    field(fields, name).unwrap_or_default()
}

fn one_of<T: Copy>(all: &[T], name: &str, of: impl Fn(T) -> &'static str) -> Option<T> {
    all.iter().copied().find(|one| of(*one) == name)
}

pub(crate) fn order(fields: &[Field]) -> Option<BrokerOrder> {
    let price = |name| named(fields, name).parse::<Price>().ok();
    Some(BrokerOrder {
        symbol: named(fields, "symbol").into(),
        side: one_of(OrderSide::ALL, named(fields, "side"), OrderSide::as_str)?,
        order_type: one_of(OrderType::ALL, named(fields, "type"), OrderType::as_str)?,
        quantity: Quantity::new(named(fields, "quantity").parse().ok()?),
        price: price("price"),
        trigger_price: price("trigger"),
        time_in_force: one_of(
            domain::TimeInForce::ALL,
            named(fields, "time"),
            domain::TimeInForce::as_str,
        )?,
        expire_date: named(fields, "expire").parse().ok(),
        tags: Vec::new(),
    })
}

const FUNDINGS: [(Funding, &str); 3] = [
    (Funding::Cash, "cash"),
    (Funding::MarginNew, "margin-new"),
    (Funding::MarginRepay, "margin-repay"),
];

/// How the order of a request is paid for.
pub(crate) fn funding(fields: &[Field]) -> Funding {
    let known = FUNDINGS.iter().find(|(_, name)| *name == named(fields, "funding"));
    known.map_or(Funding::Cash, |(funding, _)| *funding)
}

/// The positions that the order of a request closes.
pub(crate) fn closes(fields: &[Field]) -> Vec<(String, u64)> {
    let parts = named(fields, "closes").split(',').filter_map(|part| part.split_once(':'));
    parts.map(|(id, shares)| (id.to_owned(), shares.parse().unwrap())).collect()
}

/// The values of an order's tags of one kind.
pub(crate) fn tagged<'a>(tags: &'a [String], kind: &str) -> Vec<&'a str> {
    let pairs = tags.iter().filter_map(|tag| tag.split_once('='));
    pairs.filter(|(name, _)| *name == kind).map(|(_, value)| value).collect()
}

fn plan(tags: &[String]) -> OrderPlan {
    let kinds = ["cash_margin", "close_action", "close_strategy", "tategyoku"];
    let is_known = |tag: &&String| kinds.iter().any(|kind| tag.starts_with(&format!("{kind}=")));
    let margin = tagged(tags, "cash_margin").first().copied().unwrap_or_default();
    let funding = match margin {
        text if text.starts_with("margin") && text.ends_with("_new") => Funding::MarginNew,
        text if text.starts_with("margin") => Funding::MarginRepay,
        _ => Funding::Cash,
    };
    OrderPlan {
        funding,
        account: None,
        positions: tagged(tags, "tategyoku").into_iter().map(str::to_owned).collect(),
        needs_cash: tagged(tags, "close_action") == ["physical_settle_buy"],
        unknown_tags: tags.iter().filter(|tag| !is_known(tag)).cloned().collect(),
    }
}

fn request(id: &str, fields: Vec<Field>, needs_password: bool) -> BrokerRequest {
    BrokerRequest {
        id: id.to_owned(),
        fields,
        lists: Vec::new(),
        password_field: needs_password.then(|| "password".to_owned()),
    }
}

impl OrderMapping for PlainDialect {
    fn identity(&self) -> Identity {
        Identity { component: "plain".to_owned(), sha256: "00".to_owned() }
    }

    fn description(&self) -> &DialectDescription {
        &self.0
    }

    fn plan(&mut self, order: &BrokerOrder) -> Mapped<Result<OrderPlan, Rejection>> {
        Ok(Ok(plan(&order.tags)))
    }

    fn new_order(
        &mut self,
        order: &BrokerOrder,
        _: &str,
        allocations: &[Allocation],
    ) -> Mapped<Result<BrokerRequest, Rejection>> {
        let made = plan(&order.tags);
        let name = FUNDINGS.iter().find(|(funding, _)| *funding == made.funding);
        let closes: Vec<String> = allocations
            .iter()
            .map(|part| format!("{}:{}", part.position, part.quantity.shares()))
            .collect();
        let mut fields = words(order);
        fields.extend([
            Field::new("funding", name.map_or("", |(_, name)| name)),
            Field::new("closes", closes.join(",")),
            Field::new("wanted", made.positions.join(",")),
            Field::new("needs-cash", made.needs_cash.to_string()),
            Field::new("tags", order.tags.join(" ")),
        ]);
        Ok(Ok(request("new", fields, true)))
    }

    fn modify_order(&mut self, change: &BrokerChange) -> Mapped<Result<BrokerRequest, Rejection>> {
        let fields = vec![
            Field::new("number", &*change.venue_order_id),
            Field::new("quantity", text(change.quantity.map(Quantity::shares))),
            Field::new("price", text(change.price)),
            Field::new("trigger", text(change.trigger_price)),
            Field::new("expire", text(change.expire_date)),
        ];
        Ok(Ok(request("modify", fields, true)))
    }

    fn cancel_order(
        &mut self,
        number: &str,
        _: Option<&str>,
    ) -> Mapped<Result<BrokerRequest, Rejection>> {
        Ok(Ok(request("cancel", vec![Field::new("number", number)], true)))
    }

    fn cancel_all(&mut self) -> Mapped<BrokerRequest> {
        Ok(request("cancel-all", Vec::new(), true))
    }

    fn list_orders(&mut self) -> Mapped<BrokerRequest> {
        Ok(request("list", Vec::new(), false))
    }

    fn list_fills(
        &mut self,
        number: &str,
        _: Option<&str>,
    ) -> Mapped<Result<BrokerRequest, Rejection>> {
        Ok(Ok(request("detail", vec![Field::new("number", number)], false)))
    }

    fn judge(&mut self, answer: &BrokerAnswer) -> Mapped<BrokerOutcome> {
        let value = |name| field(&answer.fields, name);
        let refused = |code| Verdict::Refused(Rejection::new(code, "11104: no"));
        let verdict = match (answer.errno.as_str(), value("refused")) {
            ("2", _) => Verdict::SessionExpired,
            ("4", _) => Verdict::WrongPassword { counts: true, text: "11304: wrong".to_owned() },
            ("9", _) => Verdict::Unknown("busy".to_owned()),
            (_, Some("funds")) => refused(ReasonCode::InsufficientFunds),
            (_, Some("closed")) => refused(ReasonCode::MarketClosed),
            (_, Some(_)) => refused(ReasonCode::VenueRejected),
            _ => Verdict::Accepted(BrokerAccepted {
                venue_order_id: value("number").map(Into::into),
                warning_code: value("warning").map(str::to_owned),
                warning_text: value("words").map(str::to_owned),
                ..BrokerAccepted::default()
            }),
        };
        Ok(BrokerOutcome { verdict, venue_closed: value("refused") == Some("closed") })
    }

    fn read_orders(&mut self, rows: &[Vec<Field>]) -> Mapped<Vec<Result<BrokerRow, String>>> {
        let none = |row: &Vec<Field>| match (named(row, "number"), named(row, "odd")) {
            (number, "") => format!("order {number}: it is no row"),
            (number, odd) => format!("order {number}: {odd} is wrong"),
        };
        Ok(rows.iter().map(|row| read_row(row).ok_or_else(|| none(row))).collect())
    }

    fn read_fills(&mut self, rows: &[Vec<Field>]) -> Mapped<Vec<Result<ListedFill, String>>> {
        Ok(rows.iter().map(|row| read_fill(row).ok_or_else(|| "no fill".to_owned())).collect())
    }

    fn read_frame(&mut self, fields: &[Field]) -> Mapped<Result<BrokerFrame, String>> {
        Ok(read_frame(fields).ok_or_else(|| "no frame".to_owned()))
    }
}

/// The business day, if a test has one.
fn day_of(fields: &[Field]) -> Option<ShortText> {
    Some(named(fields, "day")).filter(|day| !day.is_empty()).map(Into::into)
}

fn read_row(row: &[Field]) -> Option<BrokerRow> {
    let made = order(row)?;
    let shares = |name| Some(Quantity::new(named(row, name).parse().ok()?));
    Some(BrokerRow {
        venue_order_id: named(row, "number").into(),
        business_day: day_of(row),
        symbol: made.symbol,
        side: made.side,
        order_type: made.order_type,
        quantity: made.quantity,
        filled: shares("filled")?,
        leaves: shares("leaves")?,
        price: made.price,
        trigger_price: made.trigger_price,
        time_in_force: made.time_in_force,
        expire_date: made.expire_date,
        status: one_of(OrderStatus::ALL, named(row, "status"), OrderStatus::as_str)?,
        time: TsNanos::from_nanos(named(row, "ns").parse().ok()?),
        tags: named(row, "tags").split_whitespace().map(str::to_owned).collect(),
    })
}

fn read_fill(row: &[Field]) -> Option<ListedFill> {
    Some(ListedFill {
        quantity: Quantity::new(named(row, "quantity").parse().ok()?),
        price: named(row, "price").parse().ok()?,
        time: named(row, "at").parse().ok().map(TsNanos::from_nanos),
    })
}

fn read_frame(fields: &[Field]) -> Option<BrokerFrame> {
    let kind = match named(fields, "kind") {
        "accepted" => NoticeKind::Accepted,
        "updated" => NoticeKind::Updated,
        "update-refused" => NoticeKind::UpdateRefused,
        "cancel-refused" => NoticeKind::CancelRefused,
        "canceled" => NoticeKind::Canceled,
        "filled" => NoticeKind::Filled,
        "expired" => NoticeKind::Expired,
        "fill-canceled" => NoticeKind::FillCanceled,
        "closed" => return Some(BrokerFrame::Venue(VenuePhase::Closed)),
        "open" => return Some(BrokerFrame::Venue(VenuePhase::Open)),
        "night" => return Some(BrokerFrame::Venue(VenuePhase::NightClosing)),
        "ended" => return Some(BrokerFrame::Ended("2".to_owned())),
        _ => return None,
    };
    let fill = (kind == NoticeKind::Filled).then(|| {
        Some(BrokerFill {
            trade_id: named(fields, "trade").into(),
            quantity: Quantity::new(named(fields, "quantity").parse().ok()?),
            price: named(fields, "price").parse().ok()?,
        })
    });
    Some(BrokerFrame::Order(BrokerNotice {
        kind,
        venue_order_id: named(fields, "number").into(),
        business_day: day_of(fields),
        symbol: named(fields, "symbol").into(),
        side: None,
        quantity: None,
        fill: match fill {
            Some(fill) => Some(fill?),
            None => None,
        },
        time: named(fields, "at").parse().ok().map(TsNanos::from_nanos),
        reason: None,
    }))
}
