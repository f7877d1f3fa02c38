//! `cargo xtask windows`: the Windows program, built with mingw-w64 and tried under Wine. The tests are those of
//! `cargo xtask test`: those in Rust start it through a script, those in Python run in a Python for Windows.

pub(crate) mod python;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;

use crate::cases::Case;
use crate::project::Project;
use crate::skips::Skips;
use crate::steps::Steps;
use crate::{apt, duckdb, guests, host, process};

/// What the program is compiled for.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
/// The same as DuckDB's packages are listed.
const SYSTEM: (&str, &str) = ("windows", "x86_64");
/// The compiler of C of mingw-w64, which links too.
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Packages of Debian that have it, Wine, and what unpacks archives for Windows.
const PACKAGES: [&str; 5] =
    ["gcc-mingw-w64-x86-64", "g++-mingw-w64-x86-64", "wine", "wine64", "unzip"];
/// Wine 8 has no `bcryptprimitives.dll`, whose one function every program of Rust calls. This one is for tests only.
const STAND_IN: &str = "#include <windows.h>\n#include <ntsecapi.h>\n\
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T bytes)\n\
    { return RtlGenRandom(to, (ULONG)bytes); }\n";
const STAND_IN_LIBRARY: &str = "bcryptprimitives.dll";
/// Names the program that tests start.
const PROGRAM: &str = "KUMIKI_PROGRAM";
/// Starts the program beside it under Wine.
const SCRIPT: &str = "kumiki-under-wine";
/// What the program has beside it.
const FOLDERS: [&str; 5] = ["strategies", "dialects", "formulas", "test-guests", "examples"];
/// Crates whose tests of their own run under Wine: those in which Windows differs.
const CRATES: [&str; 2] = ["atomic-file", "keys"];

/// Tests in Rust that start the program and cannot under Wine: the beginnings of their names, and why.
const LEFT_OUT: [(&str, &[&str]); 9] = [
    (
        "its signals, terminals and limits are those of Unix",
        &[
            "hostile_guests::compiling_hears",
            "keys::a_value_that_is_typed",
            "keys::whatever_ends_the_prompt",
            "ranking_program::ctrl_c",
            "ranking_program::the_service_ends_cleanly",
            "service_data::silent_clients",
            "service_data::the_limit_of_open_files",
            "sql_answers::a_prompt_ends",
            "sql_answers::a_statement_ends",
            "sql_answers::answers_take_no_more",
            "update_program::one_job_runs",
        ],
    ),
    (
        "a program that does nothing has 260 MB under Wine",
        &[
            "hostile_guests::a_function_that_costs",
            "hostile_guests::compiling_what_is_allowed",
            "hostile_guests::constants_that_cost",
            "hostile_guests::core_modules_of_too_many",
            "hostile_guests::functions_that_cost",
            "hostile_guests::parts_of_types",
            "hostile_guests::what_stands_for",
            "output_limits::a_flood",
            "output_limits::commands_of_a_run",
            "output_limits::floods_of_accepted",
            "output_limits::rejected_orders",
            "sql_answers::a_value_that_is_too_large",
        ],
    ),
    ("pages are written for a shell of Unix", &["docs_blocks::the_"]),
    (
        "Windows has no such names, or writes paths otherwise",
        &[
            "command_line::a_run_removes",
            "data_tools::a_check_counts",
            "data_tools::a_folder_is_described",
            "instrument_table::lists_of_issues",
            "sql_folders::a_name_that_is_a_pattern",
            "sql_folders::names_of",
            "sql_views::runs_that_are_none",
            "update_board::a_damaged_segment",
        ],
    ),
    (
        "the test itself publishes or locks as a program of Linux, of which Wine knows nothing",
        &[
            "rank_folder::a_job_waits",
            "replicas::replicas_answer",
            "update_sources::the_web_broker_is_asked",
        ],
    ),
    ("its links are those of Unix", &["run_folders::links_stay"]),
    ("they copy the program, which is a script there", &["strategy_compile::"]),
    (
        "credentials of systemd, and the Secret Service, are Linux' own",
        &["keys::k3_a_credential", "keys::k4_a_store_that_is_not_there"],
    ),
    ("a command of Windows has 32,767 characters", &["sql_answers::an_answer_may_have"]),
];
/// Tests of [`CRATES`] that cannot pass under Wine 8: it neither replaces nor at once removes a file that is open.
const OPEN_FILES: [&str; 2] =
    ["a_written_file_takes_the_place", "a_file_can_be_written_by_its_other_name"];
