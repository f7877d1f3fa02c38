//! Places in the gateway's list that must be freed, and symbols that must not be lost.

use super::*;
use crate::local_broker::REGISTER_MAX;

fn symbol(number: usize) -> String {
    (1_000 + number).to_string()
}

/// P51, P59: a board that is read for a client that has unsubscribed leaves nothing behind, whichever of the
/// requests registers it.
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

/// P52: if a registration that was there before is refused, its subscribers get one report. It is made as soon
/// as there is room.
#[test]
fn p52_a_registration_that_is_lost_is_reported_once_and_tried_again() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "7203");
    world.wait(secs(1));
    world.events();
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.drop_push();
    world.wait(secs(7));
    let why = "HTTP status 400: full; the gateway's list of symbols is full: end the programs that have them, or";
    assert!(world.words().contains(&format!("gets no frames ({why} restart the gateway)")));
    assert_eq!(world.events(), ["1 Error register_full", "2 Error register_full"]);
    world.wait(secs(200));
    assert_eq!(world.events(), Vec::<String>::new(), "once");
    world.fake.registered.clear();
    world.wait(secs(90));
    assert_eq!(world.fake.symbols(), ["7203"]);
    assert_eq!(world.state(), "Ready Streaming");
    // Remembered before a login, and refused then: reported, too.
    let mut world = World::new();
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.subscribe(1, "a", "7203");
    world.login("l");
    world.wait(secs(2));
    let events = world.events();
    assert_eq!(events.last().map(String::as_str), Some("1 Error register_full"), "{events:?}");
}

/// P50, P52: an unwanted symbol is unregistered, however often that is refused; at the end also if the stream
/// is lost.
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
    let request = world.gateway.last_unregister().unwrap();
    assert_eq!(request.question, Question::Unregister(vec!["9984".to_owned()]));
    world.fake.answer(&request.question, &request.secret).unwrap();
    assert_eq!(world.fake.symbols(), [""; 0]);
}

/// If a list lacks some of our symbols, the others are unregistered alone at the end.
#[test]
fn p50_at_the_end_only_what_the_list_has_is_taken_out_again() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.subscribe(1, "b", "9984");
    world.wait(secs(1));
    assert!(!world.gateway.end(), "nothing is on its way");
    let list = r#"{"RegistList":[{"Symbol":"9984","Exchange":1},{"Symbol":"7203","Exchange":3},{"Symbol":"8306","Exchange":1}]}"#;
    let request = world.gateway.last_unregister_of_list(list).unwrap().unwrap();
    assert_eq!(request.question, Question::Unregister(vec!["9984".to_owned()]));
    assert!(world.gateway.last_unregister_of_list(r#"{"RegistList":[]}"#).unwrap().is_none());
    assert!(world.gateway.last_unregister_of_list("<html>").is_err());
    // Nothing new begins.
    world.subscribe(1, "c", "8306");
    world.wait(secs(5));
    assert_eq!(world.fake.symbols(), ["7203", "9984"]);
}

/// A board that was read is no registration: a later subscription is answered after one.
#[test]
fn p51_who_subscribes_to_a_symbol_whose_board_was_read_waits_for_its_registration() {
    let mut world = World::ready();
    world.fake.instead.push(("/board", 400, "no such issue"));
    world.board(1, "a", "7203");
    world.board(2, "b", "7203");
    world.subscribe(1, "c", "7203");
    world.fake.deaf.insert("7203".to_owned());
    world.wait(secs(30));
    let events = world.events();
    assert!(events.contains(&"1 Error c gateway_error".to_owned()), "{events:?}");
    // A lost registration does not count: the second client gets the gateway's answer, too.
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.drop_push();
    world.wait(secs(7));
    world.events();
    world.subscribe(2, "b", "7203");
    world.wait(secs(2));
    assert_eq!(world.events(), ["2 Error b register_full"]);
}

/// A client that changes symbols all the time does not delay the reads of others.
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
    let events = world.events();
    let answered =
        events.iter().filter(|reported| reported.starts_with("2 PositionsUpdated")).count();
    assert!(answered >= 9, "{answered} of 10");
    let mut world = World::ready();
    world.fake.instead = vec![("/register", 503, "busy")];
    world.subscribe(1, "a", "7203");
    world.subscribe(2, "b", "9984");
    world.wait(secs(4));
    assert_eq!(world.events(), Vec::<String>::new(), "one clock for both (P46)");
    world.wait(secs(2));
    assert_eq!(world.events(), ["1 Subscribed a 7203", "2 Subscribed b 9984"]);
}

/// A gateway with one refused symbol is not down.
#[test]
fn a_gateway_with_a_refused_symbol_is_not_down() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.goes_down();
    world.fake.is_up = true;
    world.fake.instead = vec![("/register", 400, "no such issue"); 2];
    world.wait(secs(90));
    assert_eq!(world.state(), "Ready Streaming");
}

