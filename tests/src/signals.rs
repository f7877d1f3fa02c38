//! When a program is ready for a signal.

use std::fs;
use std::time::Duration;

use domain::clock::sleep;

/// The signal of Ctrl-C.
pub const INT: u32 = 2;
/// The signal that asks a program to end.
pub const TERM: u32 = 15;

/// Waits until a process handles a signal: before that it would just be gone. Where the system does not tell,
/// a second must do.
///
/// # Panics
/// When it has ended before.
pub fn wait_for_handler(process: u32, signal: u32) {
    let status = format!("/proc/{process}/status");
    loop {
        let Ok(text) = fs::read_to_string(&status) else {
            match cfg!(target_os = "linux") {
                true => panic!("the process {process} has ended"),
                false => return sleep(Duration::from_secs(1)),
            }
        };
        let handled = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let handled = handled.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if handled.is_none_or(|mask| mask >> (signal - 1) & 1 == 1) {
            return;
        }
        sleep(Duration::from_millis(2));
    }
}
