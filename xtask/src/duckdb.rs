//! DuckDB's library. It comes as DuckDB released it, out of an npm package, into `.duckdb/` of the checkout,
//! where `.cargo/config.toml` has every build look. Without npm its C++ code is compiled.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha512};
use tar::Archive;

use crate::project::Project;
use crate::steps::Stopwatch;
use crate::{cache, cases, npm, process};

/// The packages, a line each.
const PACKAGES: &str = include_str!("../duckdb.txt");
/// Names another folder with the library; cargo's configuration names ours.
pub(crate) const VARIABLE: &str = "DUCKDB_LIB_DIR";
/// Our folder, in the checkout.
const FOLDER: &str = ".duckdb";
/// DuckDB's licence, beside the library.
const LICENCE: &str = "LICENSE";
/// Says which package our folder was filled from.
const MARKER: &str = "package.txt";

/// The file name of the library on this system.
pub(crate) const LIBRARY: &str = library_of(env::consts::OS);

/// The file name of the library on a system, by Rust's name of that.
const fn library_of(system: &str) -> &'static str {
    match system.as_bytes() {
        b"windows" => "duckdb.dll",
        b"macos" => "libduckdb.dylib",
        _ => "libduckdb.so",
    }
}

/// A package of npm with the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Package {
    /// Its name and version.
    name: &'static str,
    integrity: &'static str,
    /// The file in it.
    library: &'static str,
}

impl Package {
    /// The package for this machine.
    fn of_machine() -> Option<Self> {
        // The packages of Linux are made for glibc.
        let is_made_for = !cfg!(target_env = "musl");
        is_made_for.then(|| Self::of(env::consts::OS, env::consts::ARCH)).flatten()
    }

    fn of(system: &str, processor: &str) -> Option<Self> {
        let start = format!("{system} {processor} ");
        let line = PACKAGES.lines().find_map(|line| line.strip_prefix(&start))?;
        let (name, integrity) = line.split_once(' ')?;
        Some(Self { name, integrity, library: library_of(system) })
    }

    /// The file that `npm pack` makes of it.
    fn file_name(self) -> String {
        format!("{}.tgz", self.name.trim_start_matches('@').replace(['/', '@'], "-"))
    }

    fn marker(self) -> String {
        format!("{} {}\n", self.name, self.integrity)
    }

    /// Whether our folder was filled from this package.
    fn is_in(self, folder: &Path) -> bool {
        folder.join(self.library).is_file()
            && fs::read_to_string(folder.join(MARKER)).is_ok_and(|text| text == self.marker())
    }
}

/// Where the library is, and whether we put it there.
struct Place {
    folder: PathBuf,
    is_ours: bool,
}

impl Place {
    fn of(project: &Project) -> Self {
        Self::named(&project.root, env::var_os(VARIABLE))
    }

    fn named(root: &Path, variable: Option<OsString>) -> Self {
        let ours = root.join(FOLDER);
        let named = variable.filter(|value| !value.is_empty()).map_or(ours.clone(), PathBuf::from);
        Self { is_ours: named == ours, folder: named }
    }

    /// Whether a build finds the library of the wanted version, or the one that the user named.
    fn has_library(&self, package: Option<Package>) -> bool {
        match self.is_ours {
            true => package.is_some_and(|package| package.is_in(&self.folder)),
            false => self.folder.join(LIBRARY).is_file(),
        }
    }
}

/// Sees to it that builds find the library; where it cannot be had, notes that they compile it.
pub(crate) fn set_up(project: &mut Project) -> Result<()> {
    let (place, package) = (Place::of(project), Package::of_machine());
    // Each build script would start from another folder.
    ensure!(
        place.folder.is_absolute(),
        "{VARIABLE} is {}, which is a relative path; give an absolute path",
        place.folder.display()
    );
    if place.has_library(package) {
        return Ok(());
    }
    if !place.is_ours {
        bail!(
            "{VARIABLE} is {}, which holds no {LIBRARY}; put DuckDB's library there, or unset it",
            place.folder.display()
        );
    }
    let package = package.ok_or("npm has no package with DuckDB for this machine".to_owned());
    let (package, npm) = match package.and_then(|package| Ok((package, npm::client()?))) {
        Ok(both) => both,
        Err(reason) => {
            eprintln!(
                "{reason}. So DuckDB's C++ code is compiled, as with `cargo build --release -p cli --features \
                 bundled`: it needs a C++ compiler, and takes about an hour on two cores, once"
            );
            project.is_database_compiled = true;
            return Ok(());
        }
    };
    fill(&place.folder, package, npm)
}

/// Puts the library of another system into a folder of its own.
pub(crate) fn set_up_for(system: &str, processor: &str, folder: &Path) -> Result<()> {
    let package = Package::of(system, processor).context("npm has no DuckDB for that system")?;
    if package.is_in(folder) {
        return Ok(());
    }
    fill(folder, package, npm::client().map_err(anyhow::Error::msg)?)
}