/// Files of tests in Python. The others need packages that do not run under Wine, or a browser.
const PYTHON_TESTS: [&str; 40] = [
    "test_windows.py",
    "test_engine.py",
    "test_engine_attacks.py",
    "test_engine_market.py",
    "test_engine_orders.py",
    "test_engine_patience.py",
    "test_engine_pins.py",
    "test_engine_refusals.py",
    "test_live.py",
    "test_live_faults.py",
    "test_live_kill.py",
    "test_live_kinds.py",
    "test_live_paper.py",
    "test_live_pins.py",
    "test_live_real_days.py",
    "test_live_reasons.py",
    "test_live_run.py",
    "test_live_secrets.py",
    "test_live_smoke.py",
    "test_live_trading.py",
    "test_local_broker.py",
    "test_local_outages.py",
    "test_local_secrets.py",
    "test_order_command.py",
    "test_package.py",
    "test_pins_orders.py",
    "test_pins_run.py",
    "test_pins_session.py",
    "test_pins_told.py",
    "test_plain_client.py",
    "test_recording.py",
    "test_request_keys.py",
    "test_session.py",
    "test_session_aio.py",
    "test_session_attach.py",
    "test_session_orders.py",
    "test_sim_market.py",
    "test_traded_files.py",
    "test_update_broker.py",
    "test_watch.py",
];
/// The one of them that `cargo xtask test` runs.
const SESSION: &str = "test_engine.py::test_a_whole_session";
/// Seconds after which a test in Python is ended: the longest takes 200.
const TEST_SECS_MAX: u32 = 400;
/// So many tests in Python that failed run once more: Wine 8 sometimes does not tell that a connection has ended.
const AGAIN_MAX: usize = 8;
/// How the command ends where pytest has run all tests and some failed; it ends otherwise where it did not run all.
const TESTS_FAILED: &str = "the command ended with exit status: 1;";

/// Builds the program and tries it.
pub(crate) fn run(project: &Project) -> Result<()> {
    let mut steps = Steps::new();
    let mut skips = Skips::default();
    let mut timed = Vec::new();
    steps.step("guests", || guests::build(project))?;
    steps.step("host", || host::build_with_tests(project))?;
    steps.step("mingw-w64 and Wine", || tools().map_err(Error::msg))?;
    steps.step("Windows program", || build(project))?;
    steps.step("files and keys", || test_crates(project, &mut skips))?;
    steps.step("the same replay, and a session", || try_out(project, &mut skips, &mut timed))?;
    steps.step("the tests in Rust that start it", || {
        let mut command = project.cargo_with_database("test --workspace --test program");
        command.arg("--");
        LEFT_OUT.iter().for_each(|(why, names)| leave_out(&mut command, names, why, &mut skips));
        process::run(command.env(PROGRAM, script(project)))
    })?;
    steps.step("the tests in Python", || pytest(project, &PYTHON_TESTS, &mut skips, &mut timed))?;
    println!("{}; {}", steps.passed(), skips.told());
    Ok(())
}

