//! `cargo xtask dist`: what users install without a compiler, into `dist/`: an archive, a Debian package and
//! a Python wheel, each looked into, and their SHA-256 sums. With `--check` each is made twice, compared, and
//! tried as its users have it.

mod build;
mod contents;
mod debian;
mod inspect;
mod pages;
mod place;
mod third_party;
mod tree;
mod trial;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result, bail};
use clap::ValueEnum;
use sha2::{Digest, Sha256};

use crate::environment::told;
use crate::project::Project;
use crate::skips::Skips;
use crate::steps::Stopwatch;
use crate::{cache, guests};

use build::Build;
use contents::Contents;

/// Where products go, in the project's folder; git ignores it.
const FOLDER: &str = "dist";
/// Their sums, as `sha256sum --check` reads them.
const SUMS: &str = "SHA256SUMS";

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Product {
    /// The program with its files in one folder, .tar.gz; .zip for Windows.
    Archive,
    /// A Debian package.
    Debian,
    /// A Python wheel that brings the program.
    Wheel,
}

impl Product {
    const fn title(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Debian => "Debian package",
            Self::Wheel => "Python wheel",
        }
    }
}

/// Another system than this machine's, for which products are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// A zip and a wheel, compiled with mingw-w64 and tried under Wine.
    Windows,
}

/// Builds and makes the products, all of them where none is named.
pub(crate) fn run(
    project: &Project,
    only: &[Product],
    system: Option<System>,
    check: bool,
) -> Result<()> {
    let usual = match system {
        None => Product::value_variants(),
        Some(System::Windows) => &[Product::Archive, Product::Wheel],
    };
    if let Some(other) = only.iter().find(|product| !usual.contains(product)) {
        bail!("there is no {} for that system; leave it out", other.title());
    }
    guests::build(project)?;
    let mut skips = Skips::default();
    let maker = Maker::new(project, system)?;
    for product in if only.is_empty() { usual } else { only } {
        if let Some(path) = maker.make(*product, &mut skips)?
            && check
        {
            maker.must_be_made_again(*product, &path)?;
            maker.try_out(*product, &path, &mut skips)?;
        }
    }
    maker.write_sums()?;
    println!("{}; {}", maker.folder.display(), skips.told());
    Ok(())
}

struct Maker<'a> {
    project: &'a Project,
    build: Build,
    contents: Contents,
    folder: PathBuf,
}

impl<'a> Maker<'a> {
    fn new(project: &'a Project, system: Option<System>) -> Result<Self> {
        let build = Build::new(project, system)?;
        let contents = Contents::take(project, build.run(project)?, system)?;
        let folder = project.root.join(FOLDER);
        clear(&folder)?;
        Ok(Self { project, build, contents, folder })
    }

    /// Makes a product and looks into it; where it cannot be made here, says why.
    fn make(&self, product: Product, skips: &mut Skips) -> Result<Option<PathBuf>> {
        let watch = Stopwatch::start();
        let path = match self.make_in(product, &self.folder)? {
            Ok(path) => path,
            Err(reason) => {
                skips.say(product.title(), &reason);
                return Ok(None);
            }
        };
        let inspection = inspect::Inspection::new(self.project, &self.contents)?;
        let looked = match product {
            Product::Archive => inspection.archive(&path),
            Product::Debian => inspection.debian(&path),
            Product::Wheel => {
                inspection.wheel(&path, &wheel::python(self.project).map_err(Error::msg)?)
            }
        };
        looked.with_context(|| format!("{} failed its inspection", path.display()))?;
        let size = fs::metadata(&path)?.len() / 1_000_000;
        eprintln!("{}, {size} MB, in {}", path.display(), watch.shown());
        Ok(Some(path))
    }

