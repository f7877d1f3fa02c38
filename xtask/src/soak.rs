//! `cargo xtask soak`: the seeded tests of `cargo xtask test` with all their seeds.

use anyhow::Result;

use crate::project::Project;
use crate::skips::Skips;
use crate::{guests, host, languages, process, python};

/// Paced sessions with clients' orders that are made again from their record; `cargo xtask test` takes
/// 24 of them, so that each kind of session is among them.
const SESSIONS: u64 = 200;
/// Sessions of people with the engine process, made again by the program with windows 1, 64 and 1,024;
/// `cargo xtask test` takes a twentieth.
const ENGINE_SESSIONS: u64 = 200;
/// Random crossings of orders, answers, notices and kills at the order desk; `cargo xtask test` takes a
/// twentieth.
const ORDER_SEEDS: u64 = 10_000;
/// Ten days each of a local gateway that fails at random; `cargo xtask test` takes a twentieth.
const GATEWAY_SEEDS: u64 = 400;
/// Damaged components; `cargo xtask test` takes a tenth of them.
const MUTATIONS: u64 = 10_000;

/// Data folders that are cut after an instant and run again; `cargo xtask test` takes a twentieth.
const CUTS: u64 = 500;

/// Runs of `kumiki update` that are killed, of which `cargo xtask test` takes ten, and jobs that publish one
/// state after the other, of which it takes six.
const KILLS: u64 = 100;

/// Runs every seeded test with all its seeds and prints what each says of itself.
pub(crate) fn run(
    project: &Project,
    sessions: Option<u64>,
    engine_sessions: Option<u64>,
    order_seeds: Option<u64>,
    mutations: Option<u64>,
) -> Result<()> {
    let sessions = sessions.unwrap_or(SESSIONS);
    let suite = ["--test", "suite"];
    test(project, &suite, &["a_script_of_a_paced_session"], "KUMIKI_SOAK_SESSIONS", sessions)?;
    let order_seeds = order_seeds.unwrap_or(ORDER_SEEDS);
    test(project, &suite, &["no_crossing"], "KUMIKI_SOAK_ORDER_SEEDS", order_seeds)?;
    let gateway = ["--test", "gateway_soak"];
    test(project, &gateway, &["no_outage"], "KUMIKI_SOAK_GATEWAY_SEEDS", GATEWAY_SEEDS)?;
    engine(project, engine_sessions.unwrap_or(ENGINE_SESSIONS))?;
    languages::build(project)?;
    // Of Rust and C, and of Python and JavaScript anywhere in the file; then of these two in their wiring.
    let mutations = mutations.unwrap_or(MUTATIONS);
    let damaged = ["--test-threads=1", "damaged_components"];
    for place in [&["--test", "sandbox_paths"][..], &["--lib"]] {
        test(project, place, &damaged, "KUMIKI_SOAK_MUTATIONS", mutations)?;
    }
    test(project, &suite, &["cuts::"], "KUMIKI_SOAK_CUTS", CUTS)?;
    let killed = ["update_kills::", "update_crash::"];
    test(project, &["--test", "program"], &killed, "KUMIKI_SOAK_KILLS", KILLS)
}

/// Runs the seeded sessions with the engine. A client in Python makes them; without Python or network they
/// are skipped, which is said.
fn engine(project: &Project, sessions: u64) -> Result<()> {
    guests::build(project)?;
    host::build_with_tests(project)?;
    let test = "test_engine.py::test_a_session_can_be_repeated_from_its_commands";
    let mut skips = Skips::default();
    python::soak(project, test, ("KUMIKI_SOAK_ENGINE_SESSIONS", sessions), &mut skips)?;
    eprintln!("sessions with the engine: {sessions}; {}", skips.told());
    Ok(())
}

/// Runs tests by their names. They are built with the whole workspace, as `cargo xtask test` builds
/// them: a single package has other features, and wasmtime would be compiled again.
fn test(
    project: &Project,
    place: &[&str],
    names: &[&str],
    variable: &str,
    seeds: u64,
) -> Result<()> {
    let mut command = project.cargo();
    command.args(["test", "--release", "--workspace"]).args(place);
    command.args(["--", "--nocapture"]).args(names);
    process::run(command.env(variable, seeds.to_string()))
}