/// Sees to it that the compiler, Rust's library for it and Wine are there.
pub(crate) fn tools() -> Result<(), String> {
    let is_there = |program: &str, word: &str| process::ask(Command::new(program).arg(word)).ok;
    if !has_wine() || !is_there(COMPILER, "--version") || !is_there("unzip", "-v") {
        apt::install(&PACKAGES)?;
    }
    let add = process::ask(Command::new("rustup").args(["target", "add", TARGET]));
    if add.ok { Ok(()) } else { Err(format!("rustup adds no {TARGET}: {}", add.last_line())) }
}

fn has_wine() -> bool {
    process::ask(Command::new("wine").arg("--version")).ok
}

/// Where Wine keeps what is a machine to it.
fn prefix(project: &Project) -> PathBuf {
    project.target.join("wine")
}

/// Starts Wine's own programs, which stay: the first program would hand its pipes to them, and whoever reads what it says
/// would wait for their end. They end five minutes after the last program.
fn start_wine(project: &Project) -> Result<()> {
    let quiet = |program: &str| {
        let mut command = Command::new(program);
        command.envs(wine_variables(&prefix(project)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    // Another one may run: it says so by its exit code.
    quiet("wineserver").arg("--persistent=300").status().context("cannot start wineserver")?;
    process::run(quiet("wine").arg("wineboot"))
}

/// What every program needs that starts under Wine.
pub(crate) fn wine_variables(prefix: &Path) -> [(&'static str, OsString); 2] {
    [("WINEPREFIX", prefix.into()), ("WINEDEBUG", "-all".into())]
}

fn release(project: &Project) -> PathBuf {
    project.target.join(TARGET).join("release")
}

fn program(project: &Project) -> PathBuf {
    release(project).join("kumiki.exe")
}

fn script(project: &Project) -> PathBuf {
    release(project).join(SCRIPT)
}

/// Where DuckDB's library for Windows is; it is fetched where it is missing.
pub(crate) fn database(project: &Project) -> Result<PathBuf> {
    let folder = project.target.join(TARGET).join("duckdb");
    let (system, processor) = SYSTEM;
    duckdb::set_up_for(system, processor, &folder)?;
    Ok(folder)
}

fn build(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["build", "--release", "--target", TARGET, "--package", "cli"]);
    process::run(command.env(duckdb::VARIABLE, database(project)?))?;
    for folder in FOLDERS {
        copy_files(&project.release().join(folder), &release(project).join(folder))?;
    }
    // Cargo leaves it as it was where only tests have changed; it is new for all that.
    process::run(Command::new("touch").arg(program(project)))?;
    start_wine(project)?;
    let script = starting(project, &program(project))?;
    process::run(Command::new(&script).arg("--version"))
}

/// A script that starts a program under Wine, beside it.
pub(crate) fn starting(project: &Project, program: &Path) -> Result<PathBuf> {
    let folder = program.parent().context("a program is in a folder")?;
    put_stand_in(folder).map_err(Error::msg)?;
    let script = folder.join(SCRIPT);
    let text = format!(
        "#!/bin/sh\nexport WINEPREFIX='{}' WINEDEBUG=-all\nexec wine '{}' \"$@\"\n",
        prefix(project).display(),
        program.display()
    );
    guests::write_if_changed(&script, text.as_bytes())?;
    process::run(Command::new("chmod").arg("+x").arg(&script))?;
    Ok(script)
}

/// Puts the library that Wine lacks beside a program.
pub(crate) fn put_stand_in(folder: &Path) -> Result<(), String> {
    let source = folder.join("stand-in.c");
    fs::write(&source, STAND_IN).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut compile = Command::new(COMPILER);
    compile.args(["-shared", "-O2", "-s", "-o"]).arg(folder.join(STAND_IN_LIBRARY)).arg(&source);
    crate::environment::told("the stand-in cannot be compiled", compile.arg("-ladvapi32"))?;
    fs::remove_file(&source).map_err(|error| error.to_string())
}

/// Copies the files of a folder; the folders in it hold what was compiled for this machine.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(cannot)?;
    for entry in fs::read_dir(from).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        if entry.file_type().with_context(cannot)?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).with_context(cannot)?;
        }
    }
    Ok(())
}

