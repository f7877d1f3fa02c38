//! Redaction of the gateway's texts, in the parts that no test of the whole venue reaches.

use serde_json::json;

use super::*;

const PASSWORD: &str = "canary-word";

fn hidden() -> Hidden {
    let mut hidden = Hidden::default();
    hidden.hide_password(&SecretString::from(PASSWORD));
    hidden
}

fn token(number: usize) -> SecretString {
    SecretString::from(format!("{number:04}token"))
}

fn shows(hidden: &Hidden, secret: &SecretString) -> bool {
    hidden.words(secret.expose_secret()) == secret.expose_secret()
}

#[test]
fn tokens_hidden_max_is_how_many_tokens_are_hidden() {
    let mut hidden = hidden();
    for number in 0..TOKENS_HIDDEN_MAX {
        hidden.hide_token(&token(number));
    }
    assert!((0..TOKENS_HIDDEN_MAX).all(|number| !shows(&hidden, &token(number))));
    for number in TOKENS_HIDDEN_MAX..1_000 {
        hidden.hide_token(&token(number));
        assert!(!shows(&hidden, &token(number + 1 - TOKENS_HIDDEN_MAX)));
        assert!(shows(&hidden, &token(number - TOKENS_HIDDEN_MAX)), "{number}");
    }
    assert_eq!(hidden.tokens.len(), TOKENS_HIDDEN_MAX);
    assert_eq!(hidden.words(PASSWORD), "***", "a password stays, however many tokens come");
}

#[test]
fn passwords_hidden_max_is_how_many_passwords_are_hidden() {
    let mut hidden = hidden();
    for number in 1..PASSWORDS_HIDDEN_MAX {
        hidden.hide_password(&token(number));
    }
    assert!(hidden.words(PASSWORD) == "***" && !shows(&hidden, &token(1)));
    // A secret that is used again becomes the last one again.
    hidden.hide_password(&SecretString::from(PASSWORD));
    hidden.hide_password(&token(0));
    assert!(hidden.words(PASSWORD) == "***" && shows(&hidden, &token(1)));
    assert_eq!(hidden.passwords.len(), PASSWORDS_HIDDEN_MAX);
}

/// A gateway that gives the password as a token makes no text readable.
#[test]
fn what_is_both_stays_hidden_as_either() {
    let mut hidden = hidden();
    hidden.hide_token(&SecretString::from(PASSWORD));
    (0..TOKENS_HIDDEN_MAX).for_each(|number| hidden.hide_token(&token(number)));
    assert_eq!(hidden.words(PASSWORD), "***");
}

#[test]
fn words_are_redacted_before_they_are_cut() {
    let hidden = hidden();
    for before in 0..WORDS_CHARS_MAX + 3 {
        let reported = hidden.words(&format!("{} {PASSWORD} and", "-".repeat(before)));
        assert!(
            !reported.contains('c') && reported.chars().count() <= WORDS_CHARS_MAX + 3,
            "{reported}"
        );
    }
}

/// A dialect may cut its texts anywhere.
#[test]
fn nothing_is_shown_of_what_a_dialect_says_about_a_secret() {
    let hidden = hidden();
    for given in [PASSWORD.to_owned(), r#"{"a":"C\u0061nary\u200b-%77ord"}"#.to_owned()] {
        let said = hidden.words_about(&given, "`canary-wor` is not a text");
        assert_eq!(said, "(not shown: the gateway repeats a secret)");
        assert_eq!(hidden.fault_about(&given, "`canary-wor`"), said);
        assert_eq!(hidden.words_about(&given, ""), "");
        assert_eq!(hidden.name(&given, "canary-wor"), None);
    }
    assert_eq!(hidden.words_about("canary", "a\ncanary"), "a canary");
    assert_eq!(hidden.fault_about("canary", "a\ncanary"), r"a\u000acanary");
    assert_eq!(hidden.name("canary", "canary").as_deref(), Some("canary"));
    assert_eq!(hidden.name("nothing", PASSWORD), None, "one that the dialect has made itself");
}

#[test]
fn numbers_are_hidden_where_they_are_words() {
    let mut hidden = hidden();
    hidden.hide_password(&SecretString::from("20261124"));
    assert_eq!((hidden.code(20_261_124), hidden.code(4_001_005)), ("***".into(), "4001005".into()));
    let mut fields = json!({
        "20261124": 20_261_124, "a": [1_202_611_240, 2026.5, null, true], "b": { "CANARY-WORD": -20_261_124 },
        "c": 1124, "canary-word": 1, "Canary-Word": 2,
    });
    hidden.value(&mut fields);
    let reported =
        json!({ "***": 2, "a": ["***", 2026.5, null, true], "b": { "***": "***" }, "c": 1124 });
    assert_eq!(fields, reported);
}
