//! Texts that are read, and texts that are refused.

use proptest::prelude::*;

use super::*;

#[test]
fn texts_numbers_and_nested_lists_are_read() {
    let text = r#" {"a" : "x\n\u8868\ud83d\ude00\/", "n":-1.50,"z":null,"t":true,
        "l":[{"b":["1",{}]}]} "#;
    let Value::Record(entries) = parse(text).unwrap() else { panic!() };
    assert_eq!(entries[0].1, Value::Text("x\n表\u{1f600}/".to_owned()));
    assert_eq!(entries[1].1, Value::Text("-1.50".to_owned()));
    assert_eq!(entries[2].1, Value::Null);
    let Value::List(rows) = &entries[4].1 else { panic!() };
    let row = fields(rows[0].clone()).unwrap();
    assert_eq!(row, [Field::new("b", "[\"1\",{}]")]);
    for other in [Value::Text(String::new()), Value::Null] {
        assert_eq!(fields(other), Err(JsonError::OtherForm));
    }
    let row = parse(r#"{"a":null,"b":[null]}"#).unwrap();
    assert_eq!(fields(row).unwrap(), [Field::new("a", ""), Field::new("b", "[\"\"]")]);
}

#[test]
fn what_is_no_json_is_refused() {
    for wrong in [
        "",
        "{",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1 2]",
        "\"a",
        "\"\\x\"",
        "01",
        "-",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "+1",
        "nul",
        "{a:1}",
        "\"\\u12\"",
        "e1",
        "'a'",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse(r#"{"a":1,"b":{"c":1,"c":2}}"#), Err(JsonError::Twice(18)));
    assert_eq!(parse(&"[".repeat(100_000)), Err(JsonError::TooDeep));
}

proptest! {
    #[test]
    fn reading_never_panics(text in "[{}\\[\\]\",:\\\\u0-9a-f表 ]{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_quoted_text_comes_back(text in "\\PC{0,30}") {
        prop_assert_eq!(parse(&quoted(&text)), Ok(Value::Text(text)));
    }
}