/// Runs the tests of single crates under Wine.
fn test_crates(project: &Project, skips: &mut Skips) -> Result<()> {
    // Beside the test programs, which are in this folder.
    put_stand_in(&release(project).join("deps")).map_err(Error::msg)?;
    let mut command = project.cargo();
    command.args(["test", "--release", "--target", TARGET, "--lib"]);
    command.args(CRATES.into_iter().flat_map(|name| ["--package", name]));
    command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine").arg("--");
    leave_out(&mut command, &OPEN_FILES, "it keeps files that somebody has open", skips);
    process::run(command.envs(wine_variables(&prefix(project))))
}

/// Leaves out tests of Rust whose names begin so.
fn leave_out(command: &mut Command, names: &[&str], why: &str, skips: &mut Skips) {
    for name in names {
        skips.add(name, &format!("not under Wine: {why}"));
        command.args(["--skip", name]);
    }
}

/// Tries the program where it was built from the present code: a replay has the digest that it has here, and a program
/// drives a session.
pub(crate) fn try_out(project: &Project, skips: &mut Skips, timed: &mut Vec<Case>) -> Result<()> {
    if let Err(reason) = is_ready(project) {
        skips.say("Windows program under Wine", &reason);
        return Ok(());
    }
    start_wine(project)?;
    let place = project.target.join("wine-trial");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let digest = |program: &Path, name: &str| {
        let said = |words: &str| {
            let mut command = Command::new(program);
            command.current_dir(&place).args(words.split(' '));
            let answer = process::ask(command.env("KUMIKI_CACHE", place.join(name)));
            if !answer.ok {
                bail!("`{} {words}` failed:\n{}", program.display(), answer.err.trim());
            }
            Ok(answer.out)
        };
        said(&format!("data sample --out {name}/data --seed 7 --days 20 --instrument 7203.TSE"))?;
        let run = "--instrument 7203.TSE --quiet --format json";
        let told =
            said(&format!("replay run sma-cross --data {name}/data --out {name}/run {run}"))?;
        let told: Value = serde_json::from_str(&told).context("the replay told no JSON")?;
        let digest = told["manifest"]["event_log_digest"].as_str().map(str::to_owned);
        digest.context("the replay told no digest")
    };
    let (here, there) = (digest(&project.program(), "here")?, digest(&script(project), "wine")?);
    if here != there {
        bail!("the replay of the demo has the digest {here} here, and {there} under Wine");
    }
    eprintln!("the demo's replay has the digest {here} under Wine too");
    pytest(project, &[SESSION], skips, timed)
}

/// Whether the program can be tried.
fn is_ready(project: &Project) -> Result<(), String> {
    const WAY: &str = "`cargo xtask windows` builds it";
    let program = program(project);
    let Ok(built) = fs::metadata(&program).and_then(|found| found.modified()) else {
        return Err(format!("{} is not there; {WAY}", program.display()));
    };
    if !has_wine() {
        return Err(format!("there is no Wine; {WAY}"));
    }
    let mut newest = SystemTime::UNIX_EPOCH;
    for folder in ["host", "guests", "wit"] {
        let looked = newest_below(&project.root.join(folder), &mut newest);
        looked.map_err(|error| format!("{error:#}"))?;
    }
    if newest > built {
        return Err(format!("it is older than the code; {WAY}"));
    }
    Ok(())
}

/// When a file that programs are made of was last changed, below a folder.
fn newest_below(folder: &Path, newest: &mut SystemTime) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            newest_below(&path, newest)?;
        } else if path
            .extension()
            .is_some_and(|end| ["rs", "toml", "wit"].iter().any(|it| end == *it))
        {
            *newest = (*newest).max(entry.metadata()?.modified()?);
        }
    }
    Ok(())
}

