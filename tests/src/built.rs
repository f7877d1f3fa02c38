//! Where the programs and guests are that `cargo xtask` has built.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use sandbox::SandboxConfig;

/// The folder of the host's programs, `<target>/release`.
///
/// # Panics
/// When the tests run from an unusual place.
#[must_use]
pub fn release_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    // A test program lies in `<target>/release/deps`, others in `<target>/release`.
    let folder = test.ancestors().find(|folder| folder.ends_with("release"));
    match folder {
        Some(folder) => folder.to_owned(),
        None => {
            panic!("{} is not below a folder `release`; run `cargo xtask test`", test.display())
        }
    }
}

fn existing(path: PathBuf, how: &str) -> PathBuf {
    assert!(path.is_file(), "{} is missing; {how}", path.display());
    path
}

/// A built-in strategy's component.
#[must_use]
pub fn strategy(name: &str) -> PathBuf {
    let path = release_folder().join("strategies").join(format!("{name}.wasm"));
    existing(path, "run `cargo xtask guests`")
}

/// A built-in formula module's component.
#[must_use]
pub fn formula(name: &str) -> PathBuf {
    let path = release_folder().join("formulas").join(format!("{name}.wasm"));
    existing(path, "run `cargo xtask guests`")
}

/// The component of a broker's dialect.
#[must_use]
pub fn dialect(name: &str) -> PathBuf {
    let path = release_folder().join("dialects").join(format!("{name}.wasm"));
    existing(path, "run `cargo xtask guests`")
}

/// A test guest's component.
#[must_use]
pub fn test_guest(name: &str) -> PathBuf {
    let path = release_folder().join("test-guests").join(format!("{name}.wasm"));
    existing(path, "run `cargo xtask guests`")
}

/// An example's component.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    let path = release_folder().join("examples").join(format!("{name}.wasm"));
    existing(path, "run `cargo xtask guests`")
}

/// A component of `guests/languages`, or the reason why there is none: its toolchain is not here.
///
/// # Errors
/// That reason.
pub fn in_language(name: &str) -> Result<PathBuf, String> {
    let path = release_folder().join("languages").join(name);
    let component = path.with_extension("wasm");
    if component.is_file() {
        return Ok(component);
    }
    let reason = fs::read_to_string(path.with_extension("skipped"));
    let how = "run `cargo xtask guests --languages`";
    Err(reason.unwrap_or_else(|_| format!("{} is missing; {how}", component.display())))
}

/// Where the compiled code of these components is kept between tests: it takes half a minute each.
#[must_use]
pub fn language_cache() -> PathBuf {
    release_folder().join("languages").join("cache")
}

/// What tests keep for all processes of a run: a folder for each build of the test program and of `kumiki`, so that
/// none of them meets what another build has made.
fn kept() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let program = release_folder().join(format!("kumiki{}", std::env::consts::EXE_SUFFIX));
    let mut key = DefaultHasher::new();
    for program in [&test, &program] {
        let found = fs::metadata(program).map(|found| (found.len(), found.modified().ok()));
        found.ok().hash(&mut key);
    }
    let builds = release_folder().join("kept-by-tests").join(test.file_stem().unwrap_or_default());
    let folder = builds.join(format!("{:016x}", key.finish()));
    if !folder.is_dir() {
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        // Those of builds before.
        let others =
            fs::read_dir(&builds).into_iter().flatten().flatten().map(|entry| entry.path());
        others.filter(|other| *other != folder).for_each(|other| _ = fs::remove_dir_all(other));
    }
    folder
}

/// Where tests that have something else to show keep the compiled code of guests.
///
/// # Panics
/// When it cannot be made.
#[must_use]
pub fn compiled_guests() -> PathBuf {
    let folder = kept().join("guests");
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder
}

/// A folder that the first process makes and all others only read.
///
/// # Panics
/// When it cannot be made.
pub fn made_once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = kept().join(name);
    if !folder.is_dir() {
        let aside = folder.with_extension(std::process::id().to_string());
        fs::create_dir_all(&aside).unwrap_or_else(|error| panic!("{}: {error}", aside.display()));
        make(&aside);
        // Another process may have been first; what it has made is the same.
        if fs::rename(&aside, &folder).is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        assert!(folder.is_dir(), "{} cannot be made", folder.display());
    }
    folder
}

/// A sandbox that keeps compiled guests there.
#[must_use]
pub fn keeping_sandbox() -> SandboxConfig {
    SandboxConfig { cache_folder: Some(compiled_guests()), ..SandboxConfig::default() }
}

/// The folder with the audit suite of GraphQL over HTTP, or the reason why there is none.
///
/// # Errors
/// That reason.
pub fn graphql_audit() -> Result<PathBuf, String> {
    let release = release_folder();
    let folder = release.with_file_name("graphql-http-tools");
    if folder.join("installed.json").is_file() {
        return Ok(folder);
    }
    let reason = fs::read_to_string(release.join("graphql-http.skipped"));
    Err(reason
        .unwrap_or_else(|_| "there is no audit suite; `cargo xtask test` fetches it".to_owned()))
}

/// The `kumiki` program: as told by KUMIKI_PROGRAM, else where cargo puts it.
#[must_use]
pub fn kumiki() -> PathBuf {
    if let Some(told) = std::env::var_os("KUMIKI_PROGRAM") {
        return told.into();
    }
    let name = format!("kumiki{}", std::env::consts::EXE_SUFFIX);
    existing(release_folder().join(name), "run `cargo build --release -p cli`")
}
