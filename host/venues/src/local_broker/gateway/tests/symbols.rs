//! Subscriptions and the register set.

use super::*;
use crate::local_broker::gateway::Answer;
use crate::local_broker::limits::NAME_TIME;
use crate::local_broker::{REGISTER_MAX, STRATEGY};

fn symbol(number: usize) -> String {
    (1_000 + number).to_string()
}

/// P51, P52: symbols that are wanted before a login are remembered, and registered in one request.
#[test]
fn p52_what_is_wanted_together_is_registered_together() {
    let mut world = World::new();
    for number in 0..REGISTER_MAX {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    assert_eq!(world.events().len(), REGISTER_MAX, "each is answered at once");
    world.subscribe(1, "51", "9999");
    assert_eq!(world.events(), ["1 Error 51 register_full"]);
    world.login("l");
    world.wait(secs(2));
    assert_eq!(world.fake.registered.len(), REGISTER_MAX);
    let why = "to see what others have, before the stream is opened, and after";
    assert_eq!(world.fake.took("/register"), 3, "{why}");
}

#[test]
fn p52_subscriptions_of_one_moment_are_one_request() {
    let mut world = World::ready();
    for number in 0..20 {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    world.wait(secs(1));
    assert_eq!(world.fake.registered.len(), 20);
    world.wait(secs(2));
    assert_eq!(world.events().len(), 20, "each with its name, which a board tells");
    assert_eq!(world.fake.took("/register"), 2, "the first at once, the others together");
    assert_eq!(world.fake.took("/board"), 20);
}

/// P51: a subscription is answered with the name: from the board, or from a faster frame. It is
/// answered, too, if the board is unreadable, or if other clients that waited for the name have left.
#[test]
fn p51_a_subscription_is_answered_with_the_name() {
    let name = |world: &World, request: &str| {
        let of = |(_, event): &(Recipient, VenueEvent)| match event {
            VenueEvent::Subscribed { request_id, name, .. } if request_id == request => {
                Some(name.clone())
            }
            _ => None,
        };
        world.reported.iter().find_map(of)
    };
    let toyota = Some(Some("トヨタ自動車".to_owned()));
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    assert_eq!(name(&world, "a"), None, "its board waits for its turn");
    world.subscribe(2, "b", "7203");
    world.left(1);
    world.wait(Duration::from_millis(200));
    assert_eq!((name(&world, "a"), name(&world, "b")), (None, toyota.clone()));
    world.subscribe(3, "c", "7203");
    assert_eq!((name(&world, "c"), world.fake.took("/board")), (toyota.clone(), 1), "it is known");
    // A frame is faster, and no client misses it.
    world.subscribe(2, "d", "9984");
    assert!(name(&world, "d").is_none() && world.push(&frame("9984", 1_000, 0)));
    assert_eq!(name(&world, "d"), toyota.clone());
    world.wait(secs(1));
    assert_eq!(world.fake.took("/board"), 0, "nobody needs it any more");
    // All clients that wait for it have left.
    world.subscribe(4, "e", "8306");
    world.left(4);
    world.wait(secs(1));
    assert_eq!((world.fake.took("/board"), world.fake.symbols()), (0, vec!["7203", "9984"]));
}

/// An unreadable name makes no client wait and fails nothing else. If the gateway does not answer, or wants
/// fewer requests, the next names are not requested.
#[test]
fn p51_an_unreadable_name_makes_no_client_wait() {
    for (status, body, context) in [
        (404, "no such board", 3),
        (200, "<html>", 3),
        (500, "oops", 1),
        (429, "slow down", 1),
        (0, "mute", 1),
    ] {
        let mut world = World::ready();
        if status == 0 {
            world.fake.mute.push("/board");
        } else {
            world.fake.instead = vec![("/board", status, body); 3];
        }
        for symbol in ["7203", "9984", "8306"] {
            world.subscribe(1, symbol, symbol);
        }
        world.wait(secs(2));
        let events = world.events();
        assert_eq!(
            events,
            ["1 Subscribed 7203 7203", "1 Subscribed 9984 9984", "1 Subscribed 8306 8306"],
            "{status}"
        );
        assert_eq!(
            (world.fake.took("/board"), world.state().as_str()),
            (context, "Ready Streaming"),
            "{status}"
        );
        // Later the name is requested again.
        world.fake.mute.clear();
        world.fake.instead.clear();
        world.wait(secs(81));
        world.subscribe(1, "d", "6758");
        world.wait(secs(1));
        assert_eq!(
            (world.fake.took("/board"), world.events()),
            (1, vec!["1 Subscribed d 6758".to_owned()])
        );
    }
    // A token that dies is renewed once for all of them; one that is refused only for boards ends nothing.
    for times in [1, 9] {
        let mut world = World::ready();
        world.subscribe(1, "a", "7203");
        world.subscribe(1, "b", "9984");
        world.fake.instead = vec![("/board", 401, "no"); times];
        world.wait(secs(2));
        assert_eq!(world.events(), ["1 Subscribed a 7203", "1 Subscribed b 9984"]);
        assert_eq!(world.state(), "Ready Streaming");
    }
}

/// A client with endless other requests delays no name, and so no subscription, of another client.
#[test]
fn name_time_is_how_long_a_subscription_waits_for_a_name() {
    let mut world = World::ready();
    for number in 0..30 {
        world.positions(1, &format!("p{number}"));
    }
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "7203");
    let begin = world.mono;
    let mut events = Vec::new();
    while !events.contains(&"2 Subscribed b 7203".to_owned()) {
        assert!(world.mono - begin < NAME_TIME + secs(1), "{events:?}");
        world.positions(1, "p");
        world.positions(1, "q");
        world.wait(Duration::from_millis(100));
        events.extend(world.events());
    }
    assert!(events.contains(&"1 Subscribed a 7203".to_owned()) && world.mono - begin > secs(9));
    assert_eq!(world.fake.took("/board"), 0);
    // Other clients still get names.
    world.subscribe(3, "c", "9984");
    for _ in 0..10 {
        world.positions(1, "p");
        world.positions(1, "q");
        world.wait(Duration::from_millis(100));
    }
    let named = world.reported.iter().find_map(|(_, event)| match event {
        VenueEvent::Subscribed { request_id, name, .. } if request_id == "c" => name.as_deref(),
        _ => None,
    });
    assert_eq!(named, Some("トヨタ自動車"));
}

/// P46: a symbol that the gateway cannot register, shown by an unreadable answer, removes no other one. This
/// holds, too, if it was wanted before the login.
#[test]
fn p46_a_symbol_that_cannot_be_registered_takes_no_other_one_away() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.events();
    world.fake.poison.insert("1301".to_owned());
    world.subscribe(2, "b", "1301");
    world.wait(secs(20));
    assert_eq!(world.events(), ["2 Error b gateway_error"]);
    assert_eq!((world.state().as_str(), world.fake.symbols()), ("Ready Streaming", vec!["7203"]));
    let mut world = World::new();
    world.fake.poison.insert("1301".to_owned());
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "1301");
    world.login("l");
    world.wait(secs(120));
    assert_eq!((world.state().as_str(), world.fake.symbols()), ("Ready Streaming", vec!["7203"]));
    let events = world.events();
    assert!(events.iter().all(|reported| !reported.contains("VenueError")), "{events:?}");
    assert!(events.contains(&"2 Error gateway_error".to_owned()), "{events:?}");
    // It is tried again every 80 s, and no client waits for that.
    for _ in 0..40 {
        world.buying_power("c");
        world.wait(secs(5));
        assert!(world.events().contains(&"1 BuyingPowerUpdated c".to_owned()), "{:?}", world.mono);
    }
    world.fake.poison.clear();
    world.wait(secs(90));
    assert_eq!(world.fake.symbols(), ["7203", "1301"]);
}

