//! The list of a folder of formula modules: `formulas.toml`, which names each with its SHA-256.

use std::io::{self, Read};
use std::path::Path;

use domain::formula::is_name;
use domain::limits::FORMULA_NAME_BYTES_MAX;
use serde::{Deserialize, Serialize};

use crate::error::RankError;
use crate::text::excerpt;

/// The list's file in the folder.
pub const LIST_FILE: &str = "formulas.toml";
/// Bytes of a list.
const LIST_BYTES_MAX: u64 = 64 << 10;
/// Modules of a list.
pub(super) const ENTRIES_MAX: usize = 128;
/// What stands above a list that the program writes.
const HEADER: &str = "# Formula modules that rankings may use. Only files listed here with their \
                      SHA-256 are loaded;\n# `kumiki rank formulas --add FILE` lists one.\n\n";

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedFormula {
    /// What queries call it: `a` to `z`, `0` to `9` and `-`, beginning with a letter.
    pub name: String,
    /// Its file in the folder.
    pub file: String,
    /// SHA-256 of the file, in small hexadecimal digits.
    pub sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    formula: Vec<ListedFormula>,
}

fn wrong(what: impl std::fmt::Display) -> RankError {
    RankError::FormulaRefused(format!("{LIST_FILE}: {what}"))
}

/// Reads the list of a folder, by name; empty where there is none.
pub(super) fn read(folder: &Path) -> Result<Vec<ListedFormula>, RankError> {
    let mut text = String::new();
    let opened = atomic_file::open_to_read(&folder.join(LIST_FILE));
    match opened.and_then(|file| file.take(LIST_BYTES_MAX + 1).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(format_args!("it cannot be read: {error}"))),
    }
    if text.len() as u64 > LIST_BYTES_MAX {
        return Err(wrong(format_args!("it has more than {LIST_BYTES_MAX} bytes")));
    }
    let list: List = toml::from_str(&text).map_err(|error| wrong(excerpt(error.message())))?;
    let mut entries = list.formula;
    if entries.len() > ENTRIES_MAX {
        let found = entries.len();
        return Err(wrong(format_args!("it lists {found} formulas; {ENTRIES_MAX} are allowed")));
    }
    entries.iter().try_for_each(check)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(wrong(format_args!("it lists `{}` twice", pair[0].name))),
        None => Ok(entries),
    }
}

/// The text of a list.
pub(super) fn text(formula: Vec<ListedFormula>) -> Result<String, RankError> {
    let text = toml::to_string(&List { formula })
        .map_err(|error| RankError::internal("writing the list of formulas", error))?;
    let text = format!("{HEADER}{text}");
    if text.len() as u64 > LIST_BYTES_MAX {
        return Err(wrong(format_args!("it would have more than {LIST_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn check(entry: &ListedFormula) -> Result<(), RankError> {
    let ListedFormula { name, file, sha256 } = entry;
    if !is_name(name, FORMULA_NAME_BYTES_MAX, b'-') {
        return Err(wrong(format_args!(
            "`{}` is no name; use 1 to {FORMULA_NAME_BYTES_MAX} of a to z, 0 to 9 and -, beginning \
             with a letter",
            excerpt(name)
        )));
    }
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    if file.is_empty() || file.starts_with('.') || file.len() > 128 || !file.bytes().all(plain) {
        return Err(wrong(format_args!(
            "the file of `{name}` must be a plain name in the same folder, like {name}.wasm"
        )));
    }
    let is_hex = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    if sha256.len() != 64 || !sha256.bytes().all(is_hex) {
        return Err(wrong(format_args!(
            "the sha256 of `{name}` must be 64 small hexadecimal digits"
        )));
    }
    Ok(())
}
