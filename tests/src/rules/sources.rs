//! Rules about Rust source.

use super::Violation;
use crate::code::{self, Line};
use crate::files::File;

/// The one file that reads time.
const CLOCK: &str = "host/domain/src/clock.rs";
/// What runs, and what it leaves behind: the same bytes on every machine.
const RUNS: [&str; 5] =
    ["host/exchange", "host/replay", "host/results", "host/sweep", "host/trader"];
/// Where the wall clock may be read: the pace of a run, the request that shows progress, and the trial that measures
/// a strategy.
const PACED: [&str; 3] =
    ["host/replay/src/driver/paced.rs", "host/replay/src/request.rs", "host/trader/src/trial.rs"];
/// Readings of time.
const NOW: [&str; 4] = ["SystemTime::now", "Instant::now", "Utc::now", "Local::now"];
/// Crates whose results must be the same each time.
const DETERMINISTIC: [&str; 7] = [
    "host/domain",
    "host/exchange",
    "host/marketdata",
    "host/replay",
    "host/results",
    "host/sweep",
    "host/trader",
];
/// Sources of randomness. Those that take a seed are welcome.
const RANDOM: [&str; 6] =
    ["rand::thread_rng", "rand::rng", "rand::random", "thread_rng(", "from_os_rng", "getrandom::"];
/// Macros for unfinished work.
const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

fn rust(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.extension() == "rs")
}

/// Finds pieces of code that stand alone: not inside a longer word.
fn has_piece(line: &Line, piece: &str) -> bool {
    line.code.match_indices(piece).any(|(at, _)| {
        let before = line.code[..at].chars().next_back();
        let after = line.code[at + piece.len()..].chars().next();
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let open = piece.ends_with(|c: char| !c.is_alphanumeric());
        !in_word(before) && (open || !in_word(after))
    })
}

fn forbid<'a>(files: impl Iterator<Item = &'a File>, pieces: &[&str], why: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for (index, line) in code::lines(&file.text).iter().enumerate() {
            for piece in pieces.iter().filter(|piece| has_piece(line, piece)) {
                found.push(Violation::at(file, index, format!("`{piece}`: {why}")));
            }
        }
    }
    found
}

/// Only the sandbox names wasmtime.
pub fn only_the_sandbox_names_wasmtime(files: &[File]) -> Vec<Violation> {
    let others = rust(files).filter(|file| !file.is_below("host/sandbox"));
    forbid(others, &["wasmtime::", "use wasmtime"], "only host/sandbox may")
}

/// The order desk speaks `domain`; of the wire are the lines of its audit log alone.
pub fn only_the_audit_log_of_orders_names_ipc(files: &[File]) -> Vec<Violation> {
    let others = rust(files).filter(|file| {
        file.is_below("host/orders/src") && !file.path.starts_with("host/orders/src/audit")
    });
    forbid(others, &["ipc::", "use ipc"], "only the audit log may")
}

/// Only the clock reads time.
pub fn only_the_clock_reads_time(files: &[File]) -> Vec<Violation> {
    let others = rust(files).filter(|file| file.is_below("host") && file.path != CLOCK);
    forbid(others, &NOW, "only domain's clock reads time")
}

/// In a run only what paces it has a clock; an unpaced one cannot wait for one.
pub fn only_paced_runs_have_a_clock(files: &[File]) -> Vec<Violation> {
    let others = rust(files).filter(|file| {
        is_of_runs(file) && !PACED.contains(&file.path.as_str()) && !file.path.contains("/tests")
    });
    forbid(others, &["clock::"], "only a run's pace and request, and a trial, may")
}

fn is_of_runs(file: &File) -> bool {
    RUNS.iter().any(|folder| file.is_below(folder))
}

/// No randomness without a seed where results must repeat.
pub fn nothing_is_random(files: &[File]) -> Vec<Violation> {
    let inside = |file: &&File| DETERMINISTIC.iter().any(|folder| file.is_below(folder));
    forbid(rust(files).filter(inside), &RANDOM, "take numbers from a seed")
}

/// A hash table in a run is for looking up, never for walking through.
pub fn hash_tables_are_for_lookup(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in rust(files).filter(|file| is_of_runs(file)) {
        let lines = code::lines(&file.text);
        let mut importing = false;
        for (index, line) in lines.iter().enumerate() {
            importing |= line.has_word("use");
            let names =
                line.words().any(|word| word.ends_with("HashMap") || word.ends_with("HashSet"));
            let brings_in = importing || line.has_word("collections");
            let excused = [Some(line), index.checked_sub(1).map(|above| &lines[above])];
            let excused =
                excused.into_iter().flatten().any(|one| one.comment.contains("lookup only"));
            if names && brings_in && !excused {
                let what = "a hash table without the comment `lookup only`; its order is random: \
                            take a BTreeMap wherever the order can be seen";
                found.push(Violation::at(file, index, what));
            }
            importing &= !line.code.contains(';');
        }
    }
    found
}

