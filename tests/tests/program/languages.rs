//! `sma-cross` in Python, JavaScript and C, made by the real toolchains, through the real program: the
//! same orders as in Rust, and faults that can be read. Where a toolchain is not here, they say so.

#![allow(clippy::print_stdout, reason = "what is skipped is told and counted")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::built;
use tests::user_folder::{Said, UserFolder};

/// The component, or a line that says why the test is skipped.
fn component(name: &str) -> Option<PathBuf> {
    built::in_language(name).map_err(|reason| println!("skipped: {reason}")).ok()
}

/// Runs the program with the cache that tests share.
fn said(user: &UserFolder, arguments: &str, component: &Path) -> Said {
    let mut command = user.command(arguments);
    command.arg(component).env("KUMIKI_CACHE", built::language_cache());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        errors: text(output.stderr),
    }
}

fn json(said: &Said) -> Value {
    assert_eq!(said.code, 0, "{}", said.errors);
    serde_json::from_str(&said.out).unwrap()
}

/// The digest of a run's log of events and its number of orders.
fn run(user: &UserFolder, window: u32, component: &Path) -> (String, u64) {
    let arguments = format!(
        "replay run --data data --instrument 7203.TSE --window {window} --param fast=5 \
         --param slow=20 --format json --same-day-round-trips allow"
    );
    let said = json(&said(user, &arguments, component));
    let summary = &said["summary"];
    let digest = summary["event_log_digest"].as_str().unwrap().to_owned();
    (digest, summary["orders"].as_u64().unwrap())
}

/// Holds a component against the strategy in Rust, by its digest, its words and what `check` says.
fn agrees_with_rust(name: &str, calls: (&str, &str), aggressor: &str) {
    let Some(component) = component(name) else { return };
    let user = UserFolder::with_sample(2, 1_500);
    let rust = built::strategy("sma-cross");
    let check = json(&said(&user, "strategy check --format json", &component));
    assert_eq!(check["call_path"], calls.0);
    let reason = check["call_path_reason"].as_str().unwrap();
    assert!(reason.contains(calls.1), "{reason}");
    assert_eq!(check["init_error"], Value::Null);
    assert_eq!(check["aggressor_side"], aggressor, "the strategy does not ask for it");
    assert!(check["event_ns"].as_u64().unwrap() > 0, "{check}");
    let imports = check["imports"].as_array().unwrap();
    assert!(imports.iter().all(|one| one.as_str().unwrap().starts_with("kumiki:strategy/")));
    for window in [1, 1_024] {
        let (wanted, orders) = run(&user, window, &rust);
        assert!(orders > 100, "agreement means something: {orders} orders");
        assert_eq!(run(&user, window, &component), (wanted, orders), "window {window}");
    }
    for params in [
        "--param fast=20 --param slow=20",
        "--param fats=1",
        "--param fast=0",
        "--param slow=\"x\"",
        "--param quantity=0",
    ] {
        let refusal = |component: &Path| {
            let said = said(&user, &format!("strategy check --format json {params}"), component);
            let check: Value = serde_json::from_str(&said.out)
                .unwrap_or_else(|error| panic!("{params}: {error}: {} {}", said.code, said.errors));
            let text = check["init_error"].as_str().unwrap().to_owned();
            // Before it stands who says so.
            text.split_once("parameter").unwrap().1.to_owned()
        };
        assert_eq!(refusal(&component), refusal(&rust), "{params}");
    }
}

#[test]
fn python_gives_the_digest_of_rust() {
    agrees_with_rust("sma-cross-python", ("general", "programs"), "imported");
}

#[test]
fn javascript_gives_the_digest_of_rust() {
    agrees_with_rust("sma-cross-javascript", ("direct", "one program"), "imported");
}

#[test]
fn c_gives_the_digest_of_rust() {
    agrees_with_rust("sma-cross-c", ("direct", "one program"), "not imported");
}

#[test]
fn an_exception_of_python_is_told_with_its_line() {
    let Some(component) = component("raises-python") else { return };
    let user = UserFolder::with_sample(1, 100);
    let arguments = "replay run --data data --instrument 7203.TSE";
    let Said { code, errors, .. } = said(&user, arguments, &component);
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("strategy `raises-python` ("), "{errors}");
    assert!(errors.contains("panicked: IndexError: list index out of range"), "{errors}");
    assert!(errors.contains("at Guest.advance (/0/raises.py:"), "{errors}");
    // The host knows the event, whatever the guest says.
    assert!(errors.contains(" at 2025-01-06 09:0"), "{errors}");
}