fn fill(folder: &Path, package: Package, npm: Command) -> Result<()> {
    let watch = Stopwatch::start();
    let cache = cache::folder()?.join("duckdb");
    // One process after the other, and the second finds all done.
    let _lock = cache::locked(&cache)?;
    if package.is_in(folder) {
        return Ok(());
    }
    let archive = fetched(npm, package, &cache)?;
    put(&archive, package, folder)?;
    eprintln!("DuckDB's library is in {}, after {}", folder.display(), watch.shown());
    Ok(())
}

/// The archive of a package in the cache; it is fetched where it is missing or damaged.
fn fetched(mut npm: Command, package: Package, cache: &Path) -> Result<PathBuf> {
    let (name, archive) = (package.name, cache.join(package.file_name()));
    if archive.is_file() && has_sum(&archive, package.integrity).is_ok() {
        return Ok(archive);
    }
    let work = cache.join("unfinished");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    eprintln!("fetching {name} with npm into {}", cache.display());
    npm.current_dir(&work).args(["pack", name, "--loglevel=error", "--pack-destination"]);
    let answer = process::ask(npm.arg(&work));
    let made = work.join(package.file_name());
    let fetched = match answer.ok {
        true => has_sum(&made, package.integrity),
        false => Err(anyhow!("npm said:\n{}", answer.err.trim())),
    };
    fetched.with_context(|| {
        format!(
            "cannot fetch {name} with npm; with a network, try again, or name a folder with {LIBRARY} in \
             {VARIABLE}"
        )
    })?;
    fs::rename(&made, &archive).with_context(|| format!("cannot write {}", archive.display()))?;
    let _ = fs::remove_dir_all(&work);
    Ok(archive)
}

/// Fails unless a file has the sum that npm's `integrity` names.
fn has_sum(file: &Path, integrity: &str) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let found = format!("sha512-{}", STANDARD.encode(Sha512::digest(&bytes)));
    ensure!(found == integrity, "{} has the sum {found}; {integrity} is wanted", file.display());
    Ok(())
}

