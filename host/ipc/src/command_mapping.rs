//! From a client's command to what an exchange or a venue is told: texts become exact numbers, names
//! become positions. A text that is no number is a rejection of the order by its field (specification
//! 4, P31); whether the order is possible is decided where it goes.

use std::str::FromStr;

use domain::{
    InstrumentIx, OrderCommand, OrderModify, OrderRequest, Price, Quantity, ReasonCode, Rejection,
    ShortText, TriggerType, TsNanos,
};

use crate::{
    CancelAllOrders, CancelOrder, ModifyOrder, OrderModifyChange, SubmitOrder, SubmitOrderRequest,
};

/// Characters of a wrong text that a rejection repeats.
const NAME_CHARS_SHOWN: usize = 32;

/// What the names in a command stand for in the session that takes it.
pub trait OrderNames {
    /// The position of an instrument (`7203.TSE`); `None` where the session does not have it.
    fn instrument(&self, instrument_id: &str) -> Option<InstrumentIx>;

    /// The client's id of an order with a number of the venue.
    ///
    /// # Errors
    /// The rejection to answer with, when no client's order has that number.
    fn client_order_id(&self, venue_order_id: &str) -> Result<ShortText, Rejection>;
}

impl SubmitOrder {
    /// The order for an exchange.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` whose text begins with the field that is wrong.
    pub fn order_request(&self, names: &impl OrderNames) -> Result<OrderRequest, Rejection> {
        self.order.to_request(instrument(&self.order.instrument_id, names)?)
    }
}

impl ModifyOrder {
    /// The command for an exchange.
    ///
    /// # Errors
    /// As [`SubmitOrder::order_request`], or the one that `names` gives for a number of the venue.
    pub fn order_command(&self, names: &impl OrderNames) -> Result<OrderCommand, Rejection> {
        let (client, venue) = (self.client_order_id.as_deref(), self.venue_order_id.as_deref());
        let client_order_id = order_id(client, venue, names)?;
        Ok(OrderCommand::Modify { client_order_id, change: self.change.to_modify()? })
    }
}

impl CancelOrder {
    /// The command for an exchange.
    ///
    /// # Errors
    /// As [`ModifyOrder::order_command`].
    pub fn order_command(&self, names: &impl OrderNames) -> Result<OrderCommand, Rejection> {
        let (client, venue) = (self.client_order_id.as_deref(), self.venue_order_id.as_deref());
        Ok(OrderCommand::Cancel { client_order_id: order_id(client, venue, names)? })
    }
}

impl CancelAllOrders {
    /// The command for an exchange.
    ///
    /// # Errors
    /// As [`SubmitOrder::order_request`].
    pub fn order_command(&self, names: &impl OrderNames) -> Result<OrderCommand, Rejection> {
        let only = self.instrument_id.as_deref().map(|id| instrument(id, names));
        Ok(OrderCommand::CancelAll { instrument: only.transpose()?, side: self.order_side })
    }
}

impl SubmitOrderRequest {
    /// The request as an exchange takes it, for the instrument at a position.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` with the field whose text is no exact number.
    pub fn to_request(&self, instrument: InstrumentIx) -> Result<OrderRequest, Rejection> {
        Ok(OrderRequest {
            client_order_id: self.client_order_id.as_str().into(),
            instrument,
            side: self.order_side,
            order_type: self.order_type,
            quantity: shares("QUANTITY", &self.quantity)?,
            price: optional("PRICE", self.price.as_deref(), yen)?,
            trigger_price: optional("TRIGGER_PRICE", self.trigger_price.as_deref(), yen)?,
            trigger_type: self.trigger_type.as_deref().map(trigger_type).transpose()?,
            time_in_force: self.time_in_force,
            expire_time: self.expire_time_ns.map(TsNanos::from_nanos),
            post_only: self.post_only,
            reduce_only: self.reduce_only,
            tags: self.tags.clone().unwrap_or_default(),
        })
    }
}

impl OrderModifyChange {
    /// The change as an exchange takes it.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` with the field whose text is no exact number, or when nothing changes
    /// (specification 4, P16).
    pub fn to_modify(&self) -> Result<OrderModify, Rejection> {
        let modify = OrderModify {
            quantity: optional("NEW_QUANTITY", self.new_quantity.as_deref(), shares)?,
            price: optional("NEW_PRICE", self.new_price.as_deref(), yen)?,
            trigger_price: optional("NEW_TRIGGER_PRICE", self.new_trigger_price.as_deref(), yen)?,
            expire_time: self.new_expire_time_ns.map(TsNanos::from_nanos),
        };
        if modify == OrderModify::default() {
            return Err(invalid(
                "CHANGE: every field is null, so nothing would change; set at least one field",
            ));
        }
        Ok(modify)
    }
}

