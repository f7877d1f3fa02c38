//! From a client's command to a command of the order desk, with the texts as they were sent in the key of an
//! order (specification 4, P35).

use domain::order_rules::{check_texts, stock_symbol};
use domain::{
    InstrumentId, Money, OrderFilter, OrderOrigin, OrderRequest, Origin, ReasonCode, Rejection,
    ShortText,
};
use ipc::{AdjustStrategyPosition, OrderListFilter, SettleOrder, SubmitOrderRequest};
use orders::limits::{
    CHARS_SHOWN, NUMBER_CHARS_MAX, STRATEGY_ID_CHARS_MAX, TAGS_MAX, WHY_CHARS_MAX,
};
use orders::{CancelMany, DeskCommand, InstrumentTable, NamedOrder, NewOrder, OrderChange};

use crate::command::{AccountCommand, OrderInstruction, PasswordCommand, StrategiesCommand};

pub(super) fn order(command: OrderInstruction, instruments: &InstrumentTable) -> DeskCommand {
    match command {
        OrderInstruction::Submit(submit) => {
            DeskCommand::Submit(new_order(&submit.order, instruments))
        }
        OrderInstruction::Modify(modify) => DeskCommand::Modify(OrderChange {
            change: modify.change.to_modify(),
            order: NamedOrder {
                origin: Origin::Client,
                client_order_id: modify.client_order_id,
                venue_order_id: modify.venue_order_id,
            },
        }),
        OrderInstruction::Cancel(cancel) => DeskCommand::Cancel(NamedOrder {
            origin: Origin::Client,
            client_order_id: cancel.client_order_id,
            venue_order_id: cancel.venue_order_id,
        }),
        // A person's cancel of many ends the orders of all.
        OrderInstruction::CancelAll(all) => DeskCommand::CancelAll(CancelMany {
            origin: None,
            instrument_id: all.instrument_id,
            side: all.order_side,
        }),
    }
}

pub(super) fn account(command: AccountCommand, request_id: Option<&str>) -> DeskCommand {
    match command {
        AccountCommand::OrderList(list) => DeskCommand::OrderList(filter(list)),
        AccountCommand::BuyingPower => DeskCommand::BuyingPower,
        AccountCommand::Positions => DeskCommand::Positions,
        AccountCommand::Login => DeskCommand::Login(request_id.map(str::to_owned)),
        AccountCommand::VenueState => DeskCommand::VenueState,
    }
}

pub(super) fn password(command: PasswordCommand) -> DeskCommand {
    match command {
        PasswordCommand::Set(value) => DeskCommand::SetSecondPassword(value),
        PasswordCommand::Forget => DeskCommand::ForgetSecondPassword,
    }
}

/// The command of a person's decision, or what is wrong with it (specification 4, P124, P125).
pub(super) fn strategies(command: StrategiesCommand) -> Result<DeskCommand, String> {
    match command {
        StrategiesCommand::Settle(settle) => settled(settle).map(DeskCommand::Settle),
        StrategiesCommand::Positions => Ok(DeskCommand::Holdings),
        StrategiesCommand::Adjust(adjust) => adjusted(&adjust).map(DeskCommand::Adjust),
    }
}

/// Characters of an order's id (specification 4, P30).
const ID_CHARS_MAX: usize = 36;

fn settled(settle: SettleOrder) -> Result<orders::SettleOrder, String> {
    let is_name = |text: &str, most: usize| {
        (1..=most).contains(&text.len())
            && text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
            && !text.trim().is_empty()
    };
    let SettleOrder { client_order_id, origin, venue_order_id, .. } = settle;
    if !is_name(&client_order_id, ID_CHARS_MAX) {
        return Err("CLIENT_ORDER_ID: it needs 1 to 36 characters of ASCII".to_owned());
    }
    if venue_order_id.as_deref().is_some_and(|number| !is_name(number, NUMBER_CHARS_MAX)) {
        let why = "VENUE_ORDER_ID: write the broker's number of the order, or null if it does not have the order";
        return Err(why.to_owned());
    }
    Ok(orders::SettleOrder {
        origin,
        client_order_id: client_order_id.as_str().into(),
        venue_order_id: venue_order_id.as_deref().map(ShortText::from),
    })
}

fn adjusted(adjust: &AdjustStrategyPosition) -> Result<orders::Adjustment, String> {
    let AdjustStrategyPosition { strategy_id, instrument_id, quantity, average_price, why, .. } =
        adjust;
    if !(1..=STRATEGY_ID_CHARS_MAX).contains(&strategy_id.chars().count()) {
        return Err(format!("STRATEGY_ID: it needs 1 to {STRATEGY_ID_CHARS_MAX} characters"));
    }
    stock_symbol(instrument_id, CHARS_SHOWN).map_err(|rejection| rejection.text)?;
    let instrument: InstrumentId =
        instrument_id.parse().map_err(|why| format!("INSTRUMENT_ID: {why}"))?;
    let quantity = domain::Quantity::from(*quantity);
    let units = average_price.units();
    if units < 0 || (units == 0 && !quantity.is_zero()) {
        return Err("AVERAGE_PRICE: shares cost more than 0 yen".to_owned());
    }
    let cost = i128::from(units) * i128::from(quantity.shares());
    let cost = i64::try_from(cost)
        .map_err(|_| "QUANTITY: so many shares at that price are too much money".to_owned())?;
    let is_line = !why.trim().is_empty() && !why.chars().any(char::is_control);
    if !is_line || why.chars().count() > WHY_CHARS_MAX {
        return Err(format!("WHY: write one line of 1 to {WHY_CHARS_MAX} characters"));
    }
    Ok(orders::Adjustment {
        strategy_id: strategy_id.as_str().into(),
        instrument,
        quantity,
        cost: Money::from_units(cost),
        why: why.clone(),
    })
}

