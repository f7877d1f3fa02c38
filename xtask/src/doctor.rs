//! `cargo xtask doctor`: what is there, what is missing, what to do about it.

use std::env;
use std::process::Command;

use anyhow::{Result, bail};

use crate::project::{Project, RUST_VERSION};
use crate::toolchain::{self, Active, Unpacked};
use crate::{cache, duckdb, host, process};

/// What was found: whether it is there, what it is, and what to do where it is not.
#[derive(Debug)]
enum Finding {
    Present(String),
    /// It is not there, and nothing needs it now.
    Optional(String, String),
    /// It is not there, and `test` needs it.
    Missing(String, String),
}
use Finding::{Missing, Optional, Present};

impl Finding {
    fn line(&self) -> String {
        match self {
            Present(what) => format!("ok        {what}"),
            Optional(what, advice) => format!("optional  {what}\n          -> {advice}"),
            Missing(what, advice) => format!("MISSING   {what}\n          -> {advice}"),
        }
    }
}

/// Prints the whole list; fails when something essential is missing.
pub(crate) fn run(project: &Project) -> Result<()> {
    let mut findings = essential();
    findings.extend(linters(project));
    let optional = |is_there: bool, what: &str, advice: &str| match is_there {
        true => Present(what.to_owned()),
        false => Optional(what.to_owned(), advice.to_owned()),
    };
    findings.extend([
        optional(
            has_wasm(),
            "a compiler for wasm32-unknown-unknown, the target of strategies",
            "nothing to do: `cargo xtask guests` adds it with rustup, or unpacks Debian's",
        ),
        optional(
            duckdb::is_there(project),
            "DuckDB's library, for rankings, SQL and the daily job",
            "`cargo xtask setup` fetches it with npm, and `test` does so by itself; without npm they compile DuckDB \
             with a C++ compiler, about an hour",
        ),
        optional(
            has_nextest(project),
            "cargo nextest, which runs the tests",
            "nothing to do: `cargo test` runs them instead; nextest is faster",
        ),
        optional(host::is_compiled(project, "wasmtime"), "an earlier build", host::FIRST_BUILD),
    ]);
    for finding in &findings {
        println!("{}", finding.line());
    }
    let missing = findings.iter().filter(|finding| matches!(finding, Missing(..))).count();
    if missing > 0 {
        bail!("{missing} required items are missing");
    }
    println!("everything that `cargo xtask demo` and `cargo xtask test` need is there");
    Ok(())
}

/// Fails when something essential is missing, with `lints` a linter too; says nothing otherwise. The
/// WebAssembly target is looked at later, when the guests are built, because it can be prepared.
pub(crate) fn require(project: &Project, lints: bool) -> Result<()> {
    let mut findings = essential();
    if lints {
        findings.extend(linters(project));
    }
    findings.retain(|finding| matches!(finding, Missing(..)));
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

fn essential() -> Vec<Finding> {
    vec![compiler(RUST_VERSION), linker()]
}

fn compiler(lowest: &str) -> Finding {
    match Active::find() {
        Ok(active) if toolchain::at_least(&active.version, lowest) => {
            Present(format!("rustc {} (at least {lowest} is needed)", active.version))
        }
        Ok(active) => Missing(
            format!("rustc {lowest}; the active one is {}", active.version),
            "`rustup update stable`, or take a newer Rust from your system".into(),
        ),
        Err(error) => Missing(format!("{error:#}"), "install Rust, for example with rustup".into()),
    }
}

fn linker() -> Finding {
    // On the other systems the linker comes with the platform's tools and has no fixed name.
    if env::consts::OS != "linux" || env::var_os("RUSTFLAGS").is_some() {
        return Present("the linker is not checked".into());
    }
    if process::ask(Command::new("cc").arg("--version")).ok {
        Present("the linker `cc`".into())
    } else {
        Missing(
            "the linker `cc`".into(),
            "install gcc or clang; on Debian `apt install gcc`".into(),
        )
    }
}

fn linters(project: &Project) -> [Finding; 2] {
    [("fmt", "rustfmt"), ("clippy", "clippy")].map(|(task, name)| {
        if process::ask(project.cargo().args([task, "--version"])).ok {
            Present(format!("cargo {task}"))
        } else {
            Missing(
                format!("cargo {task}, which `test` uses"),
                format!("`rustup component add {name}`, or `cargo xtask test --no-lint`"),
            )
        }
    })
}

/// Whether guests can be built as it is.
fn has_wasm() -> bool {
    Active::find().is_ok_and(|active| active.has_target())
        || cache::folder().is_ok_and(|cache| Unpacked::newest(&cache).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_compiler_is_missing_and_advised_on() {
        let finding = compiler("1.999");
        assert!(matches!(finding, Missing(..)), "{finding:?}");
        assert!(finding.line().contains("rustup update stable"), "{}", finding.line());
        assert!(matches!(compiler("1.95"), Present(_)));
    }

    #[test]
    fn a_line_shows_state_and_advice() {
        assert_eq!(Present("a".into()).line(), "ok        a");
        assert_eq!(Missing("b".into(), "do c".into()).line(), "MISSING   b\n          -> do c");
    }
}
