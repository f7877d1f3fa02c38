//! `kumiki strategy compile` in an installation of its own: what it writes, and what it leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tests::built;
use tests::user_folder::files_in;

/// The program with strategies beside it.
struct Installation {
    folder: tempfile::TempDir,
}

impl Installation {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(built::kumiki(), folder.path().join("kumiki")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn install(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.path("strategies")).unwrap();
        fs::write(self.path("strategies").join(name), bytes).unwrap();
    }

    /// Compiles; gives the exit code, and what it said.
    fn compile(&self) -> (Option<i32>, String, String) {
        self.compile_with(&[])
    }

    fn compile_with(&self, options: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(self.path("kumiki"));
        command.args(["strategy", "compile"]).args(options);
        let output = command.env_remove("KUMIKI_STRATEGIES").output();
        let output = output.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn compiled(&self) -> BTreeMap<String, Vec<u8>> {
        files_in(&self.path("strategies/compiled/components"))
    }
}

const LIST: &str = "written-by-kumiki.txt";

#[test]
fn a_folder_without_strategies_is_an_error_that_says_what_to_do() {
    let here = Installation::new();
    for _ in 0..2 {
        let (code, out, errors) = here.compile();
        assert_eq!((code, out.as_str()), (Some(1), ""), "{errors}");
        assert!(errors.contains("there are no strategies in "), "{errors}");
        assert!(errors.contains("build them with `cargo xtask guests`"), "{errors}");
        fs::create_dir_all(here.path("strategies")).unwrap();
    }
    assert!(!here.path("strategies/compiled").exists());
}

#[test]
fn only_what_it_wrote_is_removed_and_only_after_success() {
    let here = Installation::new();
    let bytes = |name: &str| fs::read(built::strategy(name)).unwrap();
    here.install("one.wasm", &bytes("sma-cross"));
    here.install("two.wasm", &bytes("buy-and-hold"));
    let (code, out, errors) = here.compile();
    assert_eq!((code, out.as_str()), (Some(0), "one\ntwo\n"), "{errors}");
    let first = here.compiled();
    assert_eq!(first.len(), 3, "two of compiled code and the list: {:?}", first.keys());
    assert!(String::from_utf8_lossy(&first[LIST]).lines().all(|name| first.contains_key(name)));

    // Files of others, one of which has a name like ours.
    let place = here.path("strategies/compiled");
    let theirs = format!("{}-{}-direct.cwasm", "e".repeat(64), "0".repeat(16));
    for name in ["notes.txt", &theirs] {
        fs::write(place.join("components").join(name), "theirs").unwrap();
    }
    fs::write(place.join("notes.txt"), "theirs").unwrap();

    // Nothing changes where one cannot be compiled.
    here.install("two.wasm", b"\0asm broken");
    let (code, _, errors) = here.compile();
    assert_eq!(code, Some(1), "{errors}");
    assert!(first.iter().all(|(name, bytes)| here.compiled().get(name) == Some(bytes)));

    // Nor where compiling would take more than somebody allows.
    here.install("two.wasm", &bytes("sma-cross"));
    let (code, _, errors) = here.compile_with(&["--guest-limit", "function=10"]);
    assert!(code == Some(3) && errors.contains("--guest-limit function="), "{errors}");
    assert!(first.iter().all(|(name, bytes)| here.compiled().get(name) == Some(bytes)));

    // The code of a strategy that is another one goes.
    let (code, out, errors) = here.compile();
    assert_eq!((code, out.as_str()), (Some(0), "one\ntwo\n"), "{errors}");
    let second = here.compiled();
    let ours = |files: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        String::from_utf8_lossy(&files[LIST]).lines().map(str::to_owned).collect()
    };
    assert_eq!((ours(&first).len(), ours(&second).len()), (2, 1));
    assert_eq!(second.len(), 4, "one of ours, the list, and two of others: {:?}", second.keys());
    assert_eq!((&second["notes.txt"][..], &second[&theirs][..]), (&b"theirs"[..], &b"theirs"[..]));
    assert_eq!(fs::read(place.join("notes.txt")).unwrap(), b"theirs");

    // A list that somebody wrote names no more than compiled code.
    fs::write(place.join("components").join(LIST), "notes.txt\n../notes.txt\n").unwrap();
    assert_eq!(here.compile().0, Some(0));
    assert!(place.join("components/notes.txt").exists() && place.join("notes.txt").exists());
    let around: Vec<String> = fs::read_dir(here.path("strategies"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(around.is_empty(), "nothing unfinished stays: {around:?}");
}
