//! `cargo xtask windows`: the Windows program, built with mingw-w64 and tried under Wine. The tests are those of
//! `cargo xtask test`; they start the program through a script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result};

use crate::project::Project;
use crate::skips::Skips;
use crate::steps::Steps;
use crate::{apt, guests, host, process, python};

/// What the program is compiled for.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
/// The linker and compiler of C of mingw-w64.
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Packages of Debian that have it, and Wine.
const PACKAGES: [&str; 4] = ["gcc-mingw-w64-x86-64", "g++-mingw-w64-x86-64", "wine", "wine64"];
/// Wine 8 has no `bcryptprimitives.dll`, whose one function every program of Rust calls. This one is for tests only.
const STAND_IN: &str = "#include <windows.h>\n#include <ntsecapi.h>\n\
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T bytes)\n\
    { return RtlGenRandom(to, (ULONG)bytes); }\n";
/// Names the program that tests start.
const PROGRAM: &str = "KUMIKI_PROGRAM";

/// Tests of the program in Rust, by their names.
const PROGRAM_TESTS: [&str; 1] = ["golden_runs::"];
/// Tests in Python: files, or single tests.
const PYTHON_TESTS: [&str; 1] = ["test_engine.py"];

/// Builds the program and tries it.
pub(crate) fn run(project: &Project) -> Result<()> {
    let mut steps = Steps::new();
    let mut skips = Skips::default();
    steps.step("guests", || guests::build(project))?;
    steps.step("host", || host::build_with_tests(project))?;
    steps.step("mingw-w64 and Wine", || tools().map_err(Error::msg))?;
    steps.step("Windows program", || build(project))?;
    steps.step("the tests in Rust that start it", || {
        let mut command = project.cargo_with_database("nextest run --workspace --no-fail-fast");
        command.args(["-E", &format!("binary(program) and ({})", names(&PROGRAM_TESTS))]);
        process::run(command.env(PROGRAM, script(project)))
    })?;
    for test in PYTHON_TESTS {
        steps.step(test, || {
            let (test, program) = (format!("{}/{test}", python::TESTS), script(project));
            let variables = [(PROGRAM, &*program.to_string_lossy())];
            python::test(project, &test, &variables, &mut skips, &mut Vec::new())
        })?;
    }
    println!("{}; {}", steps.passed(), skips.told());
    Ok(())
}

/// Tests by their names, as nextest reads them.
fn names(tests: &[&str]) -> String {
    tests.iter().map(|test| format!("test({test})")).collect::<Vec<_>>().join(" or ")
}

/// Sees to it that the compiler, Rust's library for it and Wine are there.
fn tools() -> Result<(), String> {
    let is_there = |name: &str| process::ask(Command::new(name).arg("--version")).ok;
    if !is_there(COMPILER) || !is_there("wine") {
        apt::install(&PACKAGES)?;
    }
    let add = process::ask(Command::new("rustup").args(["target", "add", TARGET]));
    if add.ok { Ok(()) } else { Err(format!("rustup adds no {TARGET}: {}", add.last_line())) }
}

fn release(project: &Project) -> PathBuf {
    project.target.join(TARGET).join("release")
}

/// Starts the program under Wine.
fn script(project: &Project) -> PathBuf {
    release(project).join("kumiki-under-wine")
}

fn build(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["build", "--release", "--target", TARGET, "--package", "cli"]);
    process::run(command.arg("--no-default-features"))?;
    let release = release(project);
    let source = release.join("bcryptprimitives.c");
    guests::write_if_changed(&source, STAND_IN.as_bytes())?;
    let mut compile = Command::new(COMPILER);
    compile.args(["-shared", "-O2", "-o"]).arg(release.join("bcryptprimitives.dll")).arg(&source);
    process::run(compile.arg("-ladvapi32"))?;
    for folder in ["strategies", "dialects"] {
        copy(&project.release().join(folder), &release.join(folder))?;
    }
    let (prefix, program) = (project.target.join("wine"), release.join("kumiki.exe"));
    let text = format!(
        "#!/bin/sh\nexport WINEPREFIX='{}' WINEDEBUG=-all\nexec wine '{}' \"$@\"\n",
        prefix.display(),
        program.display()
    );
    let script = script(project);
    guests::write_if_changed(&script, text.as_bytes())?;
    process::run(Command::new("chmod").arg("+x").arg(&script))?;
    process::run(Command::new(&script).arg("--version"))
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
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