/// The answer to an old request for a name means nothing for a client that waits for the registration by then.
#[test]
fn p51_an_old_name_confirms_no_new_subscription() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    // The board is under way.
    world.mono += Duration::from_millis(200);
    let now = world.now();
    world.gateway.tick(now);
    let outs: Vec<Out> = world.gateway.take_out().into_iter().collect();
    let [Out::Ask { ticket, request }] = outs.as_slice() else { panic!("{outs:?}") };
    assert_eq!(request.question.path(), "/board/7203@1");
    world.unsubscribe(1, "b", "7203");
    world.events();
    world.fake.instead = vec![("/register", 400, "full"), ("/register", 400, "full")];
    world.subscribe(2, "c", "7203");
    let answer = Answer { status: 200, body: frame("7203", 1_000, 0).into() };
    world.gateway.answered(*ticket, Ok(answer), now);
    assert_eq!(world.events(), Vec::<String>::new());
    world.wait(secs(1));
    assert_eq!(world.events(), ["2 Error c register_full"]);
}

/// P46: requests for names do not prolong an outage.
#[test]
fn p46_names_hold_no_outage_up() {
    let mut world = World::ready();
    for number in 0..40 {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    world.wait(Duration::from_millis(500));
    world.events();
    world.fake.is_mute = true;
    world.buying_power("a");
    world.wait(secs(17));
    let events = world.events();
    assert!(events.contains(&"1 Error a local_app_down".to_owned()), "{events:?}");
    let names = events.iter().filter(|reported| reported.starts_with("1 Subscribed")).count();
    assert!(names > 30, "they are registered: {events:?}");
}

/// P51: a client that unsubscribes while the registration is queued gets both replies, and nothing is
/// registered.
#[test]
fn p51_a_subscription_that_is_taken_back_while_it_waits_is_answered() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    assert_eq!(world.fake.symbols(), ["7203"], "the second one waits for its turn");
    world.push(&frame("7203", 1_000, 0));
    assert_eq!(world.events(), ["1 Subscribed a 7203"]);
    world.unsubscribe(1, "c", "9984");
    assert_eq!(world.events(), ["1 Subscribed b 9984", "1 Unsubscribed c 9984"]);
    world.wait(secs(2));
    assert_eq!(world.fake.symbols(), ["7203"]);
    assert_eq!(world.events(), Vec::<String>::new());
}

