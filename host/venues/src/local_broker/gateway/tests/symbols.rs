//! Subscriptions and the register set.

use super::*;
use crate::local_broker::REGISTER_MAX;

fn symbol(number: usize) -> String {
    (1_000 + number).to_string()
}

/// P51, P52: what is wanted before a login is remembered, and registered in one request.
#[test]
fn p52_what_is_wanted_together_is_registered_together() {
    let mut world = World::new();
    for number in 0..REGISTER_MAX {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    assert_eq!(world.heard().len(), REGISTER_MAX, "each is answered at once");
    world.subscribe(1, "51", "9999");
    assert_eq!(world.heard(), ["1 Error 51 register_full"]);
    world.login("l");
    world.wait(secs(2));
    assert_eq!(world.fake.registered.len(), REGISTER_MAX);
    assert_eq!(world.fake.took("/register"), 2, "before the stream is opened, and after");
}

#[test]
fn p52_subscriptions_of_one_moment_are_one_request() {
    let mut world = World::ready();
    for number in 0..20 {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    world.wait(secs(1));
    assert_eq!((world.fake.registered.len(), world.heard().len()), (20, 20));
    assert_eq!(world.fake.took("/register"), 2, "the first at once, the others together");
}

/// P51: who changes their mind while the registration waits gets both answers, and nothing is registered.
#[test]
fn p51_a_subscription_that_is_taken_back_while_it_waits_is_answered() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    assert_eq!(world.heard(), ["1 Subscribed a 7203"], "the second one waits for its turn");
    world.unsubscribe(1, "c", "9984");
    assert_eq!(world.heard(), ["1 Subscribed b 9984", "1 Unsubscribed c 9984"]);
    world.wait(secs(2));
    assert_eq!(world.fake.symbols(), ["7203"]);
    assert_eq!(world.heard(), Vec::<String>::new());
}

/// P51: counted by clients, and released with them.
#[test]
fn p51_subscriptions_are_counted_and_released() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "7203.TSE");
    world.subscribe(2, "c", "9984");
    world.wait(secs(1));
    assert_eq!(
        world.heard(),
        ["1 Subscribed a 7203", "2 Subscribed b 7203", "2 Subscribed c 9984"]
    );
    world.unsubscribe(1, "d", "7203");
    world.wait(secs(1));
    assert_eq!(world.heard(), ["1 Unsubscribed d 7203"]);
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
    world.left(2);
    world.wait(secs(1));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.unsubscribe(1, "e", "7203");
    assert_eq!(world.heard(), ["1 Unsubscribed e 7203"]);
    for (ticker, request) in [("72", "f"), ("7203.T", "g"), ("!203", "h"), ("７２０３", "i")] {
        world.subscribe(1, request, ticker);
        assert_eq!(world.heard(), [format!("1 Error {request} validation_error")]);
    }
}

#[test]
fn the_51st_symbol_is_refused_and_evict_lru_makes_room() {
    let mut world = World::ready();
    for number in 0..REGISTER_MAX {
        world.subscribe(1, &number.to_string(), &symbol(number));
    }
    world.wait(secs(2));
    world.heard();
    world.subscribe(1, "a", "9999");
    world.board(1, "b", "9998");
    assert_eq!(world.heard(), ["1 Error a register_full", "1 Error b register_full"]);
    assert_eq!(world.fake.registered.len(), REGISTER_MAX);
    world.board(1, "c", "1000");
    world.evict("d");
    world.subscribe(1, "e", "9999");
    world.wait(secs(2));
    let heard = world.heard();
    assert!(heard.contains(&"* SubscriptionEvicted d 1001".to_owned()), "{heard:?}");
    assert!(heard.contains(&"1 Subscribed e 9999".to_owned()), "{heard:?}");
    assert_eq!(world.fake.registered.len(), REGISTER_MAX);
    assert!(!world.push(&frame("1001", 1_000, 1)), "nobody gets it any more");
    assert!(world.push(&frame("9999", 1_000, 1)));
}

