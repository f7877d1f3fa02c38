//! What an installation consists of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::third_party::ThirdParty;
use super::traces::Traces;
use super::tree::Tree;
use crate::process;
use crate::project::Project;
use crate::toolchain::Active;

/// Folders of components that go beside the program, below `<target>/release`.
const COMPONENTS: [&str; 3] = ["strategies", "formulas", "dialects"];
/// Texts of the project's folder.
pub(super) const TEXTS: [&str; 5] =
    ["README.md", "README.ja.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
/// Where the other licences are.
pub(super) const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES.txt";

/// The parts of every product.
pub(super) struct Contents {
    /// As in `0.1.0`.
    pub(super) version: String,
    /// The target triple.
    pub(super) host: String,
    /// The program without what only debuggers read, and without folders of this machine.
    pub(super) program: PathBuf,
    /// Strategies, formula modules and dialects.
    pub(super) components: Tree,
    /// What is there to read.
    pub(super) texts: Tree,
    /// What describes messages and files; the program writes most of them itself.
    pub(super) schemas: Tree,
    /// Files to start from: units of systemd and the like.
    pub(super) examples: Tree,
    /// What must be in none of the files.
    pub(super) traces: Traces,
}

/// What of an installation stands in the project's folder as it is.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) texts: Tree,
    pub(super) schemas: Tree,
    pub(super) examples: Tree,
}

impl Sources {
    /// Reads them below the project's folder.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut texts = Tree::default();
        for text in TEXTS {
            texts.add(text, root.join(text));
        }
        let mut schemas = Tree::default();
        if schemas.add_folder("schemas", &root.join("schemas"), "")? == 0 {
            bail!("there are no schemas; run `cargo xtask schemas`");
        }
        let mut examples = Tree::default();
        for folder in ["cron", "systemd"] {
            examples.add_folder(folder, &root.join("examples").join(folder), "")?;
        }
        Ok(Self { texts, schemas, examples })
    }
}

impl Contents {
    /// Takes what was built before.
    pub(super) fn take(project: &Project) -> Result<Self> {
        let mut components = Tree::default();
        for folder in COMPONENTS {
            let path = project.release().join(folder);
            if components.add_folder(folder, &path, ".wasm")? == 0 {
                bail!("{} has no components; run `cargo xtask guests`", path.display());
            }
        }
        let active = Active::find()?;
        let others = ThirdParty::of(project, &active)?;
        let Sources { mut texts, schemas, examples } = Sources::read(&project.root)?;
        texts.add_text(THIRD_PARTY, others.licences()?);
        let traces = Traces::of(project, &active, &others.registries());
        Ok(Self {
            version: version(project)?,
            host: active.host,
            program: shipped_program(project, &traces)?,
            components,
            texts,
            schemas,
            examples,
            traces,
        })
    }

    /// The folder that the archive unpacks to.
    pub(super) fn archive_folder(&self) -> String {
        format!("kumiki-{}-{}", self.version, self.host)
    }

    /// Everything in one folder, as the archive has it.
    pub(super) fn archive_tree(&self) -> Tree {
        let mut tree = self.components.clone();
        tree.extend(self.texts.clone());
        tree.extend(self.examples.below("examples"));
        tree.add_program(format!("kumiki{}", std::env::consts::EXE_SUFFIX), &self.program);
        tree.below(&self.archive_folder())
    }
}

/// The version of the workspace.
fn version(project: &Project) -> Result<String> {
    let manifest = fs::read_to_string(project.root.join("Cargo.toml"))?;
    let package = manifest.split("[workspace.package]").nth(1).unwrap_or_default();
    let line = package.lines().find_map(|line| line.strip_prefix("version = \""));
    line.and_then(|rest| rest.split('"').next())
        .map(str::to_owned)
        .context("Cargo.toml has no version of the workspace")
}

/// A copy of the program without folders of this machine, and without symbols and line numbers, where the
/// system keeps them inside.
fn shipped_program(project: &Project, traces: &Traces) -> Result<PathBuf> {
    let (from, folder) = (project.program(), project.target.join("dist"));
    fs::create_dir_all(&folder)?;
    let to = folder.join(from.file_name().context("the program has a name")?);
    // The copy is allowed to be run, as the program is.
    fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    if cfg!(unix) {
        process::run(Command::new("strip").arg(&to))?;
    }
    let mut bytes = fs::read(&to)?;
    traces.blank(&mut bytes);
    fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    if cfg!(target_os = "macos") {
        // The signature that the linker made is of the bytes before.
        process::run(Command::new("codesign").args(["--force", "--sign", "-"]).arg(&to))?;
    }
    Ok(to)
}
