//! Rules about who may depend on what, read from the manifests.

use std::collections::BTreeSet;
use std::process::Command;

use toml::{Table, Value};

use super::Violation;
use crate::files::File;

/// The crates of host/ from the top to the bottom; arrows only point to a lower layer.
pub const LAYERS: [&[&str]; 9] = [
    &["cli"],
    &["engine"],
    &["live", "sim", "sweep", "update"],
    &["orders", "replay", "ranking"],
    &["venues", "trader", "web-console"],
    &["results", "pricestore"],
    &["exchange", "ipc", "marketdata", "sandbox"],
    &["atomic-file", "http-client", "keys"],
    &["domain"],
];

/// Crates that speak `domain`: messages of the wire are made above them.
pub const WITHOUT_IPC: [&str; 3] = ["host/live", "host/trader", "host/venues"];

/// Who may depend on DuckDB: the crates of the price store, the tests, which write databases as other
/// programs do, and the benches, which measure against plain statements.
pub const DATABASE_CRATES: [&str; 5] =
    ["host/pricestore", "host/ranking", "host/update", "tests", "tests/bench"];

/// Where a guest could get the time or randomness from.
const NOT_FOR_GUESTS: [&str; 10] = [
    "chrono",
    "fastrand",
    "getrandom",
    "instant",
    "oorandom",
    "rand",
    "rand_core",
    "time",
    "uuid",
    "wasi",
];

