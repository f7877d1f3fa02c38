//! Words of a command line, before clap reads them: commands by their earlier names, and what has to be known
//! to say that the words are wrong.

use std::env;
use std::ffi::OsString;

use clap::{ColorChoice, ValueEnum};

use crate::logging::FORMAT_VARIABLE;

/// Global options that take a value.
const WITH_VALUE: [&str; 3] = ["--color", "--log", FORMAT];
/// The option for the form of the log.
const FORMAT: &str = "--log-format";

/// Commands by their earlier names, the longest of those that begin alike first.
const MOVED: [(&[&str], &[&str]); 3] = [
    (&["update", "board"], &["data", "boards"]),
    (&["update"], &["data", "update"]),
    (&["replay", "sweep", "merge"], &["replay", "merge"]),
];

/// The words with commands by their names of today.
pub(super) fn current(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let places: Vec<usize> = places(&words).take(4).collect();
    let begins = |named: &[&str]| {
        named.len() <= places.len()
            && named.iter().zip(&places).all(|(name, at)| words[*at] == *name)
    };
    if let Some((old, new)) = MOVED.iter().find(|(old, _)| begins(old)) {
        for at in places[..old.len()].iter().rev() {
            words.remove(*at);
        }
        words.splice(places[0]..places[0], new.iter().map(OsString::from));
    } else if begins(&["rank"]) && places.get(1).is_none_or(|at| is_option_of_query(&words[*at])) {
        words.insert(places[0] + 1, "query".into());
    }
    words
}

/// Whether a word after `rank` is an option of what is now `rank query`.
fn is_option_of_query(word: &OsString) -> bool {
    let is_help = word == "-h" || word == "--help";
    word.as_encoded_bytes().starts_with(b"-") && !is_help
}

/// Places of the words that are no global options, without the program's own name.
fn places(words: &[OsString]) -> impl Iterator<Item = usize> {
    let mut is_value = true;
    words.iter().enumerate().filter_map(move |(at, word)| {
        if std::mem::take(&mut is_value) {
            return None;
        }
        is_value = WITH_VALUE.iter().any(|option| word == option);
        let is_global = is_value
            || word.to_str().is_some_and(|word| {
                let name = word.split('=').next().unwrap_or(word);
                WITH_VALUE.contains(&name) || is_flag(word)
            });
        (!is_global).then_some(at)
    })
}

/// Whether a word is a global option without a value.
fn is_flag(word: &str) -> bool {
    let of_letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
    ["--quiet", "--verbose"].contains(&word)
        || of_letters.is_some_and(|letters| letters.bytes().all(|one| b"qv".contains(&one)))
}

/// Whether the words ask for JSON on standard error.
pub(super) fn asks_for_json(words: &[OsString]) -> bool {
    let asked = value(words, FORMAT).or_else(|| env::var_os(FORMAT_VARIABLE));
    asked.is_some_and(|format| format == "json")
}

/// When the words want colors.
pub(super) fn color(words: &[OsString]) -> ColorChoice {
    let asked = value(words, "--color");
    let asked = asked.as_ref().and_then(|word| ColorChoice::from_str(word.to_str()?, false).ok());
    asked.unwrap_or_default()
}

/// The last value of an option.
fn value(words: &[OsString], option: &str) -> Option<OsString> {
    let mut words = words.iter().take_while(|word| *word != "--");
    let mut found = None;
    while let Some(word) = words.next() {
        let after = |word: &OsString| {
            Some(OsString::from(word.to_str()?.strip_prefix(option)?.strip_prefix('=')?))
        };
        if word == option {
            found = words.next().cloned();
        } else if let Some(value) = after(word) {
            found = Some(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn words_ask_for_json_and_colors() {
        let asks = |line: &str| asks_for_json(&words(line));
        assert!(asks("data check --log-format json") && asks("--log-format=json rank --nonsense"));
        assert!(asks("--log-format human --log-format json"));
        for line in ["", "json", "--log-format human", "--log-format", "-- --log-format json"] {
            assert!(!asks(line), "{line}");
        }
        let color = |line: &str| color(&words(line));
        assert_eq!(color("data --color never check"), ColorChoice::Never);
        assert_eq!(color("data check --color=always"), ColorChoice::Always);
        assert_eq!((color("data"), color("--color red")), (ColorChoice::Auto, ColorChoice::Auto));
    }

    #[test]
    fn earlier_names_are_found_behind_global_options() {
        for (old, new) in [
            ("k update", "k data update"),
            ("k --log warn update board x", "k --log warn data boards x"),
            (
                "k -vv --color=never replay -q sweep merge a",
                "k -vv --color=never replay merge -q a",
            ),
            ("k rank", "k rank query"),
            ("k rank -q", "k rank query -q"),
            ("k rank --limit 5", "k rank query --limit 5"),
            ("k rank --log warn serve", "k rank --log warn serve"),
        ] {
            assert_eq!(current(words(old)), words(new), "{old}");
        }
        for same in
            ["k", "k --help", "k rank --help", "k rank pubish", "k help update", "k data update"]
        {
            assert_eq!(current(words(same)), words(same), "{same}");
        }
    }
}
