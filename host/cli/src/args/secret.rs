//! Messages about wrong arguments: whoever gives a key or an address with a password in the wrong place does
//! not find it in a log.
//!
//! | what is wrong | what the message repeats |
//! |---|---|
//! | a word where none is expected | nothing of it |
//! | a flag that there is not | its name, where it looks like one of ours |
//! | a subcommand that there is not | a short word of small letters; below `key` only where one of ours is near |
//! | the value of a flag for addresses, tokens or keys, or of one without a value | nothing of it |
//! | the value of any flag, where it is an address with a name or a password | nothing of it |
//! | any other value | the value |

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What stands in the place of a word.
const NOT_SHOWN: &str = "(not shown)";
/// What the names of flags begin with whose values may be secret, or stand beside such.
const FLAGS: [&str; 7] =
    ["--allow-", "--follow", "--listen", "--public-", "--store", "--token-", "--vendor-"];
/// Bytes of a flag's name that a message repeats; the longest of ours is shorter.
const FLAG_BYTES_MAX: usize = 24;
/// Bytes of a subcommand's name that a message repeats. Keys and tokens are longer, or have digits.
const COMMAND_BYTES_MAX: usize = 15;

/// The error without what may be secret.
pub(super) fn without(mut error: clap::Error) -> clap::Error {
    let Some((place, word)) = hidden(&error) else { return error };
    error.insert(place, ContextValue::String(NOT_SHOWN.to_owned()));
    for tip in [ContextKind::Suggested, ContextKind::TrailingArg] {
        error.remove(tip);
    }
    // What says why a value is wrong may repeat it.
    if word.is_empty() || !error.render().to_string().contains(&word) {
        return error;
    }
    let flag = text(&error, ContextKind::InvalidArg).unwrap_or_default().to_owned();
    let cause = format!(
        "invalid value '{NOT_SHOWN}' for '{flag}'\n\nFor more information, try '--help'.\n"
    );
    clap::Error::raw(error.kind(), cause)
}

/// A word that a message would repeat and must not, and its place there.
fn hidden(error: &clap::Error) -> Option<(ContextKind, String)> {
    let place = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => ContextKind::InvalidValue,
    };
    let word = text(error, place)?;
    let flag = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let is_hidden = match error.kind() {
        ErrorKind::UnknownArgument => !is_like_a_flag(word),
        ErrorKind::InvalidSubcommand => !is_like_a_command(word, error),
        ErrorKind::TooManyValues => true,
        _ => FLAGS.iter().any(|name| flag.starts_with(name)) || has_password(word),
    };
    is_hidden.then(|| (place, word.to_owned()))
}

fn is_like_a_flag(word: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    word.starts_with('-') && word.len() <= FLAG_BYTES_MAX && word.bytes().all(is_of_names)
}

/// Whether a word can only be a slip: a short one of small letters, and where keys are named like a command.
fn is_like_a_command(word: &str, error: &clap::Error) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    word.len() <= COMMAND_BYTES_MAX
        && word.bytes().all(is_of_names)
        && (error.get(ContextKind::SuggestedSubcommand).is_some()
            || usage.is_some_and(|usage| !usage.contains("kumiki key ")))
}

/// Whether a text is an address with a name or a password.
fn has_password(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'))
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{command, words};
    use super::*;

    const SECRET: &str = "Marker-Secret-2718";

    fn told(line: &str) -> String {
        let mut command = command();
        let words = words::current(line.split(' ').map(Into::into));
        let error = command.try_get_matches_from_mut(words).unwrap_err();
        without(error.format(&mut command)).render().to_string()
    }

    #[test]
    fn secrets_are_not_repeated() {
        for line in [
            "kumiki rank serve --follow http://user:{}@127.0.0.1:8080",
            "kumiki rank serve --follow {}",
            "kumiki rank serve --follow http://127.0.0.1 --follow-interval {}",
            "kumiki rank serve --listen {}",
            "kumiki rank serve {}",
            "kumiki rank query {}",
            "kumiki data update {}",
            "kumiki rank serve --token={}",
            "kumiki rank serve --graphiql={}",
            "kumiki rank {}",
            "kumiki update {}",
            "kumiki update --{}",
            "kumiki update --api-key={}",
            "kumiki update --vendor-rate {}",
            "kumiki data update --to http://user:{}@host",
            "kumiki key {}",
            "kumiki key list {}",
            "kumiki key list --format=json {}",
            "kumiki key remove jquants-api-key {}",
            "kumiki key remove jquants-api-key --store {}",
            "kumiki {}",
        ] {
            let message = told(&line.replace("{}", SECRET));
            assert!(!message.contains(SECRET), "{line}: {message}");
            assert!(message.starts_with("error: ") && message.contains("--help"), "{message}");
        }
    }

    #[test]
    fn words_that_may_be_passwords_are_not_repeated() {
        for line in ["kumiki key tulip", "kumiki rank s3cret", "kumiki abcdefghijklmnopq"] {
            let message = told(line);
            assert!(message.contains(NOT_SHOWN), "{line}: {message}");
        }
    }

    #[test]
    fn slips_are_repeated() {
        for (line, word) in [
            ("kumiki replay rn", "'rn'"),
            ("kumiki key lst", "'list'"),
            ("kumiki replay run --instruments x", "'--instrument'"),
            ("kumiki rank pubish", "'pubish'"),
            ("kumiki data update --form-files x", "'--form-files'"),
            ("kumiki update -x", "'-x'"),
            ("kumiki data update --to 2025-13-01", "'2025-13-01'"),
            ("kumiki key list --format yaml", "'yaml'"),
        ] {
            let message = told(line);
            assert!(message.contains(word), "{message}");
        }
    }
}
