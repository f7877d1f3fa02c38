//! The stream: opened, lost, trusted, alive.

use std::sync::{Arc, Mutex};

use super::*;
use crate::local_broker::limits::STREAM_LASTS;

/// P49: registrations come first; 5, 10, 20, 40 and 80 s, then the gateway is down.
#[test]
fn p49_a_stream_that_is_lost_is_opened_again_five_times() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    assert!(world.push(&frame("7203", 1_000, 100)));
    world.events();
    world.fake.pushes = false;
    world.fake.context.clear();
    world.drop_push();
    let begin = world.mono;
    let mut tries = Vec::new();
    while world.mono - begin < secs(154) {
        world.wait(secs(1));
        if world.fake.took("/register") > 0 {
            tries.push((world.mono - begin).as_secs());
        }
    }
    assert_eq!(tries, [5, 15, 35, 75]);
    assert_eq!(world.state(), "Ready Reconnecting 5");
    assert_eq!(world.events(), Vec::<String>::new());
    world.wait(secs(2));
    assert_eq!(world.events(), ["* VenueError local_app_down"]);
    assert_eq!(world.state(), "AppDown (local_app_down)");
    // Then one try without a report every 80 s.
    world.wait(secs(400));
    assert_eq!(world.events(), Vec::<String>::new());
    world.fake.pushes = true;
    world.wait(secs(81));
    assert_eq!(world.events(), ["* VenueReady"]);
    assert_eq!(world.state(), "Ready Streaming");
    assert!(world.push(&frame("7203", 1_000, 200)));
}

#[test]
fn p49_the_first_valid_frame_begins_the_count_anew() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    assert!(world.push(&frame("7203", 1_000, 100)));
    for _ in 0..4 {
        world.drop_push();
        assert_eq!(world.state(), "Ready Reconnecting 1");
        world.wait(secs(6));
        assert!(world.push(&frame("7203", 1_000, 100)));
    }
    // Without a frame each connection is a failed try.
    for attempt in 1..=5 {
        world.drop_push();
        assert_eq!(world.state(), format!("Ready Reconnecting {attempt}"));
        world.wait(secs(90));
    }
    world.drop_push();
    assert_eq!(world.state(), "AppDown (local_app_down)");
    // A long connection is no failed try, and after one all tries are available again.
    world.wait(secs(90));
    for attempt in 1..=3 {
        world.drop_push();
        assert_eq!(world.state(), format!("Ready Reconnecting {attempt}"));
        world.wait(secs(90));
    }
    world.wait(STREAM_LASTS);
    world.drop_push();
    assert_eq!(world.state(), "Ready Reconnecting 1");
}

