//! Peak memory of one piece of work, measured in a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use marketdata::{TradeFile, TradeStore};
use serde_json::json;
use tests::sample::vendor_code;

use crate::data::{path_argument, scratch};
use crate::measure::figure;

/// Prints the peak memory of loading one code cold; rows wait on disk and not in memory.
pub(crate) fn report(name: &str, file: &TradeFile, code: &str) {
    let Some((peak, rows)) = in_child(&file.path, code) else {
        eprintln!("{name}: this system does not tell a process its peak memory");
        return;
    };
    let peak = peak / 1e6;
    figure(name, "MB", peak, peak, &json!({ "rows": rows, "goal_max": 64 }));
}

fn in_child(path: &Path, code: &str) -> Option<(f64, f64)> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).arg("memory-of").arg(path).arg(code).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Loads the code named by the arguments and prints peak memory and rows.
pub(crate) fn child() {
    let file = TradeFile::from_path(path_argument(2)).unwrap_or_else(|error| panic!("{error}"));
    let code = vendor_code(&path_argument(3).to_string_lossy());
    let cache = scratch();
    let store = TradeStore::new(cache.path());
    let loaded = store.load(&file, &[code], &mut |_| std::ops::ControlFlow::Continue(()));
    let rows: usize =
        loaded.unwrap_or_else(|error| panic!("{error}")).iter().map(|segment| segment.len()).sum();
    if let Some(peak) = peak_bytes() {
        println!("{peak} {rows}");
    }
}

/// Peak memory of a program, in bytes; it has to end well.
pub(crate) fn peak_of(mut command: Command) -> Option<f64> {
    command.stdout(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    loop {
        peak = peak.max(peak_in(&status));
        match child.try_wait() {
            Ok(Some(ended)) => {
                assert!(ended.success(), "the program failed");
                return peak.map(|bytes| bytes as f64);
            }
            _ => domain::clock::sleep(Duration::from_millis(2)),
        }
    }
}

/// This process's peak memory, where the system tells it.
fn peak_bytes() -> Option<u64> {
    peak_in("/proc/self/status")
}

/// This process's memory now, where the system tells it.
pub(crate) fn resident_bytes() -> Option<u64> {
    bytes_in("/proc/self/status", "VmRSS:")
}

fn peak_in(status: &str) -> Option<u64> {
    bytes_in(status, "VmHWM:")
}

fn bytes_in(status: &str, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
}
