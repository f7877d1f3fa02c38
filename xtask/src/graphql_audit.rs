//! Sees to it that the tests of the ranking service find the public audit suite of GraphQL over HTTP.
//! Where it cannot be installed, a file in `<target>/release` says why, and its test is skipped.

use anyhow::Result;

use crate::project::Project;
use crate::{npm, skips};

/// Which packages.
const SOURCES: &str = "tests/graphql-http";
/// Where they are, below the target folder; `tests::built` looks there.
const TOOLS: &str = "graphql-http-tools";

/// Finds or installs it; writes the reason where neither can be.
pub(crate) fn prepare(project: &Project) -> Result<()> {
    let folder = project.target.join(TOOLS);
    let installed = npm::install(project, SOURCES, &folder)
        .map(|()| format!("the audit suite is in {}", folder.display()));
    skips::write_reason(project, "graphql-http", "the audit of GraphQL over HTTP", installed)
}
