//! What a dialect of a gateway may say of itself.

use super::*;

fn description(rest_prefix: &str, push_path: &str) -> wit::Description {
    wit::Description {
        name: "a-gateway".to_owned(),
        version: "1".to_owned(),
        summary: "words".to_owned(),
        rest_prefix: rest_prefix.to_owned(),
        push_path: push_path.to_owned(),
        board_read_registers: false,
    }
}

#[test]
fn paths_lead_nowhere_else() {
    for (prefix, path) in [("", "/a"), ("/kabusapi", "/kabusapi/websocket"), ("/a/b_c-1", "/9")] {
        let found = describe(description(prefix, path)).unwrap();
        assert_eq!((found.rest_prefix.as_str(), found.push_path.as_str()), (prefix, path));
    }
    let long = format!("/{}", "a".repeat(GATEWAY_PATH_BYTES_MAX));
    for path in [
        "a", "/", "//a", "/a/", "/a//b", "/../a", "/a?b", "/a#b", "/A", "/a b", "/a%2f", "@host",
        ":1/a", "/a\n", "/字", "\\a", &long,
    ] {
        let words = describe(description(path, "/a")).unwrap_err().to_string();
        assert!(words.contains("the prefix `") && !words.contains('\n'), "{path}: {words}");
        assert!(describe(description("", path)).is_err(), "{path}");
    }
    assert!(describe(description("", "")).is_err(), "the push has a path");
    let fits = format!("/{}", "a".repeat(GATEWAY_PATH_BYTES_MAX - 1));
    assert!(describe(description(&fits, &fits)).is_ok());
}

#[test]
fn names_and_words_have_their_forms() {
    let named = |name: &str| wit::Description { name: name.to_owned(), ..description("", "/a") };
    for name in ["", "A", "1a", "a b", "a_b", &"a".repeat(65)] {
        assert!(describe(named(name)).is_err(), "{name}");
    }
    let long = "x".repeat(401);
    assert!(describe(wit::Description { summary: long, ..description("", "/a") }).is_err());
    let lines = "1\n2".to_owned();
    assert!(describe(wit::Description { version: lines, ..description("", "/a") }).is_err());
}
