//! The compiler of Debian's packages, unpacked into our cache folder; nothing is installed.
//!
//! Debian ships no standard library for wasm32-unknown-unknown, but its source: cargo builds it
//! together with the guests.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use super::{Active, TARGET, Toolchain, at_least};
use crate::environment::told;
use crate::project::RUST_VERSION;
use crate::steps::Stopwatch;
use crate::{cache, process};

/// The compiler that keeps up with new Rust versions, its library, and the source of that.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];
/// What the folder of an unpacked compiler starts with; its version follows.
const FOLDER: &str = "wasm-toolchain-";

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
    fn libraries(&self) -> Result<OsString> {
        let bases = ["usr/lib", "lib"].map(|base| self.folder.join(base));
        let folders = bases.iter().filter_map(|base| base.read_dir().ok()).flatten().flatten();
        let mut found: Vec<PathBuf> =
            folders.map(|entry| entry.path()).filter(|folder| has_library(folder)).collect();
        found.sort();
        in_front("LD_LIBRARY_PATH", found)
    }

    /// Tries the compiler and makes sure that the library's source is where cargo looks for it.
    fn check(&self) -> Result<()> {
        let mut command = Command::new(self.rustc());
        command.env("LD_LIBRARY_PATH", self.libraries()?).args(["--print", "sysroot"]);
        let answer = process::ask(&mut command);
        if !answer.ok {
            bail!("the unpacked compiler does not start: {}", answer.err.trim());
        }
        let library = Path::new(answer.out.trim()).join("lib/rustlib/src/rust/library");
        if !library.join("std").join("Cargo.toml").is_file() {
            bail!("its packages have no library source at {}", library.display());
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
                ("LD_LIBRARY_PATH", self.libraries()?),
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

/// Downloads and unpacks the newest compiler. All is done in a folder beside the final one, which is renamed
/// at the end, so that an interrupted preparation is never taken for a complete one.
pub(super) fn prepare(cache: &Path) -> Result<Unpacked> {
    let work = cache.join("unfinished-wasm-toolchain");
    let _lock = cache::locked(&work)?;
    if let Some(made) = Unpacked::newest(cache, RUST_VERSION) {
        return Ok(made);
    }
    let (debs, tree) = (work.join("debs"), work.join("tree"));
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(debs.join("partial"))?;
    eprintln!("preparing a compiler for {TARGET} from Debian's packages, once ...");
    let watch = Stopwatch::start();
    // New lists of packages of our own: the system's stay as they are, and no rights are needed.
    let lists = work.join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    ask(apt(&work, &["update"]))?;
    let mut download = apt(&work, &["install", "--download-only", "--reinstall", "--yes"]);
    download.arg("--no-install-recommends").args(PACKAGES);
    ask(download)?;
    for deb in debs.read_dir()?.flatten().map(|entry| entry.path()) {
        if deb.extension().is_some_and(|end| end == "deb") {
            let mut unpack = Command::new("dpkg-deb");
            told("cannot unpack", unpack.arg("--extract").arg(&deb).arg(&tree))
                .map_err(|why| anyhow!("{}: {why}", deb.display()))?;
        }
    }
    let version = unpacked_version(&debs)?;
    if !at_least(&version, RUST_VERSION) {
        bail!("apt's newest {} is {version}, Kumiki needs {RUST_VERSION}", PACKAGES[0]);
    }
    drop_what_is_not_needed(&tree)?;
    Unpacked { folder: tree.clone(), version: version.clone() }.check()?;
    let made = Unpacked { folder: cache.join(format!("{FOLDER}{version}")), version };
    fs::rename(&tree, &made.folder)
        .with_context(|| format!("cannot write {}", made.folder.display()))?;
    // What is left over costs disk space, nothing else.
    let _ = fs::remove_dir_all(&work);
    eprintln!("prepared {} in {}", made.folder.display(), watch.shown());
    Ok(made)
}

/// apt-get with lists and packages in a folder of ours.
fn apt(work: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").env("LC_ALL", "C");
    for (name, folder) in [("Dir::State::Lists", "lists"), ("Dir::Cache::archives", "debs")] {
        command.arg("-o").arg(format!("{name}={}", work.join(folder).display()));
    }
    // The caches on disk describe the system's lists; without them apt reads ours. As root, apt would write
    // as another user, who cannot enter our folder; as another user it cannot lock the system.
    for option in ["Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=", "APT::Sandbox::User=root"] {
        command.args(["-o", option]);
    }
    command.args(["-o", "Debug::NoLocking=true"]).args(arguments);
    command
}

fn ask(mut command: Command) -> Result<()> {
    let answer = process::ask(&mut command);
    if !answer.ok {
        bail!("`{}` said:\n{}", process::shown(&command), answer.err.trim());
    }
    Ok(())
}

/// The compiler's version, of the name of its package: `rustc-web_1.96.0+dfsg1-1~deb12u2_amd64.deb`.
fn unpacked_version(debs: &Path) -> Result<String> {
    let names = debs.read_dir()?.flatten().map(|entry| entry.file_name());
    let mut names = names.filter_map(|name| name.into_string().ok());
    let compiler = names.find(|name| name.starts_with(&format!("{}_", PACKAGES[0])));
    let compiler = compiler.with_context(|| format!("apt-get downloaded no {}", PACKAGES[0]))?;
    let version = compiler.split('_').nth(1).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '+';
    // An epoch is escaped in the name.
    Ok(version.chars().map(|c| if plain(c) { c } else { '-' }).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_version_is_that_of_the_compilers_package() {
        let debs = tempfile::tempdir().expect("a folder");
        assert!(unpacked_version(debs.path()).is_err());
        for name in ["rustc-web_1.96.0+dfsg1-1~deb12u2_amd64.deb", "rustc-web-doc_2_all.deb"] {
            fs::write(debs.path().join(name), "").expect("a file");
        }
        let version = unpacked_version(debs.path()).expect("it is there");
        assert_eq!(version, "1.96.0+dfsg1-1-deb12u2");
    }
}