    /// Makes a product in a folder, and gives its path, or the reason why it cannot be made here.
    fn make_in(&self, product: Product, folder: &Path) -> Result<Result<PathBuf, String>> {
        let work = self.project.target.join("dist").join("work");
        let contents = &self.contents;
        let made = match product {
            Product::Archive => {
                let tree = contents.archive_tree()?;
                let path = |end: &str| folder.join(contents.archive_folder() + end);
                Ok(match self.build.system {
                    None => tree.write_tar_gz(&path(".tar.gz")).map(|()| path(".tar.gz")),
                    Some(System::Windows) => tree.write_zip(&path(".zip")).map(|()| path(".zip")),
                })
            }
            Product::Debian => {
                debian::architecture().map(|of| debian::make(contents, &of, &work, folder))
            }
            Product::Wheel => wheel::python(self.project)
                .map(|python| wheel::make(self.project, &python, &self.build, contents, folder)),
        };
        match made {
            Ok(made) => made.map(Ok),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Makes a product once more: the same files give the same bytes.
    fn must_be_made_again(&self, product: Product, path: &Path) -> Result<()> {
        let folder = self.project.target.join("dist").join("again");
        clear(&folder)?;
        let again = match self.make_in(product, &folder)? {
            Ok(again) => again,
            Err(reason) => bail!("the second build failed: {reason}"),
        };
        if again.file_name() != path.file_name() || fs::read(path)? != fs::read(&again)? {
            bail!("{} and {} should be the same bytes", path.display(), again.display());
        }
        eprintln!("made twice, the same bytes: {}", path.display());
        clear(&folder)
    }

    /// Tries a product on this machine, where only a package manager could install the package, and in a small
    /// Debian; or says why it cannot be tried there.
    fn try_out(&self, product: Product, path: &Path, skips: &mut Skips) -> Result<()> {
        let (project, contents) = (self.project, &self.contents);
        if self.build.system == Some(System::Windows) {
            let what = format!("trial of the {} under Wine", product.title());
            match trial::on_windows(project, contents, product, path)
                .with_context(|| what.clone())?
            {
                Ok(()) => eprintln!("{what}: done"),
                Err(reason) => skips.say(&what, &reason),
            }
            return Ok(());
        }
        let here = match product {
            Product::Archive => {
                let reason = "it is built and tried by .github/workflows/image.yml only";
                skips.say("the container image", reason);
                Some(trial::archive(project, contents, path))
            }
            Product::Debian => None,
            Product::Wheel => {
                let python = wheel::python(project).map_err(Error::msg)?;
                Some(trial::wheel(project, contents, &python, path))
            }
        };
        let in_debian = trial::in_debian(project, contents, product, path);
        for (place, tried) in [("on this machine", here), ("in a small Debian", Some(in_debian))] {
            let Some(tried) = tried else { continue };
            let what = format!("trial of the {} {place}", product.title());
            match tried.with_context(|| what.clone())? {
                Ok(()) => eprintln!("{what}: done"),
                Err(reason) => skips.say(&what, &reason),
            }
        }
        Ok(())
    }

    /// Writes the sums of all products in the folder.
    fn write_sums(&self) -> Result<()> {
        let mut lines: Vec<String> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_product(&name) && name != SUMS {
                let sum = cache::hex(&Sha256::digest(fs::read(entry.path())?));
                lines.push(format!("{sum}  {name}\n"));
            }
        }
        lines.sort();
        let path = self.folder.join(SUMS);
        fs::write(&path, lines.concat()).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Unpacks an archive into a folder.
fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let is_zip = archive.extension().is_some_and(|end| end == "zip");
    let (program, from, to) = if is_zip { ("unzip", "-q", "-d") } else { ("tar", "-xzf", "-C") };
    let mut unpack = Command::new(program);
    let what = format!("{} cannot be unpacked", archive.display());
    told(&what, unpack.arg(from).arg(archive).arg(to).arg(folder)).map_err(Error::msg)
}

/// Makes a folder, and removes what an earlier run has made there.
fn clear(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_product(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Whether a file of this name was made here.
fn is_product(name: &str) -> bool {
    let endings = [".tar.gz", ".zip", ".deb", ".whl"];
    name == SUMS
        || name.starts_with("kumiki") && endings.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn only_products_are_removed() {
        for name in [
            SUMS,
            "kumiki-0.1.0-x.tar.gz",
            "kumiki-0.1.0-y.zip",
            "kumiki_0.1.0-1_amd64.deb",
            "kumiki-1.whl",
        ] {
            assert!(is_product(name), "{name}");
        }
        for name in ["kumiki", "kumiki-notes.txt", "other.deb", "kumiki.tar.gz.asc"] {
            assert!(!is_product(name), "{name}");
        }
    }
    #[test]
    fn the_container_is_made_of_files_that_there_are() {
        let project = Project::find().expect("the tests run inside the project");
        let file = project.root.join("examples/container/Containerfile");
        let file = fs::read_to_string(file).expect("it is there");
        let lines = file.lines().filter_map(|line| line.strip_prefix("COPY "));
        let lines = lines.filter(|line| !line.starts_with("--from"));
        let copied: Vec<&str> = lines
            .flat_map(|line| line.rsplit_once(' ').map_or("", |pair| pair.0).split(' '))
            .collect();
        for name in &copied {
            assert!(project.root.join(name).exists(), "there is no {name}");
        }
        for name in contents::TEXTS.iter().chain(&["Cargo.toml", "Cargo.lock", ".cargo"]) {
            let is_copied = copied.iter().any(|copied| Path::new(name).starts_with(copied));
            assert!(is_copied, "{name} is not copied");
        }
        // Every package that is compiled there: of the host, of the guests, of the examples.
        let manifests = ["Cargo.toml", "guests/Cargo.toml"].map(|path| project.root.join(path));
        for manifest in manifests {
            let mut command = project.cargo();
            command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
            let told: serde_json::Value =
                serde_json::from_str(&process::ask(command.arg(manifest)).out).expect("metadata");
            let packages = told["packages"].as_array().expect("packages");
            assert!(packages.len() > 2, "{packages:?}");
            for package in packages {
                let path = Path::new(package["manifest_path"].as_str().expect("a path"));
                let inside = path.strip_prefix(&project.root).expect("inside the project");
                let is_copied = copied.iter().any(|name| inside.starts_with(name));
                assert!(is_copied, "{} is not copied", inside.display());
            }
        }
        for folder in ["wit", "tests"] {
            let is_copied = copied.iter().any(|name| Path::new(folder).starts_with(name));
            assert!(is_copied, "{folder} is not copied");
        }
        // What the archive takes as it is, from a folder with what is copied and nothing else.
        let there = tempfile::tempdir().expect("a folder");
        for name in &copied {
            copy(&project.root.join(name), &there.path().join(name));
        }
        contents::Sources::read(there.path()).expect("all that the archive takes is copied");
    }

    /// Copies a file, or a folder with all that is in it.
    fn copy(from: &Path, to: &Path) {
        if !from.is_dir() {
            fs::copy(from, to).expect("it can be copied");
            return;
        }
        fs::create_dir(to).expect("there is none yet");
        for entry in fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    }
}
