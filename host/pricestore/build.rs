//! Makes sure that DuckDB's library is there before anything is linked with it, and puts it beside the programs.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    // The C++ code is compiled and linked in.
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    let folder = PathBuf::from(env::var_os("DUCKDB_LIB_DIR").unwrap_or_default());
    let library = folder.join(library_name(&env::var("CARGO_CFG_TARGET_OS").unwrap_or_default()));
    println!("cargo::rerun-if-changed={}", library.display());
    if let Err(error) = put_beside_programs(&library) {
        println!(
            "cargo::error=DuckDB's library is not at {}: {error}. What to do: `cargo xtask setup` puts it there, \
             DUCKDB_LIB_DIR names another folder, or `--features bundled` compiles its C++ code, which takes about an \
             hour on two cores",
            library.display()
        );
    }
}

fn library_name(system: &str) -> &'static str {
    match system {
        "windows" => "duckdb.dll",
        "macos" => "libduckdb.dylib",
        _ => "libduckdb.so",
    }
}

/// Copies the library into the folder of the programs, where they and cargo look for it.
fn put_beside_programs(library: &Path) -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // <folder of the programs>/build/<this package>/out
    let programs = out.ancestors().nth(3).unwrap_or(&out);
    let wanted = programs.join(library.file_name().unwrap_or_default());
    let is_there = |wanted: &Path| {
        let (one, other) = (fs::metadata(library)?, fs::metadata(wanted)?);
        io::Result::Ok(one.len() == other.len() && one.modified()? <= other.modified()?)
    };
    if matches!(is_there(&wanted), Ok(true)) {
        return Ok(());
    }
    // A program that runs keeps the file that it has.
    let aside = wanted.with_extension("new");
    fs::copy(library, &aside)?;
    fs::rename(&aside, &wanted)
}
