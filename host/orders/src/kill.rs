//! Crash points of the submit path and of fills, at which a test ends the whole program as a power cut would.
//!
//! The program says nothing more, and unwritten data are lost. `KUMIKI_KILL_AT` names one point; without it
//! nothing happens.

use std::sync::OnceLock;

/// The variable that names a crash point.
pub const VARIABLE: &str = "KUMIKI_KILL_AT";

/// Every crash point, in the order in which an order passes them.
pub const POINTS: [&str; 14] = [
    "command_taken",
    "id_in_map",
    "guard_asked",
    "guard_answered",
    "before_submit_line",
    "submit_line_half",
    "submit_line_unsynced",
    "submit_line_synced",
    "before_send",
    "sending",
    "answer_received",
    "before_accepted_line",
    "accepted_line_written",
    "accepted_broadcast",
];

/// The crash points around a fill of a strategy's order, in the order in which it passes them.
pub const FILL_POINTS: [&str; 4] =
    ["fill_line_half", "fill_line_unsynced", "fill_line_synced", "fill_broadcast"];

/// Whether the program is to crash here.
#[must_use]
pub(crate) fn is_at(point: &str) -> bool {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| std::env::var(VARIABLE).ok());
    wanted.as_deref() == Some(point)
}

/// Crashes here, if a test wants that.
pub(crate) fn here(point: &str) {
    if is_at(point) {
        tracing::error!(point, "killed at a test's wish");
        std::process::abort();
    }
}
