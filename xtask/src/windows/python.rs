//! A Python for Windows, in which tests run under Wine. No registry has one as a whole: its libraries, which the Python
//! Software Foundation has built and signed, come out of a package of PyPI, its modules are Debian's, and `python.exe`
//! is compiled from `xtask/windows/python.c`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::COMPILER;
use crate::environment::{copy, told};
use crate::project::Project;
use crate::{cache, python};

/// The packages of PyPI that it is made of, with their sums.
const PACKAGES: &str = "xtask/windows/python.txt";
/// Its `python.exe`.
const PROGRAM: &str = "xtask/windows/python.c";
/// Debian's packages with its modules.
const MODULES: [&str; 2] = ["libpython3.11-minimal", "libpython3.11-stdlib"];
/// What of them is made for another system.
const NOT_OURS: [&str; 4] =
    ["lib-dynload", "EXTERNALLY-MANAGED", "sitecustomize.py", "config-3.11-x86_64-linux-gnu"];
/// What the tests need, in the releases that they take on other systems.
const OF_TESTS: [&str; 6] =
    ["pytest", "pytest-xdist", "websockets", "jsonschema", "xxhash", "colorama==0.4.6"];
const RELEASES: &str = "clients/python/requirements.txt";

/// The folder of the interpreter; it is made once for a machine.
///
/// # Errors
/// Why there is none.
pub(crate) fn folder(project: &Project) -> Result<PathBuf, String> {
    let read = |path: &str| {
        fs::read_to_string(project.root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let pinned = [read(PACKAGES)?, read(PROGRAM)?, read(RELEASES)?].concat();
    let text = |error: anyhow::Error| format!("{error:#}");
    let folder = cache::pinned("windows-python", &pinned).map_err(text)?;
    let _lock = cache::locked(&folder).map_err(text)?;
    // Written last, so that one that was begun is made anew.
    let stamp = folder.join("made.txt");
    if !stamp.is_file() {
        eprintln!("making a Python for Windows in {}", folder.display());
        make(project, &folder)?;
        fs::write(&stamp, &pinned).map_err(|error| error.to_string())?;
    }
    Ok(folder)
}

fn make(project: &Project, folder: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let python = python::interpreter(project)?;
    let work = folder.with_extension("work");
    for made in [&work, folder] {
        let _ = fs::remove_dir_all(made);
        fs::create_dir_all(made).map_err(text)?;
    }
    let pip = |task: &str| {
        let mut pip = Command::new(&python);
        pip.current_dir(&project.root).args(["-m", "pip", task, "--quiet"]);
        pip.args(["--disable-pip-version-check", "--platform", "win_amd64"]);
        pip.args(["--python-version", "311", "--only-binary=:all:"]);
        pip
    };
    let unpack = |archive: &Path, to: &Path| {
        let mut unpack = Command::new(&python);
        unpack.args(["-m", "zipfile", "-e"]).arg(archive).arg(to);
        told("a package cannot be unpacked", &mut unpack)
    };
    let mut download = pip("download");
    download.args(["--require-hashes", "--no-deps", "--requirement", PACKAGES, "--dest"]);
    told("pip could not fetch the packages of a Python for Windows", download.arg(&work))?;
    let mut fetch = Command::new("apt-get");
    fetch.current_dir(&work).args(["--quiet", "download"]).args(MODULES);
    told("apt-get could not fetch Python's modules", &mut fetch)?;
    let site = folder.join("Lib/site-packages");
    for package in files_in(&work)? {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("panda3d") {
            unpack(&package, &work.join("libraries"))?;
        } else if name.ends_with(".deb") {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("--extract").arg(&package).arg(work.join("modules"));
            told("a package of Debian cannot be unpacked", &mut unpack)?;
        }
    }
    copy(&work.join("modules/usr/lib/python3.11"), &folder.join("Lib"))?;
    for name in NOT_OURS {
        told(
            "cannot be removed",
            Command::new("rm").arg("-rf").arg(folder.join("Lib").join(name)),
        )?;
    }
    fs::create_dir_all(folder.join("DLLs")).map_err(text)?;
    for library in files_in(&work.join("libraries/deploy_libs"))? {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Wine has its own C library.
        if name.ends_with(".pyd") || name.ends_with(".dll") && !name.starts_with("VCRUNTIME") {
            let to = if name == "python311.dll" { folder.to_owned() } else { folder.join("DLLs") };
            copy(&library, &to)?;
        }
    }
    let program = folder.join("python.exe");
    let mut compile = Command::new(COMPILER);
    compile.args(["-O2", "-s", "-municode", "-o"]).arg(&program);
    told("python.exe cannot be compiled", compile.arg(project.root.join(PROGRAM)))?;
    for name in ["python.exe", "pythonw.exe"] {
        let of_environments = folder.join("Lib/venv/scripts/nt");
        fs::create_dir_all(&of_environments).map_err(text)?;
        copy(&program, &of_environments.join(name))?;
    }
    super::put_stand_in(folder)?;
    let mut install = pip("install");
    install.arg("--target").arg(&site).args(["--constraint", RELEASES]).args(OF_TESTS);
    told("pip could not install what tests need into it", &mut install)?;
    for package in files_in(&work)? {
        if package.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pip-")) {
            unpack(&package, &site)?;
        }
    }
    fs::remove_dir_all(&work).map_err(text)
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let text = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(text)? {
        let path = entry.map_err(text)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Starts the interpreter of a folder under Wine. It needs pipes: it ends at once where its output is a file of Linux.
pub(super) fn command(folder: &Path, prefix: &Path) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", "set -o pipefail; wine \"$@\" </dev/null 2>&1 | cat", "wine"]);
    command.arg(folder.join("python.exe"));
    command.envs(super::wine_variables(prefix)).env("PYTHONUTF8", "1");
    // Options of pip for this machine's own Python.
    command.env_remove("PIP_FIND_LINKS").env_remove("PIP_CERT");
    command
}
