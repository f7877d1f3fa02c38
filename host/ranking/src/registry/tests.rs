//! Lists that are right and wrong, and parameters. Modules that run are tested with real components.

use std::fs;

use domain::formula::FormulaParameter;
use tempfile::TempDir;

use super::*;

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn folder_with(list: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(LIST_FILE), list).unwrap();
    folder
}

fn entry(name: &str, file: &str, sha256: &str) -> String {
    format!("[[formula]]\nname = \"{name}\"\nfile = \"{file}\"\nsha256 = \"{sha256}\"\n")
}

fn refused(list: &str) -> String {
    let error = list::read(folder_with(list).path()).unwrap_err();
    assert_eq!(error.code(), "FORMULA_REFUSED");
    error.to_string()
}

#[test]
fn a_list_that_is_written_is_read() {
    let listed = |name: &str| ListedFormula {
        name: name.to_owned(),
        file: format!("{name}.wasm"),
        sha256: HASH.to_owned(),
    };
    let entries = vec![listed("a-1"), listed("b")];
    let folder = folder_with(&list::text(entries.clone()).unwrap());
    assert_eq!(list::read(folder.path()).unwrap(), entries);
    assert_eq!(list::read(&folder.path().join("none")).unwrap(), []);
}

#[test]
fn wrong_lists_are_explained() {
    for (name, file, hash, words) in [
        ("A", "a.wasm", HASH, "`A` is no name"),
        ("a b", "a.wasm", HASH, "`a b` is no name"),
        ("a", "../a.wasm", HASH, "must be a plain name in the same folder"),
        ("a", ".a", HASH, "must be a plain name"),
        ("a", "sub/a.wasm", HASH, "must be a plain name"),
        ("a", "a.wasm", "abc", "64 small hexadecimal digits"),
    ] {
        let text = refused(&entry(name, file, hash));
        assert!(text.contains(words), "{text}");
    }
    let one = entry("a", "a.wasm", HASH);
    assert!(refused(&format!("{one}{one}")).contains("lists `a` twice"));
    assert!(refused("formula = 1").starts_with("formulas.toml: "));
    assert!(refused(&format!("{one}more = 1\n")).contains("unknown field"));
}

#[test]
fn lists_have_limits() {
    let entries = |count: usize| -> String {
        (0..count).map(|index| entry(&format!("f{index}"), "a.wasm", HASH)).collect()
    };
    assert_eq!(list::read(folder_with(&entries(128)).path()).unwrap().len(), 128);
    assert!(refused(&entries(129)).contains("lists 129 formulas; 128 are allowed"));
    assert!(refused(&"#".repeat((64 << 10) + 1)).contains("more than 65536 bytes"));
}

#[test]
fn what_is_not_listed_or_not_there_is_refused() {
    let folder = folder_with(&entry("listed", "listed.wasm", HASH));
    let registry = FormulaRegistry::open(folder.path(), None).unwrap();
    fs::write(folder.path().join("other.wasm"), b"\0asm").unwrap();
    let error = registry.bind("other", &[]).unwrap_err();
    assert_eq!(error.code(), "FORMULA_UNKNOWN");
    assert!(error.to_string().contains("there is no formula `other`; there are: listed"));
    let error = registry.bind("listed", &[]).unwrap_err();
    assert!(error.to_string().contains("its file is not there"), "{error}");
    fs::write(folder.path().join("listed.wasm"), b"\0asm").unwrap();
    let error = registry.bind("listed", &[]).unwrap_err();
    assert_eq!(error.code(), "FORMULA_REFUSED");
    assert!(error.to_string().contains("does not match formulas.toml"), "{error}");
    // The right hash of something that is no module.
    let hash = sandbox::sha256(b"\0asm");
    fs::write(folder.path().join(LIST_FILE), entry("listed", "listed.wasm", &hash)).unwrap();
    let error = registry.bind("listed", &[]).unwrap_err();
    assert!(error.to_string().starts_with("formula `listed` cannot be used: "), "{error}");
    let text = registry.list().unwrap()[0].details.clone().unwrap_err();
    assert!(!text.contains(&folder.path().display().to_string()), "{text}");
}

#[cfg(unix)]
#[test]
fn a_link_is_no_file() {
    let folder = folder_with(&entry("a", "a.wasm", &sandbox::sha256(b"x")));
    fs::write(folder.path().join("there"), b"x").unwrap();
    std::os::unix::fs::symlink("there", folder.path().join("a.wasm")).unwrap();
    let registry = FormulaRegistry::open(folder.path(), None).unwrap();
    assert!(registry.bind("a", &[]).unwrap_err().to_string().contains("its file is not there"));
}

#[test]
fn parameters_are_held_against_the_description() {
    let parameter = |name: &str, default| FormulaParameter {
        name: name.to_owned(),
        description: String::new(),
        default,
        minimum: 0.0,
        maximum: 9.0,
    };
    let description = FormulaDescription {
        parameters: vec![parameter("a", 1.0), parameter("b", 2.0)],
        ..FormulaDescription::default()
    };
    let values = |given: &[(&str, f64)]| {
        let given: Vec<_> =
            given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        bound::values("f", &description, &given).map_err(|error| error.to_string())
    };
    assert_eq!(values(&[]), Ok(vec![1.0, 2.0]));
    assert_eq!(values(&[("b", 0.0)]), Ok(vec![1.0, 0.0]));
    let refused = |given: &[(&str, f64)]| values(given).unwrap_err();
    assert_eq!(refused(&[("c", 1.0)]), "formula `f` has no parameter `c`; it has: a, b");
    assert_eq!(refused(&[("a", 10.0)]), "parameter `a` is 10; it may be 0 to 9");
    assert_eq!(refused(&[("a", f64::NAN)]), "parameter `a` is NaN; it may be 0 to 9");
    assert_eq!(refused(&[("a", 1.0), ("a", 1.0)]), "parameter `a` is given twice; give it once");
}
