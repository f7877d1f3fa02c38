//! Sees to it that the tests of the pages find a Chromium: on Debian and its like, as root, it is
//! installed when it is missing. Where that cannot be, a file in `<target>/release` says why, and the
//! tests that want one are skipped with that reason.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::environment::told;
use crate::process;
use crate::project::Project;

/// Names a browser that is to be taken; the tests look at it too.
const VARIABLE: &str = "KUMIKI_BROWSER";
/// Programs that the tests find by themselves.
const PROGRAMS: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];
/// Packages that have one of them, the smallest first.
const PACKAGES: [&str; 2] = ["chromium-headless-shell", "chromium"];
/// Pages are drawn with some font.
const FONT: &str = "fonts-dejavu-core";

/// Finds or installs it; writes the reason where neither can be.
pub(crate) fn prepare(project: &Project) -> Result<()> {
    let skipped = project.release().join("browser.skipped");
    match found_or_installed() {
        Ok(program) => {
            eprintln!("the pages are tested in {program}");
            match fs::remove_file(&skipped) {
                Err(_) if skipped.exists() => {
                    anyhow::bail!("cannot remove {}", skipped.display());
                }
                _ => Ok(()),
            }
        }
        Err(reason) => {
            eprintln!("skipped: the tests of the pages: {reason}");
            fs::create_dir_all(project.release())?;
            fs::write(&skipped, reason)
                .with_context(|| format!("cannot write {}", skipped.display()))
        }
    }
}

fn found_or_installed() -> Result<String, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(named.to_string_lossy().into_owned());
    }
    if let Some(program) = found() {
        return Ok(program.to_owned());
    }
    let reason = |why: &str| format!("there is no Chromium ({VARIABLE} names one), and {why}");
    if !Path::new("/etc/debian_version").is_file() {
        return Err(reason("it is installed by itself on Debian and its like only"));
    }
    if process::ask(Command::new("id").arg("-u")).out.trim() != "0" {
        return Err(reason("only root can install it: `apt-get install chromium`"));
    }
    install().map_err(|error| reason(&error))?;
    let installed = found().ok_or_else(|| reason("what was installed has none"))?;
    Ok(installed.to_owned())
}

fn found() -> Option<&'static str> {
    let works = |name: &&str| process::ask(Command::new(name).arg("--version")).ok;
    PROGRAMS.into_iter().find(works)
}

/// Installs the first package that apt has.
fn install() -> Result<(), String> {
    // The lists of a fresh machine are empty or old.
    told("`apt-get update` failed", &mut apt(&["update"]))?;
    let mut failed = String::new();
    for package in PACKAGES {
        eprintln!("installing {package}");
        let mut install = apt(&["install", "--no-install-recommends", package, FONT]);
        match told(&format!("`apt-get install {package}` failed"), &mut install) {
            Ok(()) => return Ok(()),
            Err(reason) => failed = reason,
        }
    }
    Err(failed)
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "--yes"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
