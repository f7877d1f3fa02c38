//! Rules about the root manifest, the texts beside the code, and the guests of the tests.

use std::collections::BTreeSet;

use super::Violation;
use crate::files::File;

/// More would not be read.
const LONGEST_ARCHITECTURE: usize = 199;

/// ARCHITECTURE.md is there, is short and names every folder of `folders` (as in `host/domain`).
pub fn architecture_is_complete(files: &[File], folders: &[String]) -> Vec<Violation> {
    let Some(file) = files.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return vec![Violation::at(&File::new("ARCHITECTURE.md", ""), 0, "is missing")];
    };
    let mut found = Vec::new();
    let length = file.text.lines().count();
    if length > LONGEST_ARCHITECTURE {
        let what = format!("has {length} lines; {LONGEST_ARCHITECTURE} is the most");
        found.push(Violation::at(file, LONGEST_ARCHITECTURE, what));
    }
    for folder in folders.iter().filter(|folder| !has_name(&file.text, folder)) {
        found.push(Violation::at(file, 0, format!("does not name `{folder}`")));
    }
    found
}

/// Whether `name` stands alone in a text: not inside a longer word, hyphens included.
fn has_name(text: &str, name: &str) -> bool {
    let in_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !in_name(before) && !in_name(after)
    })
}

/// Every dependency of the root manifest says what it is for, on one of its own lines. Our own
/// crates need no reason.
pub fn dependencies_have_reasons(root: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let lines: Vec<&str> = root.text.lines().collect();
    let mut inside = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        if line.starts_with('[') {
            inside = line.starts_with("[workspace.dependencies]");
        }
        let last = if inside && is_entry(line) { end_of_entry(&lines, at) } else { at };
        if inside && is_entry(line) && !line.contains("path =") {
            let reason =
                |line: &&str| line.split_once('#').is_some_and(|(_, text)| !text.trim().is_empty());
            if !lines[at..=last].iter().any(reason) {
                let name = line.split(['=', '.', ' ']).next().unwrap_or(line);
                found.push(Violation::at(
                    root,
                    at,
                    format!("{name} has no comment with its reason"),
                ));
            }
        }
        at = last + 1;
    }
    found
}

fn is_entry(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphanumeric() || c == '"') && line.contains('=')
}

/// The line that closes the brackets which the entry opens.
fn end_of_entry(lines: &[&str], start: usize) -> usize {
    let mut open = 0_i32;
    for (at, line) in lines.iter().enumerate().skip(start) {
        let code = line.split('#').next().unwrap_or("");
        open += code
            .chars()
            .map(|c| i32::from("[{".contains(c)) - i32::from("]}".contains(c)))
            .sum::<i32>();
        if open <= 0 {
            return at;
        }
    }
    start
}

/// No file holds a path of somebody's machine.
pub fn no_machine_paths(files: &[File]) -> Vec<Violation> {
    // Put together here, so that this file does not break its own rule.
    let paths =
        [["/ro", "ot/"], ["/work/", "main"], ["/work/", "shared"]].map(|parts| parts.concat());
    let mut found = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            for path in paths.iter().filter(|path| line.contains(path.as_str())) {
                found.push(Violation::at(file, index, format!("holds the machine path `{path}`")));
            }
        }
    }
    found
}

/// A translated text has the original's commands and code, in its order, the same levels of headings, as many items
/// of lists, each with the same names (warnings stand in such lists), names every flag, variable and subcommand of the
/// original, and no flag, file or variable that the original does not name.
pub fn translation_is_in_step(original: &File, translation: &File) -> Vec<Violation> {
    let (wanted, found) = (Marked::of(&original.text), Marked::of(&translation.text));
    let mut violations = Vec::new();
    let mut differ = |what: &str, wanted: &[&str], found: &[&str]| {
        let same = wanted.iter().zip(found).take_while(|(one, other)| one == other).count();
        if same < wanted.len().max(found.len()) {
            let show =
                |all: &[&str]| all.get(same).map_or("none".to_owned(), |one| format!("{one:?}"));
            let what = format!(
                "{what} {} is {}, and {} in {}",
                same + 1,
                show(found),
                show(wanted),
                original.path
            );
            violations.push(Violation::near(translation, found.get(same).unwrap_or(&""), what));
        }
    };
    differ("the line of code", &wanted.code, &found.code);
    differ("the level of heading", &wanted.headings, &found.headings);
    let [all_wanted, all_found] =
        [&wanted, &found].map(|one| one.items.iter().map(String::as_str).collect::<Vec<_>>());
    differ("what is named by the item of a list", &all_wanted, &all_found);
    for name in found.names.difference(&wanted.names) {
        let what = format!("`{name}` is not in {}", original.path);
        violations.push(Violation::near(translation, name, what));
    }
    for word in typed(&original.text).difference(&typed(&translation.text)) {
        let what = format!("does not name `{word}`, which {} does", original.path);
        violations.push(Violation::at(translation, 0, what));
    }
    violations
}

