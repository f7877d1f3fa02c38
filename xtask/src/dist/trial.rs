//! Tries a product as its user does: unpacks or installs it in an empty root, makes sample data, replays a
//! built-in strategy, ranks, and looks for the report.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::contents::Contents;
use super::root::Root;
use crate::environment::told;

/// Tries the archive in a root with nothing but the libraries that the program is linked with.
pub(super) fn archive(root: &Root, contents: &Contents, archive: &Path) -> Result<()> {
    fs::create_dir_all(root.path("opt"))?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(archive).arg("-C").arg(root.path("opt"));
    told("the archive cannot be unpacked", &mut unpack).map_err(anyhow::Error::msg)?;
    let program = format!("/opt/{}/kumiki", contents.archive_folder());
    used(root, &program, &contents.version)
}

/// Installs the Debian package, uses it, and removes it.
pub(super) fn debian(root: &Root, contents: &Contents, package: &Path) -> Result<()> {
    fs::copy(package, root.path("tmp/kumiki.deb"))?;
    root.run(&["dpkg", "--install", "/tmp/kumiki.deb"])?;
    if !root.path("usr/lib/kumiki/strategies/compiled").is_dir() {
        bail!("its strategies were not compiled when it was installed");
    }
    used(root, "kumiki", &contents.version)?;
    root.run(&["dpkg", "--remove", "kumiki"])?;
    for path in ["usr/bin/kumiki", "usr/lib/kumiki"] {
        if root.path(path).exists() {
            bail!("/{path} is still there after the package was removed");
        }
    }
    Ok(())
}

/// Installs the wheel into a virtual environment, and uses it as a program and as a package.
pub(super) fn wheel(root: &Root, contents: &Contents, wheel: &Path) -> Result<()> {
    let name = wheel.file_name().and_then(|name| name.to_str()).context("a wheel has a name")?;
    fs::copy(wheel, root.path("tmp").join(name))?;
    root.run(&["python3", "-m", "venv", "/opt/venv"])?;
    let inside = format!("/tmp/{name}");
    root.run(&["/opt/venv/bin/pip", "install", "--quiet", "--no-index", &inside])?;
    used(root, "/opt/venv/bin/kumiki", &contents.version)?;
    let told = root.run(&["/opt/venv/bin/python", "-m", "kumiki", "strategy", "list"])?;
    if !told.contains("sma-cross") {
        bail!("`python -m kumiki` does not know the built-in strategies: {told}");
    }
    Ok(())
}

/// Uses an installed program.
fn used(root: &Root, program: &str, version: &str) -> Result<()> {
    let told = root.run(&[program, "--version"])?;
    if told.trim() != format!("kumiki {version}") {
        bail!("`{program} --version` says {}", told.trim());
    }
    let sample =
        ["data", "sample", "--out", "/tmp/data", "--days", "3", "--instrument", "7203.TSE"];
    root.run(&[&[program], &sample[..]].concat())?;
    let replay =
        "replay run sma-cross --data /tmp/data --instrument 7203.TSE --out /tmp/run --quiet";
    root.run(&[&[program], &replay.split(' ').collect::<Vec<_>>()[..]].concat())?;
    let report = root.path("tmp/run/report.html");
    let bytes = fs::metadata(&report).context("the replay left no report.html")?.len();
    let prices = "data sample --daily --codes 50 --days 30 --data-dir /tmp/prices";
    root.run(&[&[program], &prices.split(' ').collect::<Vec<_>>()[..]].concat())?;
    let ranked = root.run(&[program, "rank", "--data-dir", "/tmp/prices", "--format", "jsonl"])?;
    if ranked.lines().count() == 0 {
        bail!("`{program} rank` gave no rows");
    }
    eprintln!(
        "tried in an empty root: {told}  a replay's report.html of {bytes} bytes, and a ranking"
    );
    Ok(())
}
