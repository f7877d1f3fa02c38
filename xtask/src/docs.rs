//! `cargo xtask docs`: checks the links of the pages for users, and makes a book of them.

mod links;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::{page_guests, process};

use links::Page;

/// The folder of the pages.
pub(crate) const FOLDER: &str = "docs";
/// The page that lists all others.
const SUMMARY: &str = "docs/SUMMARY.md";
/// What makes HTML of the pages.
const PROGRAM: &str = "mdbook";

/// Checks links, compiles the strategies that pages show, and makes the book where its program is installed.
pub(crate) fn run(project: &Project) -> Result<()> {
    check(project)?;
    page_guests::build(project)?;
    if !process::ask(Command::new(PROGRAM).arg("--version")).ok {
        eprintln!(
            "no book was made: the program `{PROGRAM}` is not installed. `cargo install mdbook` installs it. The \
             pages in {FOLDER}/ can be read without it."
        );
        return Ok(());
    }
    let book = project.target.join("book");
    let mut command = Command::new(PROGRAM);
    command.current_dir(&project.root).args(["build", FOLDER, "--dest-dir"]).arg(&book);
    process::run(&mut command)?;
    eprintln!("the book: {}", book.join("index.html").display());
    Ok(())
}

/// Checks all links and anchors of the pages.
///
/// # Errors
/// All that lead nowhere, each with its page and line.
pub(crate) fn check(project: &Project) -> Result<()> {
    let pages = pages(&project.root)?;
    let (count, mut problems) = links::check(&project.root, &pages);
    if let Some(summary) = pages.iter().find(|page| page.path == SUMMARY) {
        problems.extend(links::check_summary(summary, &pages));
    }
    if problems.is_empty() {
        eprintln!("{count} links of {} pages lead somewhere", pages.len());
        return Ok(());
    }
    bail!(
        "{} of {count} links of the pages are wrong:\n  {}",
        problems.len(),
        problems.join("\n  ")
    )
}

/// The front pages and all pages below docs/, in the order of their paths.
pub(crate) fn pages(root: &Path) -> Result<Vec<Page>> {
    let mut paths = Vec::new();
    for path in entries(root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("README") && name.ends_with(".md") {
            paths.push(path);
        }
    }
    let mut open = vec![root.join(FOLDER)];
    while let Some(folder) = open.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let inside = path.strip_prefix(root).unwrap_or(&path);
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        Ok(Page { path: parts.join("/"), text })
    };
    paths.into_iter().map(read).collect()
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()));
    Ok(read?.flatten().map(|entry| entry.path()).collect())
}
