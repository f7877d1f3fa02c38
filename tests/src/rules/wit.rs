//! The contracts read like prose: every word of wit/ has a line of documentation.

use super::Violation;
use crate::files::File;

/// Words that start something which needs documentation, beside fields, functions and cases.
const ITEMS: [&str; 8] =
    ["interface", "world", "record", "enum", "variant", "flags", "resource", "type"];
/// Words that start a line which only refers to something.
const REFERENCES: [&str; 5] = ["package", "use", "import", "export", "include"];

/// Every item, field, function and case has a line `///` before it.
pub fn everything_is_documented(files: &[File]) -> Vec<Violation> {
    let files = files.iter().filter(|file| file.extension() == "wit");
    files.flat_map(undocumented).collect()
}

fn undocumented(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut documented = false;
    // Inside brackets or an unfinished reference: a continuation, not something new.
    let mut open = 0_i32;
    let mut referring = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if let Some(words) = line.strip_prefix("///") {
            documented |= !words.trim().is_empty();
            continue;
        }
        let code = line.split("//").next().unwrap_or("").trim();
        // An attribute, such as `@since(...)`, stands between the words and the item.
        if code.is_empty() || code.starts_with('@') {
            documented &= !line.is_empty();
            continue;
        }
        let continues = open > 0 || referring;
        if !continues
            && !documented
            && let Some(name) = needs_words(code)
        {
            found.push(Violation::at(file, index, format!("`{name}` has no line `///` before it")));
        }
        referring = (referring || is_reference(code)) && !code.ends_with(';');
        open += bracket_balance(code);
        documented = false;
    }
    found
}

fn bracket_balance(code: &str) -> i32 {
    let code = code.replace("->", "");
    code.chars().map(|c| i32::from("(<".contains(c)) - i32::from(")>".contains(c))).sum()
}

fn first_word(code: &str) -> &str {
    code.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '%').next().unwrap_or("")
}

/// `import log;` refers, a field with the name `import` does not.
fn is_reference(code: &str) -> bool {
    let rest = code.strip_prefix(first_word(code)).unwrap_or("");
    REFERENCES.contains(&first_word(code)) && rest.starts_with(' ')
}

/// The name of what starts on this line, if it is something that needs words.
fn needs_words(code: &str) -> Option<&str> {
    // `export init: func(...)` declares a function where it refers to it.
    if is_reference(code) && !code.contains(": func") {
        return None;
    }
    let first = first_word(code);
    if first.is_empty() {
        return None; // closing brackets
    }
    let rest = code.strip_prefix(first).unwrap_or("").trim_start();
    if ITEMS.contains(&first) && !rest.starts_with([':', ',', '(']) || is_reference(code) {
        return Some(first_word(rest));
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines: &[usize]) {
        let found = everything_is_documented(&[File::new("wit/a.wit", text)]);
        let found: Vec<usize> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn documented_contracts_pass() {
        check(
            concat!(
                "package a:b@1.0.0;\n\n/// I.\ninterface i {\n",
                "    use types.{\n        a,\n        b,\n    };\n",
                "    /// R.\n    record r {\n        /// F.\n        f: option<u32>,\n    }\n",
                "    /// F.\n    @since(version = 1.0.0)\n",
                "    f: func(\n        a: u32,\n    ) -> u32;\n}\n",
                "/// W.\nworld w {\n    import i;\n    export j;\n}\n",
            ),
            &[],
        );
    }

    #[test]
    fn what_has_no_words_is_seen() {
        check("interface i {\n}", &[1]);
        check("/// I.\ninterface i {\n    record r {\n        f: u32,\n    }\n}", &[3, 4]);
        check("/// E.\nenum e {\n    a,\n    /// B.\n    b,\n    c(string),\n}", &[3, 6]);
        check("/// I.\ninterface i {\n    write: func(a: u32);\n    type t = u32;\n}", &[3, 4]);
        check("/// W.\nworld w {\n    export run: func();\n}", &[3]);
        check("/// Empty words do not count.\ninterface i {\n    ///\n    f: func();\n}", &[4]);
        check("/// Far away.\n\ninterface i {}", &[3]);
        check("/// T.\nrecord r {\n    type: u32,\n    import: u32,\n}", &[3, 4]);
    }
}
