//! What the dialects of the web broker share: the registry of tags, the codes of sides, conditions and
//! situations, and how answers, rows and frames are read. What differs between them is [`Words`].

mod answers;
mod fills;
mod frames;
mod rows;
mod tags;
pub mod vendor;

pub use answers::{Failure, Judged, failure, is_out_of_hours, judge_result, refused};
pub use fills::{FILL_ROWS, list_fills, read_fill};
pub use frames::{read_frame, venue_phase};
pub use rows::{Situation, order_of, situation_of, status_of};
pub use tags::{CashMargin, CloseAction, Tags};

use crate::text::{field, of, reason};
use crate::{
    Allocation, Change, Field, FieldList, Order, OrderPlan, OrderType, ReasonCode, Refusal,
    Request, Side, TimeInForce,
};

/// The field that takes the second password.
pub const PASSWORD_FIELD: &str = "sSecondPassword";
/// Field of an answer that holds the rows of the list of orders.
pub const ORDER_ROWS: &str = "aOrderList";
/// `unchanged`, `unspecified`.
pub const NONE: &str = "*";

/// Whose names a field of a row or a frame has (specification 4, P28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// The specification's name where it is there, else the vendor's.
    Specification,
    /// The vendor's alone.
    Vendor,
}

impl Words {
    /// The text of a field that has a name in the specification and one of the vendor's.
    #[must_use]
    pub fn of<'a>(self, fields: &'a [Field], specified: &str, vendors: &str) -> Option<&'a str> {
        let own = match self {
            Self::Specification => of(fields, specified),
            Self::Vendor => None,
        };
        own.or_else(|| of(fields, vendors))
    }
}

/// `sBaibaiKubun` of a side (specification 2, "Side mapping").
#[must_use]
pub const fn side_code(side: Side) -> &'static str {
    match side {
        Side::Buy => "3",
        Side::Sell => "1",
    }
}

/// The side of `sBaibaiKubun`, with the tag that says the same where no side does: 7 buys what a margin
/// position holds, 5 delivers shares for one.
#[must_use]
pub fn side_of(code: &str) -> Option<(Side, Option<&'static str>)> {
    match code {
        "3" => Some((Side::Buy, None)),
        "1" => Some((Side::Sell, None)),
        "7" => Some((Side::Buy, Some("close_action=physical_settle_buy"))),
        "5" => Some((Side::Sell, Some("close_action=physical_settle_sell"))),
        _ => None,
    }
}

/// `sCondition` and `sOrderExpireDay` of an order (specification 2, "Time in force mapping"; 4, P38: it
/// overrides what the type says).
///
/// # Errors
/// An order to a date without one.
pub fn times(order: &Order, is_funari: bool) -> Result<(&'static str, String), Refusal> {
    let day = || "0".to_owned();
    Ok(match order.time_in_force {
        TimeInForce::Day => ("0", day()),
        TimeInForce::Gtd => {
            let date = order.expire_date.as_deref().and_then(crate::text::date);
            ("0", date.ok_or_else(|| invalid("EXPIRE_TIME_NS", "a GTD order has a date"))?)
        }
        TimeInForce::AtTheOpen => ("2", day()),
        TimeInForce::AtTheClose if is_funari => ("6", day()),
        TimeInForce::AtTheClose => ("4", day()),
    })
}

/// The reverse of [`times`]: time in force, date and tag of a condition and a date.
///
/// # Errors
/// A condition or a date that the broker does not have.
pub fn times_of(
    condition: &str,
    expiry: &str,
) -> Result<(TimeInForce, Option<String>, Option<&'static str>), String> {
    match condition {
        "0" if expiry.bytes().all(|byte| byte == b'0') => Ok((TimeInForce::Day, None, None)),
        "0" => match crate::text::date(expiry) {
            Some(date) => Ok((TimeInForce::Gtd, Some(date), None)),
            None => Err(format!("sOrderOrderExpireDay `{}` is no date", crate::text::line(expiry))),
        },
        "2" => Ok((TimeInForce::AtTheOpen, None, None)),
        "4" => Ok((TimeInForce::AtTheClose, None, None)),
        "6" => Ok((TimeInForce::AtTheClose, None, Some("close_strategy=funari"))),
        _ => Err(format!("sOrderCondition `{}` is not known", crate::text::line(condition))),
    }
}

/// Prices of an order: `(limit, trigger)`, each where its type has it.
///
/// # Errors
/// A price that is missing, is none or belongs to another type.
pub fn prices(order: &Order) -> Result<(Option<&str>, Option<&str>), Refusal> {
    let (price, trigger) = (order.price.as_deref(), order.trigger_price.as_deref());
    let (has_price, has_trigger) = (has_price(order.order_type), has_trigger(order.order_type));
    for (field, given, has) in
        [("PRICE", price, has_price), ("TRIGGER_PRICE", trigger, has_trigger)]
    {
        if given.is_some() != has || given.is_some_and(|text| crate::text::price(text).is_none()) {
            return Err(invalid(field, "an order of this type has another one"));
        }
    }
    Ok((price, trigger))
}

