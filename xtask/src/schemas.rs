//! The generated schemas and pages: the program writes them, and checks that they are fresh.

use anyhow::{Context, Result};

use crate::project::Project;
use crate::{host, process};

const FOLDER: &str = "schemas";
/// Where the pages are that say what the code says.
const PAGES: &str = "docs/reference";

/// `cargo xtask schemas`: writes them anew.
pub(crate) fn write(project: &Project) -> Result<()> {
    host::build(project)?;
    process::run(host::program(project).args(["schemas", "--write", FOLDER]))?;
    process::run(host::program(project).args(["schemas", "--write-pages", PAGES]))
}

/// Fails when one is stale. The program must have been built.
pub(crate) fn check(project: &Project) -> Result<()> {
    process::run(host::program(project).args(["schemas", "--check", FOLDER]))
        .context("a schema is stale: run `cargo xtask schemas` and look at what changed")?;
    process::run(host::program(project).args(["schemas", "--check-pages", PAGES])).context(
        "a page of docs/reference is stale: run `cargo xtask schemas` and look at what changed",
    )
}