/// P52: what others have registered stays, and counts.
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
    let heard = world.heard();
    assert_eq!(heard.last().unwrap(), "1 Error 5 register_full", "{heard:?}");
    world.left(1);
    world.wait(secs(1));
    assert_eq!(world.fake.registered.len(), 45);
    assert_eq!(world.fake.took("/unregister/all"), 0);
}

/// The gateway knows better what it can take.
#[test]
fn a_symbol_that_the_gateway_refuses_keeps_no_other_one_out() {
    let mut world = World::ready();
    world.fake.is_up = false;
    for (request, symbol) in [("a", "7203"), ("b", "0000"), ("c", "9984")] {
        world.subscribe(1, request, symbol);
    }
    world.fake.is_up = true;
    // The first one alone, the others together; that request is refused, then each of them is sent.
    world.fake.instead = vec![];
    world.wait(secs(6));
    world.heard();
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "0000");
    world.subscribe(1, "c", "9984");
    world.fake.instead = vec![("/register", 400, "bad symbol"), ("/register", 400, "bad symbol")];
    world.wait(secs(2));
    assert_eq!(
        world.heard(),
        ["1 Subscribed a 7203", "1 Error b gateway_error", "1 Subscribed c 9984"]
    );
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
}

#[test]
fn what_the_gateway_leaves_out_of_its_list_is_tried_again_and_then_told() {
    let mut world = World::ready();
    world.fake.deaf.insert("7203".to_owned());
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(7));
    assert_eq!(world.heard(), ["1 Subscribed b 9984"]);
    world.fake.deaf.clear();
    world.wait(secs(6));
    assert_eq!(world.heard(), ["1 Subscribed a 7203"]);
    world.fake.deaf.insert("6758".to_owned());
    world.subscribe(1, "c", "6758");
    world.wait(secs(30));
    assert_eq!(world.heard(), ["1 Error c gateway_error"]);
    assert!(!world.gateway.symbols().contains(&"6758".to_owned()), "its place is free");
}

/// P51: a board has the command's id, touches its entry, and sets no quote.
#[test]
fn p51_a_board_is_read_once() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    world.heard();
    world.board(1, "a", "7203");
    assert_eq!(world.heard(), ["1 DepthSnapshot a 7203"]);
    assert!(world.push(&frame("7203", 1_000, 500)));
    assert_eq!(world.traded, 0, "the first frame is the first");
    // One that cannot be read gives its place back.
    world.fake.instead = vec![("/board", 404, "no such symbol")];
    world.board(1, "b", "9999");
    world.wait(secs(1));
    assert_eq!(world.heard(), ["1 Error b gateway_error"]);
    assert_eq!(world.gateway.symbols(), ["7203"]);
}

/// P50: at the end our own symbols are taken out, and no others.
#[test]
fn p50_the_end_takes_our_symbols_out() {
    let mut world = World::ready();
    world.fake.registered.push(("1301".to_owned(), 1));
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    let request = world.gateway.farewell().unwrap();
    assert_eq!(request.question, Question::Unregister(vec!["7203".to_owned()]));
    assert!(World::new().gateway.farewell().is_none());
}

/// Whatever clients want and give up in between, the gateway has in the end what is wanted, and the requests that
/// wait are few.
#[test]
fn what_is_given_up_at_once_takes_no_place() {
    let mut world = World::ready();
    for number in 0..3 * REGISTER_MAX {
        let symbol = symbol(number % 60);
        world.subscribe(1, "s", &symbol);
        world.unsubscribe(1, "u", &symbol);
        assert!(world.gateway.lanes.waiting().count() <= 4);
    }
    let heard = world.heard();
    let count = |name: &str| heard.iter().filter(|told| told.contains(name)).count();
    assert_eq!((count(" Subscribed "), count(" Unsubscribed ")), (150, 150), "each has its answer");
    world.wait(secs(5));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.subscribe(2, "a", "7203");
    world.subscribe(2, "b", "9984");
    world.left(2);
    world.wait(secs(5));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.heard();
    world.subscribe(3, "c", "7203");
    world.wait(secs(1));
    assert_eq!(world.heard(), ["3 Subscribed c 7203"]);
}

