//! Limits of the gateway's texts and of waiting commands: each limit, and one above.

use super::*;
use crate::local_broker::limits::{
    NAME_CHARS_MAX, SHORT_ANSWER_BYTES_MAX, SUBSCRIBERS_WAITING_MAX, TOKEN_CHARS_MAX,
    TOKENS_HIDDEN_MAX, WORDS_CHARS_MAX,
};

/// The text of the last error.
fn last_error(world: &World) -> String {
    let reported = world.reported.iter().rev().find_map(|(_, event)| match event {
        VenueEvent::Error { message, .. } => Some(message.clone()),
        _ => None,
    });
    reported.unwrap_or_else(|| panic!("{:?}", world.reported))
}

/// A text with blanks behind it.
fn padded(text: &str, bytes: usize) -> &'static str {
    format!("{text}{}", " ".repeat(bytes - text.len())).leak()
}

#[test]
fn token_chars_max_is_the_longest_token() {
    for (chars, state) in [
        (1, "Ready Streaming"),
        (TOKEN_CHARS_MAX, "Ready Streaming"),
        (TOKEN_CHARS_MAX + 1, "AppDown (local_app_down)"),
        (0, "AppDown (local_app_down)"),
    ] {
        let mut world = World::new();
        let body = json!({ "ResultCode": 0, "Token": "t".repeat(chars) }).to_string().leak();
        world.fake.instead = vec![("/token", 200, body); 4];
        world.fake.token = Some("t".repeat(chars));
        world.login("a");
        world.wait(secs(16));
        assert_eq!(world.state(), state, "{chars} characters");
    }
}

#[test]
fn tokens_hidden_max_is_how_many_tokens_the_gateway_may_repeat() {
    fn repeated(world: &mut World, token: &'static str) -> String {
        world.fake.instead.push(("/wallet/cash", 400, token));
        world.buying_power("a");
        world.wait(secs(1));
        last_error(world)
    }
    let mut world = World::ready();
    for renewals in 1..=TOKENS_HIDDEN_MAX {
        let reported = repeated(&mut world, "marker4t1oken");
        assert!(reported.contains("not shown"), "{renewals}: {reported}");
        world.fake.token = None;
        world.buying_power("a");
        world.wait(secs(1));
        assert_eq!(world.fake.tokens as usize, renewals + 1);
    }
    assert_eq!(repeated(&mut world, "marker4t1oken"), "HTTP status 400: marker4t1oken");
    for hidden in ["marker4t2oken", "marker4t9oken", PASSWORD] {
        assert!(repeated(&mut world, hidden).contains("not shown"), "{hidden}");
    }
}

#[test]
fn name_chars_max_is_the_limit_of_a_shown_name() {
    let mut world = World::ready();
    world.subscribe(1, "a", "7203");
    world.wait(secs(1));
    for chars in [NAME_CHARS_MAX - 1, NAME_CHARS_MAX, NAME_CHARS_MAX + 1, NAME_CHARS_MAX * 9] {
        let mut message: Value = serde_json::from_str(&frame("7203", 1_000, 0)).unwrap();
        message["name"] = "字".repeat(chars).into();
        assert!(world.push(&message.to_string()));
        world.subscribe(2, "b", "7203");
        let Some((_, VenueEvent::Subscribed { name, .. })) = world.reported.last() else {
            panic!("{:?}", world.reported)
        };
        assert_eq!(name.as_deref(), Some("字".repeat(chars.min(NAME_CHARS_MAX)).as_str()));
    }
}

#[test]
fn words_chars_max_is_the_limit_of_the_gateways_shown_words() {
    for chars in [WORDS_CHARS_MAX, WORDS_CHARS_MAX + 1] {
        let mut world = World::ready();
        world.fake.instead.push(("/wallet/cash", 400, "字".repeat(chars).leak()));
        world.buying_power("a");
        world.wait(secs(1));
        let end = if chars > WORDS_CHARS_MAX { "..." } else { "" };
        let words = format!("HTTP status 400: {}{end}", "字".repeat(WORDS_CHARS_MAX));
        assert_eq!(last_error(&world), words);
    }
}

#[test]
fn short_answer_bytes_max_is_what_a_dialect_is_given() {
    for (bytes, words) in [
        (SHORT_ANSWER_BYTES_MAX, "HTTP status 400: w"),
        (SHORT_ANSWER_BYTES_MAX + 1, "HTTP status 400"),
    ] {
        let mut world = World::ready();
        world.fake.instead.push(("/wallet/cash", 400, padded("w", bytes)));
        world.buying_power("a");
        world.wait(secs(1));
        assert_eq!(last_error(&world), words);
    }
    for (bytes, is_read) in [(SHORT_ANSWER_BYTES_MAX, true), (SHORT_ANSWER_BYTES_MAX + 1, false)] {
        let mut world = World::ready();
        let board = padded(&frame("7203", 1_000, 0), bytes);
        world.fake.instead = vec![("/board", 200, board); 4];
        world.board(1, "a", "7203");
        world.wait(secs(20));
        if is_read {
            assert_eq!(world.events(), ["1 DepthSnapshot a 7203"]);
        } else {
            let reported = last_error(&world);
            assert!(reported.starts_with("the board has more than 65536 bytes"), "{reported}");
        }
    }
}

#[test]
fn subscribers_waiting_max_is_how_many_wait_for_one_registration() {
    let mut world = World::ready();
    world.fake.deaf.insert("7203".to_owned());
    let count = SUBSCRIBERS_WAITING_MAX as u64;
    for client in 0..count {
        world.subscribe(client, "a", "7203");
    }
    assert_eq!(world.events(), Vec::<String>::new(), "all of them wait");
    world.subscribe(count, "b", "7203");
    assert_eq!(world.events(), [format!("{count} Error b rate_limited")]);
    world.subscribe(count, "c", "9984");
    world.fake.deaf.clear();
    world.wait(secs(6));
    let reported = world.events();
    assert_eq!(reported.len(), SUBSCRIBERS_WAITING_MAX + 1, "{reported:?}");
    assert!(reported.iter().all(|one| one.contains(" Subscribed ")), "{reported:?}");
    world.subscribe(count, "d", "7203");
    assert_eq!(world.events(), [format!("{count} Subscribed d 7203")]);
}
