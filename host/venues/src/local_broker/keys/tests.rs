//! Symbols, tickers and the one key.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

#[test]
fn p51_a_symbol_has_four_to_nine_digits_and_capital_letters() {
    for symbol in ["7203", "130A", "285A", "ABCD", "165120018", "0000"] {
        assert!(is_symbol(symbol), "{symbol}");
    }
    for other in ["", "720", "1651200189", "130a", "72 3", "7203.TSE", "７２０３", "72/3", "72@1"]
    {
        assert!(!is_symbol(other), "{other}");
    }
}

#[test]
fn p51_a_ticker_may_have_the_suffix_of_tokyo() {
    for (ticker, symbol) in [("7203", "7203"), ("7203.TSE", "7203"), ("130A.TSE", "130A")] {
        assert_eq!(symbol_of(ticker), Ok(symbol));
    }
    for ticker in ["7203.OSE", "7203.tse", "7203.TSE.TSE", ".TSE", "720", "\u{1b}[2J"] {
        let reported = symbol_of(ticker).unwrap_err().to_string();
        assert!(reported.contains("write 4 to 9 digits"), "{reported}");
        assert!(!reported.contains('\u{1b}'), "{reported}");
    }
    let reported = symbol_of(&"1".repeat(10_000)).unwrap_err().to_string();
    assert!(reported.starts_with("`1111111111111111` is not a ticker"), "{reported}");
}

/// P57: a filter can name every instrument that a row of a list can have.
#[test]
fn p57_an_instrument_of_a_list_is_of_any_market() {
    for market in [1, 9, 27, 3, 5, 6, 2, 23, 24] {
        let listed = instrument_of("7203", market).unwrap();
        assert_eq!(listed_instrument(&listed), Ok(listed.clone()));
    }
    assert_eq!(listed_instrument("130A").unwrap(), "130A.TSE");
    for wrong in ["", ".TSE", "72.TSE", "7203.XXX", "7203.TSE.TSE", "7203.tse", "７２０３"] {
        assert!(listed_instrument(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_key_of_a_path_is_symbol_and_market() {
    assert_eq!(composite_key("7203", TOKYO).as_deref(), Ok("7203@1"));
    assert_eq!(composite_key("130A", 27).as_deref(), Ok("130A@27"));
    for other in ["../orders", "7203@1", "7203.TSE", ""] {
        assert!(composite_key(other, TOKYO).is_err(), "{other}");
    }
}

/// Specification 1, "Endpoints", rule 2: no other file of the crate writes the sign of a key.
#[test]
fn no_other_place_builds_the_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut builders = Vec::new();
    let mut files = 0;
    for path in sources(&root) {
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
        if !path.ends_with("/tests.rs") && code.into_iter().any(builds_a_key) {
            builders.push(path);
        }
    }
    assert!(files > 20, "{files} sources were read");
    assert_eq!(builders, ["local_broker/keys.rs"]);
    for line in ["format!(\"{a}@{b}\")", "key.push('@');", "parts.join(\"@\")", "a + \"@1\"", "%40"]
    {
        assert!(builds_a_key(line), "{line}");
    }
}

fn builds_a_key(line: &str) -> bool {
    let signs = ["}@", "@{", "\"@", "@\"", "'@'", "%40", "\\x40", "\\u{40}"];
    signs.iter().any(|sign| line.contains(sign))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let mut found: Vec<PathBuf> = files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    found.extend(folders.iter().flat_map(|folder| sources(folder)));
    found.sort();
    found
}
