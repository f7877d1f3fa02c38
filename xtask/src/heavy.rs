//! Says before a long build what is compiled and about how long it takes.

use std::fs;
use std::path::Path;

use crate::project::Project;

/// A dependency that takes minutes to compile.
struct Heavy {
    /// Its name in Cargo.lock.
    package: &'static str,
    /// The start of the file that is there once it was compiled.
    artefact: &'static str,
    /// What to expect.
    notice: &'static str,
}

/// What replays are made with.
const WASMTIME: Heavy = Heavy {
    package: "wasmtime",
    artefact: "libwasmtime-",
    notice: "wasmtime and its compiler, about 5 minutes on two cores",
};

/// What daily prices, rankings and SQL are made with.
const DUCKDB: Heavy = Heavy {
    package: "libduckdb-sys",
    artefact: "liblibduckdb_sys-",
    notice: "DuckDB's C++ code, about 37 minutes of one core",
};

/// Prints what the coming build of everything compiles for the first time, if anything.
pub(crate) fn announce(project: &Project) {
    tell(project, &[WASMTIME, DUCKDB]);
}

/// Prints the same of what replays need.
pub(crate) fn announce_for_replay(project: &Project) {
    tell(project, &[WASMTIME]);
}

/// Whether DuckDB was compiled before.
pub(crate) fn is_database_compiled(project: &Project) -> bool {
    missing(&[DUCKDB], &lock(project), &project.release().join("deps")).is_empty()
}

fn tell(project: &Project, heavy: &[Heavy]) {
    for notice in missing(heavy, &lock(project), &project.release().join("deps")) {
        eprintln!("first build: compiles {notice}; later builds take seconds");
    }
}

fn lock(project: &Project) -> String {
    fs::read_to_string(project.root.join("Cargo.lock")).unwrap_or_default()
}

fn missing(heavy: &[Heavy], lock: &str, compiled: &Path) -> Vec<&'static str> {
    let locked = |package: &str| {
        let line = format!("name = \"{package}\"");
        lock.lines().any(|one| one == line)
    };
    let files: Vec<String> = compiled
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".rlib"))
        .collect();
    heavy
        .iter()
        .filter(|heavy| locked(heavy.package))
        .filter(|heavy| !files.iter().any(|name| name.starts_with(heavy.artefact)))
        .map(|heavy| heavy.notice)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announces_only_what_is_locked_and_not_compiled() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = "[[package]]\nname = \"wasmtime\"\nversion = \"48.0.8\"\n";
        assert_eq!(missing(&[WASMTIME, DUCKDB], lock, folder.path()).len(), 1);
        assert!(missing(&[WASMTIME, DUCKDB], lock, folder.path())[0].starts_with("wasmtime"));
        assert!(missing(&[WASMTIME], "name = \"wasmtime-environ\"", folder.path()).is_empty());
        fs::write(folder.path().join("libwasmtime-1f.rmeta"), "").expect("a file");
        assert_eq!(
            missing(&[WASMTIME, DUCKDB], lock, folder.path()).len(),
            1,
            "a check is not a build"
        );
        fs::write(folder.path().join("libwasmtime-1f.rlib"), "").expect("a file");
        assert!(missing(&[WASMTIME, DUCKDB], lock, folder.path()).is_empty());
    }
}
