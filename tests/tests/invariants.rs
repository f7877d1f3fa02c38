//! The project's invariants, checked over its real files. The rules themselves, and the tests that
//! show that each of them bites, are in `src/rules`.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::sync::LazyLock;

use tests::files::{self, File};
use tests::rules::{Violation, complaint, documents, manifests, sources, texts, wit};
use tests::workspace_root;

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    files::read_all(&workspace_root())
        .unwrap_or_else(|error| panic!("the project cannot be read: {error}"))
});

#[track_caller]
fn hold(rule: &str, why: &str, violations: &[Violation]) {
    if let Some(text) = complaint(rule, why, violations) {
        panic!("{text}");
    }
}

#[test]
fn only_the_sandbox_knows_wasmtime() {
    let mut found = manifests::only_in(&FILES, "wasmtime", &["host/sandbox"]);
    found.extend(sources::only_the_sandbox_names_wasmtime(&FILES));
    let why = "what runs foreign code stays small enough to be audited";
    hold("only host/sandbox depends on wasmtime and names it", why, &found);
}

#[test]
fn only_the_database_crates_know_duckdb() {
    let found = manifests::only_in(&FILES, "duckdb", &manifests::DATABASE_CRATES);
    let why = "everything else builds without its library";
    hold("only the database crates, the tests and the benches depend on duckdb", why, &found);
}

#[test]
fn the_demo_needs_no_duckdb() {
    let packages = manifests::compiled_for("cli", &["--no-default-features"]).unwrap();
    assert!(packages.contains("wasmtime") && packages.contains("engine"));
    assert!(!packages.contains("libduckdb-sys"));
    assert!(manifests::compiled_for("cli", &[]).unwrap().contains("libduckdb-sys"));
}

#[test]
fn only_the_client_and_the_key_store_know_the_outside() {
    let mut found = manifests::only_in(&FILES, "reqwest", &["host/http-client"]);
    // One judge of certificates, for requests and for streams.
    for package in ["tokio-rustls", "rustls-platform-verifier"] {
        found.extend(manifests::only_in(&FILES, package, &["host/http-client"]));
    }
    found.extend(manifests::only_in(&FILES, "keyring", &["host/keys"]));
    let why = "one place holds the rules about servers, and one finds keys";
    hold("only host/http-client asks servers, only host/keys asks the key store", why, &found);
}

#[test]
fn only_the_clock_reads_time() {
    let found = sources::only_the_clock_reads_time(&FILES);
    let why = "a replay runs on virtual time; a stray clock makes it differ from run to run";
    hold("only host/domain/src/clock.rs reads time", why, &found);
}

#[test]
fn only_paced_runs_have_a_clock() {
    let found = sources::only_paced_runs_have_a_clock(&FILES);
    let why = "an unpaced replay is as fast as it can be and the same on every machine";
    hold("of what runs, only the pace, the request and the trial name the clock", why, &found);
}

#[test]
fn results_can_be_repeated() {
    let mut found = sources::nothing_is_random(&FILES);
    found.extend(sources::hash_tables_are_for_lookup(&FILES));
    let why = "the same data and the same strategy give the same bytes";
    hold("no randomness without a seed, no walk through a hash table", why, &found);
}

#[test]
fn arrows_point_downwards() {
    let found = manifests::arrows_point_downwards(&FILES);
    let why = "each crate can be read, tested and replaced with what is below it only";
    hold("a crate of host/ depends on lower layers only", why, &found);
}

#[test]
fn the_core_speaks_no_wire() {
    let mut found = manifests::never_in(&FILES, "ipc", &manifests::WITHOUT_IPC);
    found.extend(sources::only_the_audit_log_of_orders_names_ipc(&FILES));
    let why = "a strategy in a replay and a live one are driven by the same words";
    hold("below the engine's edge only the audit log's lines are of ipc", why, &found);
}

#[test]
fn unsafe_code_stands_in_the_sandbox_with_reasons() {
    let mut found = sources::unsafe_is_explained(&FILES);
    found.extend(manifests::lints_are_inherited(&FILES));
    let why = "whoever audits memory safety reads one crate and the allocator of guests";
    hold(
        "unsafe code only in host/sandbox and guests/sdk/src/allocator.rs, after a SAFETY comment",
        why,
        &found,
    );
}

