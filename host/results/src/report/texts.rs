//! Pages in two languages: a table of texts for each page, from which its script shows those of the
//! language that was chosen in the browser. The file itself holds the English ones in their places,
//! so that it can be read without scripts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The script that chooses the language and shows texts of the element `texts`.
pub const LANGUAGE_SCRIPT: &str = include_str!("assets/language.js");

/// What marks an element as one whose content is a text of the table.
const MARK: &str = "data-text=\"";

/// A text in all languages.
#[derive(Debug, Deserialize, Serialize)]
struct Text {
    en: String,
    ja: String,
}

/// Puts texts into the empty elements that name them, as in `<h2 data-text="orders"></h2>`: the
/// English ones, or the Japanese one where the element's tag says `lang="ja"` first.
///
/// `table` is a JSON object: `{"orders": {"en": "Orders", "ja": "注文"}}`. An element without a text
/// stays empty, which tests over all pages exclude.
#[must_use]
pub fn filled(template: &str, table: &str) -> String {
    let texts: BTreeMap<String, Text> = serde_json::from_str(table).unwrap_or_default();
    let mut pieces = template.split(MARK);
    let mut page = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let tag = page.rfind('<').map_or("", |start| &page[start..]);
        let is_japanese = tag.contains("lang=\"ja\"");
        page.push_str(MARK);
        let text = piece.split('"').next().and_then(|key| texts.get(key));
        let (head, rest) = piece.split_at(piece.find('>').map_or(piece.len(), |end| end + 1));
        page.push_str(head);
        if let Some(text) = text {
            page.push_str(&escaped(if is_japanese { &text.ja } else { &text.en }));
        }
        page.push_str(rest);
    }
    page
}

/// A table with the texts of reports whose keys begin with one of these words and a point, such as
/// `rule` of `rule.F1`; a text that the table has stays.
#[must_use]
pub fn with_families(table: &str, families: &[&str]) -> String {
    let read =
        |table: &str| -> BTreeMap<String, Text> { serde_json::from_str(table).unwrap_or_default() };
    let is_of =
        |key: &str| key.split_once('.').is_some_and(|(family, _)| families.contains(&family));
    let mut texts: BTreeMap<String, Text> = read(super::TEXTS);
    texts.retain(|key, _| is_of(key));
    texts.extend(read(table));
    // A map of texts is always JSON.
    serde_json::to_string(&texts).unwrap_or_default()
}

/// A text as content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_get_their_texts() {
        let table = r#"{ "a": { "en": "Buy & <sell>", "ja": "売買" } }"#;
        let template = "<p lang=\"ja\">x</p><h1 id=\"h\" data-text=\"a\"></h1>\
                        <p lang=\"ja\" data-text=\"a\"></p><b data-text=\"none\"></b>";
        assert_eq!(
            filled(template, table),
            "<p lang=\"ja\">x</p><h1 id=\"h\" data-text=\"a\">Buy &amp; &lt;sell&gt;</h1>\
             <p lang=\"ja\" data-text=\"a\">売買</p><b data-text=\"none\"></b>"
        );
        assert_eq!(filled("no marks", table), "no marks");
    }

    #[test]
    fn a_table_gets_families_of_the_report() {
        let table = with_families(r#"{"a": {"en": "A", "ja": "ア"}}"#, &["rule"]);
        let texts: BTreeMap<String, Text> = serde_json::from_str(&table).unwrap();
        let rules = texts.keys().filter(|key| key.starts_with("rule.")).count();
        assert_eq!((texts["a"].ja.as_str(), rules + 1), ("ア", texts.len()));
        assert!(texts["rule.F1"].en.starts_with("An order can match"));
    }
}
