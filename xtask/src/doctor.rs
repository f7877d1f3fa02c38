//! `cargo xtask doctor`: what is there, what is missing, what to do about it.

use std::env;
use std::process::Command;

use anyhow::{Result, bail};

use crate::heavy::{self, Need, Part};
use crate::project::Project;
use crate::toolchain::{self, Active, CHOICE, Choice, TARGET, Unpacked};
use crate::{demo, machine, process};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is there.
    Present,
    /// It is not there, and nothing needs it now.
    Optional,
    /// There is less of it than a build wants, which may go well all the same.
    Short,
    /// It is not there, and `test` needs it.
    Missing,
}

/// One line of the list.
#[derive(Debug)]
struct Finding {
    state: State,
    what: String,
    advice: String,
}

impl Finding {
    fn present(what: impl Into<String>) -> Self {
        Self { state: State::Present, what: what.into(), advice: String::new() }
    }

    fn optional(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Optional, what: what.into(), advice: advice.into() }
    }

    fn missing(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Missing, what: what.into(), advice: advice.into() }
    }

    fn short(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Short, what: what.into(), advice: advice.into() }
    }

    fn line(&self) -> String {
        let mark = match self.state {
            State::Present => "ok      ",
            State::Optional => "optional",
            State::Short => "SHORT   ",
            State::Missing => "MISSING ",
        };
        if self.advice.is_empty() {
            format!("{mark}  {}", self.what)
        } else {
            format!("{mark}  {}\n          -> {}", self.what, self.advice)
        }
    }
}

/// Prints the whole list; fails when something essential is missing.
pub(crate) fn run(project: &Project) -> Result<()> {
    let mut findings = essential(project);
    findings.extend(linters(project));
    findings.push(wasm());
    findings.push(nextest(project));
    findings.push(database_compiler());
    findings.extend(room(project, &heavy::parts(project)));
    findings.push(browser());
    findings.push(first_build(&heavy::parts(project)));
    for finding in &findings {
        println!("{}", finding.line());
    }
    let missing = findings.iter().filter(|finding| finding.state == State::Missing).count();
    if missing > 0 {
        bail!("{missing} of these are missing and needed");
    }
    println!("everything that `cargo xtask demo` and `cargo xtask test` need is there");
    Ok(())
}

/// What a machine is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Replays.
    Replay,
    /// The whole program.
    Everything,
    /// The same, with lints.
    EverythingAndLints,
}

/// Fails when something essential is missing, and says what is short; nothing otherwise. The WebAssembly
/// target is looked at later, when the guests are built, because it can be prepared.
pub(crate) fn require(project: &Project, purpose: Purpose) -> Result<()> {
    let mut findings = essential(project);
    let parts = match purpose {
        Purpose::Replay => heavy::parts_for_replay(project),
        Purpose::Everything | Purpose::EverythingAndLints => {
            findings.push(database_compiler());
            heavy::parts(project)
        }
    };
    findings.extend(room(project, &parts));
    if purpose == Purpose::EverythingAndLints {
        findings.extend(linters(project));
    }
    for finding in findings.iter().filter(|finding| finding.state == State::Short) {
        eprintln!("{}", finding.line());
    }
    findings.retain(|finding| finding.state == State::Missing);
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.iter().map(Finding::line).collect();
    bail!("this machine is not ready:\n{}\nSee `cargo xtask doctor`", lines.join("\n"))
}

/// Whether the faster test runner is there.
pub(crate) fn has_nextest(project: &Project) -> bool {
    process::ask(project.cargo().args(["nextest", "--version"])).ok
}

fn essential(project: &Project) -> Vec<Finding> {
    vec![compiler(&project.rust_version), linker()]
}

fn compiler(lowest: &str) -> Finding {
    match Active::find() {
        Ok(active) if toolchain::at_least(&active.version, lowest) => {
            Finding::present(format!("rustc {} (at least {lowest} is needed)", active.version))
        }
        Ok(active) => Finding::missing(
            format!("rustc {lowest}; the active one is {}", active.version),
            "`rustup update stable`, or take a newer Rust from your system",
        ),
        Err(error) => {
            Finding::missing(format!("{error:#}"), "install Rust, for example with rustup")
        }
    }
}

fn linker() -> Finding {
    // On the other systems the linker comes with the platform's tools and has no fixed name.
    if env::consts::OS != "linux" || env::var_os("RUSTFLAGS").is_some() {
        return Finding::present("a linker is assumed");
    }
    if process::ask(Command::new("cc").arg("--version")).ok {
        Finding::present("the linker `cc`")
    } else {
        Finding::missing("the linker `cc`", "install gcc or clang; on Debian `apt install gcc`")
    }
}

/// DuckDB is C++; the demo does without it.
fn database_compiler() -> Finding {
    if env::var_os("CXX").is_some() || env::consts::OS == "windows" {
        return Finding::present("a C++ compiler is assumed, for DuckDB");
    }
    if process::ask(Command::new("c++").arg("--version")).ok {
        Finding::present("the C++ compiler `c++`, for DuckDB")
    } else {
        Finding::missing(
            "the C++ compiler `c++`: `test`, rankings, SQL and the daily job need DuckDB",
            "install g++ or clang; on Debian `apt install g++`. `cargo xtask demo` needs none",
        )
    }
}

/// Memory and disk for the coming build, which compiles these parts for the first time.
fn room(project: &Project, parts: &[Part]) -> [Finding; 2] {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let need = heavy::need(parts, jobs);
    [memory(need, machine::free_memory()), disk(need, machine::free_disk(&project.target))]
}

