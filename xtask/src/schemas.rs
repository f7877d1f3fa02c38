//! The generated schemas: the program writes them, and checks that they are fresh.

use anyhow::{Context, Result};

use crate::project::Project;
use crate::{doctor, host, process};

const FOLDER: &str = "schemas";

/// `cargo xtask schemas`: writes them anew.
pub(crate) fn write(project: &Project) -> Result<()> {
    doctor::require(project, false)?;
    host::announce(project);
    host::build(project)?;
    process::run(host::program(project).args(["schemas", "--write", FOLDER]))
}

/// Fails when one is stale. The program must have been built.
pub(crate) fn check(project: &Project) -> Result<()> {
    process::run(host::program(project).args(["schemas", "--check", FOLDER]))
        .context("a schema is stale: run `cargo xtask schemas` and look at what changed")
}
