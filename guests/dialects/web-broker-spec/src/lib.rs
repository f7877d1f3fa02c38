//! The web broker as the specification describes it: its tables to the letter. Where it names a field of
//! a row or a frame, its name is read if it is there, else the vendor's (specification 4, P28).

use kumiki_dialect_sdk::prelude::*;
use kumiki_dialect_sdk::register_dialect;
use kumiki_dialect_sdk::web_broker::{
    self as broker, Judged, NONE, ORDER_ROWS, Tags, Words, refused,
};

#[cfg(test)]
mod tests;

/// The dialect.
#[derive(Debug)]
pub struct WebBrokerSpec;

/// The broker's fields of an order type (specification 2, "Order type mapping").
fn type_fields(order: &Order) -> Result<Vec<Field>, Refusal> {
    let (price, trigger) = broker::prices(order)?;
    let (price, trigger) = (price.unwrap_or("0"), trigger.unwrap_or("0"));
    Ok(match order.order_type {
        OrderType::Market => vec![field("sOrderPrice", "0")],
        OrderType::Limit => vec![field("sOrderPrice", price)],
        OrderType::StopMarket => vec![
            field("sOrderPrice", NONE),
            field("sGyakusasiZyouken", trigger),
            field("sGyakusasiPrice", "0"),
        ],
        OrderType::StopLimit => vec![
            field("sOrderPrice", price),
            field("sGyakusasiZyouken", trigger),
            field("sGyakusasiPrice", price),
        ],
    })
}

/// The reverse of [`type_fields`]: a stop has a trigger price.
fn type_of(row: &[Field]) -> Result<(OrderType, Option<String>, Option<String>), String> {
    let words = Words::Specification;
    let trigger = words.price_of(row, "sGyakusasiZyouken", "sOrderGyakusasiZyouken");
    if trigger.is_some() {
        let limit = words.price_of(row, "sGyakusasiPrice", "sOrderGyakusasiPrice");
        let order_type = if limit.is_some() { OrderType::StopLimit } else { OrderType::StopMarket };
        return Ok((order_type, limit, trigger));
    }
    let limit = words.price_of(row, "sOrderPrice", "sOrderOrderPrice");
    Ok((if limit.is_some() { OrderType::Limit } else { OrderType::Market }, limit, None))
}

/// The reason of a result code: out of hours, else the broker's own refusal.
fn family(code: &str) -> Judged {
    match code {
        _ if broker::is_out_of_hours(code) => Judged::Refused(ReasonCode::MarketClosed),
        _ => Judged::Refused(ReasonCode::VenueRejected),
    }
}

impl Dialect for WebBrokerSpec {
    fn describe() -> Description {
        Description {
            name: "web-broker-spec".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "The web broker as the specification's tables have it".to_owned(),
            decodes_answers: true,
            refused_change_rejects: true,
            order_rows: ORDER_ROWS.to_owned(),
        }
    }

    /// The vendor's own hosts read a STOP_LIMIT of these tables as a limit order that works at once: it is for
    /// simulators on this machine.
    fn scope() -> Scope {
        Scope { hosts: Vec::new(), fill_rows: Some(broker::FILL_ROWS.to_owned()) }
    }

    fn list_fills(venue_order_id: &str, business_day: Option<&str>) -> Result<Request, Refusal> {
        broker::list_fills(venue_order_id, business_day)
    }

    fn read_fill(row: &[Field]) -> Result<ListedFill, String> {
        broker::read_fill(row)
    }

    fn plan(order: &Order) -> Result<OrderPlan, Refusal> {
        let tags = Tags::of(order)?;
        type_fields(order)?;
        broker::times(order, tags.is_funari)?;
        Ok(tags.plan())
    }

    fn new_order(
        order: &Order,
        account: &str,
        allocations: &[Allocation],
    ) -> Result<Request, Refusal> {
        let tags = Tags::of(order)?;
        let plan = tags.plan();
        let (condition, expiry) = broker::times(order, tags.is_funari)?;
        let lists = broker::repayments(order, &plan, allocations)?;
        let mut fields = vec![
            field("sZyoutoekiKazeiC", broker::account_code(&tags, account)?),
            field("sIssueCode", order.symbol.as_str()),
            field("sSizyouC", "00"),
            field("sBaibaiKubun", tags.side_code(order.side)),
            field("sCondition", condition),
        ];
        fields.extend(type_fields(order)?);
        fields.push(field("sOrderSuryou", order.quantity.to_string()));
        fields.push(field("sGenkinShinyouKubun", tags.cash_margin().code()));
        fields.push(field("sOrderExpireDay", expiry));
        // P39: a repayment that names no position leaves the choice to the broker.
        match (plan.funding, plan.positions.is_empty()) {
            (Funding::MarginRepay, true) => fields.push(field("sTatebiType", NONE)),
            (_, false) => fields.push(field("sTatebiType", "1")),
            _ => {}
        }
        Ok(broker::guarded("CLMKabuNewOrder", fields, lists))
    }

    fn modify_order(change: &Change) -> Result<Request, Refusal> {
        let changed = broker::changed_fields(change)?;
        let is_stop = change.order_type == OrderType::StopLimit;
        let stop_price = if is_stop { changed.price.clone() } else { NONE.to_owned() };
        let fields = vec![
            field("sOrderNumber", change.venue_order_id.as_str()),
            field("sOrderPrice", changed.price),
            field("sOrderSuryou", changed.quantity),
            field("sOrderExpireDay", changed.expiry),
            field("sGyakusasiZyouken", changed.trigger),
            field("sGyakusasiPrice", stop_price),
        ];
        Ok(broker::guarded("CLMKabuCorrectOrder", fields, Vec::new()))
    }

    fn cancel_order(venue_order_id: &str, _business_day: Option<&str>) -> Result<Request, Refusal> {
        let fields = vec![field("sOrderNumber", venue_order_id)];
        Ok(broker::guarded("CLMKabuCancelOrder", fields, Vec::new()))
    }

    fn cancel_all() -> Request {
        broker::cancel_all()
    }

    fn list_orders() -> Request {
        broker::list_orders()
    }

    fn judge(answer: &Answer) -> Outcome {
        let other = |errno: &str, text: String| match errno {
            "4" => Verdict::WrongPassword((true, text)),
            _ => refused(ReasonCode::VenueRejected, text),
        };
        broker::judge_result(answer, other, family)
    }

    fn read_order(row: &[Field]) -> Result<OrderRow, String> {
        broker::order_of(Words::Specification, row, type_of)
    }

    fn read_frame(fields: &[Field]) -> Result<Frame, String> {
        broker::read_frame(Words::Specification, fields)
    }
}

register_dialect!(WebBrokerSpec);