/// Too little memory makes a build slow, or ends a compiler: it may go well, so it is only told.
fn memory(need: Need, free: Option<u64>) -> Finding {
    let wanted = need.memory_gb;
    match free.map(gigabytes) {
        None => Finding::optional("the free memory is not known here", format!("have {wanted} GB")),
        Some(free) if free >= wanted => {
            Finding::present(format!("{free} GB of memory (the build wants {wanted} GB)"))
        }
        Some(free) => Finding::short(
            format!("{free} GB of free memory; the build wants {wanted} GB"),
            "end other programs, or build with fewer jobs: CARGO_BUILD_JOBS=1",
        ),
    }
}

/// A build that fills the disk ends after many minutes, so it is not begun.
fn disk(need: Need, free: Option<u64>) -> Finding {
    let wanted = need.disk_gb;
    match free.map(gigabytes) {
        None => {
            Finding::optional("the free disk space is not known here", format!("have {wanted} GB"))
        }
        Some(free) if free >= wanted => {
            Finding::present(format!("{free} GB of disk (the build wants {wanted} GB)"))
        }
        Some(free) => Finding::missing(
            format!("{wanted} GB of disk for the target folder; {free} GB are free"),
            "make room, or name another disk with CARGO_TARGET_DIR",
        ),
    }
}

const fn gigabytes(bytes: u64) -> u64 {
    bytes / 1_000_000_000
}

/// How long the coming build takes.
fn first_build(parts: &[Part]) -> Finding {
    if parts.is_empty() {
        return Finding::present("what takes minutes to compile was compiled before");
    }
    let told = parts.iter().map(|part| format!("{}, {}", part.what, part.duration()));
    Finding::optional(
        format!("to be compiled once: {}", told.collect::<Vec<_>>().join("; ")),
        "nothing to do: the first build does it, and says how far it is",
    )
}

fn linters(project: &Project) -> Vec<Finding> {
    let component = |task: &str, name: &str| {
        if process::ask(project.cargo().args([task, "--version"])).ok {
            Finding::present(format!("cargo {task}"))
        } else {
            Finding::missing(
                format!("cargo {task}, which `test` uses"),
                format!("`rustup component add {name}`, or `cargo xtask test --no-lint`"),
            )
        }
    };
    vec![component("fmt", "rustfmt"), component("clippy", "clippy")]
}

fn wasm() -> Finding {
    let found = || -> Result<Finding> {
        let choice = Choice::from_environment()?;
        let active = Active::find()?;
        if choice != Choice::Debian && active.has_target() {
            return Ok(Finding::present(format!("rustc {} has {TARGET}", active.version)));
        }
        let unpacked = Unpacked::newest(&toolchain::cache_folder()?, "0");
        if choice != Choice::Rustup
            && let Some(unpacked) = unpacked
        {
            let text = format!("Debian's rustc {} for {TARGET}, unpacked in", unpacked.version);
            return Ok(Finding::present(format!("{text} {}", unpacked.folder.display())));
        }
        Ok(Finding::optional(
            format!("{TARGET}, which strategies are built for"),
            format!(
                "nothing to do: `cargo xtask guests` adds it with rustup or unpacks it from \
                 Debian's packages; or `rustup target add {TARGET}`. {CHOICE} forces a way"
            ),
        ))
    };
    found().unwrap_or_else(|error| Finding::missing(format!("{TARGET}: {error:#}"), ""))
}

fn nextest(project: &Project) -> Finding {
    if has_nextest(project) {
        Finding::present("cargo nextest, which runs the tests")
    } else {
        Finding::optional(
            "cargo nextest",
            "nothing to do: `cargo test` runs the tests instead; nextest is faster",
        )
    }
}

fn browser() -> Finding {
    match demo::opener(env::consts::OS, |name| env::var_os(name).is_some()) {
        Some(command) => {
            let program = command.get_program().to_string_lossy().into_owned();
            Finding::present(format!("the demo opens its report with `{program}`"))
        }
        None => Finding::optional(
            "a desktop to open the demo's report on",
            "nothing to do: the demo prints the path of its report",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_compiler_is_missing_and_advised_on() {
        let finding = compiler("1.999");
        assert_eq!(finding.state, State::Missing);
        assert!(finding.line().contains("rustup update stable"), "{}", finding.line());
        assert_eq!(compiler("1.95").state, State::Present);
    }

    #[test]
    fn room_is_held_against_what_the_build_wants() {
        const GB: u64 = 1_000_000_000;
        let need = Need { disk_gb: 12, memory_gb: 4 };
        let states = |free| [memory(need, free).state, disk(need, free).state];
        assert_eq!(states(Some(12 * GB)), [State::Present; 2]);
        assert_eq!(states(Some(12 * GB - 1)), [State::Present, State::Missing]);
        assert_eq!(states(Some(3 * GB)), [State::Short, State::Missing]);
        assert_eq!(states(None), [State::Optional; 2]);
        let told = disk(need, Some(3 * GB)).line();
        assert!(told.contains("12 GB of disk") && told.contains("3 GB are free"), "{told}");
        let told = memory(need, Some(3 * GB)).line();
        assert!(told.starts_with("SHORT ") && told.contains("CARGO_BUILD_JOBS=1"), "{told}");
    }

    #[test]
    fn what_the_first_build_takes_is_told() {
        let told = first_build(&[heavy::DATABASE]).line();
        assert!(told.contains("DuckDB's C++ code, about an hour on two cores"), "{told}");
        assert_eq!(first_build(&[]).state, State::Present);
    }

    #[test]
    fn a_line_shows_state_and_advice() {
        assert_eq!(Finding::present("a").line(), "ok        a");
        assert_eq!(Finding::missing("b", "do c").line(), "MISSING   b\n          -> do c");
    }
}