/// P52: entries of other programs from before our login stay theirs, whichever client wanted them here before.
#[test]
fn p52_what_others_have_registered_before_the_login_stays() {
    let mut world = World::new();
    world.fake.registered = vec![("7203".to_owned(), 1), ("9984".to_owned(), 1)];
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "8306");
    world.login("l");
    world.wait(secs(2));
    assert_eq!(world.fake.symbols(), ["7203", "9984", "8306"]);
    world.unsubscribe(1, "c", "7203");
    world.unsubscribe(1, "d", "8306");
    world.wait(secs(2));
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
}

/// P51: subscriptions are counted by clients, and released with them.
#[test]
fn p51_subscriptions_are_counted_and_released() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "7203.TSE");
    world.subscribe(2, "c", "9984");
    world.wait(secs(1));
    assert_eq!(
        world.events(),
        ["1 Subscribed a 7203", "2 Subscribed b 7203", "2 Subscribed c 9984"]
    );
    world.unsubscribe(1, "d", "7203");
    world.wait(secs(1));
    assert_eq!(world.events(), ["1 Unsubscribed d 7203"]);
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
    world.left(2);
    world.wait(secs(1));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.unsubscribe(1, "e", "7203");
    assert_eq!(world.events(), ["1 Unsubscribed e 7203"]);
    for (ticker, request) in [("72", "f"), ("7203.T", "g"), ("!203", "h"), ("７２０３", "i")] {
        world.subscribe(1, request, ticker);
        assert_eq!(world.events(), [format!("1 Error {request} validation_error")]);
    }
}

