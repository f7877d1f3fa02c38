//! The strategies and formula modules that pages show in full: each becomes a component, so that a page with code
//! that does not compile fails, and so that the tests of pages can run it.
//!
//! They go to `<target>/release/page-guests`, each as a source and a component of the same name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::project::Project;
use crate::toolchain::{self, TARGET};
use crate::{component, docs, guests};

/// Where sources and components go, below `<target>/release`.
const FOLDER: &str = "page-guests";
/// What shows that a block is a whole guest.
const WHOLE: [&str; 2] = ["impl Strategy for ", "impl Formula for "];
/// Pages about our own code, and pages of the development of the project.
const LEFT_OUT: &str = "docs/develop/";

/// Compiles them.
pub(crate) fn build(project: &Project) -> Result<()> {
    let mut sources: Vec<(String, String)> = Vec::new();
    for page in docs::pages(&project.root)? {
        if page.path.starts_with(LEFT_OUT) {
            continue;
        }
        for source in whole_guests(&page.text) {
            // A translation shows the same code.
            if !sources.iter().any(|(_, other)| *other == source) {
                let name = format!("{}_{}", name_of(&page.path), sources.len());
                sources.push((name, source));
            }
        }
    }
    let folder = project.release().join(FOLDER);
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    if sources.is_empty() {
        return Ok(());
    }
    let package = project.guests_target().join(FOLDER);
    write_package(project, &package, &sources)?;
    let toolchain = toolchain::find()?;
    eprintln!("building {} guests of pages with {}", sources.len(), toolchain.description);
    let manifest = package.join("Cargo.toml");
    guests::compile(project, &toolchain, &manifest, &["--examples"])?;
    let modules = project.guests_target().join(TARGET).join("release").join("examples");
    for (name, source) in &sources {
        let module = modules.join(format!("{name}.wasm"));
        let module =
            fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
        let component = component::from_module(&module)
            .with_context(|| format!("the guest {name} cannot become a component"))?;
        fs::write(folder.join(format!("{name}.wasm")), component)?;
        fs::write(folder.join(format!("{name}.rs")), source)?;
    }
    Ok(())
}

/// A package outside of the guests' workspace with a library for each of them, compiled as guests are.
fn write_package(project: &Project, package: &Path, sources: &[(String, String)]) -> Result<()> {
    let write = |name: &str, text: &str| {
        // What has not changed is not compiled again.
        guests::write_if_changed(&package.join(name), text.as_bytes())
    };
    let guests = project.root.join("guests");
    let workspace = fs::read_to_string(guests.join("Cargo.toml"))?;
    let profile = workspace.find("[profile.release]").context("the guests have no profile")?;
    let path = |name: &str| {
        // A text is the same in JSON and in TOML.
        serde_json::Value::from(guests.join(name).display().to_string()).to_string()
    };
    let mut manifest = format!(
        "[package]\nname = \"page-guests\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [workspace]\n\n[lib]\npath = \"lib.rs\"\n\n[dependencies]\n\
         kumiki-sdk = {{ path = {} }}\nkumiki-formula-sdk = {{ path = {} }}\n\n",
        path("sdk"),
        path("formula-sdk")
    );
    for (name, source) in sources {
        manifest.push_str(&format!(
            "[[example]]\nname = \"{name}\"\npath = \"{name}.rs\"\ncrate-type = [\"cdylib\"]\n\n"
        ));
        write(&format!("{name}.rs"), source)?;
    }
    manifest.push_str(&workspace[profile..]);
    write("Cargo.toml", &manifest)?;
    write("lib.rs", "//! Nothing: the guests are the examples.\n")?;
    // The releases that the guests have.
    fs::copy(guests.join("Cargo.lock"), package.join("Cargo.lock"))?;
    Ok(())
}

/// `docs/start/first-run.md` as a name of a Rust crate.
fn name_of(path: &str) -> String {
    let path = path.strip_prefix("docs/").unwrap_or(path);
    let path = path.strip_suffix(".md").unwrap_or(path).to_lowercase();
    let part = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    path.chars().map(part).collect()
}

/// The blocks of Rust that are whole guests: their text between the fences.
fn whole_guests(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        match &mut block {
            None if line.starts_with("```rust") && !line.contains("ignore") => {
                block = Some(String::new());
            }
            None => {}
            Some(text) if line.starts_with("```") => {
                if WHOLE.iter().any(|whole| text.contains(whole)) {
                    found.push(std::mem::take(text));
                }
                block = None;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_guests_are_found() {
        let page = "```rust\nfn a() {}\n```\n```console\n$ impl Strategy for X\n```\n\
                    ```rust,component=a.wasm\nimpl Strategy for A {}\n```\n\
                    ```rust,ignore\nimpl Strategy for B {}\n```\n";
        assert_eq!(whole_guests(page), ["impl Strategy for A {}\n"]);
    }

    #[test]
    fn a_page_names_its_guests() {
        assert_eq!(name_of("docs/start/first-run.md"), "start_first_run");
        assert_eq!(name_of("README.ja.md"), "readme_ja");
    }
}
