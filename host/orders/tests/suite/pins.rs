//! Small choices that are easily lost: warnings, ids of commands, the side to which a price is rounded.

use domain::order_mapping::Field;
use domain::{OrderSide, OrderType};
use ipc::{Command, ModifyOrder, OrderModifyChange, SubmitOrderRequest};
use orders::DeskRules;

use crate::broker::answer;
use crate::world::{InFlight, World, limit_buy};

fn world() -> World {
    let mut world = World::ready(DeskRules::default(), false);
    world.reported.clear();
    world
}

/// Specification 4, P39: tags without a meaning give a warning, beside the broker's.
#[test]
fn warnings_of_the_broker_and_of_the_desk_are_both_reported() {
    let broker = |fields: &[(&str, &str)]| {
        let number = [("number", "1000")];
        let all = number.iter().chain(fields);
        all.map(|(name, value)| Field::new(*name, *value)).collect::<Vec<_>>()
    };
    let warning = |tags: Option<&str>, fields: &[(&str, &str)]| {
        let mut world = world();
        let mut order = limit_buy("a", 100, "2500");
        order.tags = tags.map(|tag| vec![tag.to_owned()]);
        world.submit(&order);
        world.answer();
        world.answer_with(|id| answer(id, "", broker(fields)));
        let reported = world.json("SubmitOrderResult");
        assert_eq!(reported["venue_order_id"], "1000");
        let text = |name: &str| reported[name].as_str().unwrap_or("none").to_owned();
        (text("warning_code"), text("warning_text"))
    };
    let pair = |code: &str, text: &str| (code.to_owned(), text.to_owned());
    let unknown = "tag `colour=blue` is not in the registry: ignored";
    assert_eq!(warning(None, &[]), pair("none", "none"));
    assert_eq!(warning(Some("colour=blue"), &[]), pair("unknown_tag", unknown));
    let own = [("warning", "77"), ("words", "beware")];
    assert_eq!(warning(None, &own), pair("77", "beware"));
    let both = format!("beware; unknown_tag: {unknown}");
    assert_eq!(warning(Some("colour=blue"), &own), pair("77", &both));
    let both = format!("77; unknown_tag: {unknown}");
    assert_eq!(warning(Some("colour=blue"), &own[..1]), pair("77", &both));
}

/// Specification 4, P9.
#[test]
fn events_of_a_change_and_of_a_cancel_name_their_command() {
    let mut world = world();
    let submit = world.submit(&limit_buy("a", 200, "2500"));
    world.answer_all();
    assert_eq!(world.json("OrderAccepted")["request_id"], submit.as_str());
    let change = world.modify("a", Some("100"), None);
    assert_eq!(world.json("OrderPendingUpdate")["request_id"], change.as_str());
    world.answer_all();
    assert_eq!(world.json("OrderUpdated")["request_id"], change.as_str());
    let cancel = world.cancel(Some("a"), None);
    assert_eq!(world.json("OrderPendingCancel")["request_id"], cancel.as_str());
    world.answer_with(|id| crate::broker::refused(id, "no"));
    assert_eq!(world.json("OrderRejected")["request_id"], cancel.as_str());
    // A cancel of many has the id of the whole command, by its own request and by single ones.
    for side in [None, Some(OrderSide::Buy)] {
        world.answer_all();
        world.reported.clear();
        let all = world.cancel_all(side);
        world.answer();
        assert_eq!(world.json("OrderPendingCancel")["request_id"], all.as_str());
        world.answer_with(|id| crate::broker::refused(id, "no"));
    }
}

/// Specification 4, P35: away from the market, on the side where the order waits.
#[test]
fn prices_are_rounded_so_that_no_order_pays_more_or_triggers_sooner() {
    let order = |side, kind, price: Option<&str>, trigger: Option<&str>| SubmitOrderRequest {
        order_side: side,
        order_type: kind,
        price: price.map(str::to_owned),
        trigger_price: trigger.map(str::to_owned),
        ..limit_buy("a", 100, "2500")
    };
    let sent = |world: &World| {
        let Some(InFlight::Request { request, .. }) = &world.in_flight else { panic!("sent") };
        let named = |name| crate::dialect::named(&request.fields, name).to_owned();
        (named("price"), named("trigger"))
    };
    let pair = |price: &str, trigger: &str| (price.to_owned(), trigger.to_owned());
    // Steps are 1 yen up to 3,000 and 5 yen above.
    let cases = [
        (OrderSide::Buy, pair("2600", "2501"), pair("3000", "3005")),
        (OrderSide::Sell, pair("2601", "2500"), pair("3005", "3000")),
    ];
    for (side, at_first, changed) in cases {
        for kind in [OrderType::Limit, OrderType::StopMarket, OrderType::StopLimit] {
            let has_price = kind != OrderType::StopMarket;
            let has_trigger = kind != OrderType::Limit;
            let of = |(price, trigger): &(String, String)| {
                let kept =
                    |text: &String, is_there| if is_there { text.clone() } else { String::new() };
                (kept(price, has_price), kept(trigger, has_trigger))
            };
            let mut world = world();
            let price = has_price.then_some("2600.5");
            let trigger = has_trigger.then_some("2500.1");
            world.submit(&order(side, kind, price, trigger));
            world.answer();
            assert_eq!(sent(&world), of(&at_first), "{side:?} {kind:?}");
            world.answer_all();
            let context = world.context();
            let change = OrderModifyChange {
                new_price: has_price.then(|| "3002".to_owned()),
                new_trigger_price: has_trigger.then(|| "3004.9".to_owned()),
                ..OrderModifyChange::default()
            };
            let command = ModifyOrder {
                request_id: context.request_id.clone().try_into().unwrap(),
                venue: "web_broker".to_owned(),
                client_order_id: Some("a".to_owned()),
                venue_order_id: None,
                change,
            };
            world.command(context, Command::ModifyOrder(command));
            assert_eq!(sent(&world), of(&changed), "{side:?} {kind:?}");
            world.answer();
            let reported = world.json("OrderUpdated");
            let text = |name: &str| reported[name].as_str().unwrap_or_default().to_owned();
            assert_eq!((text("price"), text("trigger_price")), of(&changed), "{side:?} {kind:?}");
        }
    }
}
