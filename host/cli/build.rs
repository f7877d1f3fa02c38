//! Has the program look for DuckDB's library in its own folder.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Windows looks there by itself.
    let place = match env::var("CARGO_CFG_TARGET_OS").unwrap_or_default().as_str() {
        "windows" => return,
        "macos" => "@loader_path",
        _ => "$ORIGIN",
    };
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{place}");
}