/// Whether orders of a type have a limit price.
#[must_use]
pub const fn has_price(order_type: OrderType) -> bool {
    matches!(order_type, OrderType::Limit | OrderType::StopLimit)
}

/// Whether orders of a type have a trigger price.
#[must_use]
pub const fn has_trigger(order_type: OrderType) -> bool {
    matches!(order_type, OrderType::StopMarket | OrderType::StopLimit)
}

/// The list of the margin positions that an order closes, each with the shares that it gives; none where
/// it names no position.
///
/// # Errors
/// When the shares are not those of the order, or a position is not one that it names.
pub fn repayments(
    order: &Order,
    plan: &OrderPlan,
    allocations: &[Allocation],
) -> Result<Vec<FieldList>, Refusal> {
    let given = allocations.iter().try_fold(0_u64, |sum, one| sum.checked_add(one.quantity));
    let are_named = allocations.iter().all(|one| plan.positions.contains(&one.position));
    let is_whole = given == Some(if plan.positions.is_empty() { 0 } else { order.quantity });
    if !are_named || !is_whole || allocations.iter().any(|one| one.quantity == 0) {
        let words = "the shares of the margin positions are not those of the order";
        return Err(Refusal::new(ReasonCode::InternalError, "TATEGYOKU", words));
    }
    if allocations.is_empty() {
        return Ok(Vec::new());
    }
    let row = |(index, one): (usize, &Allocation)| {
        vec![
            field("sTategyokuNumber", one.position.as_str()),
            field("sTatebiZyuni", (index + 1).to_string()),
            field("sOrderSuryou", one.quantity.to_string()),
        ]
    };
    let rows = allocations.iter().enumerate().map(row).collect();
    Ok(vec![FieldList { name: "aCLMKabuHensaiData".to_owned(), rows }])
}

/// Fields of a change: unchanged is `*`. A stop's limit price goes where `stop_limit` says.
///
/// # Errors
/// A price that the order's type does not have, or nothing to change.
pub fn changed_fields(change: &Change) -> Result<ChangedFields, Refusal> {
    let Change { quantity, price, trigger_price, expire_date, order_type, .. } = change;
    if price.is_some() && !has_price(*order_type) {
        return Err(invalid("NEW_PRICE", "an order of this type has no limit price"));
    }
    if trigger_price.is_some() && !has_trigger(*order_type) {
        return Err(invalid("NEW_TRIGGER_PRICE", "an order of this type has no trigger price"));
    }
    if quantity.is_none() && price.is_none() && trigger_price.is_none() && expire_date.is_none() {
        return Err(invalid("CHANGE", "nothing is to be changed"));
    }
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
    Ok(ChangedFields {
        quantity: or_none(&quantity.map(|shares| shares.to_string())),
        price: or_none(price),
        trigger: or_none(trigger_price),
        expiry: or_none(expire_date),
    })
}

/// What a change says in the broker's words; `*` is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFields {
    /// Shares, what is filled included.
    pub quantity: String,
    /// Limit price in yen.
    pub price: String,
    /// Trigger price in yen.
    pub trigger: String,
    /// `YYYYMMDD`.
    pub expiry: String,
}

/// A request that needs the second password.
#[must_use]
pub fn guarded(id: &str, fields: Vec<Field>, lists: Vec<FieldList>) -> Request {
    let password_field = Some(PASSWORD_FIELD.to_owned());
    Request { id: id.to_owned(), fields, lists, password_field }
}

/// The request that cancels every open order.
#[must_use]
pub fn cancel_all() -> Request {
    guarded("CLMKabuCancelOrderAll", Vec::new(), Vec::new())
}

/// The request for the list of all orders.
#[must_use]
pub fn list_orders() -> Request {
    let names = ["sIssueCode", "sSikkouDay", "sOrderSyoukaiStatus"];
    Request {
        id: "CLMOrderList".to_owned(),
        fields: names.iter().map(|name| field(name, "")).collect(),
        lists: Vec::new(),
        password_field: None,
    }
}

/// A refusal of a request that is wrong in itself.
#[must_use]
pub fn invalid(field: &str, words: &str) -> Refusal {
    Refusal::new(ReasonCode::ValidationError, field, words)
}

/// A refusal of what the broker cannot do.
#[must_use]
pub fn unsupported(tag: &str, words: &str) -> Refusal {
    Refusal::new(ReasonCode::VenueUnsupported, tag, words)
}

/// A broker's code and text as a reason; words of our own where it sent none.
#[must_use]
pub fn told(code: &str, text: Option<&str>, own: &str) -> String {
    reason(code, text.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(own))
}

/// The account of `sZyoutoekiKazeiC`: what the order's tags name, else what the login answered.
///
/// # Errors
/// A login that named none.
pub fn account_code(tags: &Tags, of_login: &str) -> Result<String, Refusal> {
    if let Some(account) = tags.account {
        return Ok(tags::account_code(account).to_owned());
    }
    let is_code =
        (1..=4).contains(&of_login.len()) && of_login.bytes().all(|byte| byte.is_ascii_digit());
    if !is_code {
        let words = "the login answered no account";
        return Err(Refusal::new(ReasonCode::InternalError, "ACCOUNT_TYPE", words));
    }
    Ok(of_login.to_owned())
}