#[test]
fn the_51st_symbol_is_refused_and_evict_lru_makes_room() {
    let mut world = World::ready();
    for number in 0..REGISTER_MAX {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    world.wait(secs(7));
    assert_eq!(world.events().len(), REGISTER_MAX);
    world.subscribe(1, "a", "9999");
    world.board(1, "b", "9998");
    assert_eq!(world.events(), ["1 Error a register_full", "1 Error b register_full"]);
    assert_eq!(world.fake.registered.len(), REGISTER_MAX);
    world.board(1, "c", "1000");
    world.evict("d");
    world.subscribe(1, "e", "9999");
    world.wait(secs(2));
    let events = world.events();
    assert!(events.contains(&"* SubscriptionEvicted d 1001".to_owned()), "{events:?}");
    assert!(events.contains(&"1 Subscribed e 9999".to_owned()), "{events:?}");
    assert_eq!(world.fake.registered.len(), REGISTER_MAX);
    assert!(!world.push(&frame("1001", 1_000, 1)), "nobody gets it any more");
    assert!(world.push(&frame("9999", 1_000, 1)));
}

#[test]
fn who_would_evict_what_a_strategy_trades_is_told_that_it_does() {
    let mut world = World::ready();
    let why = |world: &mut World| {
        world.evict("e");
        match world.reported.pop() {
            Some((Recipient::Client(1), VenueEvent::Error { message, .. })) => message,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why(&mut world), "the engine has no registered symbol to remove");
    world.subscribe(STRATEGY, "s", "7203");
    world.wait(secs(2));
    assert!(why(&mut world).starts_with("the running strategy holds every symbol"));
    world.subscribe(1, "a", "9984");
    world.wait(secs(2));
    world.events();
    world.evict("b");
    assert_eq!(world.events(), ["* SubscriptionEvicted b 9984"]);
}

/// P52: entries of other programs stay, and take places.
#[test]
fn p52_foreign_entries_stay_and_count() {
    let mut world = World::new();
    for number in 0..45 {
        world.fake.registered.push((symbol(number), 1));
    }
    world.login("l");
    for number in 0..6 {
        world.subscribe(1, &number.to_string(), &format!("20{number}0"));
        world.wait(secs(1));
    }
    let events = world.events();
    assert_eq!(events.last().unwrap(), "1 Error 5 register_full", "{events:?}");
    world.left(1);
    world.wait(secs(1));
    assert_eq!(world.fake.registered.len(), 45);
    assert_eq!(world.fake.took("/unregister/all"), 0);
}

/// The gateway decides which symbols it takes.
#[test]
fn a_symbol_that_the_gateway_refuses_blocks_no_other_one() {
    let mut world = World::ready();
    world.fake.is_up = false;
    for (request, symbol) in [("a", "7203"), ("b", "0000"), ("c", "9984")] {
        world.subscribe(1, request, symbol);
    }
    world.fake.is_up = true;
    // The first one alone, the others together; that request is refused, then each of them is sent.
    world.fake.instead = vec![];
    world.wait(secs(6));
    world.events();
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "0000");
    world.subscribe(1, "c", "9984");
    world.fake.instead = vec![("/register", 400, "bad symbol"), ("/register", 400, "bad symbol")];
    world.wait(secs(2));
    assert_eq!(
        world.events(),
        ["1 Subscribed a 7203", "1 Error c gateway_error", "1 Subscribed b 0000"],
        "the one used last first"
    );
    assert_eq!(world.fake.symbols(), ["7203", "0000"]);
}

#[test]
fn a_symbol_that_the_list_lacks_is_tried_again_and_then_reported() {
    let mut world = World::ready();
    world.fake.deaf.insert("7203".to_owned());
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(7));
    assert_eq!(world.events(), ["1 Subscribed b 9984"]);
    world.fake.deaf.clear();
    world.wait(secs(6));
    assert_eq!(world.events(), ["1 Subscribed a 7203"]);
    world.fake.deaf.insert("6758".to_owned());
    world.subscribe(1, "c", "6758");
    world.wait(secs(30));
    assert_eq!(world.events(), ["1 Error c gateway_error"]);
    assert!(!world.gateway.symbols().contains(&"6758".to_owned()), "its place is free");
}

