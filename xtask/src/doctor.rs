//! `cargo xtask doctor`: what is there, what is missing, what to do about it.

use std::env;
use std::process::Command;

use anyhow::{Result, bail};

use crate::demo;
use crate::process;
use crate::project::Project;
use crate::toolchain::{self, Active, CHOICE, Choice, TARGET, Unpacked};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is there.
    Present,
    /// It is not there, and nothing needs it now.
    Optional,
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

    fn line(&self) -> String {
        let mark = match self.state {
            State::Present => "ok      ",
            State::Optional => "optional",
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
    findings.push(browser());
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

/// Fails when something essential is missing; says nothing otherwise. The WebAssembly target is
/// looked at later, when the guests are built, because it can be prepared.
pub(crate) fn require(project: &Project, purpose: Purpose) -> Result<()> {
    let mut findings = essential(project);
    if purpose != Purpose::Replay {
        findings.push(database_compiler());
    }
    if purpose == Purpose::EverythingAndLints {
        findings.extend(linters(project));
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
    fn a_line_shows_state_and_advice() {
        assert_eq!(Finding::present("a").line(), "ok        a");
        assert_eq!(Finding::missing("b", "do c").line(), "MISSING   b\n          -> do c");
    }
}
