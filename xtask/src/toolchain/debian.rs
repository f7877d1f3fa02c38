//! The compiler of Debian's packages, unpacked into our cache folder.
//!
//! Debian ships no standard library for wasm32-unknown-unknown, but its source: cargo builds it
//! together with the guests.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self as this_process, Command};

use anyhow::{Context, Result, bail};

use super::apt::{Apt, Package};
use super::{Active, TARGET, Toolchain, at_least};
use crate::process;
use crate::steps::Stopwatch;

/// The compiler package that keeps up with new Rust versions.
const COMPILER: &str = "rustc-web";
/// The source of the standard library.
const SOURCE: &str = "rust-web-src";
/// What the folder of an unpacked compiler starts with; its version follows.
const FOLDER: &str = "wasm-toolchain-";
/// What the folder of a preparation starts with; the number of its process follows.
const UNFINISHED: &str = "unfinished-";

/// A compiler that was unpacked.
#[derive(Debug)]
pub(crate) struct Unpacked {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Its version.
    pub(crate) version: String,
}

impl Unpacked {
    /// The newest one in the cache folder that can build the guests.
    pub(crate) fn newest(cache: &Path, rust_version: &str) -> Option<Self> {
        let entries = cache.read_dir().ok()?.flatten();
        let found = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(FOLDER)?.to_owned();
            let usable = at_least(&version, rust_version) && entry.path().join("usr").is_dir();
            usable.then(|| Self { folder: entry.path(), version })
        });
        found.max_by_key(|one| (super::numbers(&one.version), one.version.clone()))
    }

    fn rustc(&self) -> PathBuf {
        self.folder.join("usr/bin/rustc")
    }

    /// Where its shared libraries are: `usr/lib/<architecture>-linux-gnu`, found by looking. Some
    /// packages still use `lib` instead.
    fn libraries(&self) -> Vec<PathBuf> {
        let bases = ["usr/lib", "lib"].map(|base| self.folder.join(base));
        let folders = bases.iter().filter_map(|base| base.read_dir().ok()).flatten().flatten();
        let mut found: Vec<PathBuf> =
            folders.map(|entry| entry.path()).filter(|folder| has_library(folder)).collect();
        found.sort();
        found
    }

    fn command(&self) -> Result<Command> {
        let mut command = Command::new(self.rustc());
        command.env("LD_LIBRARY_PATH", in_front("LD_LIBRARY_PATH", self.libraries())?);
        Ok(command)
    }

    /// Tries the compiler and makes sure that the library's source is where cargo looks for it.
    fn check(&self) -> Result<()> {
        let answer = process::ask(self.command()?.args(["--print", "sysroot"]));
        if !answer.ok {
            bail!("the unpacked compiler does not start: {}", answer.err.trim());
        }
        let library = Path::new(answer.out.trim()).join("lib/rustlib/src/rust/library");
        if !library.join("std").join("Cargo.toml").is_file() {
            bail!("the package {SOURCE} has no library source at {}", library.display());
        }
        Ok(())
    }

    /// How cargo uses it.
    pub(super) fn toolchain(&self, active: &Active) -> Result<Toolchain> {
        let tools = active.tools();
        let linker = format!("rust-lld{}", env::consts::EXE_SUFFIX);
        let on_path =
            || env::split_paths(&env::var_os("PATH")?).find(|at| at.join(&linker).is_file());
        if !tools.join(&linker).is_file() && on_path().is_none() {
            bail!(
                "they need the linker {linker} of the active toolchain, which is neither in {} nor \
                 on PATH",
                tools.display()
            );
        }
        Ok(Toolchain {
            description: format!("Debian's rustc {} in {}", self.version, self.folder.display()),
            variables: vec![
                ("RUSTC", self.rustc().into()),
                // Building the standard library is not stable yet.
                ("RUSTC_BOOTSTRAP", "1".into()),
                ("LD_LIBRARY_PATH", in_front("LD_LIBRARY_PATH", self.libraries())?),
                ("PATH", in_front("PATH", vec![tools])?),
            ],
            arguments: vec!["-Zbuild-std=std,panic_abort".into()],
            sysroot: self.folder.join("usr"),
        })
    }
}

