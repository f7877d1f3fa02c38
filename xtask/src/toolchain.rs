//! Finds or prepares a compiler for wasm32-unknown-unknown.
//!
//! In this order: what the active toolchain has; what was unpacked earlier; rustup; Debian's
//! packages. Nothing is ever installed outside rustup's and our own cache folder.

mod debian;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cache;
use crate::process::{self, Answer};

pub(crate) use debian::Unpacked;

/// What guests are compiled for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// How to call cargo so that it builds guests.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// What it is, for people.
    pub(crate) description: String,
    /// Environment for cargo.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Arguments for `cargo build`, besides the target.
    pub(crate) arguments: Vec<String>,
    /// The folder of the standard library's source. Its path must not leak into a guest.
    pub(crate) sysroot: PathBuf,
}

/// The Rust compiler that is active in the project's folder.
pub(crate) struct Active {
    /// Its version, as in `1.95.0`.
    pub(crate) version: String,
    /// Its target triple.
    pub(crate) host: String,
    /// Its folder.
    pub(crate) sysroot: PathBuf,
}

impl Active {
    /// Asks `rustc`.
    pub(crate) fn find() -> Result<Self> {
        let about = ask_rustc(&["-vV"])?;
        let field = |name: &str| about.lines().find_map(|line| line.strip_prefix(name));
        let version = field("release: ").context("rustc does not state its version")?;
        let host = field("host: ").context("rustc does not state its host")?;
        let sysroot = ask_rustc(&["--print", "sysroot"])?;
        Ok(Self {
            version: version.trim().to_owned(),
            host: host.trim().to_owned(),
            sysroot: sysroot.trim().into(),
        })
    }

    /// Whether the standard library for guests is there.
    pub(crate) fn has_target(&self) -> bool {
        let folder = self.sysroot.join("lib/rustlib").join(TARGET).join("lib");
        // An interrupted or broken set-up may leave an empty folder behind.
        let is_core = |name: OsString| name.to_string_lossy().starts_with("libcore-");
        folder.read_dir().is_ok_and(|files| files.flatten().any(|file| is_core(file.file_name())))
    }

    /// The folder of the linker that comes with the toolchain.
    fn tools(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("bin")
    }

    fn toolchain(&self) -> Toolchain {
        Toolchain {
            description: format!("rustc {} with its {TARGET}", self.version),
            variables: Vec::new(),
            arguments: Vec::new(),
            sysroot: self.sysroot.clone(),
        }
    }
}

/// Finds a toolchain; prepares one when there is none.
pub(crate) fn find() -> Result<Toolchain> {
    let active = Active::find()?;
    if active.has_target() {
        return Ok(active.toolchain());
    }
    let cache = cache::folder()?;
    // What was unpacked earlier goes before rustup: on a machine where rustup cannot reach its
    // server it would be asked in vain, each time anew.
    if let Some(unpacked) = Unpacked::newest(&cache) {
        return unpacked.toolchain(&active);
    }
    let Err(rustup) = add_with_rustup(&active) else { return Ok(active.toolchain()) };
    eprintln!("rustup could not add it");
    let made = debian::prepare(&cache).and_then(|made| made.toolchain(&active));
    made.map_err(|debian| anyhow::anyhow!(nothing_found(&active.version, &rustup, &debian)))
}

fn nothing_found(active: &str, rustup: &anyhow::Error, debian: &anyhow::Error) -> String {
    let indented = |error: &anyhow::Error| format!("{error:#}").replace('\n', "\n    ");
    format!(
        "there is no compiler for {TARGET}, the target of strategies: the active rustc {active} has none. \
         Tried:\n  - rustup: {}\n  - Debian's packages: {}\n\
         What to do: with a network, `rustup target add {TARGET}`; or point RUSTC at a rustc that has the \
         target",
        indented(rustup),
        indented(debian)
    )
}

fn add_with_rustup(active: &Active) -> Result<()> {
    eprintln!("adding {TARGET} with rustup ...");
    let mut command = Command::new("rustup");
    // A backtrace through rustup would bury what it has to say.
    command.args(["target", "add", TARGET]).env_remove("RUST_BACKTRACE");
    let Answer { ok, out, err } = process::ask(&mut command);
    if !ok {
        let said = if err.trim().is_empty() { out } else { err };
        bail!("`rustup target add {TARGET}` said:\n{}", said.trim());
    }
    if !active.has_target() {
        bail!("it added {TARGET}, but not to the active rustc in {}", active.sysroot.display());
    }
    Ok(())
}

fn ask_rustc(arguments: &[&str]) -> Result<String> {
    let program = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = process::ask(Command::new(program).args(arguments));
    if !answer.ok {
        bail!("`rustc {}` does not work: {}", arguments.join(" "), answer.last_line());
    }
    Ok(answer.out)
}

/// Whether `version` (`1.96.0+dfsg1-1`) is at least `lowest` (`1.95`).
pub(crate) fn at_least(version: &str, lowest: &str) -> bool {
    numbers(version) >= numbers(lowest)
}

/// The first three numbers of a version; what is missing counts as zero.
fn numbers(version: &str) -> [u64; 3] {
    let mut found = [0; 3];
    let upstream = version.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or("");
    for (place, part) in found.iter_mut().zip(upstream.split('.')) {
        *place = part.parse().unwrap_or(0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(at_least("1.96.0+dfsg1-1~deb12u2", "1.95"));
        assert!(at_least("1.100.0", "1.95"));
        assert!(at_least("1.95.0", "1.95"));
        assert!(!at_least("1.85.0+dfsg3-1", "1.95"));
        assert!(!at_least("1.9", "1.95"));
        assert!(!at_least("", "1.95"));
    }

    #[test]
    fn the_active_compiler_is_found() {
        let active = Active::find().expect("this test was compiled with it");
        assert!(at_least(&active.version, "1.95"));
        assert!(active.sysroot.is_dir());
    }

    #[test]
    fn a_failure_tells_all_attempts_and_what_to_do() {
        let text = nothing_found("1.95.0", &anyhow::anyhow!("a\nb"), &anyhow::anyhow!("c"));
        for part in ["  - rustup: a\n    b\n", "  - Debian's packages: c\n", "What to do:"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}