/// Runs tests in Python for Windows.
fn pytest(
    project: &Project,
    tests: &[&str],
    skips: &mut Skips,
    timed: &mut Vec<Case>,
) -> Result<()> {
    let folder = match python::folder(project) {
        Ok(folder) => folder,
        Err(reason) => {
            tests.iter().for_each(|test| skips.say(test, &reason));
            return Ok(());
        }
    };
    let mut run = |tests: &[String]| {
        let mut command = python::command(&folder, &prefix(project));
        command.current_dir(&project.root).args(["-m", "pytest"]);
        command.args(["-o", "faulthandler_exit_on_timeout=true"]);
        command.args(["-o", &format!("faulthandler_timeout={TEST_SECS_MAX}")]);
        // With the drive of this machine, as tests start it in folders of another one.
        command.env(PROGRAM, format!("Z:{}", program(project).display()));
        let from = timed.len();
        let ended = crate::python::pytest(project, &mut command, tests, skips, timed);
        let again = to_run_again(&ended, &timed[from..]);
        (ended, again)
    };
    let tests: Vec<String> =
        tests.iter().map(|test| format!("{}/{test}", crate::python::TESTS)).collect();
    let (ended, again) = run(&tests);
    let Some(again) = again else { return ended };
    eprintln!("once more, as Wine may have lost the end of a connection: {}", again.join(", "));
    run(&again).0
}

/// The tests that failed, where all have run, a few failed, and each can be named.
fn to_run_again(ended: &Result<()>, cases: &[Case]) -> Option<Vec<String>> {
    let have_all_run = ended.as_ref().is_err_and(|it| it.to_string().starts_with(TESTS_FAILED));
    let failed = cases.iter().filter(|case| case.failure.is_some());
    let named: Vec<String> = failed.map(|case| test_named(&case.name)).collect::<Option<_>>()?;
    (have_all_run && (1..=AGAIN_MAX).contains(&named.len())).then_some(named)
}

/// A test as pytest takes it, by its name in a report.
fn test_named(name: &str) -> Option<String> {
    let (file, test) = name.strip_prefix("tests.")?.split_once(' ')?;
    Some(format!("{}/{file}.py::{test}", crate::python::TESTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_of_a_report_is_named_as_pytest_takes_it() {
        let named = test_named("tests.test_live_kill test_killed[web-broker-v4r10 3]");
        let wanted = "clients/python/tests/test_live_kill.py::test_killed[web-broker-v4r10 3]";
        assert_eq!(named.as_deref(), Some(wanted));
        assert_eq!(test_named("verify::what_changed_is_named"), None);
    }

    #[test]
    fn a_few_tests_that_failed_run_again_and_nothing_else() {
        let case = |name: &str, failure: Option<&str>| Case {
            name: name.to_owned(),
            failure: failure.map(str::to_owned),
            ..Case::default()
        };
        let ended =
            |code: i32| process::run(Command::new("sh").args(["-c", &format!("exit {code}")]));
        let passed = case("tests.test_a test_b", None);
        let failed = case("tests.test_a test_c", Some("assert"));
        let cases = [passed, failed];
        let again = to_run_again(&ended(1), &cases);
        assert_eq!(again, Some(vec!["clients/python/tests/test_a.py::test_c".to_owned()]));
        // Nothing failed, no test did, or pytest was interrupted before all had run.
        for (code, cases) in [(0, &cases[..1]), (1, &cases[..1]), (2, &cases[..]), (3, &cases[..])]
        {
            assert_eq!(to_run_again(&ended(code), cases), None, "{code}");
        }
        let nameless = [case("tests.test_a test_c", Some("x")), case("tests.test_b", Some("x"))];
        assert_eq!(to_run_again(&ended(1), &nameless), None);
        let many: Vec<Case> =
            (0..=AGAIN_MAX).map(|_| case("tests.test_a test_c", Some("x"))).collect();
        assert_eq!(to_run_again(&ended(1), &many), None);
    }
}