/// P51: a board has the command's id, touches its entry, and sets no quote.
#[test]
fn p51_a_board_is_read_once() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    world.events();
    world.board(1, "a", "7203");
    assert_eq!(world.events(), ["1 DepthSnapshot a 7203"]);
    assert!(world.push(&frame("7203", 1_000, 500)));
    assert_eq!(world.traded, 0, "the first frame is the first");
    // A board that cannot be read frees its place.
    world.fake.instead = vec![("/board", 404, "no such symbol")];
    world.board(1, "b", "9999");
    world.wait(secs(1));
    assert_eq!(world.events(), ["1 Error b gateway_error"]);
    assert_eq!(world.gateway.symbols(), ["7203"]);
}

/// P50: at the end our own symbols are unregistered, and no others.
#[test]
fn p50_the_end_takes_our_symbols_out() {
    let mut world = World::ready();
    world.fake.registered.push(("1301".to_owned(), 1));
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    let request = world.gateway.last_unregister().unwrap();
    assert_eq!(request.question, Question::Unregister(vec!["7203".to_owned()]));
    assert!(World::new().gateway.last_unregister().is_none());
}

/// Clients subscribe and unsubscribe at random: in the end the gateway has the wanted symbols, and few requests
/// are queued.
#[test]
fn a_symbol_that_is_released_at_once_takes_no_place() {
    let mut world = World::ready();
    for number in 0..3 * REGISTER_MAX {
        let symbol = symbol(number % 60);
        world.subscribe(1, "s", &symbol);
        world.unsubscribe(1, "u", &symbol);
        assert!(world.gateway.requests.waiting(0).0 <= 4);
    }
    let events = world.events();
    let count = |name: &str| events.iter().filter(|reported| reported.contains(name)).count();
    assert_eq!((count(" Subscribed "), count(" Unsubscribed ")), (150, 150), "each has its answer");
    world.wait(secs(5));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.subscribe(2, "a", "7203");
    world.subscribe(2, "b", "9984");
    world.left(2);
    world.wait(secs(5));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.events();
    world.subscribe(3, "c", "7203");
    world.wait(secs(1));
    assert_eq!(world.events(), ["3 Subscribed c 7203"]);
}

/// Symbols that were released while the gateway was away are unregistered when it is back.
#[test]
fn what_is_released_in_an_outage_leaves_after_it() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(1));
    world.fake.is_up = false;
    world.unsubscribe(1, "c", "7203");
    world.wait(secs(30));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    world.fake.is_up = true;
    world.wait(secs(90));
    assert_eq!((world.state().as_str(), world.fake.symbols()), ("Ready Streaming", vec!["9984"]));
}

/// Registrations do not wait behind reads.
#[test]
fn registrations_go_before_reads() {
    let mut world = World::ready();
    for number in 0..100 {
        let now = world.now();
        world.gateway.positions(World::context(1, &number.to_string()), now);
    }
    world.settle();
    world.subscribe(2, "a", "7203");
    world.wait(secs(1));
    assert!(world.events().contains(&"2 Subscribed a 7203".to_owned()));
}

/// A gateway that gave a new token may have lost its list, and a symbol that it refused is tried again.
#[test]
fn what_the_gateway_has_lost_is_registered_again() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.token = None;
    world.fake.registered.clear();
    world.buying_power("b");
    world.wait(secs(2));
    assert_eq!(world.fake.symbols(), ["7203"]);
    // Refused with the stream's next opening, and accepted later.
    world.fake.registered.clear();
    world.fake.instead = vec![("/register", 400, "full"); 3];
    world.drop_push();
    world.wait(secs(20));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.wait(secs(80));
    assert_eq!(world.fake.symbols(), ["7203"]);
}