/// What was released while the gateway was away leaves when it is back.
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

/// A registration does not wait behind what clients read.
#[test]
fn registrations_go_before_reads() {
    let mut world = World::ready();
    for number in 0..100 {
        let now = world.now();
        world.gateway.positions(World::asked(1, &number.to_string()), now);
    }
    world.settle();
    world.subscribe(2, "a", "7203");
    world.wait(secs(1));
    assert!(world.heard().contains(&"2 Subscribed a 7203".to_owned()));
}

/// A gateway that took a new token may have lost its list, and a symbol that it refused is tried again.
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
    // Refused with the stream's next opening, and taken later.
    world.fake.registered.clear();
    world.fake.instead = vec![("/register", 400, "full"); 3];
    world.drop_push();
    world.wait(secs(20));
    assert_eq!(world.fake.symbols(), Vec::<&str>::new());
    world.wait(secs(80));
    assert_eq!(world.fake.symbols(), ["7203"]);
}

/// P51, P59: a board that is read for somebody who has given its symbol up leaves nothing behind, whichever of
/// the requests registers it.
#[test]
fn p59_a_board_of_one_who_is_gone_leaves_nothing_registered() {
    for board_read_registers in [true, false] {
        for leaves in [true, false] {
            let mut world = World::dialect(board_read_registers);
            world.login("l");
            world.wait(secs(1));
            world.board(1, "a", "7203");
            world.board(1, "b", "9984");
            world.board(2, "c", "8306");
            if leaves {
                world.left(1);
            } else {
                world.unsubscribe(1, "d", "9984");
            }
            world.wait(secs(2));
            let left: &[&str] = if leaves { &["8306"] } else { &["7203", "8306"] };
            assert_eq!(world.fake.symbols(), left, "{board_read_registers} {leaves}");
        }
    }
}

/// P52: whoever is subscribed is told once that a registration is refused that was there before, and it is
/// made as soon as there is room.
#[test]
fn p52_a_registration_that_is_lost_is_told_once_and_tried_again() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "7203");
    world.wait(secs(1));
    world.heard();
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.drop_push();
    world.wait(secs(7));
    assert!(world.words().contains("no frames of it come (HTTP status 400: full)"));
    assert_eq!(world.heard(), ["1 Error register_full", "2 Error register_full"]);
    world.wait(secs(200));
    assert_eq!(world.heard(), Vec::<String>::new(), "once");
    world.fake.registered.clear();
    world.wait(secs(90));
    assert_eq!(world.fake.symbols(), ["7203"]);
    assert_eq!(world.state(), "Ready Streaming");
    // Remembered before a login, and refused then: told too.
    let mut world = World::new();
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.subscribe(1, "a", "7203");
    world.login("l");
    world.wait(secs(2));
    let heard = world.heard();
    assert_eq!(heard.last().map(String::as_str), Some("1 Error register_full"), "{heard:?}");
}

/// P50, P52: what is to leave leaves, however often that is refused, and at the end also where the stream is
/// lost.
#[test]
fn p50_what_is_to_leave_leaves_in_the_end() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(1));
    world.fake.instead.push(("/unregister", 400, "not all of them"));
    world.unsubscribe(1, "c", "7203");
    world.wait(secs(1));
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
    world.wait(secs(90));
    assert_eq!(world.fake.symbols(), ["9984"]);
    world.fake.pushes = false;
    world.drop_push();
    world.wait(secs(400));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    let request = world.gateway.farewell().unwrap();
    assert_eq!(request.question, Question::Unregister(vec!["9984".to_owned()]));
    world.fake.answer(&request.question, &request.secret).unwrap();
    assert_eq!(world.fake.symbols(), [""; 0]);
}

