//! What is JSON is read or skipped, and what is none is told in one line.

use super::*;

fn skipped(text: &str) -> Read<()> {
    let mut json = Json::new(text);
    json.skip()?;
    json.end()
}

#[test]
fn every_value_can_be_skipped() {
    let deep = format!("{}{}", "[".repeat(32), "]".repeat(32));
    let mixed = format!("{}1{}", "[{\"a\":".repeat(16), "}]".repeat(16));
    for text in [
        "null",
        " true ",
        "false",
        "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00字\"",
        "1e999999",
        "-0.000000000001",
        "123456789012345678901234567890",
        "[]",
        "{}",
        "[ 1 , [ ] , { } , \"]\" ]",
        "{\"a\" : {\"b\":[1,2,{\"c\":null}]} , \"a\":\"}\"}",
        &deep,
        &mixed,
    ] {
        assert_eq!(skipped(text), Ok(()), "{text}");
    }
}

#[test]
fn what_is_no_json_is_told_in_one_line() {
    for (text, words) in [
        ("", "it ends where a value is expected"),
        ("nul", "`nul` at byte 0: a value is expected"),
        ("tru\n", "`tru` at byte 0"),
        ("[1,]", "`]` at byte 3: a value is expected"),
        ("[1 2]", "`2` at byte 3: `,` or `]` is expected"),
        ("[1}", "`}` at byte 2: `,` or `]` is expected"),
        ("{\"a\":1]", "`]` at byte 6: `,` or `}` is expected"),
        ("{\"a\":1,}", "`}` at byte 7: a name is expected"),
        ("{a:1}", "a name is expected"),
        ("{\"a\" 1}", "`:` is expected"),
        ("[", "it ends where a value is expected"),
        ("[1", "it ends where `,` or `]` is expected"),
        ("\"a", "it ends where the rest of a text is expected"),
        ("\"a\u{1}b\"", "the rest of a text is expected"),
        ("\"\\x\"", "an escape of JSON is expected"),
        ("\"\\u12\"", "an escape of JSON is expected"),
        ("\"\\u12g4\"", "an escape of JSON is expected"),
        ("\"\\ud83d\"", "an escape of JSON is expected"),
        ("\"\\ud83d\\u0041\"", "an escape of JSON is expected"),
        ("\"\\ude00\"", "an escape of JSON is expected"),
        ("\"\\", "an escape of JSON is expected"),
        ("01", "a number is expected"),
        ("-", "a number is expected"),
        ("1.e3", "a number is expected"),
        ("+1", "a value is expected"),
        ("1 2", "`2` at byte 2: the end is expected"),
        ("{} {}", "the end is expected"),
        ("\u{feff}{}", "a value is expected"),
        ("'a'", "a value is expected"),
        ("\u{202e}\u{7}", "a value is expected"),
    ] {
        let error = skipped(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains(char::is_control) && error.len() < 160, "{error:?}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let error = "more than 32 values inside of one another".to_owned();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let text = format!("{}1{}", open.repeat(33), close.repeat(33));
        assert_eq!(skipped(&text), Err(error.clone()));
    }
    assert_eq!(skipped(&"[".repeat(60_000)), Err(error.clone()));
    let text = format!("{{\"a\":{}1{}}}", "[".repeat(32), "]".repeat(32));
    let mut json = Json::new(&text);
    assert_eq!(json.object(|json, _| json.skip()), Err(error));
}

#[test]
fn members_are_given_by_their_names() {
    let mut json =
        Json::new(" { \"a\\u0062\" : 1.5 , \"c\" : \"x\\ty\\ud83d\\ude00\" , \"d\":null } ");
    let mut seen = Vec::new();
    let read = json.object(|json, name| {
        seen.push(match name {
            "ab" => format!("{name} {}", json.decimal(name)?),
            "c" => format!("{name} {}", json.text(name)?),
            _ => format!("{name} {}", json.null()?),
        });
        Ok(())
    });
    assert_eq!((read, json.end()), (Ok(()), Ok(())));
    assert_eq!(seen, ["ab 15000", "c x\ty😀", "d true"]);
}

#[test]
fn values_of_another_kind_name_their_field() {
    let error = |text: &str| Json::new(text).text("Name").unwrap_err();
    assert_eq!(error("12, 3"), "Name: `12` is no text");
    assert_eq!(error("{\"a\":1}"), "Name: `{\"a\":1` is no text");
    assert_eq!(error(""), "Name: `` is no text");
    let error = |text: &str| Json::new(text).decimal("Price").unwrap_err();
    assert_eq!(error("\"1\""), "Price: `\"1\"` is no number");
    assert_eq!(error("1.23456}"), "Price: `1.23456` has more than 4 decimals");
    assert_eq!(error("1e30"), "Price: `1e30` is too large");
    assert_eq!(error(&"9".repeat(99)), format!("Price: `{}` is too large", "9".repeat(32)));
    assert_eq!(Json::new("1.5").integer("Code"), Err("Code: `1.5` is no whole number".to_owned()));
    assert_eq!(Json::new("-3.0").integer("Code"), Ok(-3));
    assert_eq!(Json::new("\"字").shown(0), "\"字");
}

/// Every byte at every place of a text of every short length.
#[test]
fn the_end_of_a_text_is_found_wherever_it_is() {
    for length in 0..20 {
        let plain = "\u{7f}é~ ".chars().cycle().take(length).collect::<String>();
        for at in (0..=plain.len()).filter(|at| plain.is_char_boundary(*at)) {
            for byte in 0..=0x7f_u8 {
                let text = format!("{}{}{}", &plain[..at], char::from(byte), &plain[at..]);
                let expected =
                    text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
                assert_eq!(Json::new(&text).plain(0), expected.unwrap_or(text.len()), "{text:?}");
            }
        }
    }
}
