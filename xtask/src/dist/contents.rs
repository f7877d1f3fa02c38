//! What an installation consists of.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::pages::Pages;
use super::tree::Tree;
use super::{System, third_party};
use crate::project::Project;
use crate::toolchain::Active;
use crate::{docs, duckdb, paths, windows};

/// Folders of components that go beside the program, below `<target>/release`.
const COMPONENTS: [&str; 3] = ["strategies", "formulas", "dialects"];
/// Texts of the project's folder: the front pages, what they lead to outside of docs/, and the licences.
pub(super) const TEXTS: [&str; 8] = [
    "README.md",
    "README.ja.md",
    "ARCHITECTURE.md",
    "BENCHMARKS.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "clients/python/README.md",
];
/// Where the other licences are.
pub(super) const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES.txt";

/// The version of the whole workspace, as in `0.1.0`.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The parts of every product.
pub(super) struct Contents {
    /// The target triple.
    pub(super) host: String,
    /// The program without what only debuggers read, and without folders of this machine.
    pub(super) program: PathBuf,
    /// DuckDB's library; none where the program holds it.
    pub(super) library: Option<PathBuf>,
    /// Manual pages and completions of shells.
    pub(super) pages: Pages,
    /// Strategies, formula modules and dialects.
    pub(super) components: Tree,
    /// What stands in the project's folder, and the licences of others.
    pub(super) sources: Sources,
    /// What no file may name.
    pub(super) forbidden: Vec<String>,
}

/// What of an installation stands in the project's folder as it is.
#[derive(Debug)]
pub(super) struct Sources {
    /// What is there to read.
    pub(super) texts: Tree,
    /// What describes messages and files; the program writes most of them itself.
    pub(super) schemas: Tree,
    /// Files to start from: units of systemd and the like.
    pub(super) examples: Tree,
    /// The pages that the front page leads to, with their pictures.
    pub(super) docs: Tree,
}

impl Sources {
    /// Reads them below the project's folder.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut texts = Tree::default();
        for text in TEXTS {
            texts.add(text, &root.join(text))?;
        }
        let mut schemas = Tree::default();
        if schemas.add_folder("schemas", &root.join("schemas"), "")? == 0 {
            bail!("there are no schemas; run `cargo xtask schemas`");
        }
        let mut examples = Tree::default();
        for folder in ["cron", "systemd"] {
            examples.add_folder(folder, &root.join("examples").join(folder), "")?;
        }
        let mut docs = Tree::default();
        docs.add_folders(docs::FOLDER, &root.join(docs::FOLDER))?;
        Ok(Self { texts, schemas, examples, docs })
    }

    /// What people read, in the folders in which the pages find each other.
    pub(super) fn to_read(&self) -> Tree {
        let mut tree = self.texts.clone();
        tree.extend(self.docs.clone());
        tree.extend(self.schemas.clone());
        tree
    }
}

impl Contents {
    /// Takes what was built before.
    pub(super) fn take(
        project: &Project,
        program: PathBuf,
        system: Option<System>,
    ) -> Result<Self> {
        let mut components = Tree::default();
        for folder in COMPONENTS {
            let path = project.release().join(folder);
            if components.add_folder(folder, &path, ".wasm")? == 0 {
                bail!("{} has no components; run `cargo xtask guests`", path.display());
            }
        }
        let active = Active::find()?;
        let (host, database, starts) = match system {
            None => (active.host, duckdb::shipped(project)?, program.clone()),
            Some(System::Windows) => {
                let database = duckdb::shipped_for("windows", &windows::database(project)?)?;
                let starts = windows::starting(project, &program)?;
                (windows::TARGET.to_owned(), Some(database), starts)
            }
        };
        let pages = Pages::of(&starts, &project.target.join("dist").join("man"))?;
        let (library, licence) = database.unzip();
        let mut sources = Sources::read(&project.root)?;
        let others = third_party::licences(project, &host, licence)?;
        sources.texts.add_text(THIRD_PARTY, others.into_bytes());
        Ok(Self {
            forbidden: paths::forbidden(project, &active.sysroot),
            host,
            program,
            pages,
            library,
            components,
            sources,
        })
    }

    /// The folder that the archive unpacks to.
    pub(super) fn archive_folder(&self) -> String {
        format!("kumiki-{}-{}", VERSION, self.host)
    }

    /// Everything in one folder, as the archive has it.
    pub(super) fn archive_tree(&self) -> Result<Tree> {
        let mut tree = self.components.clone();
        tree.extend(self.sources.to_read());
        tree.extend(self.sources.examples.below("examples"));
        tree.extend(self.pages.together.clone());
        self.add_program(&mut tree, "", "")?;
        Ok(tree.below(&self.archive_folder()))
    }

    /// Adds the program to a folder, and DuckDB's library to another.
    pub(super) fn add_program(
        &self,
        tree: &mut Tree,
        programs: &str,
        libraries: &str,
    ) -> Result<()> {
        let program = fs::read(&self.program)
            .with_context(|| format!("cannot read {}", self.program.display()))?;
        tree.add_program(format!("{programs}{}", name(&self.program)), program);
        if let Some(library) = &self.library {
            tree.add(format!("{libraries}{}", name(library)), library)?;
        }
        Ok(())
    }
}

/// The last part of a path that we made.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_that_the_front_pages_link_to_is_in_the_products() {
        let project = Project::find().expect("the tests run inside the project");
        let tree = Sources::read(&project.root).expect("all of it is there").to_read();
        let files: BTreeSet<&str> = tree.items().map(|(place, _)| place).collect();
        let folders = tree.folders();
        let mut links = 0;
        for page in docs::pages(&project.root).expect("pages") {
            for path in page.linked().iter().filter(|_| page.path.starts_with("README")) {
                links += 1;
                let is_there = files.contains(path.as_str()) || folders.contains(path.as_str());
                assert!(is_there, "{}: {path} is in no product", page.path);
            }
        }
        assert!(links > 20, "{links}");
    }
}