/// Where unsafe code may stand: the sandbox, the allocator of guests, and what they read in its raw layout.
const UNSAFE_AT: [&str; 3] =
    ["host/sandbox", "guests/sdk/src/allocator.rs", "guests/sdk/src/wasm/raw.rs"];

/// Where the generated bindings are, which are full of it.
const GENERATED_AT: [&str; 2] = ["guests/sdk", "guests/test/peeks-ahead"];

/// Unsafe code stands in the sandbox and in two files of the guests' SDK only, each piece with its reason.
pub fn unsafe_is_explained(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in rust(files) {
        let lines = code::lines(&file.text);
        for (index, line) in lines.iter().enumerate() {
            let is_code = line.has_word("unsafe");
            let is_generated = GENERATED_AT.iter().any(|place| file.is_below(place));
            let is_override = is_lint_override(line) && !is_generated;
            if !is_code && !is_override {
                continue;
            }
            if !UNSAFE_AT.iter().any(|place| file.path == *place || file.is_below(place)) {
                found.push(Violation::at(file, index, "unsafe code outside host/sandbox"));
            } else if !is_explained(&lines, index) {
                found.push(Violation::at(file, index, "no comment with SAFETY before it"));
            }
        }
    }
    found
}

fn is_lint_override(line: &Line) -> bool {
    line.has_word("unsafe_code") && (line.has_word("allow") || line.has_word("expect"))
}

/// Whether a comment with SAFETY stands on the line or before the statement it belongs to.
fn is_explained(lines: &[Line], index: usize) -> bool {
    let says = |line: &Line| line.comment.contains("SAFETY") || line.comment.contains("# Safety");
    if says(&lines[index]) {
        return true;
    }
    for line in lines[..index].iter().rev() {
        if says(line) {
            return true;
        }
        let code = line.code.trim();
        let is_attribute = code.starts_with("#[") || code.starts_with("#![");
        let ends_a_statement = code.ends_with([';', '{', '}', ',']) && !is_attribute;
        let is_blank = code.is_empty() && line.comment.is_empty();
        if ends_a_statement || is_blank {
            return false;
        }
    }
    false
}

/// Every file starts by saying what it is for.
pub fn files_say_what_they_are_for(files: &[File]) -> Vec<Violation> {
    rust(files)
        .filter(|file| {
            let first = file.text.lines().next().unwrap_or("");
            first.strip_prefix("//!").is_none_or(|words| words.trim().is_empty())
        })
        .map(|file| Violation::at(file, 0, "does not start with `//!` and a few words"))
        .collect()
}

