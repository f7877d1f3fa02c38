//! Late answers, lists and registrations, and the symbols of another day.

use super::*;
use crate::local_broker::gateway::Answer;

/// P47: a refusal of the token before this one requests no further one, which would end this one.
#[test]
fn p47_a_late_refusal_of_the_old_token_requests_no_further_one() {
    let mut world = World::ready();
    world.fake.token = Some("after its restart".to_owned());
    let now = world.now();
    world.gateway.positions(World::context(1, "p"), now);
    world.gateway.buying_power(World::context(2, "c"), now);
    let ticket = |out| match out {
        Out::Ask { ticket, .. } => Some(ticket),
        _ => None,
    };
    let tickets: Vec<u64> = world.gateway.take_out().into_iter().filter_map(ticket).collect();
    assert_eq!(tickets.len(), 2);
    for ticket in tickets {
        let refusal = Answer { status: 401, body: "no such token".to_owned().into() };
        world.gateway.answered(ticket, Ok(refusal), now);
        world.settle();
    }
    world.wait(secs(2));
    assert_eq!((world.fake.took("/token"), world.state().as_str()), (1, "Ready Streaming"));
    let mut events = world.events();
    events.sort();
    assert_eq!(events, ["1 PositionsUpdated p", "2 BuyingPowerUpdated c"]);
}

/// P52: nothing is registered before the list of a login is known, however often a client wants it. The entries
/// of that list belong to other programs.
#[test]
fn p52_nothing_is_registered_before_the_list_of_a_login() {
    for wait in [Duration::ZERO, secs(1)] {
        let mut world = World::new();
        world.fake.registered.push(("7203".to_owned(), 1));
        world.fake.registered.push(("6758".to_owned(), 1));
        world.fake.instead = vec![("/register", 503, "busy"); 2];
        world.subscribe(1, "a", "7203");
        world.login("l");
        world.wait(wait);
        world.subscribe(1, "b", "6758");
        world.board(1, "c", "9984");
        world.wait(secs(3));
        assert_eq!((world.fake.took("/register"), world.fake.took("/board")), (1, 0));
        world.wait(secs(20));
        assert_eq!(world.state(), "Ready Streaming");
        for (request, symbol) in [("d", "7203"), ("e", "6758"), ("f", "9984")] {
            world.unsubscribe(1, request, symbol);
        }
        world.wait(secs(100));
        assert_eq!(world.fake.symbols(), ["7203", "6758"]);
        let events = world.events();
        for reported in ["1 Subscribed a 7203", "1 Subscribed b 6758", "1 DepthSnapshot c 9984"] {
            assert!(events.iter().any(|events| events == reported), "{reported}: {events:?}");
        }
    }
}

/// A list that is refused for good makes no client wait.
#[test]
fn a_list_that_is_refused_makes_no_client_wait() {
    for (status, times) in [(400, 1), (503, 3)] {
        let mut world = World::new();
        world.fake.instead = vec![("/register", status, "no"); times];
        world.login("l");
        world.subscribe(1, "a", "7203");
        world.wait(secs(20));
        assert_eq!(world.state(), "Ready Streaming");
        assert_eq!(world.fake.symbols(), ["7203"]);
    }
}

/// A symbol that is unregistered late, and wanted again by then, is registered again.
#[test]
fn what_is_taken_out_late_and_wanted_again_comes_back() {
    for late in [6, 40] {
        let mut world = World::ready();
        world.subscribe(1, "a", "7203");
        world.wait(secs(1));
        world.fake.mute.push("/unregister");
        world.unsubscribe(1, "b", "7203");
        world.wait(secs(1));
        world.fake.mute.clear();
        world.subscribe(1, "c", "7203");
        world.wait(secs(late));
        world.fake.registered.clear();
        world.wait(secs(40));
        assert_eq!(world.fake.symbols(), ["7203"]);
    }
}