/// Fills our folder from an archive: each file is there as a whole or not at all, and the marker comes last.
fn put(archive: &Path, package: Package, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let marker = folder.join(MARKER);
    cases::remove(&marker)?;
    let file = File::open(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let mut wanted = vec![package.library, LICENCE];
    let mut archived = Archive::new(GzDecoder::new(file));
    let broken = || format!("{} is no archive of npm", archive.display());
    for entry in archived.entries().with_context(broken)? {
        let mut entry = entry.with_context(broken)?;
        let path = entry.path().with_context(broken)?.into_owned();
        let is = |name: &&str| path == Path::new("package").join(name);
        let Some(at) = wanted.iter().position(is) else { continue };
        let to = folder.join(wanted.remove(at));
        let unfinished = to.with_extension("unfinished");
        let written = File::create(&unfinished).and_then(|mut out| io::copy(&mut entry, &mut out));
        if let Err(error) = written.and_then(|_| fs::rename(&unfinished, &to)) {
            let _ = fs::remove_file(&unfinished);
            return Err(anyhow!(error).context(format!("cannot write {}", to.display())));
        }
    }
    ensure!(wanted.is_empty(), "{} has no {}", archive.display(), wanted.join(", "));
    fs::write(&marker, package.marker())
        .with_context(|| format!("cannot write {}", marker.display()))
}

/// Whether builds find the library now.
pub(crate) fn is_there(project: &Project) -> bool {
    Place::of(project).has_library(Package::of_machine())
}

/// The library and its licence, for what is shipped; none where the program holds DuckDB itself.
pub(crate) fn shipped(project: &Project) -> Result<Option<(PathBuf, String)>> {
    if project.is_database_compiled {
        return Ok(None);
    }
    with_licence(&Place::of(project).folder, LIBRARY).map(Some)
}

/// The library of a folder that [`set_up_for`] has filled, and its licence.
pub(crate) fn shipped_for(system: &str, folder: &Path) -> Result<(PathBuf, String)> {
    with_licence(folder, library_of(system))
}

fn with_licence(folder: &Path, library: &str) -> Result<(PathBuf, String)> {
    let licence = fs::read_to_string(folder.join(LICENCE)).with_context(|| {
        format!("{} has no {LICENCE} of DuckDB beside its library", folder.display())
    })?;
    Ok((folder.join(library), licence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of npm with these files.
    fn archive(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
        let path = folder.join("package.tgz");
        let file = File::create(&path).expect("it can be written");
        let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let mut archive = tar::Builder::new(packed);
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            archive
                .append_data(&mut header, format!("package/{name}"), text.as_bytes())
                .expect("it can be packed");
        }
        archive.into_inner().and_then(flate2::write::GzEncoder::finish).expect("it is whole");
        path
    }

    const PACKAGE: Package = Package { name: "@x/y@1", integrity: "sha512-x", library: LIBRARY };

    #[test]
    fn the_library_is_there_after_its_marker_only() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join(FOLDER);
        assert!(!PACKAGE.is_in(&folder));
        let whole = archive(place.path(), &[(LIBRARY, "code"), ("x.js", ""), (LICENCE, "MIT")]);
        put(&whole, PACKAGE, &folder).expect("it has both files");
        assert!(PACKAGE.is_in(&folder));
        assert_eq!(fs::read_to_string(folder.join(LIBRARY)).ok().as_deref(), Some("code"));
        assert!(!folder.join("x.js").exists());
        let other = Package { integrity: "sha512-y", ..PACKAGE };
        assert!(!other.is_in(&folder), "another version is to be fetched");
        fs::remove_file(folder.join(LIBRARY)).expect("it was there");
        assert!(!PACKAGE.is_in(&folder));
    }

    #[test]
    fn what_lacks_a_file_or_is_no_archive_leaves_no_marker() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join(FOLDER);
        let part = archive(place.path(), &[(LIBRARY, "code")]);
        let why = put(&part, PACKAGE, &folder).expect_err("no licence").to_string();
        assert!(why.ends_with("has no LICENSE"), "{why}");
        let bytes = fs::read(&part).expect("it is there");
        fs::write(&part, &bytes[..bytes.len() / 2]).expect("it can be written");
        assert!(put(&part, PACKAGE, &folder).is_err());
        assert!(!PACKAGE.is_in(&folder));
    }

    #[test]
    fn a_wrong_sum_is_told_with_the_right_one() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("x.tgz");
        fs::write(&file, "abc").expect("it can be written");
        let right = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9\
                     RU1EI2Q86A4qmslPpUyknw==";
        has_sum(&file, right).expect("it is abc");
        let why = has_sum(&file, "sha512-AA==").expect_err("it is another").to_string();
        assert!(why.contains(right) && why.contains("sha512-AA== is wanted"), "{why}");
    }

    #[test]
    fn a_folder_of_the_user_is_taken_as_it_is() {
        let root = tempfile::tempdir().expect("a folder");
        let ours = root.path().join(FOLDER);
        for variable in [None, Some(OsString::new()), Some(ours.clone().into_os_string())] {
            let place = Place::named(root.path(), variable);
            assert!(place.is_ours && place.folder == ours);
        }
        let place = Place::named(root.path(), Some(root.path().as_os_str().to_owned()));
        assert!(!place.is_ours && !place.has_library(None));
        fs::write(root.path().join(LIBRARY), "").expect("it can be written");
        assert!(place.has_library(None));
    }

    #[test]
    fn machines_without_a_package_are_known() {
        let package = Package::of("linux", "x86_64").expect("it has one");
        assert_eq!(package.file_name(), "duckdb-node-bindings-linux-x64-1.5.6-r.1.tgz");
        assert_eq!(Package::of("linux", "riscv64"), None);
        let windows = Package::of("windows", "x86_64").expect("it has one");
        assert_eq!(windows.library, "duckdb.dll");
        for line in PACKAGES.lines().skip(1) {
            let [_, _, _, sum] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert_eq!(sum.len(), "sha512-".len() + 88, "{line}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn what_npm_could_not_fetch_is_told_in_its_words() {
        let place = tempfile::tempdir().expect("a folder");
        let mut npm = Command::new("sh");
        npm.args(["-c", "echo no network >&2; exit 1"]);
        let error = fetched(npm, PACKAGE, place.path()).err();
        let why = format!("{:#}", error.expect("there is no npm"));
        assert!(why.contains("@x/y@1") && why.ends_with("no network"), "{why}");
        assert!(!place.path().join(PACKAGE.file_name()).exists());
    }

    #[test]
    #[cfg(unix)]
    fn a_damaged_archive_is_fetched_anew_and_a_wrong_one_is_not_kept() {
        let place = tempfile::tempdir().expect("a folder");
        let package = Package {
            integrity: "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9\
                        RU1EI2Q86A4qmslPpUyknw==",
            ..PACKAGE
        };
        let npm = |text: &str| {
            let mut npm = Command::new("sh");
            npm.args(["-c", &format!("printf {text} > {}", package.file_name())]);
            npm
        };
        let archive = place.path().join(package.file_name());
        fs::write(&archive, "half").expect("it can be written");
        let why = format!("{:#}", fetched(npm("other"), package, place.path()).expect_err("wrong"));
        assert!(why.contains("is wanted"), "{why}");
        assert_eq!(fetched(npm("abc"), package, place.path()).ok().as_ref(), Some(&archive));
        assert_eq!(fs::read_to_string(&archive).ok().as_deref(), Some("abc"));
        // Now it is kept, and npm is not asked.
        assert!(fetched(Command::new("false"), package, place.path()).is_ok());
    }
}