/// What a user types: flags, environment variables, and the subcommands of `kumiki` and `cargo xtask`.
fn typed(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_flag = |word: &str| {
        word.strip_prefix("--")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let is_variable = |word: &str| {
        let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        word.contains('_')
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(fits)
    };
    let words = text.split(|c| !is_part(c)).filter(|word| is_flag(word) || is_variable(word));
    let mut found: BTreeSet<String> = words.map(str::to_owned).collect();
    // Subcommands of `kumiki` have one or two words, those of `cargo xtask` one.
    for (program, longest) in [("kumiki ", 2), ("cargo xtask ", 1)] {
        let starts = text.match_indices(program).filter(|(at, _)| !text[..*at].ends_with(is_part));
        for (at, _) in starts {
            let rest = &text[at + program.len()..];
            let mut name = program.trim_end().to_owned();
            for word in rest.split([' ', '\n']).take(longest) {
                let command: String = word.chars().take_while(char::is_ascii_lowercase).collect();
                // An argument is no command; what follows a mark is another sentence.
                let is_argument = word[command.len()..].starts_with(is_part);
                if command.is_empty()
                    || is_argument
                    || word[command.len()..].starts_with(['/', '.', '='])
                {
                    break;
                }
                name = format!("{name} {command}");
                found.insert(name.clone());
                if command.len() < word.len() {
                    break;
                }
            }
        }
    }
    found
}

/// What a text in any language has in common with its translation.
struct Marked<'a> {
    /// The lines between fences, with them.
    code: Vec<&'a str>,
    /// The marks before headings.
    headings: Vec<&'a str>,
    /// The names in each item of lists, in the order of the names: that of words is the language's.
    items: Vec<String>,
    /// What stands between backquotes, with single spaces.
    names: BTreeSet<String>,
}

impl<'a> Marked<'a> {
    fn of(text: &'a str) -> Self {
        let (mut code, mut headings, mut prose) = (Vec::new(), Vec::new(), String::new());
        let mut items: Vec<String> = Vec::new();
        let (mut fenced, mut in_item) = (false, false);
        for line in text.lines() {
            let fence = line.starts_with("```");
            if fenced || fence {
                code.push(line);
                fenced ^= fence;
                in_item = false;
                continue;
            }
            prose += line;
            prose.push('\n');
            headings.extend(line.split_once("# ").map(|_| line.split(' ').next().unwrap_or("")));
            let is_first = line.starts_with("- ");
            in_item = is_first || in_item && line.starts_with("  ");
            match items.last_mut().filter(|_| in_item && !is_first) {
                Some(item) => *item = format!("{item}\n{line}"),
                None => items.extend(is_first.then(|| line.to_owned())),
            }
        }
        let items = items.iter().map(|item| Vec::from_iter(names(item)).join(", ")).collect();
        Self { code, headings, items, names: names(&prose) }
    }
}