/// Symbols that an engine left on another gateway day are not ours, also if that day ended between the start
/// and the login.
#[test]
fn what_was_left_before_the_forced_logout_is_not_ours_at_a_login_after_it() {
    for (begin, stays) in [(at(4, 30), true), (at(7, 0), false)] {
        let mut world = World::with(KeepAlive::Ping, begin);
        let day = ForcedLogout::default().gateway_day(begin);
        world.fake.registered.push(("7203".to_owned(), 1));
        let symbols = vec!["7203".to_owned()];
        world.gateway.left_over(LeftOver { gateway_day: day, symbols, late_until_ms: None });
        world.wait(secs(3 * 3_600));
        world.login("l");
        world.wait(secs(10));
        assert_eq!(world.fake.symbols().contains(&"7203"), stays);
    }
}

/// Symbols that may be registered late at a clean end are written down with a time, without those of other
/// programs.
#[test]
fn what_may_come_after_the_end_is_left_to_the_next_engine_for_a_while() {
    let mut world = World::new();
    world.fake.registered.push(("7203".to_owned(), 1));
    world.login("l");
    world.wait(secs(2));
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(2));
    for symbol in ["7203", "8306"] {
        let now = world.now();
        world.gateway.registrations.doubt(&[symbol.to_owned()], secs(90), now.mono);
    }
    let mut now = world.now();
    let left = world.gateway.left_at_the_end(now);
    assert_eq!(left.symbols, ["8306"], "7203 was somebody else's");
    assert_eq!(left.late_until_ms, Some(now.wall.millis() + 90_000));
    now.mono += secs(91);
    assert_eq!(world.gateway.left_at_the_end(now).symbols, [""; 0]);
}

/// The next engine starts before the gateway executes a late request.
#[test]
fn what_comes_after_the_next_engines_login_is_taken_out_too() {
    for (until, is_taken_out) in [(90, true), (0, false)] {
        let mut world = World::new();
        let now = world.now();
        let gateway_day = ForcedLogout::default().gateway_day(now.wall);
        let late_until_ms = Some(now.wall.millis() + 1_000 * until);
        let symbols = vec!["8306".to_owned()];
        world.gateway.left_over(LeftOver { gateway_day, symbols, late_until_ms });
        world.login("l");
        world.subscribe(1, "a", "7203");
        world.wait(secs(5));
        world.fake.registered.push(("8306".to_owned(), 1));
        world.wait(secs(100));
        assert_eq!(!world.fake.symbols().contains(&"8306"), is_taken_out);
    }
}

/// P46: an outage whose only request is dropped with its client has no effect on the next request.
#[test]
fn p46_an_outage_ends_with_the_last_request_of_it() {
    let mut world = World::ready();
    world.fake.mute.push("/positions");
    world.positions(2, "p");
    world.wait(secs(11));
    assert_eq!(world.fake.took("/positions"), 3);
    world.left(2);
    world.wait(secs(4));
    world.positions(3, "q");
    world.wait(secs(4));
    assert_eq!(world.state(), "Ready Streaming");
    world.wait(secs(20));
    assert_eq!(world.fake.took("/positions"), 4, "and then the gateway is down, or one endpoint");
}

/// Symbols that are registered one by one, because one of them was refused, take turns with reads; the most
/// recently used comes first.
#[test]
fn symbols_one_by_one_take_turns_with_reads() {
    let mut world = World::ready();
    for number in 0..30 {
        world.subscribe(1, &number.to_string(), &(1_300 + number).to_string());
    }
    world.fake.instead = vec![("/register", 400, "one of them is none")];
    world.wait(Duration::from_millis(250));
    world.positions(2, "p");
    world.wait(secs(1));
    let place = world.fake.context.iter().position(|path| path == "/positions").unwrap();
    assert!(place <= 5, "{:?}", world.fake.context);
    world.wait(secs(10));
    let symbols = world.fake.symbols();
    assert_eq!((symbols.len(), symbols[1], symbols[29]), (30, "1329", "1301"));
}

/// A gateway that answers wrongly is reported in the same words for every command.
#[test]
fn a_gateway_that_went_down_is_reported_in_the_same_words() {
    let mut world = World::new();
    world.fake.instead = vec![("/token", 500, ""); 4];
    world.login("l");
    world.wait(secs(20));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    assert!(world.words().contains("restart the gateway"), "{}", world.words());
    world.positions(1, "p");
    assert!(world.words().contains("restart the gateway"), "{}", world.words());
    let mut world = World::ready();
    world.goes_down();
    world.positions(1, "p");
    assert!(world.words().contains("start the gateway and log in there"), "{}", world.words());
}
