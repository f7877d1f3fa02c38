//! The pages speak two languages: each family of pages has one table of texts, whole and used, and no
//! text for people stands outside of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Violation;
use crate::files::File;

/// Folders with scripts and templates of pages; each has its table.
pub const FOLDERS: [&str; 3] =
    ["host/results/src/report/assets", "host/sweep/src/assets", "host/ranking/src/service/page"];
/// The table's name.
const TABLE: &str = "texts.json";
/// The script that all pages share.
const SHARED: &str = "host/results/src/report/assets/language.js";
/// Files that are no page of ours for people: a page for developers, and a library.
const LEFT_OUT: [&str; 2] = ["graphiql.html", "uPlot.iife.min.js"];
/// Words in scripts that only look like texts: keys, headers, formulas, names.
const NAMES: [&str; 16] = [
    "Enter",
    "Escape",
    "Home",
    "End",
    "Authorization",
    "Bearer ",
    "Content-Type",
    "Kumiki",
    "Infinity",
    "Query",
    "Volume",
    "High - Low",
    "Close * Volume",
    "Close / High[-3] * 100",
    "Volume / Volume[-1]",
    "text code mono",
];
/// The one text that stands in a template as it is: what a page of comparisons is known by.
const KNOWN_BY: &str = "titleCompare";

/// One family of pages.
struct Family<'a> {
    table: &'a File,
    texts: BTreeMap<String, Value>,
    files: Vec<&'a File>,
}

/// Everything that is wrong with the tables and pages.
#[must_use]
pub fn pages_speak_both_languages(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let inside = |file: &&File| {
            let name = file.path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| !name.contains('/') && !LEFT_OUT.contains(&name))
        };
        let here: Vec<&File> = files.iter().filter(inside).collect();
        let Some(table) = here.iter().find(|file| file.path.ends_with(TABLE)) else { continue };
        let texts = match serde_json::from_str(&table.text) {
            Ok(texts) => texts,
            Err(error) => {
                found.push(Violation::at(table, 0, format!("is no table of texts: {error}")));
                continue;
            }
        };
        let is_page =
            |file: &&&File| [".js", ".html"].iter().any(|ending| file.path.ends_with(ending));
        let family = Family { table, texts, files: here.iter().filter(is_page).copied().collect() };
        found.extend(family.incomplete());
        found.extend(family.unused(files));
        found.extend(family.unknown());
        found.extend(family.outside());
    }
    found
}

impl Family<'_> {
    /// Keys without a text in each language, or with other values in it.
    fn incomplete(&self) -> Vec<Violation> {
        let wrong = |(key, text): (&String, &Value)| {
            let of = |language: &str| text[language].as_str().unwrap_or_default();
            let what = match (of("en"), of("ja")) {
                ("", _) => "has no English text",
                (_, "") => "has no Japanese text",
                (en, ja) if values(en) != values(ja) => "has not the same values in both languages",
                (_, ja) if ja.contains(['<', '>']) => "holds markup",
                _ => return None,
            };
            Some(Violation::near(self.table, &format!("\"{key}\":"), format!("`{key}` {what}")))
        };
        self.texts.iter().filter_map(wrong).collect()
    }

    /// Keys that nothing names. A key with a dot is named by what stands before it, where a script puts
    /// a word of the data behind.
    fn unused(&self, all: &[File]) -> Vec<Violation> {
        let shared = all.iter().filter(|file| file.path == SHARED);
        let mut named = BTreeSet::new();
        let mut families = BTreeSet::new();
        for file in self.files.iter().copied().chain(shared) {
            for literal in literals(&file.text) {
                named.insert(literal.clone());
                if let Some(family) = literal.strip_suffix('.') {
                    families.insert(family.to_owned());
                }
            }
            for call in ["known(\"", "named(\""] {
                families.extend(after(&file.text, call));
            }
        }
        let is_used = |key: &&String| {
            let family = key.split_once('.').map(|(family, _)| family);
            named.contains(*key) || family.is_some_and(|family| families.contains(family))
        };
        let unused = self.texts.keys().filter(|key| !is_used(key));
        let tell = |key: &String| {
            Violation::near(self.table, &format!("\"{key}\":"), format!("`{key}` is not used"))
        };
        unused.map(tell).collect()
    }

    /// Keys that are named and not there.
    fn unknown(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for file in &self.files {
            for call in [
                " t(\"",
                "(t(\"",
                "[t(\"",
                "{t(\"",
                "data-text=\"",
                "data-label=\"",
                "data-title=\"",
                "data-placeholder=\"",
            ] {
                for key in after(&file.text, call) {
                    if !self.texts.contains_key(&key) {
                        let what = format!("`{key}` is not in {TABLE}");
                        found.push(Violation::near(file, &format!("{call}{key}\""), what));
                    }
                }
            }
        }
        found
    }

    /// Texts for people that stand in scripts and templates.
    fn outside(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let known_by = self.texts.get(KNOWN_BY).and_then(|text| text["en"].as_str());
        for file in &self.files {
            let texts = if file.path.ends_with(".js") {
                literals(&file.text).into_iter().filter(|text| is_prose(text)).collect()
            } else {
                visible(&file.text)
            };
            for text in texts.iter().filter(|text| Some(text.as_str()) != known_by) {
                let what = format!("`{text}` stands outside of {TABLE}");
                found.push(Violation::near(file, text, what));
            }
        }
        found
    }
}

