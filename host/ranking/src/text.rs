//! Texts of others as messages and events may repeat them: short, on one line, without paths and
//! statements.

pub(crate) use pricestore::excerpt;

/// Characters of a module's own text that a message repeats.
const MODULE_CHARS_MAX: usize = 300;

/// Words that begin a statement of ours.
const STATEMENTS: [&str; 7] = ["ATTACH", "COPY", "CREATE", "INSERT", "SELECT", "SET", "WITH"];

/// A module's own text, which its author wrote for people.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().take(MODULE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The cause of a failure as an event may hold it: paths are left out, and everything from the
/// first statement on. The database engine names both in its messages.
pub(crate) fn redacted(cause: &str) -> String {
    const PATH: &str = "<path>";
    let is_path = |text: &str| text.contains(['/', '\\']);
    // Between quotes a path may have spaces.
    let quoted = cause.split('"').enumerate();
    let unquoted =
        quoted.map(|(index, part)| if index % 2 == 1 && is_path(part) { PATH } else { part });
    let text = unquoted.collect::<Vec<_>>().join("\"");
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        if STATEMENTS.contains(&word.trim_matches(|c: char| !c.is_alphanumeric())) {
            words.push("<statement>");
            break;
        }
        words.push(if is_path(word) { PATH } else { word });
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_hold_no_path_and_no_statement() {
        for (cause, expected) in [
            ("No such file or directory (os error 2)", "No such file or directory (os error 2)"),
            ("Cannot open \"/a b c/d.db\": locked", "Cannot open \"<path>\": locked"),
            ("cannot read some/file.db: it ended", "cannot read <path> it ended"),
            (r"cannot read C:\data\rank.db", "cannot read <path>"),
            (
                "Binder Error: no column\n\nLINE 1: (SELECT c\n  ^",
                "Binder Error: no column LINE 1: <statement>",
            ),
        ] {
            assert_eq!(redacted(cause), expected);
        }
    }
}