fn invalid(text: impl AsRef<str>) -> Rejection {
    Rejection::new(ReasonCode::ValidationError, text)
}

pub(crate) fn instrument(id: &str, names: &impl OrderNames) -> Result<InstrumentIx, Rejection> {
    let unknown = || invalid(format!("INSTRUMENT_ID: `{id}` is unknown here"));
    names.instrument(id).ok_or_else(unknown)
}

/// When both ids are given, the client's own wins (specification 2, "Modify and cancel").
fn order_id(
    client: Option<&str>,
    venue: Option<&str>,
    names: &impl OrderNames,
) -> Result<ShortText, Rejection> {
    match (client, venue) {
        (Some(client), _) => Ok(client.into()),
        (None, Some(venue)) => names.client_order_id(venue),
        (None, None) => Err(invalid(
            "CLIENT_ORDER_ID: the command names no order; send client_order_id or venue_order_id",
        )),
    }
}

fn optional<T>(
    field: &str,
    text: Option<&str>,
    read: fn(&str, &str) -> Result<T, Rejection>,
) -> Result<Option<T>, Rejection> {
    text.map(|text| read(field, text)).transpose()
}

fn shares(field: &str, text: &str) -> Result<Quantity, Rejection> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let count = text.parse().ok().filter(|_| is_plain);
    let wrong = || invalid(format!("{field}: `{text}` is not a whole number of shares"));
    count.map(Quantity::new).ok_or_else(wrong)
}

/// The only trigger that venues here have; any other name is of one that they have not (specification 2,
/// "Resources and their fields").
fn trigger_type(text: &str) -> Result<TriggerType, Rejection> {
    let known = TriggerType::ALL.iter().copied().find(|known| known.as_str() == text);
    known.ok_or_else(|| {
        let shown: String = text.chars().take(NAME_CHARS_SHOWN).collect();
        let why = format!("TRIGGER_TYPE: `{shown}` is not offered; write LAST or null");
        Rejection::new(ReasonCode::VenueUnsupported, why)
    })
}

fn yen(field: &str, text: &str) -> Result<Price, Rejection> {
    let whole = text.split('.').next().unwrap_or_default();
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if digits.is_empty() || digits.starts_with('+') || (digits.len() > 1 && digits.starts_with('0'))
    {
        let shown: String = text.chars().take(NAME_CHARS_SHOWN).collect();
        let why = format!("{field}: `{shown}` is not a plain decimal; write it like 2440 or 141.5");
        return Err(invalid(why));
    }
    Price::from_str(text).map_err(|error| invalid(format!("{field}: {error}")))
}

#[cfg(test)]
mod tests {
    use domain::{OrderSide, OrderType, TimeInForce, TriggerType};

    use super::*;
    use crate::Command;

    struct OneInstrument;

    impl OrderNames for OneInstrument {
        fn instrument(&self, instrument_id: &str) -> Option<InstrumentIx> {
            (instrument_id == "7203.TSE").then_some(InstrumentIx(3))
        }

        fn client_order_id(&self, venue_order_id: &str) -> Result<ShortText, Rejection> {
            match venue_order_id {
                "R7" => Ok("O-7".into()),
                other => Err(invalid(format!("VENUE_ORDER_ID: `{other}` is nobody's"))),
            }
        }
    }

    fn mapped(json: &str) -> Result<OrderCommand, String> {
        let mapped = match serde_json::from_str(json).unwrap() {
            Command::SubmitOrder(submit) => {
                submit.order_request(&OneInstrument).map(OrderCommand::Submit)
            }
            Command::ModifyOrder(modify) => modify.order_command(&OneInstrument),
            Command::CancelOrder(cancel) => cancel.order_command(&OneInstrument),
            Command::CancelAllOrders(all) => all.order_command(&OneInstrument),
            other => panic!("{} is not about orders", other.op()),
        };
        mapped.map_err(|rejection| rejection.to_string())
    }

