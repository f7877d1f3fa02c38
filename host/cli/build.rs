//! Puts the C++ runtime that DuckDB needs into the program where the platform's linker would look for
//! a shared one: the program then starts a millisecond sooner, and also where none is installed.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CXX");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let has_database = env::var_os("CARGO_FEATURE_DATABASE").is_some();
    if !has_database || !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return Ok(());
    }
    // Of another machine's compilers nothing is known.
    if env::var("HOST")? != env::var("TARGET")? {
        return Ok(());
    }
    match static_runtime() {
        // Alone in a folder: of one with both, a linker takes the shared one.
        Some(archive) => {
            let folder = Path::new(&env::var("OUT_DIR")?).join("runtime");
            fs::create_dir_all(&folder)?;
            // Not its permissions: it may be there again.
            fs::write(folder.join(ARCHIVE), fs::read(archive)?)?;
            println!("cargo::rustc-link-search=native={}", folder.display());
        }
        None => println!(
            "cargo::warning={ARCHIVE} was not found beside the C++ compiler: the program will need \
             libstdc++.so.6 where it runs"
        ),
    }
    Ok(())
}

const ARCHIVE: &str = "libstdc++.a";

/// Where the C++ compiler has its runtime as an archive.
fn static_runtime() -> Option<PathBuf> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let output = Command::new(compiler).arg(format!("-print-file-name={ARCHIVE}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // Without the archive the compiler answers with the bare name.
    path.is_absolute().then_some(path).filter(|path| path.is_file())
}