/// The packages that a package of ours is compiled of, each with its version and features.
///
/// # Errors
/// When cargo cannot tell.
pub fn compiled_for(package: &str, arguments: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(crate::workspace_root()).args(["tree", "--locked", "--package", package]);
    cargo.args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let told = cargo.args(arguments).output()?;
    anyhow::ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let lines = String::from_utf8(told.stdout)?;
    Ok(lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// The names of the packages that a manifest depends on: for running, building and testing, on
/// every system, under their true names. A manifest that cannot be read counts as having none;
/// cargo refuses it anyway.
pub fn dependencies(manifest: &File) -> Vec<String> {
    let Ok(table) = manifest.text.parse::<Table>() else {
        return Vec::new();
    };
    let mut names = Vec::new();
    collect(&table, &mut names);
    let systems = table.get("target").and_then(Value::as_table);
    for system in systems.into_iter().flat_map(Table::values).filter_map(Value::as_table) {
        collect(system, &mut names);
    }
    names.sort();
    names.dedup();
    names
}

fn collect(table: &Table, names: &mut Vec<String>) {
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let entries = table.get(section).and_then(Value::as_table);
        for (name, value) in entries.into_iter().flatten() {
            let renamed = value.get("package").and_then(Value::as_str);
            names.push(renamed.unwrap_or(name).to_owned());
        }
    }
}

fn is_manifest(file: &File) -> bool {
    file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml")
}

/// The crate of host/ whose manifest this is.
fn host_crate(file: &File) -> Option<&str> {
    let name = file.path.strip_prefix("host/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// Only the packages in `folders` depend on `package` or on one whose name goes on with `-`.
pub fn only_in(files: &[File], package: &str, folders: &[&str]) -> Vec<Violation> {
    let hit = |name: &str| {
        name.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_manifest(file)) {
        if folders.iter().any(|folder| file.is_below(folder)) {
            continue;
        }
        for name in dependencies(file).iter().filter(|name| hit(name)) {
            let what = format!("depends on {name}; only {} may", folders.join(", "));
            found.push(Violation::near(file, name, what));
        }
    }
    found
}

/// No crate of host/ depends on one of its own or of a higher layer.
pub fn arrows_point_downwards(files: &[File]) -> Vec<Violation> {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let mut found = Vec::new();
    for file in files {
        let Some(name) = host_crate(file) else {
            continue;
        };
        let Some(own) = layer(name) else {
            found.push(Violation::at(
                file,
                0,
                format!("{name} has no layer; give it one in LAYERS"),
            ));
            continue;
        };
        for other in dependencies(file) {
            if layer(&other).is_some_and(|layer| layer <= own) {
                let what = format!("{name} depends on {other}, which is not below it");
                found.push(Violation::near(file, &other, what));
            }
        }
    }
    found
}

/// None of the packages in `folders` depends on `package`.
pub fn never_in(files: &[File], package: &str, folders: &[&str]) -> Vec<Violation> {
    let inside = |file: &&File| folders.iter().any(|folder| file.is_below(folder));
    let hits = files.iter().filter(|file| is_manifest(file)).filter(inside);
    let hits = hits.filter(|file| dependencies(file).iter().any(|name| name == package));
    hits.map(|file| Violation::near(file, package, format!("depends on {package}"))).collect()
}

/// Every package of the root workspace but the sandbox takes the workspace's lints, which refuse
/// unsafe code.
pub fn lints_are_inherited(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_manifest(file)) {
        if file.path == "Cargo.toml" {
            let refused = ["forbid", "deny"].map(|level| format!("unsafe_code = \"{level}\""));
            if !refused.iter().any(|line| file.text.contains(line)) {
                found.push(Violation::near(
                    file,
                    "[workspace.lints",
                    "does not refuse unsafe code",
                ));
            }
        } else if !file.is_below("guests") && !file.is_below("host/sandbox") {
            let table = file.text.parse::<Table>().unwrap_or_default();
            let lints = table.get("lints").and_then(|lints| lints.get("workspace"));
            if lints.and_then(Value::as_bool) != Some(true) {
                let what = "does not say `[lints] workspace = true`";
                found.push(Violation::near(file, "[lints", what));
            }
        }
    }
    found
}

/// No guest depends on a package that knows the time or makes random numbers.
pub fn guests_need_nothing(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_manifest(file) && file.is_below("guests")) {
        for name in dependencies(file) {
            if NOT_FOR_GUESTS.contains(&name.as_str()) {
                found.push(Violation::near(file, &name, format!("a guest depends on {name}")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str, text: &str) -> Vec<File> {
        vec![File::new(path, text)]
    }

    #[test]
    fn dependencies_of_all_kinds_are_seen() {
        let file = File::new(
            "host/x/Cargo.toml",
            "[dependencies]\na = \"1\"\nb = { package = \"true-name\", version = \"1\" }\n\
             c.workspace = true\n[dev-dependencies]\nd = \"1\"\n[build-dependencies]\ne = \"1\"\n\
             [target.'cfg(unix)'.dependencies]\nf = \"1\"\n",
        );
        assert_eq!(dependencies(&file), ["a", "c", "d", "e", "f", "true-name"]);
    }

    #[test]
    fn a_dependency_can_be_kept_to_one_crate() {
        for name in ["wasmtime", "wasmtime-environ", "x = { package = \"wasmtime\" } #"] {
            let text = match name.split_once(" = ") {
                Some(_) => format!("[dependencies]\n{name}\n"),
                None => format!("[dependencies]\n{name}.workspace = true\n"),
            };
            let found =
                only_in(&manifest("host/cli/Cargo.toml", &text), "wasmtime", &["host/sandbox"]);
            assert_eq!((found.len(), found[0].line), (1, 2), "{text}");
            let sandbox = manifest("host/sandbox/Cargo.toml", &text);
            assert!(only_in(&sandbox, "wasmtime", &["host/sandbox"]).is_empty());
        }
        let other = manifest("host/cli/Cargo.toml", "[dependencies]\nwasmtimes = \"1\"\n");
        assert!(only_in(&other, "wasmtime", &["host/sandbox"]).is_empty());
    }

    #[test]
    fn arrows_upwards_and_sideways_are_seen() {
        for (name, other) in [("domain", "cli"), ("sandbox", "exchange"), ("replay", "sweep")] {
            let text = format!("[dev-dependencies]\n{other}.workspace = true\n");
            let files = manifest(&format!("host/{name}/Cargo.toml"), &text);
            let found = arrows_point_downwards(&files);
            assert_eq!((found.len(), found[0].line), (1, 2), "{name} -> {other}");
        }
        let down = manifest("host/cli/Cargo.toml", "[dependencies]\nreplay.workspace = true\n");
        assert!(arrows_point_downwards(&down).is_empty());
        assert_eq!(arrows_point_downwards(&manifest("host/new/Cargo.toml", "")).len(), 1);
    }

    #[test]
    fn a_dependency_can_be_refused_to_a_crate() {
        let text = "[dependencies]\nipc.workspace = true\n";
        let found = never_in(&manifest("host/trader/Cargo.toml", text), "ipc", &WITHOUT_IPC);
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert!(
            never_in(&manifest("host/engine/Cargo.toml", text), "ipc", &WITHOUT_IPC).is_empty()
        );
    }

    #[test]
    fn own_lints_are_seen() {
        let own = "[lints.rust]\nunsafe_code = \"allow\"\n";
        assert_eq!(lints_are_inherited(&manifest("host/cli/Cargo.toml", own)).len(), 1);
        assert_eq!(lints_are_inherited(&manifest("xtask/Cargo.toml", "")).len(), 1);
        assert_eq!(lints_are_inherited(&manifest("Cargo.toml", "[workspace.lints.rust]")).len(), 1);
        assert!(lints_are_inherited(&manifest("host/sandbox/Cargo.toml", own)).is_empty());
        let inherited = manifest("host/cli/Cargo.toml", "[lints]\nworkspace = true\n");
        assert!(lints_are_inherited(&inherited).is_empty());
    }

    #[test]
    fn guests_with_a_clock_are_seen() {
        let text = "[dependencies]\ngetrandom = \"0.3\"\n";
        assert_eq!(guests_need_nothing(&manifest("guests/sdk/Cargo.toml", text)).len(), 1);
        assert!(guests_need_nothing(&manifest("host/cli/Cargo.toml", text)).is_empty());
    }
}
