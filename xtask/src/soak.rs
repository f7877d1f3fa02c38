//! `cargo xtask soak`: the seeded tests of `cargo xtask test` with all their seeds, a console that stays open for
//! eight market hours, and the packages.

use std::env;

use anyhow::Result;

use crate::dist::System;
use crate::project::Project;
use crate::skips::Skips;
use crate::{bench, browser, dist, guests, host, languages, process, python, windows};

/// Tests that count their seeds in a variable: where cargo finds them, how their names begin, the variable,
/// and how many there are by default; `cargo xtask test` takes a tenth or less.
const SEEDED: [(&str, &str, &str, u64); 8] = [
    // Paced sessions with clients' orders that are made again from their record.
    ("--test suite", "a_script_of_a_paced_session", "KUMIKI_SOAK_SESSIONS", 200),
    // Random crossings of orders, answers, notices and kills at the order desk.
    ("--test suite", "no_crossing", "KUMIKI_SOAK_ORDER_SEEDS", 10_000),
    // Ten days each of a local gateway that fails at random; then of the simulated one over real sockets.
    ("--test gateway_soak", "no_outage_loses", "KUMIKI_SOAK_GATEWAY_SEEDS", 400),
    ("--test gateway_soak", "no_outage_of_the_simulated", "KUMIKI_SOAK_GATEWAY_SOCKET_SEEDS", 40),
    // Damaged components of Rust and C, and of Python and JavaScript anywhere in the file or in their wiring.
    (
        "--test sandbox_paths --lib",
        "--test-threads=1 damaged_components",
        "KUMIKI_SOAK_MUTATIONS",
        10_000,
    ),
    // Data folders that are cut after an instant and run again.
    ("--test suite", "cuts::", "KUMIKI_SOAK_CUTS", 500),
    // Runs of one instrument, alone and beside another that nothing is done on.
    ("--test suite", "days::", "KUMIKI_SOAK_DAYS", 200),
    // Runs of `kumiki data update` that are killed, and jobs that publish one state after the other.
    ("--test program", "update_kills:: update_crash::", "KUMIKI_SOAK_KILLS", 100),
];

/// The same of tests in Python, each by its file and name.
const SEEDED_IN_PYTHON: [(&str, &str, u64); 3] = [
    // Sessions of people with the engine process, made again by the program with windows 1, 64 and 1,024.
    (
        "test_engine.py::test_a_session_can_be_repeated_from_its_commands",
        "KUMIKI_SOAK_ENGINE_SESSIONS",
        200,
    ),
    // Days of strategies on paper, while the gateway, the engine and the disk fail.
    ("test_live_days.py::test_p112_p113_p120_a_day_with_faults", "KUMIKI_SOAK_LIVE_DAYS", 40),
    // The same with real orders, while the broker fails too.
    (
        "test_live_real_days.py::test_p91_to_p130_a_day_of_real_orders_with_faults",
        "KUMIKI_SOAK_REAL_DAYS",
        100,
    ),
];

/// Runs every seeded test with all its seeds and prints what each says of itself; then lets a page of the engine
/// stay open, and tries the packages.
pub(crate) fn run(project: &Project) -> Result<()> {
    guests::build(project)?;
    languages::build(project)?;
    host::build_with_tests(project)?;
    for (place, names, variable, default) in SEEDED {
        // Built with the whole workspace, as `cargo xtask test` builds them: a single package has other
        // features, and wasmtime would be compiled again.
        let mut command = project.cargo_with_database("test --workspace");
        command.args(place.split(' ')).args(["--", "--nocapture"]).args(names.split(' '));
        process::run(command.env(variable, seeds(variable, default)))?;
    }
    let mut skips = Skips::default();
    for (name, variable, default) in SEEDED_IN_PYTHON {
        let (test, count) = (format!("{}/{name}", python::TESTS), seeds(variable, default));
        python::test(project, &test, &[(variable, &count)], &mut skips, &mut Vec::new())?;
        eprintln!("{name}: {count} seeds; {}", skips.told());
    }
    browser::prepare(project)?;
    python::run(project, bench::CONSOLE, &["--soak".to_owned()])?;
    dist::run(project, &[], None, true)?;
    windows::run(project)?;
    dist::run(project, &[], Some(System::Windows), true)
}

/// How many seeds are wanted.
fn seeds(variable: &str, default: u64) -> String {
    env::var(variable).unwrap_or_else(|_| default.to_string())
}