/// A list that lacks some of ours lets the others be taken out alone, at the end.
#[test]
fn p50_at_the_end_only_what_the_list_has_is_taken_out_again() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(1));
    assert!(!world.gateway.end(), "nothing is on its way");
    let list = r#"{"RegistList":[{"Symbol":"9984","Exchange":1},{"Symbol":"7203","Exchange":3},{"Symbol":"8306","Exchange":1}]}"#;
    let request = world.gateway.farewell_of_list(list).unwrap();
    assert_eq!(request.question, Question::Unregister(vec!["9984".to_owned()]));
    assert!(world.gateway.farewell_of_list(r#"{"RegistList":[]}"#).is_none());
    // Nothing is begun any more.
    world.subscribe(1, "c", "8306");
    world.wait(secs(5));
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
}

/// A board that was read is no registration: whoever subscribes then is answered after one.
#[test]
fn p51_who_subscribes_to_a_symbol_whose_board_was_read_waits_for_its_registration() {
    let mut world = World::ready();
    world.fake.instead.push(("/board", 400, "no such issue"));
    world.board(1, "a", "7203");
    world.board(2, "b", "7203");
    world.subscribe(1, "c", "7203");
    world.fake.deaf.insert("7203".to_owned());
    world.wait(secs(30));
    let heard = world.heard();
    assert!(heard.contains(&"1 Error c gateway_error".to_owned()), "{heard:?}");
    // One that is lost is no known one: the second client gets the gateway's answer too.
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.drop_push();
    world.wait(secs(7));
    world.heard();
    world.subscribe(2, "b", "7203");
    world.wait(secs(2));
    assert_eq!(world.heard(), ["2 Error b register_full"]);
}

/// Whoever changes symbols all the time keeps nobody else's reads up, and a registration that pauses no other one.
#[test]
fn changes_and_reads_take_turns() {
    let mut world = World::ready();
    for number in 0..300 {
        world.subscribe(1, &format!("s{number}"), &symbol(number % 40));
        world.unsubscribe(1, &format!("u{number}"), &symbol(number % 40));
        world.subscribe(1, &format!("t{number}"), &symbol(40 + number % 5));
        world.unsubscribe(1, &format!("v{number}"), &symbol(40 + number % 5));
        world.wait(Duration::from_millis(80));
        if number % 30 == 0 {
            world.positions(2, &format!("p{number}"));
        }
    }
    let heard = world.heard();
    let answered = heard.iter().filter(|told| told.starts_with("2 PositionsUpdated")).count();
    assert!(answered >= 9, "{answered} of 10");
    let mut world = World::ready();
    world.fake.instead = vec![("/register", 503, "busy")];
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "9984");
    world.wait(secs(1));
    assert_eq!(world.heard(), ["2 Subscribed b 9984"]);
    world.wait(secs(5));
    assert_eq!(world.heard(), ["1 Subscribed a 7203"]);
}

/// One symbol that is refused keeps no gateway down.
#[test]
fn a_symbol_that_is_refused_keeps_no_gateway_down() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.is_up = false;
    world.drop_push();
    world.wait(secs(200));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    world.fake.is_up = true;
    world.fake.instead = vec![("/register", 400, "no such issue"); 2];
    world.wait(secs(90));
    assert_eq!(world.state(), "Ready Streaming");
}

/// What is given up in an outage leaves after it, also where nothing is wanted any more.
#[test]
fn what_is_given_up_in_an_outage_leaves_after_it() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.is_up = false;
    world.drop_push();
    world.unsubscribe(1, "b", "7203");
    world.wait(secs(60));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    world.fake.is_up = true;
    world.wait(secs(90));
    assert_eq!((world.state().as_str(), world.fake.symbols()), ("Ready Streaming", Vec::new()));
}

