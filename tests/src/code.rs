//! A view of Rust source that is good enough for rules: what is code, what is a comment.
//!
//! It knows comments, strings and characters, nothing else of the language.

/// One line of source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The code, with comments left out and the content of strings blanked.
    pub code: String,
    /// The text of its comments.
    pub comment: String,
}

impl Line {
    /// Whether the code has `word` standing alone.
    pub fn has_word(&self, word: &str) -> bool {
        self.words().any(|one| one == word)
    }

    /// The words of the code.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// How deep, because block comments nest.
    BlockComment(usize),
    Text,
    /// With how many `#`.
    RawText(usize),
}

/// Splits source into lines of code and comment.
pub fn lines(source: &str) -> Vec<Line> {
    let chars: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] == '\n' {
            if state == State::LineComment {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let rest = &chars[at..];
        let (next, length) = step(state, rest, before(&chars, at));
        if let Some(line) = lines.last_mut() {
            let taken = rest.iter().take(length).filter(|&&c| c != '\n');
            match (state, next) {
                (State::Code, State::Code | State::Text | State::RawText(_)) => {
                    line.code.extend(taken)
                }
                (State::Text | State::RawText(_), State::Code) => line.code.extend(taken),
                (State::Text | State::RawText(_), _) => line.code.push(' '),
                _ => line.comment.extend(taken),
            }
        }
        state = next;
        at += length;
    }
    lines
}

fn before(chars: &[char], at: usize) -> Option<char> {
    at.checked_sub(1).and_then(|index| chars.get(index)).copied()
}

/// The state after the next piece of source, and the length of the piece.
fn step(state: State, rest: &[char], before: Option<char>) -> (State, usize) {
    let starts = |text: &str| text.chars().enumerate().all(|(i, c)| rest.get(i) == Some(&c));
    match state {
        State::Code if starts("//") => (State::LineComment, 2),
        State::Code if starts("/*") => (State::BlockComment(1), 2),
        State::Code if starts("\"") => (State::Text, 1),
        State::Code if starts("'") => (State::Code, character(rest)),
        State::Code if starts("r") && !before.is_some_and(is_in_word) => raw_start(rest),
        State::Code if starts("br") && !before.is_some_and(is_in_word) => {
            let (state, length) = raw_start(&rest[1..]);
            (state, length + 1)
        }
        State::BlockComment(depth) if starts("/*") => (State::BlockComment(depth + 1), 2),
        State::BlockComment(1) if starts("*/") => (State::Code, 2),
        State::BlockComment(depth) if starts("*/") => (State::BlockComment(depth - 1), 2),
        // A backslash at the end of a line continues the text; the line still ends.
        State::Text if starts("\\") && rest.get(1) != Some(&'\n') => (State::Text, 2),
        State::Text if starts("\"") => (State::Code, 1),
        State::RawText(marks) if starts(&format!("\"{}", "#".repeat(marks))) => {
            (State::Code, 1 + marks)
        }
        same => (same, 1),
    }
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a character literal; 1 for the quote of a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', _, tail @ ..] => 3 + tail.iter().take_while(|&&c| c != '\'').count() + 1,
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

fn raw_start(rest: &[char]) -> (State, usize) {
    let marks = rest.iter().skip(1).take_while(|&&c| c == '#').count();
    if rest.get(1 + marks) == Some(&'"') {
        (State::RawText(marks), 2 + marks)
    } else {
        (State::Code, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: &[(&str, &str)]) {
        let found = lines(source);
        let found: Vec<_> =
            found.iter().map(|line| (line.code.trim(), line.comment.trim())).collect();
        assert_eq!(found, expect, "{source}");
    }

    #[test]
    fn comments_are_no_code() {
        check("a // b", &[("a", "// b")]);
        check("a /* b /* c */ d */ e", &[("a  e", "/* b /* c */ d */")]);
        check("a /* b\nc */ d", &[("a", "/* b"), ("d", "c */")]);
        check("/// `x`\nfn f() {}", &[("", "/// `x`"), ("fn f() {}", "")]);
    }

    #[test]
    fn text_is_no_code() {
        check("f(\"ab\")", &[("f(\"  \")", "")]);
        check(r#"f("a\"//b"); c"#, &[("f(\"     \"); c", "")]);
        check("f(r#\"a\"b\"#) // c", &[("f(r#\"   \"#)", "// c")]);
        check("f(br\"a\\\") // c", &[("f(br\"  \")", "// c")]);
        check("\"a\nunsafe\" b", &[("\"", ""), ("\" b", "")]);
        check("\"a \\\n unsafe\" b", &[("\"", ""), ("\" b", "")]);
    }

    #[test]
    fn a_quote_may_be_a_character_or_a_lifetime() {
        check("('\"', 'x') // c", &[("('\"', 'x')", "// c")]);
        check(r"('\'', '\u{1f}') // c", &[(r"('\'', '\u{1f}')", "// c")]);
        check("fn f<'a>(x: &'a str) {} // c", &[("fn f<'a>(x: &'a str) {}", "// c")]);
        check("r.x + br.y", &[("r.x + br.y", "")]);
    }

    #[test]
    fn words_stand_alone() {
        let line = &lines("let unsafe_code = \"unsafe\"; // unsafe")[0];
        assert!(!line.has_word("unsafe") && line.has_word("unsafe_code"));
    }
}