/// Nothing is left unfinished.
pub fn nothing_is_unfinished(files: &[File]) -> Vec<Violation> {
    forbid(rust(files), &UNFINISHED, "finish it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&[File]) -> Vec<Violation>, path: &str, text: &str, lines: &[usize]) {
        let found = rule(&[File::new(path, text)]);
        let found: Vec<usize> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(found, lines, "{path}:\n{text}");
    }

    #[test]
    fn wasmtime_elsewhere_is_seen() {
        let rule = only_the_sandbox_names_wasmtime;
        check(rule, "host/cli/src/lib.rs", "\nfn f(_: wasmtime::Engine) {}", &[2]);
        check(rule, "host/cli/src/lib.rs", "use wasmtime as w;", &[1]);
        check(rule, "host/cli/src/lib.rs", "// wasmtime::Engine\nlet a = \"wasmtime::\";", &[]);
        check(rule, "host/sandbox/src/lib.rs", "use wasmtime::Engine;", &[]);
    }

    #[test]
    fn messages_in_the_order_desk_are_seen() {
        let rule = only_the_audit_log_of_orders_names_ipc;
        let text = "use ipc::Event;\nfn f(_: ipc::Command) {}\nlet tipc = 1;";
        check(rule, "host/orders/src/desk/submit.rs", text, &[1, 1, 2]);
        check(rule, "host/orders/src/audit.rs", text, &[]);
        check(rule, "host/orders/src/audit/lines.rs", text, &[]);
        check(rule, "host/engine/src/run.rs", text, &[]);
    }

    #[test]
    fn clocks_elsewhere_are_seen() {
        let text = "let a = std::time::Instant::now();\nlet b = chrono::Utc::now();";
        check(only_the_clock_reads_time, "host/replay/src/a.rs", text, &[1, 2]);
        check(only_the_clock_reads_time, CLOCK, text, &[]);
        check(only_the_clock_reads_time, "xtask/src/steps.rs", text, &[]);
        check(only_the_clock_reads_time, "host/a/src/a.rs", "MyInstant::now_and_then()", &[]);
    }

    #[test]
    fn clocks_in_the_self_running_replay_are_seen() {
        let text = "use domain::clock::Stopwatch;\nlet a = clock::sleep(b);\nlet clock = 1;";
        check(only_paced_runs_have_a_clock, "host/replay/src/run.rs", text, &[1, 2]);
        check(only_paced_runs_have_a_clock, PACED[0], text, &[]);
        check(only_paced_runs_have_a_clock, "host/cli/src/a.rs", text, &[]);
    }

    #[test]
    fn randomness_is_seen() {
        let text = "let a = rand::rng();\nlet b = rand::rngs::SmallRng::seed_from_u64(7);";
        check(nothing_is_random, "host/replay/src/a.rs", text, &[1]);
        check(nothing_is_random, "host/marketdata/src/a.rs", "let a = thread_rng();", &[1]);
        check(nothing_is_random, "host/cli/src/a.rs", text, &[]);
    }

    #[test]
    fn hash_tables_need_an_excuse() {
        let rule = hash_tables_are_for_lookup;
        let path = "host/replay/src/a.rs";
        check(rule, path, "use std::collections::{BTreeMap, HashMap};", &[1]);
        check(rule, path, "use std::collections::{\n    BTreeMap,\n    HashSet,\n};", &[3]);
        check(rule, path, "let a = std::collections::HashMap::new();", &[1]);
        check(rule, path, "use std::collections::HashMap; // lookup only", &[]);
        check(rule, path, "// By id, lookup only.\nuse std::collections::HashMap;", &[]);
        check(rule, "host/cli/src/a.rs", "use std::collections::HashMap;", &[]);
    }

    #[test]
    fn unsafe_code_elsewhere_is_seen() {
        let rule = unsafe_is_explained;
        let path = "host/cli/src/a.rs";
        check(rule, path, "// SAFETY: no\nlet a = unsafe { b() };", &[2]);
        check(rule, path, "unsafe impl Send for A {}", &[1]);
        check(rule, path, "#![allow(unsafe_code, reason = \"r\")]", &[1]);
        check(rule, path, "#![forbid(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";", &[]);
        check(rule, "guests/sdk/src/a.rs", "#![allow(unsafe_code)]\nunsafe { a() }", &[2]);
    }

    #[test]
    fn unsafe_code_in_the_sandbox_needs_a_reason() {
        let rule = unsafe_is_explained;
        let path = "host/sandbox/src/a.rs";
        check(rule, path, "// SAFETY: ours\nlet a = unsafe { b() };", &[]);
        check(rule, path, "// SAFETY: ours,\n// really\nlet a =\n    unsafe { b() };", &[]);
        check(rule, path, "// SAFETY: ours\n#[inline]\nunsafe fn a() {}", &[]);
        check(rule, path, "let a = unsafe { b() };", &[1]);
        check(rule, path, "// SAFETY: of another\nlet c = d();\nlet a = unsafe { b() };", &[3]);
        check(rule, path, "#[allow(unsafe_code, reason = \"r\")]\nfn a() {}", &[1]);
    }

    #[test]
    fn files_without_a_purpose_are_seen() {
        let rule = files_say_what_they_are_for;
        check(rule, "host/a/src/a.rs", "use a;\n//! Late.", &[1]);
        check(rule, "host/a/src/a.rs", "//!\nuse a;", &[1]);
        check(rule, "host/a/src/a.rs", "", &[1]);
        check(rule, "host/a/src/a.rs", "//! Good.\n#![allow(x)]", &[]);
        check(rule, "host/a/src/a.txt", "", &[]);
    }

    #[test]
    fn unfinished_work_is_seen() {
        check(nothing_is_unfinished, "host/a/src/a.rs", "fn a() { todo!() }\ndbg!(1);", &[1, 2]);
        check(nothing_is_unfinished, "host/a/src/a.rs", "// todo!\nlet a = \"dbg!\";", &[]);
    }
}