fn has_library(folder: &Path) -> bool {
    let is_library = |name: &OsStr| name.to_string_lossy().contains(".so");
    let files = folder.read_dir();
    files.is_ok_and(|files| files.flatten().any(|file| is_library(&file.file_name())))
}

/// The value of a path variable with more folders in front.
fn in_front(name: &str, folders: Vec<PathBuf>) -> Result<OsString> {
    let present = env::var_os(name).unwrap_or_default();
    let present: Vec<PathBuf> = env::split_paths(&present).collect();
    env::join_paths(folders.into_iter().chain(present))
        .with_context(|| format!("a folder's name cannot stand in {name}"))
}

/// Downloads and unpacks the newest compiler.
pub(super) fn prepare(cache: &Path, rust_version: &str) -> Result<Unpacked> {
    let apt = Apt::of_the_system()?;
    // Everything happens in a folder beside the final one and is renamed at the end, so that an
    // interrupted preparation is never taken for a complete one.
    remove_abandoned(cache);
    let work = cache.join(format!("{UNFINISHED}{}", this_process::id()));
    fs::create_dir_all(&work).with_context(|| format!("cannot write to {}", cache.display()))?;
    let made = with_these_lists(&apt, &work, cache, rust_version).or_else(|first| {
        eprintln!("{first:#}; asking for new package lists ...");
        let again = Apt::refreshed(&work.join("lists"))
            .and_then(|apt| with_these_lists(&apt, &work, cache, rust_version));
        again.map_err(|second| {
            anyhow::anyhow!("{first:#}\nwith new package lists (`apt-get update`): {second:#}")
        })
    });
    // What is left over costs disk space, nothing else.
    let _ = fs::remove_dir_all(&work);
    made
}

/// Removes what interrupted preparations left behind, half a gigabyte each.
fn remove_abandoned(cache: &Path) {
    for entry in cache.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn with_these_lists(apt: &Apt, work: &Path, cache: &Path, lowest: &str) -> Result<Unpacked> {
    let packages = choose(apt, lowest)?;
    let version = safe(&compiler_version(&packages)?);
    let bytes: u64 = packages.iter().map(|package| package.size).sum();
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    eprintln!(
        "preparing a compiler for {TARGET} from Debian's packages {}: {} MB to download, once; \
         nothing is installed ...",
        names.join(", "),
        bytes / 1_000_000
    );
    let watch = Stopwatch::start();
    let debs = work.join("packages");
    let tree = work.join("tree");
    for folder in [&debs, &tree] {
        // A first try may have left something.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
    }
    apt.download(&packages, &debs)?;
    unpack(&debs, &tree)?;
    drop_what_is_not_needed(&tree)?;
    Unpacked { folder: tree.clone(), version: version.clone() }.check()?;
    let made = Unpacked { folder: cache.join(format!("{FOLDER}{version}")), version };
    if let Err(error) = fs::rename(&tree, &made.folder) {
        // Somebody else may have been faster: theirs is as good.
        made.check().map_err(|_| error).context("cannot put the compiler into the cache folder")?;
    }
    eprintln!("prepared {} in {}", made.folder.display(), watch.shown());
    Ok(made)
}

fn compiler_version(packages: &[Package]) -> Result<String> {
    let compiler = packages.iter().find(|package| package.name == COMPILER);
    Ok(compiler.context("no compiler among the packages")?.version.clone())
}

/// The compiler, its library, its library's source and the shared libraries that are missing.
fn choose(apt: &Apt, lowest: &str) -> Result<Vec<Package>> {
    let offered = |name: &str| {
        apt.package(name).with_context(|| {
            format!("apt offers no package {name}; are its lists empty (`apt-get update`)?")
        })
    };
    let compiler = offered(COMPILER)?;
    if !at_least(&compiler.version, lowest) {
        bail!("apt's newest {COMPILER} is {}, Kumiki needs {lowest}", compiler.version);
    }
    let development = offered(needed(&compiler, "libstd-rust")?)?;
    let runtime = offered(needed(&development, "libstd-rust")?)?;
    let source = offered(SOURCE)?;
    for package in [&development, &runtime, &source] {
        if package.version != compiler.version {
            bail!(
                "apt offers {} {} with {COMPILER} {}; they must be equal",
                package.name,
                package.version,
                compiler.version
            );
        }
    }
    let mut packages = vec![compiler, development, source];
    packages.extend(apt.with_missing_libraries(runtime)?);
    Ok(packages)
}

fn needed<'a>(package: &'a Package, start: &str) -> Result<&'a str> {
    let found = package.depends.iter().find(|name| name.starts_with(start));
    let message = || format!("{} {} needs no {start}...", package.name, package.version);
    found.map(String::as_str).with_context(message)
}

