//! Builds the guests' workspace and writes its components.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::project::Project;
use crate::steps::Stopwatch;
use crate::toolchain::{self, TARGET, Toolchain};
use crate::{component, paths, process};

/// A guest: a package of the guests' workspace that becomes a component.
#[derive(Debug, PartialEq, Eq)]
struct Guest {
    /// The package, and the component's file name.
    name: String,
    /// The file name of its core module, without an extension.
    module: String,
    /// The folder under `<target>/release` that its component goes to.
    folder: String,
}

/// Compiles all guests and writes those components that changed.
pub(crate) fn build(project: &Project) -> Result<()> {
    let watch = Stopwatch::start();
    let guests = read_guests(&project.guests_metadata()?);
    if guests.is_empty() {
        bail!("the workspace in guests/ has no package with crate-type `cdylib`");
    }
    let toolchain = toolchain::find()?;
    eprintln!("building {} guests with {}", guests.len(), toolchain.description);
    compile(project, &toolchain, &project.guests_manifest(), &[])?;
    let modules = project.guests_target().join(TARGET).join("release");
    let mut changed = 0;
    for guest in &guests {
        let written = write_component(guest, &modules, &project.release())
            .with_context(|| format!("the guest {} cannot become a component", guest.name))?;
        changed += usize::from(written);
    }
    let total = guests.len();
    eprintln!("{total} components, {changed} of them changed, in {}", watch.shown());
    Ok(())
}

/// Compiles packages for the sandbox: those of a manifest, or what more arguments name of them.
pub(crate) fn compile(
    project: &Project,
    toolchain: &Toolchain,
    manifest: &Path,
    more: &[&str],
) -> Result<()> {
    let mut command = project.cargo();
    // Flags for the host's processor or linker would break the guests.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.envs(toolchain.variables.iter().map(|(name, value)| (name, value)));
    command.args(["build", "--release", "--target", TARGET]).args(more);
    command.arg("--manifest-path").arg(manifest);
    command.arg("--target-dir").arg(project.guests_target());
    command.args(&toolchain.arguments);
    command.arg("--config").arg(without_machine_paths(project, toolchain));
    process::run(&mut command)
}

/// A component is known by its digest, which paths of this machine would change.
fn without_machine_paths(project: &Project, toolchain: &Toolchain) -> String {
    let library = toolchain.sysroot.join("lib/rustlib/src/rust");
    // Debian's source package puts a link there, and paths are recorded behind the link.
    let source = library.canonicalize().ok();
    let libraries = [Some(library), source].into_iter().flatten();
    let libraries: Vec<_> = libraries.map(|folder| (folder, "/rustc")).collect();
    let flags = paths::rustc_flags(&paths::renamed(project, &libraries));
    // An array of strings is the same in JSON and in TOML.
    format!("target.{TARGET}.rustflags={}", Value::from(flags))
}

/// Lints the guests' workspace natively.
pub(crate) fn lint(project: &Project) -> Result<()> {
    let mut command = natively(project, "clippy");
    process::run(command.args(["--all-targets", "--", "--deny", "warnings"]))
}

/// Runs all tests of the guests' workspace natively.
pub(crate) fn test(project: &Project) -> Result<(String, Result<()>)> {
    process::run_and_read(natively(project, "test").args(["--no-fail-fast", "--", "--show-output"]))
}

/// Without optimizing: whole-program optimization of thirty test programs took minutes, their tests none.
fn natively(project: &Project, task: &str) -> std::process::Command {
    let mut command = project.cargo();
    command.args([task, "--workspace"]);
    command.arg("--manifest-path").arg(project.guests_manifest());
    command.arg("--target-dir").arg(project.guests_target());
    command
}

fn read_guests(metadata: &Value) -> Vec<Guest> {
    let folder = Path::new(metadata["workspace_root"].as_str().unwrap_or(""));
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut guests: Vec<Guest> = packages.filter_map(|one| read_guest(one, folder)).collect();
    guests.sort_by(|a, b| a.name.cmp(&b.name));
    guests
}

fn read_guest(package: &Value, folder: &Path) -> Option<Guest> {
    let has = |value: &Value, text: &str| {
        value.as_array().into_iter().flatten().any(|one| one.as_str() == Some(text))
    };
    let mut targets = package["targets"].as_array().into_iter().flatten();
    let library = targets.find(|target| has(&target["crate_types"], "cdylib"))?;
    let manifest = Path::new(package["manifest_path"].as_str()?);
    // What lies outside of guests/ and belongs to its workspace are the examples.
    let kind = match manifest.strip_prefix(folder) {
        Ok(inside) => inside.components().next()?.as_os_str().to_str()?,
        Err(_) => "examples",
    };
    Some(Guest {
        name: package["name"].as_str()?.to_owned(),
        module: library["name"].as_str()?.replace('-', "_"),
        folder: if kind == "test" { "test-guests".to_owned() } else { kind.to_owned() },
    })
}

/// Writes a guest's component unless the same bytes are there already; tells whether it did.
fn write_component(guest: &Guest, modules: &Path, release: &Path) -> Result<bool> {
    let module = modules.join(format!("{}.wasm", guest.module));
    let module = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    write_if_changed(
        &release.join(&guest.folder).join(format!("{}.wasm", guest.name)),
        &component::from_module(&module)?,
    )
}

/// Writes a file unless it has these bytes already; tells whether it did.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A program that loads it at this moment sees the old component or the new one.
    let unfinished = path.with_extension(format!("wasm.{}", std::process::id()));
    fs::write(&unfinished, bytes)
        .and_then(|()| fs::rename(&unfinished, path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, manifest: &str, kind: &str) -> Value {
        let library = json!({"name": name.replace('-', "_"), "crate_types": [kind]});
        json!({"name": name, "manifest_path": manifest, "targets": [library]})
    }

    #[test]
    fn guests_are_the_packages_that_make_modules() {
        let metadata = json!({"workspace_root": "/p/guests", "packages": [
            package("sma-cross", "/p/guests/strategies/sma-cross/Cargo.toml", "cdylib"),
            package("kumiki-sdk", "/p/guests/sdk/Cargo.toml", "lib"),
            package("kumiki-formula-sdk", "/p/guests/formula-sdk/Cargo.toml", "lib"),
            package("limit-distance", "/p/guests/formulas/limit-distance/Cargo.toml", "cdylib"),
            package("web-broker-spec", "/p/guests/dialects/web-broker-spec/Cargo.toml", "cdylib"),
            package("loops-forever", "/p/guests/test/loops-forever/Cargo.toml", "cdylib"),
        ]});
        let guests = read_guests(&metadata);
        let places: Vec<_> = guests
            .iter()
            .map(|guest| (guest.folder.as_str(), guest.name.as_str(), guest.module.as_str()))
            .collect();
        assert_eq!(
            places,
            [
                ("formulas", "limit-distance", "limit_distance"),
                ("test-guests", "loops-forever", "loops_forever"),
                ("strategies", "sma-cross", "sma_cross"),
                ("dialects", "web-broker-spec", "web_broker_spec"),
            ]
        );
    }

    #[test]
    fn the_same_bytes_are_not_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("strategies").join("a.wasm");
        assert!(write_if_changed(&path, b"one").expect("it can be written"));
        assert!(!write_if_changed(&path, b"one").expect("it can be read"));
        assert!(write_if_changed(&path, b"two").expect("it can be written"));
        assert_eq!(fs::read(&path).expect("it is there"), b"two");
        let files = path.parent().expect("a folder").read_dir().expect("a folder").count();
        assert_eq!(files, 1, "nothing unfinished stays behind");
    }
}
