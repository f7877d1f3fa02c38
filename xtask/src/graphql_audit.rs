//! Sees to it that the tests of the ranking service find the public audit suite of GraphQL over HTTP.
//! Where it cannot be installed, a file in `<target>/release` says why, and its test is skipped.

use std::fs;

use anyhow::{Context, Result};

use crate::npm;
use crate::project::Project;

/// Which packages.
const SOURCES: &str = "tests/graphql-http";
/// Where they are, below the target folder; `tests::built` looks there.
const TOOLS: &str = "graphql-http-tools";

/// Finds or installs it; writes the reason where neither can be.
pub(crate) fn prepare(project: &Project) -> Result<()> {
    fs::create_dir_all(project.release())?;
    let skipped = project.release().join("graphql-http.skipped");
    match npm::installed(project, SOURCES, TOOLS) {
        Ok((node, folder)) => {
            eprintln!("the audit suite is in {}", folder.display());
            let program = node.command().get_program().to_string_lossy().into_owned();
            fs::write(project.release().join("graphql-http.node"), program)?;
            match fs::remove_file(&skipped) {
                Err(_) if skipped.exists() => anyhow::bail!("cannot remove {}", skipped.display()),
                _ => Ok(()),
            }
        }
        Err(reason) => {
            eprintln!("skipped: the audit of GraphQL over HTTP: {reason}");
            fs::write(&skipped, reason)
                .with_context(|| format!("cannot write {}", skipped.display()))
        }
    }
}
