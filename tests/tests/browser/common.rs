//! What the tests of the pages share.

use std::path::PathBuf;

use serde_json::Value;
use tests::browser::Browser;
use tests::user_folder::UserFolder;
use tests::wat;
use wit_component::StringEncoding;

/// A browser, or a line that says why the test is skipped.
pub(crate) fn browser() -> Option<Browser> {
    Browser::start().map_err(|reason| println!("skipped: {reason}")).ok()
}

/// A text that would do harm if it were ever markup or script. `pwned` would be a global.
pub(crate) const HOSTILE: &str = "</script><script>pwned=1</script><img src=x onerror=pwned=1> \
                                  \" onload='pwned=1' <!-- \u{2028} &amp; ]]> javascript:1";

/// A strategy whose marks, reasons and log are hostile, in a file with a hostile name.
pub(crate) fn hostile_strategy(user: &UserFolder) -> PathBuf {
    let text = wat::acting(HOSTILE, |text| text.as_bytes().to_vec(), 1, 0);
    let path = user.path("\"><img src=x onerror=pwned=1>' & \u{2028}.wasm");
    std::fs::write(&path, wat::component(&text, StringEncoding::UTF8)).unwrap();
    path
}

/// Runs a command with a component; what it printed.
pub(crate) fn run(user: &UserFolder, arguments: &str, component: &std::path::Path) -> String {
    let output = user.command(arguments).arg(component).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// No text of a stranger became markup or ran.
pub(crate) fn expect_unharmed(browser: &mut Browser) {
    let bad = browser.value(
        "[typeof pwned, document.querySelectorAll('img').length, \
         document.querySelectorAll('[onerror],[onload]').length].join(' ')",
    );
    assert_eq!(bad, "undefined 0 0");
}

/// A file of JSON in the user's folder.
pub(crate) fn json(user: &UserFolder, name: &str) -> Value {
    let text = std::fs::read_to_string(user.path(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A number or an amount as the pages write it, back in plain digits: `+1,234.5 yen`, `−3.10 %`.
pub(crate) fn plain(shown: &str) -> String {
    let text = shown.replace('\u{2212}', "-");
    text.chars().filter(|letter| letter.is_ascii_digit() || "-.".contains(*letter)).collect()
}

/// What a JSON value is in plain digits.
pub(crate) fn digits(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Latin words that stay on a Japanese page, beside those that [`stays`] knows: names of this program, of
/// file formats and people, units, functions of formulas in definitions, and values of options.
const WORDS: [&str; 24] = [
    "Kumiki",
    "Parquet",
    "GraphQL",
    "AdjFactor",
    "Bailey",
    "Lopez",
    "de",
    "Prado",
    "sqrt",
    "mk",
    "min",
    "ms",
    "Ctrl+Enter",
    "Esc",
    "normal",
    "etf",
    "fixed",
    "funari",
    "cash",
    "completed",
    "interrupted",
    "failed",
    "kumiki",
    "English",
];
/// Words of a formula; one of them alone would be a label.
const COLUMNS: [&str; 5] = ["Close", "Open", "High", "Low", "Volume"];
/// Endings of names of files.
const FILES: [&str; 7] = [".csv", ".json", ".html", ".db", ".gz", ".parquet", ".wasm"];

/// Whether a word without Japanese letters stays as it is:
///
/// | a word | what it is |
/// |---|---|
/// | of capitals, digits and points | a code, a unit, an id: `JST`, `VENUE_REJECTED`, `7203.TSE` |
/// | with `_` in it | an option or a column: `latency_ns` |
/// | that ends like a file | a file: `instruments.csv` |
/// | of 16 and more hexadecimal digits | a digest |
/// | of [`WORDS`], or of `own` | a name; what the test's own data is called |
fn stays(word: &str, own: &[&str]) -> bool {
    let is_code = !word.chars().any(|letter| letter.is_ascii_lowercase());
    let is_digest = word.len() >= 16 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    is_code
        || word.contains('_')
        || FILES.iter().any(|ending| word.ends_with(ending))
        || is_digest
        || word == "xxh3-128"
        || WORDS.contains(&word)
        || own.contains(&word)
}

/// The Latin words of a text that should be Japanese. What is quoted with backticks is the user's.
pub(crate) fn latin_words(text: &str, own: &[&str]) -> Vec<String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.+-".contains(letter);
    let unquoted: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let words =
        unquoted.split(|letter| !is_letter(letter)).map(|word| word.trim_matches(['.', '-', '+']));
    let is_latin = |word: &&str| {
        let letters: Vec<bool> = word.chars().map(|letter| letter.is_ascii_alphabetic()).collect();
        letters.windows(2).any(|pair| pair == [true, true])
    };
    let is_column = |word: &str| COLUMNS.contains(&word) && word != text.trim();
    words
        .filter(is_latin)
        .filter(|word| !stays(word, own) && !is_column(word))
        .map(str::to_owned)
        .collect()
}

/// Every text that the page shows or reads aloud is Japanese. Left out are code, what a strategy wrote
/// (`data`), the examples' formulas and the switch, which is in the other language; `own` are names of the
/// test's own data.
pub(crate) fn expect_japanese(browser: &mut Browser, name: &str, own: &[&str]) {
    let found = browser.value(
        "(() => { const texts = []; \
         const out = 'script, style, noscript, code, pre, [hidden], .data, #language'; \
         const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
         while (walk.nextNode()) { const { parentElement: at, data } = walk.currentNode; \
           if (!at.closest(out) && (at.tagName === 'OPTION' || at.checkVisibility())) texts.push(data); } \
         for (const one of document.querySelectorAll('[aria-label], [title], [placeholder]')) \
           if (!one.closest('[hidden], #examples')) \
             texts.push(one.getAttribute('aria-label'), one.title, one.placeholder); \
         texts.push(document.title); \
         return texts.filter(Boolean); })()",
    );
    let texts: Vec<&str> = found.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let english: Vec<(&str, Vec<String>)> = texts
        .iter()
        .map(|text| (*text, latin_words(text, own)))
        .filter(|(_, words)| !words.is_empty())
        .collect();
    assert!(english.is_empty(), "{name}: {english:#?}");
    let is_japanese = |text: &&&str| text.chars().any(|letter| letter > '\u{3000}');
    let japanese = texts.iter().filter(is_japanese).count();
    assert!(japanese > 20, "{name}: only {japanese} of {} texts are Japanese", texts.len());
}

#[test]
fn latin_words_are_found() {
    for (text, words) in [
        ("Orders", "Orders"),
        ("注文 is rejected", "is rejected"),
        ("Close", "Close"),
        ("(Close - Open) / Close で集計", ""),
        ("VENUE_REJECTED: 7203.TSE は instruments.csv の cash_margin で拒否", ""),
        ("コード `not a code` はありません", ""),
        ("F10 の 5 ms 後、E2E とは別", ""),
        ("7203.TSE: lot 100", "lot"),
    ] {
        assert_eq!(latin_words(text, &[]).join(" "), words, "{text}");
    }
    assert!(latin_words("fast 5", &["fast"]).is_empty());
}