/// A registration that the gateway executes late, after its request failed and the symbol was released, is
/// undone.
#[test]
fn what_is_registered_late_is_taken_out() {
    for (late, ends) in [(6, false), (40, false), (6, true)] {
        let mut world = World::ready();
        world.fake.mute.push("/register");
        world.subscribe(1, "a", "7203");
        world.unsubscribe(1, "b", "7203");
        world.wait(secs(1));
        world.fake.mute.clear();
        world.wait(secs(late));
        // The gateway executes it now.
        world.fake.registered.push(("7203".to_owned(), 1));
        if ends {
            let request = world.gateway.last_unregister().unwrap();
            assert_eq!(request.question, Question::Unregister(vec!["7203".to_owned()]));
            continue;
        }
        world.wait(secs(40));
        assert_eq!(world.fake.symbols(), [""; 0]);
        // Later entries belong to other programs.
        world.wait(secs(60));
        world.fake.registered.push(("7203".to_owned(), 1));
        world.subscribe(1, "c", "9984");
        world.wait(secs(100));
        assert_eq!(world.fake.symbols(), ["7203", "9984"]);
    }
}

/// A symbol that is released in an outage is unregistered after it, also if no other is wanted.
#[test]
fn symbols_released_in_an_outage_are_unregistered_after_it() {
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
    let events = world.events();
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events.iter().all(|reported| reported.ends_with("rate_limited")));
}

/// P52: a killed engine leaves its symbols registered. The next engine unregisters them, except those that are
/// wanted again, and leaves the entries of other programs.
#[test]
fn p52_what_a_killed_engine_has_registered_is_taken_out_by_the_next() {
    for wanted in [0, 1, REGISTER_MAX] {
        let mut world = World::ready();
        for number in 0..REGISTER_MAX - 1 {
            world.subscribe(1, &number.to_string(), &symbol(number));
        }
        world.wait(secs(2));
        assert_eq!(world.written.1.len(), REGISTER_MAX - 1);
        world.fake.registered.push(("9984".to_owned(), 1));
        let ((day, written), fake) = (world.written, world.fake);
        let mut world = World { fake, ..World::new() };
        world.gateway.left_over(LeftOver {
            gateway_day: day,
            symbols: written,
            late_until_ms: None,
        });
        for number in 0..wanted {
            world.subscribe(1, &number.to_string(), &symbol(40 + number));
        }
        world.login("l");
        world.wait(secs(10));
        // One place belongs to the other program.
        let ours = wanted.min(REGISTER_MAX - 1);
        let mut found: Vec<String> = world.fake.symbols().into_iter().map(str::to_owned).collect();
        assert_eq!(found.len(), ours + 1, "{found:?}");
        assert!(found.contains(&"9984".to_owned()));
        found.retain(|symbol| symbol != "9984");
        assert!(found.iter().all(|symbol| world.written.1.contains(symbol)), "{:?}", world.written);
    }
}

/// A symbol that is subscribed again before it was unregistered stays.
#[test]
fn what_is_wanted_again_before_it_has_left_stays() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    // It is tried again three times, 5 s each.
    world.fake.instead = vec![("/unregister", 503, "busy"); 2];
    world.unsubscribe(1, "b", "7203");
    world.wait(secs(1));
    world.subscribe(1, "c", "7203");
    world.wait(secs(100));
    assert_eq!((world.fake.symbols(), world.written.1.len()), (vec!["7203"], 1));
}

/// A gateway that is back, and full of other programs' symbols, is ready.
#[test]
fn a_gateway_that_is_back_and_full_is_ready() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.goes_down();
    world.events();
    world.fake.is_up = true;
    world.fake.registered = (0..50).map(|number| (symbol(number), 1)).collect();
    world.wait(secs(90));
    assert_eq!(world.state(), "Ready Streaming");
    assert_eq!(world.events(), ["* VenueReady", "1 Error register_full"]);
}

/// The symbols for the next engine belong to the gateway day, which passes midnight and ends with the forced
/// logout.
#[test]
fn the_written_symbols_are_of_the_gateway_s_day() {
    let mut world = World::with(KeepAlive::Ping, at(23, 50));
    world.login("l");
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    let (day, symbols) = world.written.clone();
    assert_eq!((day, symbols), (at(12, 0).jst_day(), vec!["7203".to_owned()]));
    // At ten to four it is the same day, and after half past six another.
    world.wait(secs(4 * 3_600));
    assert_eq!(world.written.0, day);
    world.wait(secs(3 * 3_600));
    assert_eq!(world.written, (day + 1, vec!["7203".to_owned()]));
    for (hour, minute, back) in [(0, 0, 1), (6, 29, 1), (6, 30, 0), (23, 59, 0)] {
        let time = at(hour, minute);
        assert_eq!(ForcedLogout::default().gateway_day(time), time.jst_day() - back);
    }
}