fn unpack(debs: &Path, tree: &Path) -> Result<()> {
    for deb in debs.read_dir()? {
        let deb = deb?.path();
        let answer = process::ask(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(tree));
        if !answer.ok {
            bail!("cannot unpack {}: {}", deb.display(), answer.err.trim());
        }
    }
    Ok(())
}

/// The source package holds the whole compiler; the library is a tenth of it.
fn drop_what_is_not_needed(tree: &Path) -> Result<()> {
    fs::remove_dir_all(tree.join("usr/share")).context("cannot drop the documentation")?;
    for source in tree.join("usr/src").read_dir().context("no source was unpacked")? {
        for entry in source?.path().read_dir()? {
            let entry = entry?;
            if entry.file_name() == "library" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// A version as part of a folder's name.
fn safe(version: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '+';
    version.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, depends: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.96.0".to_owned(),
            depends: depends.iter().map(|&name| name.to_owned()).collect(),
            size: 0,
        }
    }

    #[test]
    fn the_newest_complete_folder_wins() {
        let cache = tempfile::tempdir().expect("a folder");
        for name in ["1.96.0-1/usr", "1.100.0-1/usr", "1.90.0/usr", "1.101.0"] {
            fs::create_dir_all(cache.path().join(format!("{FOLDER}{name}"))).expect("a folder");
        }
        fs::create_dir_all(cache.path().join("unfinished-7/tree/usr")).expect("a folder");
        let newest = Unpacked::newest(cache.path(), "1.95").expect("two are usable");
        assert_eq!(newest.version, "1.100.0-1");
        assert!(Unpacked::newest(cache.path(), "1.200").is_none());
        assert!(Unpacked::newest(&cache.path().join("none"), "1.95").is_none());
    }

    #[test]
    fn an_abandoned_preparation_is_removed() {
        let cache = tempfile::tempdir().expect("a folder");
        let own = format!("{UNFINISHED}{}", this_process::id());
        for name in [&own, "unfinished-4194999", "wasm-toolchain-1"] {
            fs::create_dir_all(cache.path().join(name)).expect("a folder");
        }
        remove_abandoned(cache.path());
        let left = |name: &str| cache.path().join(name).is_dir();
        assert!(!left("unfinished-4194999") && left("wasm-toolchain-1"));
        assert_eq!(left(&own), Path::new("/proc/self").exists());
    }

    #[test]
    fn dependencies_are_found_by_their_start() {
        let compiler = package(COMPILER, &["libc6", "libstd-rust-web-dev"]);
        assert_eq!(needed(&compiler, "libstd-rust").ok(), Some("libstd-rust-web-dev"));
        assert!(needed(&package("p", &["libc6"]), "libstd-rust").is_err());
    }

    #[test]
    fn a_version_becomes_a_folder_name() {
        assert_eq!(safe("1.96.0+dfsg1-1~deb12u2"), "1.96.0+dfsg1-1-deb12u2");
        assert_eq!(safe("../x y"), "..-x-y");
    }
}
