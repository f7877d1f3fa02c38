//! Login, token and outages.

use super::*;

#[test]
fn p45_a_login_opens_the_stream_and_a_second_one_joins_the_first() {
    let mut world = World::new();
    world.user = None;
    assert_eq!(world.state(), "Disconnected");
    world.login("a");
    world.login("b");
    assert_eq!(world.events(), ["* VenueLoginStarted a"]);
    assert_eq!(world.state(), "LoggingIn");
    let now = world.now();
    world.gateway.password(Ok(SecretString::from(PASSWORD)), now);
    world.settle();
    assert_eq!(world.events(), ["* VenueReady a", "* VenueReady b"]);
    assert_eq!(world.state(), "Ready Streaming");
    world.login("c");
    assert_eq!(world.events(), ["1 VenueReady c"], "at once, and to who asked");
    assert_eq!(world.fake.took("/token"), 1);
}

/// P50: the user gave no password.
#[test]
fn p50_a_cancelled_login_leads_back() {
    let mut world = World::new();
    world.user = Some(Err("no dialog"));
    world.login("a");
    assert_eq!(world.events(), ["* VenueLoginStarted a", "* VenueLoginCancelled a"]);
    assert_eq!((world.state().as_str(), world.fake.context.len()), ("Disconnected", 0));
}

#[test]
fn p46_a_wrong_password_is_one_attempt() {
    let mut world = World::new();
    world.user = Some(Ok("wrong4marker"));
    world.login("a");
    world.wait(secs(60));
    assert_eq!(world.fake.took("/token"), 1);
    assert_eq!(world.events(), ["* VenueLoginStarted a", "* VenueError login_failed"]);
    assert_eq!(world.state(), "Disconnected (login_failed)");
    // The password is requested again.
    world.user = Some(Ok(PASSWORD));
    world.login("b");
    assert_eq!(world.state(), "Ready Streaming");
}