/// The limit of commands that wait for one registration, by its name.
#[test]
fn subscribers_waiting_max_is_the_limit_of_those_who_wait_for_one_symbol() {
    use crate::local_broker::limits::SUBSCRIBERS_WAITING_MAX;
    let mut world = World::ready();
    world.fake.is_up = false;
    for number in 0..SUBSCRIBERS_WAITING_MAX + 3 {
        world.subscribe(1, &number.to_string(), "7203");
    }
    let heard = world.heard();
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert!(heard.iter().all(|told| told.ends_with("rate_limited")));
}

/// P52: an engine that was killed leaves its symbols registered; the one after it takes them out, but for those
/// that are wanted again, and leaves what others have registered.
#[test]
fn p52_what_a_killed_engine_has_registered_is_taken_out_by_the_next() {
    for wanted in [0, 1, REGISTER_MAX] {
        let mut world = World::ready();
        for number in 0..REGISTER_MAX - 1 {
            world.subscribe(1, &number.to_string(), &symbol(number));
        }
        world.wait(secs(2));
        assert_eq!(world.kept.1.len(), REGISTER_MAX - 1);
        world.fake.registered.push(("9984".to_owned(), 1));
        let (kept, fake) = (world.kept.1, world.fake);
        let mut world = World { fake, ..World::new() };
        world.gateway.left_over(kept);
        for number in 0..wanted {
            world.subscribe(1, &number.to_string(), &symbol(40 + number));
        }
        world.login("l");
        world.wait(secs(10));
        // One place is the other program's.
        let ours = wanted.min(REGISTER_MAX - 1);
        let mut found: Vec<String> = world.fake.symbols().into_iter().map(str::to_owned).collect();
        assert_eq!(found.len(), ours + 1, "{found:?}");
        assert!(found.contains(&"9984".to_owned()));
        found.retain(|symbol| symbol != "9984");
        assert!(found.iter().all(|symbol| world.kept.1.contains(symbol)), "{:?}", world.kept);
    }
}

/// A symbol that is subscribed again before it was taken out stays.
#[test]
fn what_is_wanted_again_before_it_has_left_stays() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    // Three times, 5 s each, it is tried again.
    world.fake.instead = vec![("/unregister", 503, "busy"); 2];
    world.unsubscribe(1, "b", "7203");
    world.wait(secs(1));
    world.subscribe(1, "c", "7203");
    world.wait(secs(100));
    assert_eq!((world.fake.symbols(), world.kept.1.len()), (vec!["7203"], 1));
}

/// A gateway that is back, and full of others' symbols, is back.
#[test]
fn a_gateway_that_is_back_and_full_is_ready() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.is_up = false;
    world.drop_push();
    world.wait(secs(200));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    world.heard();
    world.fake.is_up = true;
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.wait(secs(90));
    assert_eq!(world.state(), "Ready Streaming");
    assert_eq!(world.heard(), ["* VenueReady", "1 Error register_full"]);
}

/// What is kept for the engine after this one is of the gateway's day, which goes over midnight and ends with the
/// forced logout.
#[test]
fn what_is_kept_is_of_the_gateway_s_day() {
    let mut world = World::with(KeepAlive::Ping, at(23, 50));
    world.login("l");
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    let (day, symbols) = world.kept.clone();
    assert_eq!((day, symbols), (at(12, 0).jst_day(), vec!["7203".to_owned()]));
    // Ten to four hours later it is the same one, and after half past six another.
    world.wait(secs(4 * 3_600));
    assert_eq!(world.kept.0, day);
    world.wait(secs(3 * 3_600));
    assert_eq!(world.kept, (day + 1, vec!["7203".to_owned()]));
    for (hour, minute, back) in [(0, 0, 1), (6, 29, 1), (6, 30, 0), (23, 59, 0)] {
        let time = at(hour, minute);
        assert_eq!(ForcedLogout::default().gateway_day(time), time.jst_day() - back);
    }
}