fn new_order(order: &SubmitOrderRequest, instruments: &InstrumentTable) -> NewOrder {
    NewOrder {
        origin: OrderOrigin::Person,
        client_order_id: order.client_order_id.as_str().into(),
        request_key: order.request_key(),
        request: request(order, instruments),
    }
}

/// The order, or what is wrong with its texts.
fn request(
    order: &SubmitOrderRequest,
    instruments: &InstrumentTable,
) -> Result<OrderRequest, Rejection> {
    let tags = order.tags.as_deref().unwrap_or_default();
    check_texts(&order.client_order_id, tags, TAGS_MAX)?;
    stock_symbol(&order.instrument_id, CHARS_SHOWN)?;
    let place = instruments.place(&order.instrument_id).ok_or_else(|| {
        let text = "TOO_MANY_INSTRUMENTS: the order desk knows too many instruments; restart the \
                    engine";
        Rejection::new(ReasonCode::InternalError, text)
    })?;
    order.to_request(place)
}

fn filter(filter: OrderListFilter) -> Result<OrderFilter, Rejection> {
    let OrderListFilter { status, instrument_id, date } = filter;
    OrderFilter::read(status.as_deref(), instrument_id, date.as_deref(), CHARS_SHOWN)
}

#[cfg(test)]
mod tests {
    use domain::{Origin, Quantity};
    use ipc::Command;
    use serde_json::{Value, json};

    use super::*;
    use crate::command::ClientCommand;

    fn decided(fields: Value) -> Result<DeskCommand, String> {
        match ClientCommand::from(serde_json::from_value::<Command>(fields).unwrap()) {
            ClientCommand::Strategies(command) => strategies(command),
            other => panic!("{other:?}"),
        }
    }

    fn with(mut fields: Value, name: &str, value: &Value) -> Value {
        fields[name] = value.clone();
        fields
    }

    /// P124: a number, or null where the broker does not have the order; anything else is refused.
    #[test]
    fn p124_an_order_is_settled_with_its_number_or_without() {
        let settle = json!({"op": "SettleOrder", "request_id": "r", "client_order_id": "c-1",
                            "origin": "strategy", "venue_order_id": "12345"});
        let Ok(DeskCommand::Settle(settled)) = decided(settle.clone()) else { panic!() };
        assert_eq!((settled.origin, &*settled.client_order_id), (Origin::Strategy, "c-1"));
        assert_eq!(settled.venue_order_id.as_deref(), Some("12345"));
        let without = with(settle.clone(), "venue_order_id", &Value::Null);
        let Ok(DeskCommand::Settle(settled)) = decided(without) else { panic!() };
        assert_eq!(settled.venue_order_id, None);
        let long = "1".repeat(37);
        for (field, value) in [
            ("venue_order_id", ""),
            ("venue_order_id", " "),
            ("venue_order_id", "1\n2"),
            ("venue_order_id", &long),
            ("client_order_id", ""),
            ("client_order_id", &long),
        ] {
            let why = decided(with(settle.clone(), field, &value.into())).unwrap_err();
            assert!(why.starts_with(&format!("{}: ", field.to_uppercase())), "{value}: {why}");
        }
    }

    /// P125: what shares cost in all is kept, and what cannot be is refused by its field.
    #[test]
    fn p125_a_correction_has_shares_their_price_and_a_reason() {
        let adjust = json!({"op": "AdjustStrategyPosition", "request_id": "r", "strategy_id": "mine",
                            "instrument_id": "7203.TSE", "quantity": "200", "average_price": "1325.25",
                            "why": "株式分割 1:2"});
        let Ok(DeskCommand::Adjust(adjusted)) = decided(adjust.clone()) else { panic!() };
        assert_eq!(
            (adjusted.instrument.as_str(), adjusted.quantity),
            ("7203.TSE", Quantity::new(200))
        );
        assert_eq!((adjusted.cost, &*adjusted.why), (Money::from_yen(265_050), "株式分割 1:2"));
        let none =
            with(with(adjust.clone(), "quantity", &"0".into()), "average_price", &"0".into());
        let Ok(DeskCommand::Adjust(adjusted)) = decided(none) else { panic!() };
        assert_eq!((adjusted.quantity, adjusted.cost), (Quantity::ZERO, Money::ZERO));
        let (long, most) = ("w".repeat(201), u64::MAX.to_string());
        for (field, value) in [
            ("strategy_id", ""),
            ("strategy_id", &long),
            ("instrument_id", "7203"),
            ("instrument_id", "160060018.TSE"),
            ("quantity", &most),
            ("average_price", "0"),
            ("average_price", "-1"),
            ("why", ""),
            ("why", "  "),
            ("why", "two\nlines"),
            ("why", &long),
        ] {
            let why = decided(with(adjust.clone(), field, &value.into())).unwrap_err();
            let name = if value == "160060018.TSE" { "FUTURES" } else { &*field.to_uppercase() };
            assert!(why.starts_with(&format!("{name}: ")), "{value}: {why}");
        }
        assert!(decided(with(adjust, "why", &"w".repeat(200).into())).is_ok());
    }
}
