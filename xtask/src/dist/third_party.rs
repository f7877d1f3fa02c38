//! The licences of the packages that the program is compiled of: whoever gets the program gets them too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;
use crate::project::Project;

/// What files with licences begin with.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
/// Bytes of a file that may be a licence.
const BYTES_MAX: u64 = 200_000;
/// Folders below a package that are looked into: C code that it brings along has licences of its own.
const DEPTH_MAX: usize = 3;

/// One text with the licences of the packages that the program is compiled of, and of DuckDB's library.
pub(super) fn licences(project: &Project, host: &str, database: Option<String>) -> Result<String> {
    let mut command = project.cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
    let answer = process::ask(command.arg(host));
    if !answer.ok {
        bail!("cargo cannot list the program's packages: {}", answer.last_line());
    }
    let metadata: Value =
        serde_json::from_str(&answer.out).context("cargo's answer is not JSON")?;
    let packages = compiled(&metadata, "cli").context("cargo does not list the package cli")?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        let licence = package["license"].as_str().unwrap_or("see below");
        list.push_str(&format!("{name}: {licence}\n"));
        if let Some(folder) = folder(package) {
            for text in texts_in(folder, DEPTH_MAX)? {
                texts.entry(text).or_default().insert(name.clone());
            }
        }
    }
    if let Some(licence) = database {
        list.push_str("DuckDB, the library beside it: MIT\n");
        texts.entry(licence.trim().to_owned()).or_default().insert("DuckDB".to_owned());
    }
    let mut text = format!(
        "Kumiki is licensed under MIT or Apache-2.0, at your choice. The program is compiled of the \
         packages below too.\n\n{list}"
    );
    for (licence, names) in texts {
        let names: Vec<String> = names.into_iter().collect();
        let rule = "=".repeat(80);
        text.push_str(&format!("\n{rule}\n{}\n{rule}\n\n{licence}\n", names.join(", ")));
    }
    Ok(text)
}

fn folder(package: &Value) -> Option<&Path> {
    Path::new(package["manifest_path"].as_str()?).parent()
}

/// The packages of others that one of ours is compiled of, with all that they need, by name and version.
fn compiled<'a>(metadata: &'a Value, ours: &str) -> Option<Vec<&'a Value>> {
    let packages = metadata["packages"].as_array()?;
    let nodes = metadata["resolve"]["nodes"].as_array()?;
    let by_id =
        |list: &'a [Value], id: &str| list.iter().find(|one| one["id"].as_str() == Some(id));
    let first = packages.iter().find(|package| package["name"].as_str() == Some(ours))?;
    let mut open = vec![first["id"].as_str()?];
    let mut seen: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for dependency in by_id(nodes, id)?["deps"].as_array()? {
            // What only tests or build scripts need is in no program.
            let mut kinds = dependency["dep_kinds"].as_array()?.iter();
            let id = dependency["pkg"].as_str()?;
            if kinds.any(|kind| kind["kind"].is_null()) && seen.insert(id) {
                open.push(id);
            }
        }
    }
    let found = seen.into_iter().filter_map(|id| by_id(packages, id));
    let mut found: Vec<&Value> = found.filter(|package| !package["source"].is_null()).collect();
    found.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    Some(found)
}

fn texts_in(folder: &Path, depth: usize) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let about = entry.metadata()?;
        if about.is_dir() && depth > 0 {
            found.extend(texts_in(&entry.path(), depth - 1)?);
        }
        let is_licence =
            NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".RS");
        if about.is_file() && about.len() <= BYTES_MAX && is_licence {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).replace('\r', "");
            found.insert(text.trim().to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_compiled_in_is_listed_and_nothing_else() {
        let package =
            |name: &str, source: Value| json!({"id": name, "name": name, "source": source});
        let dependency =
            |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let node = |name: &str, deps: Vec<Value>| json!({"id": name, "deps": deps});
        let metadata = json!({
            "packages": [
                package("cli", Value::Null), package("ours", Value::Null), package("z", json!("r")),
                package("a", json!("r")), package("build", json!("r")), package("dev", json!("r")),
            ],
            "resolve": {"nodes": [
                node("cli", vec![
                    dependency("ours", Value::Null), dependency("build", json!("build")),
                ]),
                node("ours", vec![dependency("z", Value::Null), dependency("dev", json!("dev"))]),
                node("z", vec![dependency("a", Value::Null)]), node("a", vec![]),
                node("build", vec![]), node("dev", vec![]),
            ]},
        });
        let found = compiled(&metadata, "cli").expect("it is whole");
        let names: Vec<_> = found.iter().map(|package| package["name"].as_str()).collect();
        assert_eq!(names, [Some("a"), Some("z")]);
        assert!(compiled(&metadata, "none").is_none());
    }

    #[test]
    fn licences_are_found_where_packages_have_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("vendor/c/code");
        fs::create_dir_all(&deep).expect("a folder");
        for (name, text) in [
            ("LICENSE-MIT", "one\r\n"),
            ("vendor/c/COPYING", "two"),
            ("license.rs", "no"),
            ("README", "no"),
        ] {
            fs::write(folder.path().join(name), text).expect("it can be written");
        }
        fs::write(deep.join("NOTICE"), "x".repeat(1 + BYTES_MAX as usize))
            .expect("it can be written");
        let found = texts_in(folder.path(), DEPTH_MAX).expect("it can be read");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}