#[test]
fn p46_a_result_code_is_a_refusal() {
    let mut world = World::new();
    world.fake.instead.push(("/token", 200, r#"{"ResultCode":7,"Token":null}"#));
    world.login("a");
    assert_eq!(world.state(), "Disconnected (login_failed)");
}

/// P46: connection refused, 5xx and unreadable answers: one attempt and three retries at 5 s.
#[test]
fn p46_a_login_is_tried_four_times() {
    for fault in [None, Some((503, "busy")), Some((200, "<html>"))] {
        let mut world = World::new();
        match fault {
            None => world.fake.is_up = false,
            Some((status, body)) => {
                world.fake.instead = vec![("/token", status, body); 4];
            }
        }
        world.login("a");
        world.wait(Duration::from_millis(14_900));
        assert_eq!(world.fake.context.len(), 3, "{fault:?}");
        assert_eq!(world.state(), "LoggingIn");
        world.wait(secs(1));
        assert_eq!(world.fake.context.len(), 4, "{fault:?}");
        let advice = if fault.is_some() {
            "restart the gateway"
        } else {
            "start the gateway and log in there"
        };
        assert!(world.words().ends_with(advice), "{}", world.words());
        assert_eq!(world.events(), ["* VenueLoginStarted a", "* VenueError local_app_down"]);
        assert_eq!(world.state(), "AppDown (local_app_down)");
    }
}

/// P48: pauses of 1, 2 and 4 s, also for the request for a token.
#[test]
fn p48_a_login_with_too_many_requests_pauses_and_fails() {
    let mut world = World::new();
    world.fake.instead = vec![("/token", 429, "slow"); 4];
    world.login("a");
    for (wait, context) in [(900, 1), (200, 2), (1_800, 2), (200, 3), (3_800, 3), (200, 4)] {
        world.wait(Duration::from_millis(wait));
        assert_eq!(world.fake.context.len(), context, "{:?}", world.mono);
    }
    assert!(world.words().contains("wait a minute and log in again"), "{}", world.words());
    assert_eq!(world.events(), ["* VenueLoginStarted a", "* VenueError rate_limited"]);
    assert_eq!(world.state(), "Disconnected (rate_limited)");
    // The password is still known.
    world.user = None;
    world.login("b");
    assert_eq!(world.state(), "Ready Streaming");
}

/// The advice in the error of a failed login.
#[test]
fn the_advice_after_a_failed_login_fits_its_reason() {
    for (status, body, state, advice) in [
        (401, "wrong password", "Disconnected (login_failed)", "check the API password"),
        (400, "code 4001003", "Disconnected (login_failed)", "check the API password"),
        (
            401,
            "nobody",
            "TokenExpired (token_expired)",
            "gives no token (HTTP status 401: nobody); log in there",
        ),
        (404, "no such path", "Disconnected (login_failed)", "check `dialect` and `base_url`"),
    ] {
        let mut world = World::new();
        world.fake.instead.push(("/token", status, body));
        world.login("a");
        assert_eq!(world.state(), state);
        assert!(world.words().contains(advice), "{}", world.words());
    }
}

/// P46: one endpoint without answers does not mean that the gateway is down, as long as its stream lives.
#[test]
fn p46_a_request_without_answers_fails_alone_while_the_stream_lives() {
    for stream_lives in [true, false] {
        let mut world = World::ready();
        world.subscribe(1, "s", "7203");
        world.fake.is_mute = true;
        world.buying_power("a");
        for _ in 0..20 {
            world.wait(secs(1));
            if stream_lives {
                world.push(&frame("7203", 1_000, 0));
            }
        }
        let events = world.events();
        if stream_lives {
            assert_eq!(events, ["1 Subscribed s 7203", "1 Error a gateway_error"]);
            assert_eq!(world.state(), "Ready Streaming");
        } else {
            assert_eq!(world.state(), "AppDown (local_app_down)");
        }
    }
}

/// P46: a gateway that was down must answer before it counts as back, also without subscriptions.
#[test]
fn p46_a_gateway_that_is_back_without_a_login_is_not_ready() {
    for is_logged_in in [true, false] {
        let mut world = World::ready();
        world.fake.is_up = false;
        world.buying_power("a");
        world.drop_push();
        world.wait(secs(40));
        assert_eq!(world.state(), "AppDown (local_app_down)");
        (world.fake.is_up, world.fake.is_logged_in) = (true, is_logged_in);
        world.fake.token = None;
        world.wait(secs(90));
        let state = if is_logged_in { "Ready Streaming" } else { "TokenExpired (token_expired)" };
        assert_eq!(world.state(), state);
    }
}

#[test]
fn a_login_that_succeeds_at_the_last_try_is_one() {
    let mut world = World::new();
    world.fake.is_up = false;
    world.login("a");
    world.wait(secs(12));
    world.fake.is_up = true;
    world.wait(secs(4));
    assert_eq!(world.events(), ["* VenueLoginStarted a", "* VenueReady a"]);
}

/// P46: one outage clock for all requests.
#[test]
fn p46_all_commands_wait_for_one_clock_and_fail_together() {
    let mut world = World::ready();
    world.fake.is_up = false;
    world.buying_power("a");
    world.wait(secs(7));
    world.subscribe(1, "b", "7203");
    world.buying_power("c");
    world.wait(Duration::from_millis(7_900));
    assert_eq!(world.events(), Vec::<String>::new());
    // At 0, 5 and 10 s one request; the rest waits.
    assert_eq!(world.fake.context.len(), 3);
    world.wait(secs(1));
    let events = world.events();
    assert_eq!(
        events,
        [
            "1 Error a local_app_down",
            "1 Error c local_app_down",
            "1 Error b local_app_down",
            "* VenueError local_app_down"
        ]
    );
    // While it is down commands fail at once.
    world.buying_power("d");
    world.subscribe(1, "e", "7203");
    assert_eq!(world.events(), ["1 Error d local_app_down", "1 Error e local_app_down"]);
}

/// Specification 1, "States and transitions": a gateway that refuses connections is down, even if its stream
/// goes on.
#[test]
fn p46_a_gateway_that_refuses_connections_is_down_whatever_its_stream_shows() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    world.fake.is_up = false;
    world.buying_power("a");
    for second in 1..=15 {
        assert!(world.push(&frame("7203", 1_000, 100 * second)), "{second}");
        world.wait(secs(1));
    }
    let reported =
        ["1 Subscribed s 7203", "1 Error a local_app_down", "* VenueError local_app_down"];
    assert_eq!(world.events(), reported);
    assert!(!world.push(&frame("7203", 1_000, 5_000)), "its stream is closed");
    // And it heals by itself.
    world.fake.is_up = true;
    world.wait(secs(90));
    assert_eq!(world.events(), ["* VenueReady"]);
    assert_eq!(world.state(), "Ready Streaming");
}

/// P46: one endpoint that fails while boards are pushed delays no other request and does not bring the gateway
/// down. This holds for any number of clients and requests.
#[test]
fn p46_an_endpoint_that_fails_while_boards_come_fails_alone_for_everybody() {
    let mut world = World::ready();
    world.subscribe(9, "s", "7203");
    world.wait(secs(1));
    world.events();
    world.fake.instead = vec![("/positions", 500, "oops"); 100];
    let mut refused = 0;
    for second in 0..60_u64 {
        assert!(world.push(&frame("7203", 1_000, 0)));
        if second % 2 == 0 {
            world.positions(1 + second % 3, &format!("p{second}"));
        }
        world.buying_power("b");
        world.wait(secs(1));
        let events = world.events();
        assert!(events.contains(&"1 BuyingPowerUpdated b".to_owned()), "{second}: {events:?}");
        refused += events.iter().filter(|reported| reported.ends_with(" gateway_error")).count();
        assert_eq!(world.state(), "Ready Streaming");
    }
    assert!(refused >= 10, "{refused}");
}

/// P46: a request that hangs alone fails alone, also without pushed boards: the gateway's list shows that it
/// lives. The client may be gone by then, or its token dead.
#[test]
fn p46_a_request_that_hangs_alone_takes_nothing_down() {
    for more in ["", "gone", "token"] {
        let mut world = World::ready();
        world.subscribe(2, "s", "7203");
        world.wait(secs(1));
        world.events();
        world.fake.mute.push("/positions");
        world.positions(1, "a");
        world.wait(secs(7));
        world.buying_power("b");
        if more == "token" {
            world.fake.token = None;
        }
        world.wait(secs(7));
        assert_eq!(world.events(), Vec::<String>::new(), "one clock for both: {more}");
        if more == "gone" {
            world.left(1);
        }
        world.wait(secs(12));
        let events = world.events();
        let expected = ["1 BuyingPowerUpdated b", "1 Error a gateway_error"];
        let is_reported = |reported: &str| events.contains(&reported.to_owned());
        assert_eq!(
            expected.map(is_reported),
            [more != "gone", more != "gone"],
            "{more}: {events:?}"
        );
        assert_eq!(world.state(), "Ready Streaming", "{more}");
    }
}

/// P57: a row of the official outline with an unknown value is left out at once. A repeated request would
/// change nothing, and the gateway is well.
#[test]
fn p57_a_row_with_a_value_that_is_not_known_is_left_out_at_once() {
    let mut world = World::ready();
    for (path, body) in [
        ("/positions", r#"[{"Symbol":"7203","Exchange":99,"LeavesQty":100,"Side":"2"}]"#),
        ("/positions", r#"[{"Symbol":"7203","Exchange":1,"LeavesQty":100.5,"Side":"2"}]"#),
        ("/positions", r#"[{"Symbol":"7203","Exchange":1,"LeavesQty":100,"Side":"3"}]"#),
    ] {
        world.fake.instead = vec![(path, 200, body)];
        world.positions(1, "a");
        world.wait(Duration::from_millis(300));
        assert!(world.words().contains("7203: GET /positions: "), "{}", world.words());
        assert_eq!(world.events(), ["1 PositionsUpdated a", "1 Error a gateway_error"], "{body}");
        assert_eq!((world.fake.took(path), world.state()), (1, "Ready Streaming".to_owned()));
    }
}

/// P48: the vendor's gateway refuses all requests within a second of a refusal. A client that goes on gets its
/// answer all the same, because all requests of the class wait.
#[test]
fn p48_a_gateway_that_refuses_for_longer_with_each_request_is_left_alone() {
    let mut world = World::ready();
    world.fake.locked = world.mono + secs(1);
    let mut refused = 0;
    for number in 0..100 {
        world.buying_power(&format!("a{number}"));
        world.wait(Duration::from_millis(300));
        refused += world.events().iter().filter(|reported| reported.contains(" Error ")).count();
    }
    world.wait(secs(10));
    refused += world.events().iter().filter(|reported| reported.contains(" Error ")).count();
    assert_eq!(refused, 0, "nobody is refused");
    assert!(
        world.fake.locked < secs(5),
        "the second refusal was the last: {:?}",
        world.fake.locked
    );
}

#[test]
fn p46_the_end_of_an_outage_is_not_reported() {
    let mut world = World::ready();
    world.fake.is_up = false;
    world.buying_power("a");
    world.wait(secs(8));
    world.fake.is_up = true;
    world.wait(secs(4));
    assert_eq!(world.events(), ["1 BuyingPowerUpdated a"]);
    // The next one has its four tries again.
    world.fake.is_up = false;
    world.buying_power("b");
    world.wait(secs(14));
    assert!(world.is_ready());
}

/// P46: answers of 500 and above, and unreadable ones, are an outage like no answer at all, with the same tries
/// and one clock. If the stream, or at last the gateway's list, shows that it lives, only the command fails.
#[test]
fn p46_answers_that_are_none_are_an_outage_unless_the_gateway_shows_that_it_lives() {
    for (path, status, body) in [
        ("/wallet/cash", 500, "oops"),
        ("/wallet/cash", 200, "<html>"),
        ("/wallet/margin", 200, "{}"),
    ] {
        for (stream_lives, list_lives) in [(true, false), (false, true), (false, false)] {
            let mut world = World::ready();
            world.subscribe(1, "s", "7203");
            world.wait(secs(1));
            world.events();
            world.fake.context.clear();
            world.fake.instead = vec![(path, status, body); 4];
            if !list_lives {
                world.fake.instead.push(("/register", status, body));
            }
            world.buying_power("a");
            for _ in 0..40 {
                world.wait(Duration::from_millis(500));
                if stream_lives {
                    world.push(&frame("7203", 1_000, 0));
                }
            }
            assert_eq!(world.fake.took(path), 4, "{path} {body}");
            let (reported, events) = (world.words(), world.events());
            let probes = world.fake.took("/register");
            assert_eq!(probes, usize::from(!stream_lives), "{path} {body}");
            if stream_lives || list_lives {
                assert_eq!(events, ["1 Error a gateway_error"], "no half answer: {path} {body}");
                assert_eq!(world.state(), "Ready Streaming");
                world.buying_power("b");
                world.wait(secs(1));
                assert_eq!(world.events(), ["1 BuyingPowerUpdated b"]);
            } else {
                assert_eq!(events, ["1 Error a local_app_down", "* VenueError local_app_down"]);
                assert!(reported.ends_with("restart the gateway"), "{reported}");
            }
        }
    }
}

/// P46: one clock for all requests: none of them is sent while the one that began the outage is tried.
#[test]
fn p46_an_answer_that_is_none_holds_the_others_back_until_one_is_answered() {
    let mut world = World::ready();
    world.fake.instead = vec![("/wallet/cash", 503, "busy"); 2];
    world.buying_power("a");
    world.positions(2, "b");
    world.wait(Duration::from_millis(4_500));
    assert_eq!((world.fake.took("/wallet"), world.fake.took("/positions")), (1, 0));
    world.wait(secs(8));
    let events = world.events();
    assert_eq!(
        events,
        ["2 PositionsUpdated b", "1 BuyingPowerUpdated a"],
        "whoever is first in line tries"
    );
    assert_eq!(world.state(), "Ready Streaming");
}

/// P47: a token that the gateway refuses is renewed once, for all waiting requests.
#[test]
fn p47_requests_that_are_refused_together_share_one_new_token() {
    let mut world = World::ready();
    world.fake.token = None;
    world.buying_power("a");
    world.subscribe(1, "b", "7203");
    world.wait(secs(2));
    assert_eq!(world.events(), ["1 Subscribed b 7203", "1 BuyingPowerUpdated a"]);
    assert_eq!(world.fake.took("/token"), 1);
    assert_eq!(world.state(), "Ready Streaming");
}

#[test]
fn p47_a_token_that_is_refused_again_ends_the_session() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    world.events();
    world.fake.instead = vec![("/wallet/cash", 401, "no"), ("/wallet/cash", 401, "no")];
    world.buying_power("a");
    world.wait(secs(2));
    assert_eq!(world.events(), ["1 Error a token_expired", "* VenueError token_expired"]);
    assert_eq!(world.state(), "TokenExpired (token_expired)");
    assert_eq!(world.fake.took("/token"), 1);
    // No request leaves by itself, and no frame is shown.
    world.wait(secs(600));
    assert_eq!(world.fake.took("/token"), 0);
    assert!(!world.push(&frame("7203", 1_000, 100)));
    // The password is requested again, and the subscriptions are registered again.
    world.fake.registered.clear();
    world.login("b");
    world.wait(secs(1));
    assert_eq!(world.fake.symbols(), ["7203"]);
    assert!(world.push(&frame("7203", 1_000, 100)));
}

/// The vendor's forced logout: 401 on everything, also for a token.
#[test]
fn p47_a_gateway_that_has_logged_out_is_token_expired() {
    let mut world = World::ready();
    world.fake.is_logged_in = false;
    world.buying_power("a");
    world.wait(secs(1));
    assert_eq!(world.events(), ["1 Error a token_expired", "* VenueError token_expired"]);
    world.login("b");
    assert_eq!(world.events(), ["* VenueLoginStarted b", "* VenueError token_expired"]);
}

/// P48: 1, 2 and 4 seconds, then an error.
#[test]
fn p48_too_many_requests_pause_and_are_then_reported() {
    let mut world = World::ready();
    world.fake.instead = vec![("/wallet/cash", 429, "slow down"); 3];
    world.buying_power("a");
    world.wait(Duration::from_millis(6_800));
    assert_eq!(world.events(), Vec::<String>::new());
    world.wait(secs(1));
    assert_eq!(world.events(), ["1 BuyingPowerUpdated a"]);
    world.fake.instead = vec![("/wallet/cash", 429, "slow down"); 4];
    world.buying_power("b");
    world.wait(secs(8));
    assert_eq!(world.events(), ["1 Error b rate_limited"]);
    assert_eq!(world.state(), "Ready Streaming");
}

/// No output holds the password or the token, even if the gateway repeats it.
#[test]
fn no_output_holds_a_secret() {
    let mut world = World::ready();
    world.fake.instead = vec![
        ("/wallet/cash", 400, "marker4password is not marker4t1oken"),
        ("/register", 400, "marker4t1oken"),
    ];
    world.buying_power("a");
    world.subscribe(1, "b", "7203");
    world.wait(secs(2));
    let reported = format!("{:?}", world.reported);
    assert!(reported.contains("GatewayError") && !reported.contains("marker4"), "{reported}");
    assert!(!format!("{:?}", world.gateway).contains("marker4"));
}

/// The limit of queued requests, by its name.
#[test]
fn more_commands_than_may_wait_are_refused() {
    use crate::local_broker::limits::{CALLS_WAITING_MAX, CLIENT_CALLS_WAITING_MAX};
    let mut world = World::ready();
    world.fake.is_up = false;
    for number in 0..CALLS_WAITING_MAX + 9 {
        world.positions(1 + (number / CLIENT_CALLS_WAITING_MAX) as u64, &number.to_string());
    }
    let refused = world.events();
    assert_eq!(refused.len(), 9, "{refused:?}");
    assert!(refused.iter().all(|reported| reported.ends_with("rate_limited")));
}

/// The limit of one client's queued requests, by its name.
#[test]
fn client_calls_waiting_max_leaves_room_for_others() {
    use crate::local_broker::limits::CLIENT_CALLS_WAITING_MAX;
    let mut world = World::ready();
    world.fake.is_up = false;
    for number in 0..=CLIENT_CALLS_WAITING_MAX {
        world.positions(1, &number.to_string());
    }
    assert_eq!(world.events(), ["1 Error 32 rate_limited"]);
    world.positions(2, "a");
    assert_eq!(world.events(), Vec::<String>::new());
    // The second client's turn comes after one of the first's.
    world.fake.is_up = true;
    world.wait(secs(6));
    let events = world.events();
    let place = events.iter().position(|reported| reported == "2 PositionsUpdated a");
    assert!(place.is_some_and(|place| place <= 2), "{events:?}");
    // Requests of a client that has left are dropped.
    world.left(1);
    world.fake.took("/positions");
    world.wait(secs(5));
    assert!(world.fake.took("/positions") <= 1);
}

/// The limit of commands that wait for a login, by its name.
#[test]
fn more_logins_than_may_wait_are_refused() {
    use crate::local_broker::limits::LOGINS_WAITING_MAX;
    let mut world = World::new();
    world.user = None;
    for number in 0..LOGINS_WAITING_MAX + 5 {
        world.login(&number.to_string());
    }
    let events = world.events();
    let refused = events.iter().filter(|reported| reported.ends_with("rate_limited"));
    assert_eq!((refused.count(), events.len()), (5, 6));
}