/// What stands between backquotes, with single spaces.
fn names(text: &str) -> BTreeSet<String> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Every guest under guests/test is named by a test of the host. A guest that no test runs shows
/// nothing. A package that makes no module is what guests share.
pub fn test_guests_are_used(files: &[File]) -> Vec<Violation> {
    let is_test = |file: &&File| {
        file.extension() == "rs"
            && (file.is_below("tests/tests")
                || file.is_below("host") && file.path.contains("/tests/"))
    };
    let tests: Vec<&File> = files.iter().filter(is_test).collect();
    let mut found = Vec::new();
    for file in files {
        let inside = file.path.strip_prefix("guests/test/");
        let Some(name) = inside.and_then(|rest| rest.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        if !file.text.contains("\"cdylib\"") {
            continue;
        }
        // As a text of its own or as a file: a word in a sentence runs no guest.
        let uses = [format!("\"{name}\""), format!("{name}.wasm")];
        let names_it = |test: &&File| uses.iter().any(|one| test.text.contains(one));
        if !tests.iter().any(names_it) {
            let what = format!("no test of host/*/tests or tests/tests names the guest {name}");
            found.push(Violation::at(file, 0, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_the_architecture_is_seen() {
        let folders = ["host/domain".to_owned(), "guests/test".to_owned()];
        assert_eq!(architecture_is_complete(&[], &folders).len(), 1);
        let check = |text: &str| {
            architecture_is_complete(&[File::new("ARCHITECTURE.md", text)], &folders).len()
        };
        assert_eq!(check("`host/domain` and guests/test/"), 0);
        assert_eq!(check("host/domain-model, guests/tests"), 2);
        assert_eq!(check(&"host/domain guests/test\n".repeat(201)), 1);
    }

    #[test]
    fn a_translation_out_of_step_is_seen() {
        let original = File::new("A.md", "# A\n`--one\n two`\n```\nrun --one\n```\n## B\n");
        let check =
            |text: &str| translation_is_in_step(&original, &File::new("A.ja.md", text)).len();
        assert_eq!(check("# 一\n`--one two`\n```\nrun --one\n```\n## 二\n"), 0);
        assert_eq!(check("# 一\n```\nrun --one\n```\n## 二\n"), 0, "prose may be shorter");
        assert_eq!(check("# 一\n`--three`\n```\nrun --one\n```\n## 二\n"), 1);
        assert_eq!(check("# 一\n```\nrun --two\n```\n## 二\n"), 2, "and `--one` is nowhere");
        assert_eq!(check("# 一\n## 二\n"), 2);
        assert_eq!(check("# 一\n```\nrun --one\n```\n"), 1);
    }

    #[test]
    fn a_warning_that_a_translation_lacks_or_changes_is_seen() {
        let original =
            File::new("A.md", "# A\n- `A=1` and\n  `b.txt` cost money.\n- No `c`.\n\n`d`\n");
        let check =
            |text: &str| translation_is_in_step(&original, &File::new("A.ja.md", text)).len();
        assert_eq!(check("# 一\n- `b.txt` と `A=1`。\n- `c` なし。\n"), 0);
        assert_eq!(check("# 一\n- `b.txt` と `A=1`。\n"), 1, "one is gone");
        assert_eq!(check("# 一\n- `A=1`。\n- `c` なし。\n"), 1, "a name is gone");
        assert_eq!(check("# 一\n- `c` なし。\n- `b.txt` と `A=1`。\n"), 1, "another order");
        assert_eq!(check("# 一\n- `A=1`。\n\n`b.txt`\n- `c` なし。\n"), 1, "outside of the list");
    }

    #[test]
    fn what_a_user_types_and_a_translation_leaves_out_is_seen() {
        let found = typed(
            "`--one-two`、`A_B_C` YYYY |---| -- `kumiki`\n`kumiki data check data` and `kumiki sql`は \
             kumiki rank\n--from x, `kumiki replay sweep sma-cross`, `cargo xtask demo no` xkumiki y \
             kumiki data update.",
        );
        let commands = [
            "--from",
            "--one-two",
            "A_B_C",
            "cargo xtask demo",
            "kumiki data",
            "kumiki data check",
            "kumiki rank",
            "kumiki replay",
            "kumiki replay sweep",
            "kumiki sql",
        ];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), commands);
        let missing = |original: &str, text: &str| {
            translation_is_in_step(&File::new("A.md", original), &File::new("A.ja.md", text)).len()
        };
        for name in ["`--two`", "`KUMIKI_TWO`", "`kumiki two`", "`cargo xtask two`"] {
            assert_eq!(missing(&format!("# A\n{name}\n"), "# 一\n"), 1, "{name}");
            assert_eq!(missing(&format!("# A\n{name}\n"), &format!("# 一\n{name}です。\n")), 0);
        }
    }

    #[test]
    fn a_dependency_without_a_reason_is_seen() {
        let text = concat!(
            "[workspace.dependencies]\n# Header.\nown = { path = \"a\" }\n",
            "a = \"1\" # reads\nb = \"1\"\n",
            "c = { version = \"1\", features = [\n    \"d\",\n] } # writes\n",
            "e = { version = \"1\", features = [\n    \"f\",\n] }\n",
            "[profile.release]\nx = 1\n",
        );
        let found = dependencies_have_reasons(&File::new("Cargo.toml", text));
        let lines: Vec<usize> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [5, 9]);
        assert!(found[0].what.starts_with("b has no"), "{}", found[0].what);
    }

    #[test]
    fn a_machine_path_is_seen() {
        let text = format!("fine\nat {}x", ["/ro", "ot/"].concat());
        let found = no_machine_paths(&[File::new("a.md", &text)]);
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert!(no_machine_paths(&[File::new("a.md", "/home/you")]).is_empty());
    }

    #[test]
    fn an_idle_test_guest_is_seen() {
        let guest = File::new("guests/test/loops/Cargo.toml", "crate-type = [\"cdylib\"]");
        let shared = File::new("guests/test/turns/Cargo.toml", "[dependencies]");
        assert!(test_guests_are_used(&[shared]).is_empty());
        let other = File::new("host/sandbox/tests/a.rs", "run(\"loops-forever\") // loops");
        let outside = File::new("host/sandbox/src/a.rs", "run(\"loops\")");
        let found = test_guests_are_used(&[guest.clone(), other.clone(), outside]);
        assert_eq!(found.len(), 1);
        let real = File::new("host/sandbox/tests/b.rs", "run(\"loops\")");
        assert!(test_guests_are_used(&[guest, other, real]).is_empty());
    }
}
