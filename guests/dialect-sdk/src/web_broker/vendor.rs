//! The web broker as its vendor documents it: the field sets of the official samples, the business day with
//! every change and cancel, the families of result codes. Orders, lists and frames are the same in the
//! releases 8 to 10 of its version 4; what differs between those is the host's: login and masters.

use std::marker::PhantomData;

use crate::prelude::*;
use crate::web_broker::{self as broker, Judged, NONE, ORDER_ROWS, Tags, Words};

/// The vendor's hosts, as they stand in the address of the login. Some addresses of a session are of another one, which
/// the host judges.
const HOSTS: [&str; 2] = ["demo-kabuka.e-shiten.jp", "kabuka.e-shiten.jp"];

/// A release of the vendor's interface.
pub trait Release {
    /// The dialect's name. Its end, like `v4r10`, tells the host where the login is and of what kind.
    const NAME: &'static str;
    /// What it speaks, for people.
    const SUMMARY: &'static str;
}

/// The dialect of a release.
#[derive(Debug)]
pub struct Vendor<R>(PhantomData<R>);

/// The broker's fields of an order type.
#[derive(Debug, PartialEq, Eq)]
struct TypeFields<'a> {
    /// `sOrderPrice`
    price: &'a str,
    /// `sGyakusasiOrderType`: 0 a normal order, 1 a stop.
    stop_type: &'static str,
    /// `sGyakusasiZyouken`
    trigger: &'a str,
    /// `sGyakusasiPrice`
    stop_price: &'a str,
}

/// A stop says `*` as its price: with a price it would be a live order at once, with a stop beside it.
fn type_fields<'a>(order: &'a Order, tags: &Tags) -> Result<TypeFields<'a>, Refusal> {
    let (price, trigger) = broker::prices(order)?;
    let (price, trigger) = (price.unwrap_or("0"), trigger.unwrap_or("0"));
    let normal = |price| TypeFields { price, stop_type: "0", trigger: "0", stop_price: NONE };
    Ok(match order.order_type {
        // Shares that change hands have no price.
        OrderType::Market if tags.close_action.is_some() => normal(NONE),
        OrderType::Market => normal("0"),
        OrderType::Limit => normal(price),
        OrderType::StopMarket => {
            TypeFields { price: NONE, stop_type: "1", trigger, stop_price: "0" }
        }
        OrderType::StopLimit => {
            TypeFields { price: NONE, stop_type: "1", trigger, stop_price: price }
        }
    })
}

/// The reverse of [`type_fields`]. A normal order with a stop beside it, which other programs can place, is
/// the order that works, with the trigger price that changes it.
fn type_of(row: &[Field]) -> Result<(OrderType, Option<String>, Option<String>), String> {
    let price_of = |name: &str| Words::Vendor.price_of(row, name, name);
    let trigger = price_of("sOrderGyakusasiZyouken");
    match of(row, "sOrderGyakusasiOrderType").unwrap_or("0") {
        "1" => {
            if trigger.is_none() {
                return Err("sOrderGyakusasiZyouken is missing of a stop".to_owned());
            }
            match of(row, "sOrderGyakusasiKubun") {
                Some("0") => Ok((OrderType::StopMarket, None, trigger)),
                Some("1") => match price_of("sOrderGyakusasiPrice") {
                    Some(limit) => Ok((OrderType::StopLimit, Some(limit), trigger)),
                    None => {
                        Err("sOrderGyakusasiPrice is missing of a stop with a limit".to_owned())
                    }
                },
                _ => match price_of("sOrderGyakusasiPrice") {
                    Some(limit) => Ok((OrderType::StopLimit, Some(limit), trigger)),
                    None => Ok((OrderType::StopMarket, None, trigger)),
                },
            }
        }
        kind @ ("0" | "2") => {
            let trigger = trigger.filter(|_| kind == "2");
            let limit = price_of("sOrderOrderPrice");
            match (of(row, "sOrderOrderPriceKubun"), limit) {
                (Some("1"), _) | (None, None) => Ok((OrderType::Market, None, trigger)),
                (_, Some(limit)) => Ok((OrderType::Limit, Some(limit), trigger)),
                _ => Err("sOrderOrderPrice is missing of a limit order".to_owned()),
            }
        }
        _ => Err("sOrderGyakusasiOrderType is no kind of stop that is known".to_owned()),
    }
}

/// The family of a result code: 11xxx of new orders, 12xxx of changes, 13xxx of cancels.
fn family(code: &str) -> Judged {
    match code {
        _ if broker::is_out_of_hours(code) => Judged::Refused(ReasonCode::MarketClosed),
        "11304" | "12304" | "13304" => Judged::WrongPassword(true),
        // P42: one that is malformed does not count toward the lock.
        "11030" | "12023" | "13023" => Judged::WrongPassword(false),
        "11420" | "12420" | "13420" | "11421" | "12421" | "13421" | "11422" | "11423" | "11428"
        | "11429" | "11430" | "11443" | "11482" => Judged::Refused(ReasonCode::InsufficientFunds),
        _ => Judged::Refused(ReasonCode::VenueRejected),
    }
}