/// The names in braces of a text.
fn values(text: &str) -> BTreeSet<&str> {
    let names = text.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    names.filter_map(|name| name.split('|').next()).collect()
}

/// What follows `start`, up to the next quotes, everywhere.
fn after(text: &str, start: &str) -> Vec<String> {
    text.split(start).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The literals of a script or template: what stands in double quotes, and the pieces of templates
/// between their values. Comments and regular expressions are left out.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['/', '*'])) {
        let line = line.split(" // ").next().unwrap_or_default();
        let mut piece: Option<String> = None;
        let (mut end, mut letters) = ('"', line.chars().peekable());
        while let Some(letter) = letters.next() {
            match (&mut piece, letter) {
                (None, '"' | '`') => (piece, end) = (Some(String::new()), letter),
                (None, '}') if end == '`' => piece = Some(String::new()),
                (Some(_), '\\') => {
                    letters.next();
                }
                (Some(_), '$') if end == '`' && letters.peek() == Some(&'{') => {
                    found.extend(piece.take());
                }
                (Some(_), letter) if letter == end => {
                    found.extend(piece.take());
                    end = '"';
                }
                (Some(text), letter) => text.push(letter),
                (None, _) => {}
            }
        }
    }
    found
}

/// Whether a literal reads like a text for people: a word with a capital, or several words.
fn is_prose(text: &str) -> bool {
    if NAMES.contains(&text) || text.contains(['{', '$', '=', ';', '>']) || text.contains("px") {
        return false;
    }
    let words = || text.split([' ', '.', ':']).filter(|word| word.chars().count() > 1);
    let is_word = |word: &&str| word.chars().all(char::is_alphabetic);
    let begins = words().next().is_some_and(|word| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.all(char::is_lowercase)
    });
    begins || words().filter(is_word).count() > 2
}

/// The texts that a template shows: between tags, and in attributes that are read aloud.
fn visible(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in [" aria-label=\"", " title=\"", " placeholder=\"", " alt=\""] {
        found.extend(after(html, name));
    }
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        found.push(rest[..start].trim().to_owned());
        rest = &rest[start..];
        let end = ["<script", "<style", "<!--"].into_iter().zip(["</script>", "</style>", "-->"]);
        let hidden = end.into_iter().find(|(begin, _)| rest.starts_with(begin));
        let end = hidden.map_or(">", |(_, end)| end);
        rest = rest.find(end).map_or("", |at| &rest[at + end.len()..]);
    }
    found.retain(|text| text.chars().any(char::is_alphabetic));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &str, script: &str, template: &str) -> Vec<String> {
        let folder = FOLDERS[1];
        let files = [
            File::new(&format!("{folder}/texts.json"), table),
            File::new(&format!("{folder}/a.js"), script),
            File::new(&format!("{folder}/a.html"), template),
        ];
        pages_speak_both_languages(&files).into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn a_whole_table_that_is_used_is_well() {
        let table =
            r#"{"a": {"en": "Buy {n}", "ja": "買 {n}"}, "side.BUY": {"en": "B", "ja": "買"}}"#;
        let script = "// A comment for people.\nx(t(\"a\", { n }), known(\"side\", w), `${n} JST`, \"use strict\");";
        assert_eq!(found(table, script, "<p data-text=\"a\"></p>"), [""; 0]);
    }

    #[test]
    fn each_fault_is_found() {
        let wrong =
            |table: &str, script: &str, template: &str| found(table, script, template).join("; ");
        let used = "x(t(\"a\"));";
        assert_eq!(wrong(r#"{"a": {"en": "A"}}"#, used, ""), "`a` has no Japanese text");
        let other = r#"{"a": {"en": "A {n}", "ja": "ア {m}"}}"#;
        assert_eq!(wrong(other, used, ""), "`a` has not the same values in both languages");
        let good = r#"{"a": {"en": "A", "ja": "ア"}}"#;
        assert_eq!(wrong(good, "", ""), "`a` is not used");
        assert_eq!(wrong(good, "x(t(\"a\"), t(\"b\"));", ""), "`b` is not in texts.json");
        for text in ["\"Fills\"", "`${n} Fills`", "\"no rows are here\""] {
            assert!(
                wrong(good, &format!("{used} y({text});"), "").contains("stands outside"),
                "{text}"
            );
        }
        for html in ["<p>Fills</p>", "<a title=\"Go\">", "<p>\n  組木 <b></b></p>"] {
            assert!(wrong(good, used, html).contains("stands outside"), "{html}");
        }
        assert!(wrong("[", "", "").contains("no table of texts"));
    }
}
