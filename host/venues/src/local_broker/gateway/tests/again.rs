//! Repeated requests, lost registrations, refused tokens.

use super::*;
use crate::local_broker::gateway::Answer;

/// The request that was sent just now.
fn sent(world: &mut World) -> (u64, Question) {
    let sent = world.gateway.take_out().into_iter().find_map(|out| match out {
        Out::Ask { ticket, request } => Some((ticket, request.question)),
        _ => None,
    });
    sent.unwrap()
}

/// A symbol that a client wants again is not unregistered by a request that was under way meanwhile and is
/// repeated.
#[test]
fn what_is_wanted_again_is_not_taken_out() {
    for (status, body) in [(500, "oops"), (429, "slow"), (200, "no list")] {
        let mut world = World::ready();
        world.subscribe(1, "a", "7203");
        world.wait(secs(1));
        let now = world.now();
        world.gateway.unsubscribe(&World::context(1, "b"), "7203", now);
        let (ticket, question) = sent(&mut world);
        assert!(matches!(question, Question::Unregister(_)), "{question:?}");
        world.subscribe(1, "c", "7203");
        world.fake.context.clear();
        let answer = Answer { status, body: body.to_owned().into() };
        world.gateway.answered(ticket, Ok(answer), now);
        world.settle();
        world.wait(secs(30));
        assert_eq!(world.fake.took("/unregister"), 0, "{status}");
        assert_eq!(world.fake.symbols(), ["7203"]);
    }
}

/// P55: what was traded while a symbol was not in the gateway's list is one trade after a gap, of no side.
#[test]
fn p55_volume_missed_while_a_symbol_was_not_registered_is_after_a_gap() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    assert!(world.push(&frame("7203", 1_000, 100)));
    // Another program has unregistered all; the next answer shows it.
    world.fake.registered.clear();
    world.subscribe(2, "b", "9984");
    world.wait(secs(10));
    assert_eq!(world.fake.symbols(), ["9984", "7203"]);
    let (connection, now) = (world.connection.unwrap(), world.now());
    let message = frame("7203", 1_001, 900);
    let update = world.gateway.frame(connection, message.as_bytes(), now).unwrap();
    let trade = update.trade.unwrap();
    assert_eq!((trade.quantity, trade.after_gap, update.gap), (8_000_000, true, true));
}

/// P51: a second subscription that fails leaves the first one in place.
#[test]
fn p51_a_subscription_stays_where_another_one_of_the_same_client_fails() {
    for is_down in [false, true] {
        let mut world = World::ready();
        world.subscribe(1, "a", "7203");
        world.wait(secs(1));
        world.fake.registered.clear();
        world.fake.deaf.insert("7203".to_owned());
        world.subscribe(2, "b", "9984");
        world.wait(secs(1));
        world.events();
        world.subscribe(1, "c", "7203");
        world.fake.is_up = !is_down;
        if is_down {
            world.drop_push();
        }
        world.wait(secs(300));
        let events = world.events();
        let code = if is_down { "local_app_down" } else { "gateway_error" };
        assert!(events.contains(&format!("1 Error c {code}")), "{events:?}");
        world.fake.is_up = true;
        world.fake.deaf.clear();
        world.wait(secs(300));
        assert!(world.fake.symbols().contains(&"7203"), "{is_down}");
        assert!(world.push(&frame("7203", 1_000, 100)), "{is_down}");
    }
}

/// Specification 1, "States and transitions": a token is requested again once, for all subscriptions.
#[test]
fn p47_a_token_is_acquired_again_once() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.context.clear();
    world.fake.instead = vec![
        ("/positions", 401, "no"),
        ("/register", 401, "no"),
        ("/register", 401, "no"),
        ("/positions", 401, "no"),
    ];
    world.positions(1, "p");
    world.wait(secs(30));
    assert_eq!(world.fake.took("/token"), 1);
    assert_eq!(world.state(), "TokenExpired (token_expired)");
}