/// Data of a closed connection are discarded, and nothing from before the registration is repeated.
#[test]
fn p49_frames_before_the_registration_set_nothing() {
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    assert!(world.push(&frame("7203", 1_000, 100)));
    let old = world.connection;
    world.drop_push();
    world.connection = old;
    assert!(!world.push(&frame("7203", 1_000, 300)));
    world.connection = None;
    // The gateway has lost its list meanwhile, and answers the second registration slowly.
    world.fake.registered.clear();
    world.fake.instead = vec![("/register", 200, r#"{"RegistList":[]}"#)];
    world.wait(secs(6));
    assert_eq!(world.fake.symbols(), ["7203"], "registered again once it was open");
    assert!(world.push(&frame("7203", 1_000, 500)));
    assert_eq!(world.traded, 400, "one trade for what was missed");
}

/// A gateway that restarts: the token is dead, the list empty, the stream gone.
#[test]
fn p46_a_gateway_that_restarts_heals_without_a_word() {
    let mut world = World::ready();
    for (request, symbol) in [("a", "7203"), ("b", "9984"), ("c", "130A")] {
        world.subscribe(1, request, symbol);
    }
    world.wait(secs(1));
    world.events();
    world.push(&frame("7203", 1_000, 100));
    world.fake.token = None;
    world.fake.registered.clear();
    world.drop_push();
    world.wait(secs(10));
    assert_eq!(world.events(), Vec::<String>::new());
    assert_eq!(world.state(), "Ready Streaming");
    assert_eq!(world.fake.symbols(), ["130A", "9984", "7203"], "the one used last first");
    assert_eq!(world.fake.took("/token"), 1);
}

/// The same, while it counts as down.
#[test]
fn p46_a_gateway_that_is_down_and_restarts_heals_with_the_password_in_memory() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    world.fake.is_up = false;
    world.drop_push();
    world.wait(secs(300));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    world.events();
    world.fake.context.clear();
    (world.fake.is_up, world.fake.token) = (true, None);
    world.fake.registered.clear();
    world.wait(secs(85));
    assert_eq!(world.events(), ["* VenueReady"]);
    assert_eq!((world.fake.took("/token"), world.fake.symbols()), (1, vec!["7203"]));
    // If only the stream comes back, nothing is reported.
    world.fake.is_up = false;
    world.drop_push();
    world.wait(secs(300));
    world.events();
    world.fake.is_up = true;
    // Its list, which would show that it lives, fails, too.
    world.fake.instead = vec![("/register", 503, "busy"); 5];
    world.fake.token = None;
    world.wait(secs(100));
    assert_eq!(world.events(), Vec::<String>::new());
    world.wait(secs(200));
    assert_eq!(world.events(), ["* VenueReady"]);
    // Without a symbol to register, the answer to a token is needed.
    let mut world = World::new();
    world.fake.is_up = false;
    world.login("a");
    world.wait(secs(20));
    assert_eq!(world.state(), "AppDown (local_app_down)");
    world.fake.is_up = true;
    world.wait(secs(85));
    assert_eq!(world.state(), "Ready Streaming");
    assert_eq!(world.fake.tokens, 1);
}

#[test]
fn a_stream_is_pinged_and_ends_where_nothing_answers() {
    let mut world = World::new();
    world.login("l");
    world.wait(secs(200));
    assert_eq!(world.pings, 10);
    assert_eq!(world.state(), "Ready Streaming");
    world.answers_pings = false;
    world.wait(Duration::from_millis(29_000));
    assert_eq!(world.state(), "Ready Streaming");
    world.wait(secs(2));
    assert_eq!(world.state(), "Ready Reconnecting 1");
    // A frame is as good as the answer to a ping.
    world.wait(secs(10));
    world.subscribe(1, "s", "7203");
    for second in 0..60 {
        world.wait(secs(1));
        world.push(&frame("7203", 1_000, second));
    }
    assert_eq!(world.state(), "Ready Streaming");
}

/// P43: silence counts in the exchange's sessions only, and after the first frame of one.
#[test]
fn p43_silence_is_a_fault_in_sessions_only() {
    let states = |begin: TsNanos, has_frame: bool| {
        let mut world = World::with(KeepAlive::ReadTimeout, begin);
        world.login("l");
        world.subscribe(1, "s", "7203");
        world.wait(secs(1));
        if has_frame {
            assert!(world.push(&frame("7203", 1_000, 100)));
        }
        world.wait(secs(125));
        assert_eq!(world.pings, 0);
        world.state()
    };
    assert_eq!(states(at(9, 30), true), "Ready Reconnecting 1");
    assert_eq!(states(at(9, 30), false), "Ready Streaming", "before the first frame");
    assert_eq!(states(at(11, 29), true), "Ready Streaming", "the lunch break has begun");
    assert_eq!(states(at(11, 45), true), "Ready Streaming");
    assert_eq!(states(at(12, 29), true), "Ready Streaming", "that frame was before the session");
    assert_eq!(states(at(15, 45), true), "Ready Streaming");
    // Monday is a holiday, too.
    for days in [1, 2] {
        let closed = TsNanos::from_nanos(at(9, 30).nanos() - days * 86_400_000_000_000);
        assert_eq!(states(closed, true), "Ready Streaming", "{}", closed.jst_date());
    }
}

/// P43: a connection is judged by its own frames, and only with a subscribed client.
#[test]
fn p43_silence_before_a_connection_or_without_subscribers_is_no_fault() {
    let mut world = World::with(KeepAlive::ReadTimeout, at(9, 30));
    world.login("l");
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    assert!(world.push(&frame("7203", 1_000, 100)));
    world.fake.pushes = false;
    world.drop_push();
    world.wait(secs(130));
    world.fake.pushes = true;
    world.wait(secs(100));
    assert_eq!(world.state(), "Ready Streaming");
    assert!(world.push(&frame("7203", 1_000, 100)));
    world.unsubscribe(1, "u", "7203");
    world.wait(secs(300));
    assert_eq!(world.state(), "Ready Streaming");
    // A new subscription waits for a first frame again.
    world.subscribe(1, "t", "7203");
    world.wait(secs(130));
    assert_eq!(world.state(), "Ready Streaming");
    assert!(world.push(&frame("7203", 1_000, 100)));
    world.wait(secs(125));
    assert_eq!(world.state(), "Ready Reconnecting 1");
}

/// P47: while the gateway logs out all programs nothing is shown, and the missed volume is one trade.
#[test]
fn p47_frames_during_the_forced_logout_are_not_shown() {
    let mut world = World::with(KeepAlive::Ping, at(4, 59));
    world.login("l");
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    assert!(world.push(&frame("7203", 1_000, 100)));
    world.wait(secs(60));
    assert!(!world.push(&frame("7203", 1_000, 900)));
    assert_eq!(world.state(), "Ready Streaming (forced_logout)", "whoever asks is told why");
    // The gateway has logged out, and in again with its own means; our token is dead.
    world.fake.token = None;
    world.fake.registered.clear();
    world.fake.context.clear();
    world.wait(secs(90 * 60));
    assert_eq!((world.fake.took("/token"), world.fake.symbols()), (1, vec!["7203"]));
    assert!(world.push(&frame("7203", 1_000, 1_000)));
    assert_eq!(world.traded, 900);
    assert_eq!(world.state(), "Ready Streaming");
}

/// Specification 1, "Errors": a gateway that is down in the forced logout is no error in the log, but clients
/// get the event.
#[test]
fn a_gateway_that_is_down_in_the_forced_logout_is_logged_as_information() {
    for (begin, level) in [(at(5, 10), "INFO"), (at(9, 10), "ERROR")] {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let mut world = World::with(KeepAlive::Ping, begin);
            world.fake.is_up = false;
            world.login("l");
            world.wait(secs(20));
            assert_eq!(world.events(), ["* VenueLoginStarted l", "* VenueError local_app_down"]);
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let line = text.lines().find(|line| line.contains("local_app_down")).unwrap();
        assert!(line.contains(level), "{line}");
    }
}

/// The log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// P53: unreadable frames are dropped; the connection stays.
#[test]
fn p53_frames_that_are_none_are_dropped() {
    use crate::local_broker::limits::FRAME_BYTES_MAX;
    let mut world = World::ready();
    world.subscribe(1, "s", "7203");
    world.wait(secs(1));
    assert!(!world.push("no JSON"));
    assert!(!world.push(&" ".repeat(FRAME_BYTES_MAX + 1)));
    let (connection, now) = (world.connection.unwrap(), world.now());
    assert!(world.gateway.frame(connection, b"\xff\xfe", now).is_none());
    assert!(!world.push(&frame("9984", 1_000, 1)), "nobody is subscribed to it");
    let other = frame("7203", 1_000, 1).replace("{", r#"{"exchange":3,"#);
    assert!(!world.push(&other));
    assert!(world.push(&frame("7203", 1_000, 1)));
    assert_eq!(world.gateway.stream.dropped.total(), 5);
    assert_eq!(world.state(), "Ready Streaming");
}
