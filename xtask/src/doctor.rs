//! `cargo xtask doctor`: what is there, what is missing, what to do about it.

use std::env;
use std::process::Command;

use anyhow::{Result, bail};

use crate::project::Project;
use crate::toolchain::{self, Active, TARGET, Unpacked};
use crate::{cache, duckdb, host, process};

/// GB of the disk that a first build takes.
const DISK_GB: u64 = 6;

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
    findings.extend([wasm(), database(project), nextest(project), first_build(project)]);
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

/// Fails when something essential is missing, with `lints` a linter too; says nothing otherwise. The
/// WebAssembly target is looked at later, when the guests are built, because it can be prepared.
pub(crate) fn require(project: &Project, lints: bool) -> Result<()> {
    let mut findings = essential(project);
    if lints {
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
    vec![compiler(&project.rust_version), linker(), disk(project)]
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

/// A build that fills the disk ends after many minutes, so it is not begun.
fn disk(project: &Project) -> Finding {
    let there = project.target.ancestors().find(|folder| folder.is_dir());
    let free = there.and_then(|folder| fs4::available_space(folder).ok());
    match free.map(|bytes| bytes / 1_000_000_000) {
        _ if host::is_compiled(project, "wasmtime") => {
            Finding::present("room on the disk is assumed")
        }
        None => Finding::optional("the free disk space is not known", format!("have {DISK_GB} GB")),
        Some(free) if free < DISK_GB => Finding::missing(
            format!("{DISK_GB} GB of disk for the target folder; {free} GB are free"),
            "make room, or name another disk with CARGO_TARGET_DIR",
        ),
        Some(free) => Finding::present(format!("{free} GB of disk (a build wants {DISK_GB} GB)")),
    }
}

fn linters(project: &Project) -> [Finding; 2] {
    [("fmt", "rustfmt"), ("clippy", "clippy")].map(|(task, name)| {
        if process::ask(project.cargo().args([task, "--version"])).ok {
            Finding::present(format!("cargo {task}"))
        } else {
            Finding::missing(
                format!("cargo {task}, which `test` uses"),
                format!("`rustup component add {name}`, or `cargo xtask test --no-lint`"),
            )
        }
    })
}

fn wasm() -> Finding {
    if let Ok(active) = Active::find()
        && active.has_target()
    {
        return Finding::present(format!("rustc {} has {TARGET}", active.version));
    }
    match cache::folder().ok().and_then(|cache| Unpacked::newest(&cache, "0")) {
        Some(Unpacked { version, folder }) => {
            let folder = folder.display();
            Finding::present(format!("Debian's rustc {version} for {TARGET}, unpacked in {folder}"))
        }
        None => Finding::optional(
            format!("{TARGET}, which strategies are built for"),
            format!(
                "nothing to do: `cargo xtask guests` adds it with rustup or unpacks it from \
                 Debian's packages; or `rustup target add {TARGET}`"
            ),
        ),
    }
}

fn database(project: &Project) -> Finding {
    if duckdb::is_there(project) {
        Finding::present("DuckDB's library")
    } else {
        Finding::optional(
            "DuckDB's library, for rankings, SQL and the daily job",
            "`cargo xtask setup` fetches it with npm; `cargo xtask test` does so by itself",
        )
    }
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

fn first_build(project: &Project) -> Finding {
    if host::is_compiled(project, "wasmtime") {
        Finding::present("what takes minutes to compile was compiled before")
    } else {
        Finding::optional(host::FIRST_BUILD, "nothing to do")
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
