//! `cargo xtask soak`: the seeded tests of `cargo xtask test` with all their seeds.

use anyhow::Result;

use crate::project::Project;
use crate::{languages, process};

/// Paced sessions with clients' orders that are made again from their record; `cargo xtask test` takes
/// 24 of them, so that each kind of session is among them.
const SESSIONS: u64 = 200;
/// Damaged components; `cargo xtask test` takes a tenth of them.
const MUTATIONS: u64 = 10_000;

/// Data folders that are cut after an instant and run again; `cargo xtask test` takes a twentieth.
const CUTS: u64 = 500;

/// Runs every seeded test with all its seeds and prints what each says of itself.
pub(crate) fn run(project: &Project, sessions: Option<u64>, mutations: Option<u64>) -> Result<()> {
    let mut command = project.cargo();
    command.args(["test", "--release", "--package", "replay", "--test", "suite"]);
    command.args(["--", "--nocapture", "a_script_of_a_paced_session"]);
    command.env("KUMIKI_SOAK_SESSIONS", sessions.unwrap_or(SESSIONS).to_string());
    process::run(&mut command)?;
    languages::build(project)?;
    // Of Rust and C, and of Python and JavaScript anywhere in the file; then of these two in their wiring.
    for place in [&["tests", "--test", "sandbox_paths"][..], &["sandbox", "--lib"]] {
        let mut command = project.cargo();
        command.args(["test", "--release", "--package"]).args(place);
        command.args(["--", "--nocapture", "--test-threads=1", "damaged_components"]);
        command.env("KUMIKI_SOAK_MUTATIONS", mutations.unwrap_or(MUTATIONS).to_string());
        process::run(&mut command)?;
    }
    let mut command = project.cargo();
    command.args(["test", "--release", "--package", "replay", "--test", "suite"]);
    command.args(["--", "--nocapture", "cuts::"]);
    command.env("KUMIKI_SOAK_CUTS", CUTS.to_string());
    process::run(&mut command)
}
