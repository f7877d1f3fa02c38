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

/// Every text that the page shows or reads aloud is Japanese, or a word of the data: what is in code, in
/// English by its mark, or a name like `7203.TSE`.
pub(crate) fn expect_japanese(browser: &mut Browser, name: &str) {
    let found = browser.value(
        "(() => { const texts = []; \
         const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
         while (walk.nextNode()) { const { parentElement: at, data } = walk.currentNode; \
           if (at.closest('script, style, noscript, code, pre, [lang=en], .data, [hidden]')) continue; \
           if (at.checkVisibility()) texts.push(data); } \
         for (const one of document.querySelectorAll('[aria-label], [title], [placeholder]')) \
           if (!one.closest('[hidden], .module, #examples')) \
             texts.push(one.getAttribute('aria-label'), one.title, one.placeholder); \
         return texts.filter(Boolean); })()",
    );
    let texts: Vec<&str> = found.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(texts.len() > 20, "{name}: {} texts", texts.len());
    let is_japanese = |text: &str| text.chars().any(|letter| letter > '\u{3000}');
    // Two words of small letters, one after the other, are English.
    let is_english = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_word =
            |word: &str| word.len() > 2 && word.chars().all(|one| one.is_ascii_lowercase());
        words.windows(2).any(|pair| is_word(pair[0]) && is_word(pair[1]))
            || (words.len() == 1 && WORDS.contains(&words[0]))
    };
    let english: Vec<_> =
        texts.iter().filter(|text| is_english(text) && !is_japanese(text)).collect();
    assert!(english.is_empty(), "{name}: {english:?}");
    let japanese = texts.iter().filter(|text| is_japanese(text)).count();
    assert!(japanese > 20, "{name}: only {japanese} texts are Japanese");
}

/// English words that stood alone on these pages.
const WORDS: [&str; 16] = [
    "Orders",
    "Fills",
    "Profit",
    "Return",
    "Price",
    "Volume",
    "Close",
    "Code",
    "Value",
    "Run",
    "Runs",
    "Time",
    "Shares",
    "Side",
    "Statistics",
    "Equity",
];
