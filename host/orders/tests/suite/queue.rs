//! The queue to the broker: its order, and its limits.

use std::time::Duration;

use ipc::{Command, Event, GetOrderList, OrderListFilter};
use orders::{DeskRules, Recipient, RequestContext};

use crate::world::{World, limit_buy};

fn world() -> World {
    let mut world = World::ready(DeskRules::default(), false);
    world.events();
    world
}

fn list(world: &mut World, client: u64, request_id: &str) {
    let context = RequestContext { client, request_id: request_id.to_owned() };
    let list = GetOrderList {
        request_id: request_id.to_owned().try_into().unwrap(),
        venue: "web_broker".to_owned(),
        filter: OrderListFilter::default(),
    };
    world.command(context, Command::GetOrderList(list));
}

/// A client with endless reads delays no order or cancel of another client. Its reads cost the broker no list
/// each.
#[test]
fn a_client_that_floods_leaves_room_for_others() {
    let mut world = world();
    world.submit(&limit_buy("working", 100, "2500"));
    world.answer_all();
    world.events();
    let sent = world.sent.len();
    for number in 0..600 {
        list(&mut world, 7, &format!("list-{number}"));
    }
    let reported = std::mem::take(&mut world.reported);
    let why = "TOO_MANY_WAITING: 250 commands of this client";
    let refused = reported.iter().filter(|(_, event)| format!("{event:?}").contains(why));
    // One is under way.
    assert_eq!(refused.count(), 600 - 251);
    world.cancel(Some("working"), None);
    world.submit(&limit_buy("next", 100, "2400"));
    world.cancel_all(None);
    for _ in 0..8 {
        world.pass(Duration::from_millis(1));
        world.answer();
    }
    let order: Vec<&str> = world.sent[sent..].iter().map(String::as_str).collect();
    assert_eq!(order[..4], ["list", "cancel", "CLMZanKaiKanougaku", "new"]);
    // The desk's own lists and those of the cancel, but not one list for each read.
    assert!(order[4..].contains(&"cancel-all") && order.len() <= 8, "{order:?}");
    let lists = world.reported.iter().filter(|(to, event)| {
        matches!(event, Event::OrderListUpdated(_)) && *to == Recipient::Client(7)
    });
    assert_eq!(lists.count(), 251);
}