/// The tags of an order, and what this broker refuses of them (specification 4, P37, P39).
fn tags_of(order: &Order) -> Result<Tags, Refusal> {
    let tags = Tags::of(order)?;
    let in_an_auction =
        matches!(order.time_in_force, TimeInForce::AtTheOpen | TimeInForce::AtTheClose);
    if broker::has_trigger(order.order_type) && in_an_auction {
        let words = "a stop cannot wait for an auction";
        return Err(broker::unsupported("CONDITION_WITH_STOP", words));
    }
    if tags.is_funari && order.order_type == OrderType::Market {
        let words = "close_strategy=funari needs a limit price";
        return Err(broker::unsupported("FUNARI_WITH_MARKET", words));
    }
    if tags.cash_margin().funding() == Funding::MarginRepay && tags.positions.is_empty() {
        let words = "a margin repayment names its positions by tategyoku tags";
        return Err(broker::unsupported("TATEGYOKU_REQUIRED", words));
    }
    Ok(tags)
}

/// The number of an order, which is one together with its business day only.
fn order_fields(venue_order_id: &str, business_day: Option<&str>) -> Result<Vec<Field>, Refusal> {
    let Some(day) = business_day else {
        let words = "the order's business day is not known; read the list of orders first";
        return Err(Refusal::new(ReasonCode::InternalError, "BUSINESS_DAY_UNKNOWN", words));
    };
    Ok(vec![field("sOrderNumber", venue_order_id), field("sEigyouDay", day)])
}

/// `sTategyokuZyoutoekiKazeiC`: the account of a position whose shares change hands.
fn position_account(tags: &Tags, account: &str) -> Result<String, Refusal> {
    match (tags.close_action, account) {
        (None, _) => Ok(NONE.to_owned()),
        (Some(_), "1" | "3") => Ok(account.to_owned()),
        (Some(_), _) => Err(broker::unsupported(
            "ACCOUNT_TYPE",
            "close_action needs a specific or general account",
        )),
    }
}

impl<R: Release> Dialect for Vendor<R> {
    fn describe() -> Description {
        Description {
            name: R::NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: R::SUMMARY.to_owned(),
            decodes_answers: false,
            refused_change_rejects: false,
            order_rows: ORDER_ROWS.to_owned(),
        }
    }

    fn scope() -> Scope {
        Scope {
            hosts: HOSTS.map(str::to_owned).to_vec(),
            fill_rows: Some(broker::FILL_ROWS.to_owned()),
        }
    }

    fn list_fills(venue_order_id: &str, business_day: Option<&str>) -> Result<Request, Refusal> {
        broker::list_fills(venue_order_id, business_day)
    }

    fn read_fill(row: &[Field]) -> Result<ListedFill, String> {
        broker::read_fill(row)
    }

    fn plan(order: &Order) -> Result<OrderPlan, Refusal> {
        let tags = tags_of(order)?;
        type_fields(order, &tags)?;
        broker::times(order, tags.is_funari)?;
        Ok(tags.plan())
    }

    fn new_order(
        order: &Order,
        account: &str,
        allocations: &[Allocation],
    ) -> Result<Request, Refusal> {
        let tags = tags_of(order)?;
        let plan = tags.plan();
        let own = type_fields(order, &tags)?;
        let (condition, expiry) = broker::times(order, tags.is_funari)?;
        let account = broker::account_code(&tags, account)?;
        let fields = vec![
            field("sZyoutoekiKazeiC", account.as_str()),
            field("sIssueCode", order.symbol.as_str()),
            field("sSizyouC", "00"),
            field("sBaibaiKubun", tags.side_code(order.side)),
            field("sCondition", condition),
            field("sOrderPrice", own.price),
            field("sOrderSuryou", order.quantity.to_string()),
            field("sGenkinShinyouKubun", tags.cash_margin().code()),
            field("sOrderExpireDay", expiry),
            field("sGyakusasiOrderType", own.stop_type),
            field("sGyakusasiZyouken", own.trigger),
            field("sGyakusasiPrice", own.stop_price),
            field("sTatebiType", if plan.positions.is_empty() { NONE } else { "1" }),
            field("sTategyokuZyoutoekiKazeiC", position_account(&tags, &account)?),
        ];
        let lists = broker::repayments(order, &plan, allocations)?;
        Ok(broker::guarded("CLMKabuNewOrder", fields, lists))
    }

    fn modify_order(change: &Change) -> Result<Request, Refusal> {
        let changed = broker::changed_fields(change)?;
        let mut fields = order_fields(&change.venue_order_id, change.business_day.as_deref())?;
        let none = NONE.to_owned();
        let (price, stop_price) = match change.order_type {
            OrderType::StopLimit => (none, changed.price),
            _ => (changed.price, none),
        };
        fields.extend([
            field("sCondition", NONE),
            field("sOrderPrice", price),
            field("sOrderSuryou", changed.quantity),
            field("sOrderExpireDay", changed.expiry),
            field("sGyakusasiZyouken", changed.trigger),
            field("sGyakusasiPrice", stop_price),
        ]);
        Ok(broker::guarded("CLMKabuCorrectOrder", fields, Vec::new()))
    }

    fn cancel_order(venue_order_id: &str, business_day: Option<&str>) -> Result<Request, Refusal> {
        let fields = order_fields(venue_order_id, business_day)?;
        Ok(broker::guarded("CLMKabuCancelOrder", fields, Vec::new()))
    }

    fn cancel_all() -> Request {
        broker::cancel_all()
    }

    fn list_orders() -> Request {
        broker::list_orders()
    }

    fn judge(answer: &Answer) -> Outcome {
        // Numbers that the vendor's list has not are no clear answer (P18).
        broker::judge_result(answer, |_, text| Verdict::Unknown(text), family)
    }

    fn read_order(row: &[Field]) -> Result<OrderRow, String> {
        broker::order_of(Words::Vendor, row, type_of)
    }

    fn read_frame(fields: &[Field]) -> Result<Frame, String> {
        broker::read_frame(Words::Vendor, fields)
    }
}
