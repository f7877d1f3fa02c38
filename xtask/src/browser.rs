//! Sees to it that the tests of the pages find a Chromium: on Debian and its like, as root, it is
//! installed when it is missing. Where that cannot be, a file in `<target>/release` says why, and the
//! tests that want one are skipped with that reason.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::{apt, process, skips};

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
    let found = found_or_installed().map(|program| format!("the pages are tested in {program}"));
    skips::write_reason(project, "browser", "the tests of the pages", found)
}

fn found_or_installed() -> Result<String, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(named.to_string_lossy().into_owned());
    }
    if let Some(program) = found() {
        return Ok(program.to_owned());
    }
    let reason = |why: &str| format!("there is no Chromium ({VARIABLE} names one), and {why}");
    let [small, large] = PACKAGES.map(|package| [package, FONT]);
    apt::install(&small).or_else(|_| apt::install(&large)).map_err(|why| reason(&why))?;
    let installed = found().ok_or_else(|| reason("what was installed has none"))?;
    Ok(installed.to_owned())
}

fn found() -> Option<&'static str> {
    let works = |name: &&str| process::ask(Command::new(name).arg("--version")).ok;
    PROGRAMS.into_iter().find(works)
}
