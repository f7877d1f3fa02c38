//! The ranking page and all that it loads, from this service only.

use std::sync::LazyLock;

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use results::report::{self, texts};

use super::limits::ServiceLimits;

/// Its texts in both languages.
const TEXTS: &str = include_str!("page/texts.json");
/// What it may do: run and show what this service sends, talk to this service, and no more.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors \
                      'none'";

/// The page, with the English texts in their places and the table of all texts.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let page = texts::filled(include_str!("page/ranking.html"), TEXTS);
    page.replacen("@@texts.json@@", TEXTS, 1)
});

/// Rows of a day that the page asks for at first.
const FIRST_ROWS: u32 = 20;

/// The page, whose fields take what this service does.
pub(super) fn page(limits: &ServiceLimits) -> Response {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, text(limits)).into_response()
}

fn text(limits: &ServiceLimits) -> String {
    let values = [
        ("@@rows.max@@", limits.rank_limit.to_string()),
        ("@@rows@@", limits.rank_limit.min(FIRST_ROWS).to_string()),
        ("@@formula.max@@", limits.formula_characters.to_string()),
    ];
    values.iter().fold(PAGE.clone(), |page, (name, value)| page.replacen(name, value, 1))
}

/// A file that the page loads, by its name below `/page/`; the charts are drawn by the library that
/// reports of runs have in them.
pub(super) fn asset(name: &str) -> Option<Response> {
    let script = "text/javascript; charset=utf-8";
    let style = "text/css; charset=utf-8";
    let (kind, text) = match name {
        "language.js" => (script, texts::LANGUAGE_SCRIPT),
        "ranking.js" => (script, include_str!("page/ranking.js")),
        "chart.js" => (script, include_str!("page/chart.js")),
        "uplot.js" => (script, report::CHART_SCRIPT),
        "uplot.txt" => ("text/plain; charset=utf-8", report::CHART_LICENSE),
        "uplot.css" => (style, report::CHART_STYLE),
        "ranking.css" => (style, include_str!("page/ranking.css")),
        _ => return None,
    };
    Some(([(CONTENT_TYPE, kind)], text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_an_error_is_told_in_both_languages() {
        let texts: serde_json::Value = serde_json::from_str(TEXTS).unwrap();
        let schema = include_str!("../../../../schemas/ranking.graphql");
        let (_, list) = schema.split_once("`extensions.code` is one of").unwrap();
        let (list, _) = list.split_once("\n\n").unwrap();
        let words = list.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
        let codes: Vec<&str> = words.filter(|word| word.len() > 3).collect();
        assert!(codes.len() > 25, "{codes:?}");
        for code in codes {
            let text = &texts[format!("error.{code}")];
            assert!(text["en"].is_string() && text["ja"].is_string(), "{code}");
        }
    }

    #[test]
    fn all_that_the_page_loads_is_here() {
        let mut loaded = 0;
        for piece in PAGE.split("\"/page/").skip(1) {
            let name = piece.split('"').next().unwrap();
            assert!(asset(name).is_some(), "{name}");
            loaded += 1;
        }
        assert_eq!(loaded, 7);
        assert!(asset("../ranking.css").is_none());
        let page = text(&ServiceLimits::default());
        assert!(!page.contains("@@") && page.contains(r#"max="500" value="20""#));
        assert!(page.contains(r#"maxlength="1000""#));
        let small =
            ServiceLimits { rank_limit: 5, formula_characters: 80, ..ServiceLimits::default() };
        let page = text(&small);
        assert!(page.contains(r#"max="5" value="5""#) && page.contains(r#"maxlength="80""#));
        for outside in ["http://", "https://", "<script>", " style=", " onclick="] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }
}