    const SUBMIT: &str = r#"{"op":"SubmitOrder","request_id":"a","venue":"replay","order":{
        "client_order_id":"O-1","instrument_id":"7203.TSE","order_side":"SELL",
        "order_type":"STOP_LIMIT","quantity":"300","price":"1674.1","trigger_price":"1680",
        "trigger_type":"LAST","time_in_force":"GTD","expire_time_ns":1736121600000000000,
        "post_only":false,"reduce_only":true,"tags":["cash_margin=cash"]}}"#;

    #[test]
    fn an_order_keeps_every_field() {
        let expected = OrderRequest {
            client_order_id: "O-1".into(),
            instrument: InstrumentIx(3),
            side: OrderSide::Sell,
            order_type: OrderType::StopLimit,
            quantity: Quantity::new(300),
            price: Some(Price::from_units(16_741_000)),
            trigger_price: Some(Price::from_yen(1_680)),
            trigger_type: Some(TriggerType::Last),
            time_in_force: TimeInForce::Gtd,
            expire_time: Some(TsNanos::from_nanos(1_736_121_600_000_000_000)),
            post_only: false,
            reduce_only: true,
            tags: vec!["cash_margin=cash".to_owned()],
        };
        assert_eq!(mapped(SUBMIT), Ok(OrderCommand::Submit(expected)));
    }

    #[test]
    fn what_is_no_number_is_rejected_by_its_field() {
        for (from, to, text) in [
            ("\"300\"", "\"3e2\"", "QUANTITY: `3e2` is not a whole number of shares"),
            ("\"300\"", "\"+300\"", "QUANTITY: `+300` is not a whole number of shares"),
            ("\"300\"", "\"-1\"", "QUANTITY: `-1` is not a whole number of shares"),
            ("1674.1", "1674.00001", "PRICE: `1674.00001` has more than 4 digits after the point"),
            ("1680", "high", "TRIGGER_PRICE: `high` is not a decimal number"),
            ("7203.TSE", "9984.TSE", "INSTRUMENT_ID: `9984.TSE` is unknown here"),
        ] {
            let told = mapped(&SUBMIT.replace(from, to));
            assert_eq!(told, Err(format!("VALIDATION_ERROR: {text}")), "{to}");
        }
    }

    #[test]
    fn changes_and_cancels_find_their_order() {
        let with = |op: &str, rest: &str| {
            mapped(&format!(r#"{{"op":"{op}","request_id":"a","venue":"replay"{rest}}}"#))
        };
        let client_order_id: ShortText = "O-7".into();
        let change = OrderModify { quantity: Some(Quantity::new(200)), ..OrderModify::default() };
        let modify = OrderCommand::Modify { client_order_id: client_order_id.clone(), change };
        let text = r#","venue_order_id":"R7","change":{"new_quantity":"200"}"#;
        assert_eq!(with("ModifyOrder", text), Ok(modify));
        let cancel = OrderCommand::Cancel { client_order_id };
        assert_eq!(with("CancelOrder", r#","client_order_id":"O-7""#), Ok(cancel.clone()));
        // The client's own id wins over the venue's.
        let both = r#","client_order_id":"O-7","venue_order_id":"R9""#;
        assert_eq!(with("CancelOrder", both), Ok(cancel));
        for (op, rest, why) in [
            ("CancelOrder", "", "CLIENT_ORDER_ID: "),
            ("CancelOrder", r#","venue_order_id":"R9""#, "VENUE_ORDER_ID: `R9` is nobody's"),
            ("ModifyOrder", r#","client_order_id":"O-7","change":{}"#, "CHANGE: "),
            ("ModifyOrder", r#","client_order_id":"O-7","change":{"new_price":""}"#, "NEW_PRICE: "),
        ] {
            let told = with(op, rest).unwrap_err();
            assert!(told.starts_with(&format!("VALIDATION_ERROR: {why}")), "{told}");
        }
        let all = |instrument, side| Ok(OrderCommand::CancelAll { instrument, side });
        assert_eq!(with("CancelAllOrders", ""), all(None, None));
        let part = r#","instrument_id":"7203.TSE","order_side":"BUY""#;
        let buys = all(Some(InstrumentIx(3)), Some(OrderSide::Buy));
        assert_eq!(with("CancelAllOrders", part), buys);
        assert!(with("CancelAllOrders", r#","instrument_id":"x""#).is_err());
    }
}