#[test]
fn files_say_what_they_are_for() {
    let found = sources::files_say_what_they_are_for(&FILES);
    let why = "a reader decides on the first line whether this is the right file";
    hold("every Rust file starts with `//!`", why, &found);
}

#[test]
fn nothing_is_unfinished() {
    let found = sources::nothing_is_unfinished(&FILES);
    hold("no macros for unfinished work", "they panic in front of users", &found);
}

#[test]
fn the_architecture_names_every_folder() {
    let root = workspace_root();
    let mut folders = Vec::new();
    for parent in ["host", "wit", "guests"] {
        let names = files::folders_in(&root.join(parent));
        assert!(!names.is_empty(), "{parent}/ is missing or empty");
        folders.extend(names.iter().map(|name| format!("{parent}/{name}")));
    }
    let found = documents::architecture_is_complete(&FILES, &folders);
    let why = "a newcomer finds the right folder in one page";
    hold("ARCHITECTURE.md has at most 200 lines and names every folder", why, &found);
}

#[test]
fn the_japanese_pages_are_in_step() {
    let named = |path: &str| FILES.iter().find(|file| file.path == path);
    let mut pairs = vec![("README.md".to_owned(), named("README.ja.md").expect("a front page"))];
    for page in FILES.iter().filter(|file| file.is_below("docs/ja")) {
        pairs.push((page.path.replacen("docs/ja/", "docs/", 1), page));
    }
    assert!(pairs.len() > 5, "docs/ja/ has no pages");
    let mut found = Vec::new();
    for (original, translation) in pairs {
        let original = named(&original).unwrap_or_else(|| panic!("{original} is missing"));
        found.extend(documents::translation_is_in_step(original, translation));
    }
    let why =
        "a command or a warning that stands in one language and not in the other helps nobody";
    hold(
        "Japanese pages have commands, headings, lists and flags of the English ones",
        why,
        &found,
    );
}

#[test]
fn the_pages_speak_both_languages() {
    for folder in texts::FOLDERS {
        let table = format!("{folder}/texts.json");
        assert!(FILES.iter().any(|file| file.path == table), "{table} is missing");
    }
    let found = texts::pages_speak_both_languages(&FILES);
    let why = "a text that is in no table stays in one language, and nobody sees it";
    hold("each page has one table of texts, whole and used, and no text beside it", why, &found);
}

#[test]
fn dependencies_have_reasons() {
    let root = FILES.iter().find(|file| file.path == "Cargo.toml");
    let found = documents::dependencies_have_reasons(root.expect("the root manifest"));
    let why = "a dependency without a reason cannot be weighed or dropped";
    hold("every dependency in the root manifest carries its reason", why, &found);
}

#[test]
fn no_file_holds_a_machine_path() {
    let found = documents::no_machine_paths(&FILES);
    let why = "the project works in any folder on any machine";
    hold("no path of somebody's machine in a file", why, &found);
}

#[test]
fn guests_need_no_clock_and_no_randomness() {
    let found = manifests::guests_need_nothing(&FILES);
    let why = "a guest sees what wit/ gives it and nothing else";
    hold("no guest depends on a clock or on randomness", why, &found);
}

#[test]
fn every_test_guest_is_used() {
    let guests = files::folders_in(&workspace_root().join("guests").join("test"));
    assert!(!guests.is_empty(), "guests/test is missing or empty");
    let found = documents::test_guests_are_used(&FILES);
    let why = "a misbehaving guest that no test runs shows nothing";
    hold("every package under guests/test is named by a test of the host", why, &found);
}

#[test]
fn the_contracts_are_documented() {
    assert!(FILES.iter().any(|file| file.is_below("wit")), "wit/ is missing or empty");
    let found = wit::everything_is_documented(&FILES);
    let why = "strategy authors read wit/ first, and some read nothing else";
    hold("every item, field, function and case in wit/ has a `///`", why, &found);
}
