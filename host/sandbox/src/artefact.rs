//! A component's file, before it is compiled: read, counted, made a component, identified, its imports checked.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use domain::fault::FaultKind;
use domain::text::on_one_line;
use sha2::{Digest, Sha256};
use wasmparser::{Parser, Payload};

use crate::contract::{self, Belonging, Contract};
use crate::error::SandboxError;
use crate::extent::{self, TooMuch};
use crate::version::full_name;

/// What every WebAssembly file begins with.
const MAGIC: &[u8] = b"\0asm";
/// Characters of an export's name that an error tells.
const EXPORT_SHOWN: usize = 128;

/// A component's bytes and identity.
#[derive(Debug, Clone)]
pub struct Artefact {
    name: String,
    sha256: String,
    component: Vec<u8>,
    imports: Vec<String>,
    /// The version of all its interfaces of the contract; none when they differ.
    version: Option<String>,
}

impl Artefact {
    /// Reads a strategy's `.wasm` file: a component, or a core module with the contract's description
    /// inside.
    ///
    /// # Errors
    /// When it cannot be read, is too large, is no WebAssembly, has too many parts or imports something foreign.
    pub fn read(path: &Path, bytes_max: u64) -> Result<Self, SandboxError> {
        Self::read_as(&contract::STRATEGY, path, bytes_max)
    }

    /// The same, from bytes in memory.
    ///
    /// # Errors
    /// When they are no WebAssembly, have too many parts or import something foreign.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, SandboxError> {
        Self::from_bytes_as(&contract::STRATEGY, name, bytes)
    }

    pub(crate) fn read_as(
        contract: &Contract,
        path: &Path,
        bytes_max: u64,
    ) -> Result<Self, SandboxError> {
        let kind = contract.kind;
        let read_error = |source| SandboxError::Read { kind, path: path.to_owned(), source };
        let file = File::open(path).map_err(read_error)?;
        let found = file.metadata().map_err(read_error)?.len();
        let path_owned = || path.to_owned();
        let too_large =
            |found| SandboxError::TooLarge { kind, path: path_owned(), found, allowed: bytes_max };
        if found > bytes_max {
            return Err(too_large(found));
        }
        let mut bytes = Vec::new();
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(read_error)?;
        if bytes.len() as u64 > bytes_max {
            return Err(too_large(bytes.len() as u64));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::from_bytes_as(contract, &name, bytes)
    }

    pub(crate) fn from_bytes_as(
        contract: &Contract,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Self, SandboxError> {
        if !bytes.starts_with(MAGIC) {
            return Err(SandboxError::NotWasm {
                name: name.to_owned(),
                reason: "it does not begin with `\\0asm`".to_owned(),
            });
        }
        let sha256 = sha256(&bytes);
        let check_extent = |bytes: &[u8]| match extent::too_much(bytes) {
            Ok(None) => Ok(()),
            Ok(Some(TooMuch { what, used, allowed })) => {
                Err(contract.fault(name, &sha256, FaultKind::Limit { what, used, allowed }))
            }
            Err(error) => Err(not_wasm(name, &error)),
        };
        // Before anything else: whatever reads all of it takes a thousand times its bytes.
        check_extent(&bytes)?;
        let component = if Parser::is_component(&bytes) {
            bytes
        } else {
            let component = componentize(contract, name, &bytes)?;
            check_extent(&component)?;
            component
        };
        if contract.refuses_quotes {
            refuse_quotes(name, &component)?;
        }
        let names = top_level_names(name, &component)?;
        let version = contract_version(contract, name, &names)?;
        Ok(Self { name: name.to_owned(), sha256, component, imports: names.imports, version })
    }

    /// The file's name without its ending.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of the file as it was given, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The interfaces that it imports.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// The version of its interfaces, where all of them have the same.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The component's bytes.
    pub(crate) fn component(&self) -> &[u8] {
        &self.component
    }
}

fn foreign_import(contract: &Contract, name: &str, import: &str) -> SandboxError {
    SandboxError::ForeignImport {
        kind: contract.kind,
        name: name.to_owned(),
        import: import.to_owned(),
        allowed: contract.imports_shown,
        hint: if import.starts_with("wasi") {
            "; rebuild it without WASI (componentize-py: `--stub-wasi`; componentize-js: \
             `disableFeatures` with stdio, random, clocks, http and fetch-event; C and C++: a reactor \
             without files and streams)"
        } else {
            ""
        },
    }
}

/// The SHA-256 of a component's bytes, by which it is known, in small hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn componentize(contract: &Contract, name: &str, module: &[u8]) -> Result<Vec<u8>, SandboxError> {
    let mut described = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| not_wasm(name, &error))? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(|error| not_wasm(name, &error))?;
                    // Modules built for the contract name an interface; others a bare module.
                    let is_ours = import.module.split_once('/').is_some_and(|(package, _)| {
                        package.trim_start_matches("[export]") == contract.package
                    });
                    if !is_ours && !import.module.starts_with('[') {
                        let import = format!("{}.{}", import.module, import.name);
                        return Err(foreign_import(contract, name, &import));
                    }
                }
            }
            Payload::CustomSection(section) => {
                described |= section.name().starts_with("component-type");
            }
            _ => {}
        }
    }
    if !described {
        return Err(SandboxError::NotAComponent { name: name.to_owned() });
    }
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| SandboxError::NotEncoded {
            name: name.to_owned(),
            reason: format!("{error:#}"),
        })
}

fn not_wasm(name: &str, error: &dyn std::fmt::Display) -> SandboxError {
    SandboxError::NotWasm { name: name.to_owned(), reason: error.to_string() }
}

/// The names of what a component itself imports and exports; those of components inside are not
/// among them.
#[derive(Default)]
struct Names {
    imports: Vec<String>,
    exports: Vec<String>,
}

fn top_level_names(name: &str, component: &[u8]) -> Result<Names, SandboxError> {
    let mut depth = 0_usize;
    let mut names = Names::default();
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|error| not_wasm(name, &error))? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(imports) if depth == 0 => {
                for import in imports {
                    let import = import.map_err(|error| not_wasm(name, &error))?;
                    names.imports.push(full_name(&import.name));
                }
            }
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    let export = export.map_err(|error| not_wasm(name, &error))?;
                    names.exports.push(full_name(&export.name));
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Refuses what is named like a callback for order books or quotes (specification 2, "Strategy compatibility"): nothing
/// would ever call it. Components inside are looked into, and the program's own exports.
fn refuse_quotes(name: &str, component: &[u8]) -> Result<(), SandboxError> {
    let refuse = |export: &str| match is_of_quotes(export) {
        true => Err(SandboxError::QuoteCallback {
            name: name.to_owned(),
            export: on_one_line(export).chars().take(EXPORT_SHOWN).collect(),
        }),
        false => Ok(()),
    };
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|error| not_wasm(name, &error))? {
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    let export = export.map_err(|error| not_wasm(name, &error))?;
                    refuse(&full_name(&export.name))?;
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    refuse(export.map_err(|error| not_wasm(name, &error))?.name)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether an export is named so, in any language's manner: `on-quote-tick`, `on_order_book_deltas`, `onQuoteTick`.
fn is_of_quotes(export: &str) -> bool {
    let function = export.rsplit('#').next().unwrap_or_default();
    let unversioned = function.split('@').next().unwrap_or_default();
    let own = unversioned.rsplit(['/', '.', ':']).next().unwrap_or_default();
    let letters = own.chars().filter(|letter| !matches!(letter, '-' | '_'));
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    ["onorderbook", "onbook", "ondepth", "onquote"].iter().any(|name| letters.starts_with(name))
}

/// The one version that all interfaces of the contract have, if there is one.
fn contract_version(
    contract: &Contract,
    name: &str,
    names: &Names,
) -> Result<Option<String>, SandboxError> {
    let other = |interface: &str| SandboxError::OtherVersion {
        kind: contract.kind,
        name: name.to_owned(),
        interface: interface.to_owned(),
        version: contract.version,
    };
    let mut versions = BTreeSet::new();
    for import in &names.imports {
        match contract.judge_import(import) {
            Belonging::Fits(interface) => drop(versions.insert(interface.version)),
            Belonging::OtherVersion => return Err(other(import)),
            Belonging::Foreign => return Err(foreign_import(contract, name, import)),
        }
    }
    for export in &names.exports {
        match contract.judge_export(export) {
            Belonging::Fits(interface) => drop(versions.insert(interface.version)),
            Belonging::OtherVersion => return Err(other(export)),
            // What else it exports is its own affair: nothing calls it. Callbacks of quotes are refused before.
            Belonging::Foreign => {}
        }
    }
    match versions.len() {
        0 | 1 => Ok(Some(versions.first().unwrap_or(&contract.version).to_string())),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::FORMULA;

    fn message(text: &str) -> String {
        let bytes = wat::parse_str(text).unwrap();
        Artefact::from_bytes("guest", bytes).unwrap_err().to_string()
    }

    #[test]
    fn foreign_imports_are_refused_by_name() {
        let component = r#"(component (import "wasi:clocks/wall-clock@0.2.9" (instance)))"#;
        assert_eq!(
            message(component),
            "guest imports `wasi:clocks/wall-clock@0.2.9`; a strategy may import only \
             kumiki:strategy/{actions, log, parameters, portfolio, aggressor}@1.0.0. It gets no \
             clock, no randomness, no files and no network; rebuild it without WASI \
             (componentize-py: `--stub-wasi`; componentize-js: `disableFeatures` with stdio, \
             random, clocks, http and fetch-event; C and C++: a reactor without files and streams)"
        );
        let module = r#"(module (import "env" "now" (func (result i64))))"#;
        assert!(message(module).starts_with("guest imports `env.now`; a strategy may import only"));
    }

    #[test]
    fn callbacks_of_order_books_and_quotes_are_refused_by_name() {
        let module = |name: &str| format!(r#"(component (core module (func (export "{name}"))))"#);
        for name in [
            "on-quote-tick",
            "on_order_book_deltas",
            "onOrderBook",
            "kumiki:strategy/guest@1.0.0#on-quote",
            "acme:market/on-quote-tick@1.0.0",
        ] {
            let told = message(&module(name));
            let begin =
                format!("guest exports `{name}`; strategies get no order books and no quotes");
            assert!(told.starts_with(&begin), "{told}");
        }
        let instance = r#"(component (instance $i) (export "on-quote-tick" (instance $i)))"#;
        assert!(message(instance).starts_with("guest exports `on-quote-tick`; "));
        let inside = format!("(component {})", module("on-order-book"));
        assert!(message(&inside).starts_with("guest exports `on-order-book`; "));
        for name in
            ["on-trade", "kumiki:strategy/guest@1.0.0#on-order-events", "non-quote", "quote"]
        {
            let bytes = wat::parse_str(module(name)).unwrap();
            assert!(Artefact::from_bytes("guest", bytes).is_ok(), "{name}");
        }
        // Formulas and dialects have no events.
        let bytes = wat::parse_str(module("on-quote")).unwrap();
        assert!(Artefact::from_bytes_as(&FORMULA, "guest", bytes).is_ok());
    }

    #[test]
    fn another_major_version_is_refused_by_name() {
        let import = r#"(component (import "kumiki:strategy/log@2.0.0" (instance)))"#;
        assert_eq!(
            message(import),
            "guest is built for `kumiki:strategy/log@2.0.0`; this Kumiki runs strategies of every version \
             1.x. Build it for that, or take a newer Kumiki"
        );
        let export =
            r#"(component (instance $i) (export "kumiki:strategy/guest@0.9.0" (instance $i)))"#;
        assert!(message(export).starts_with("guest is built for `kumiki:strategy/guest@0.9.0`; "));
    }

    #[test]
    fn one_version_of_all_interfaces_is_told() {
        let version = |text: &str| {
            let artefact = Artefact::from_bytes("guest", wat::parse_str(text).unwrap()).unwrap();
            artefact.version().map(str::to_owned)
        };
        let import = |name: &str, version: &str| {
            format!(r#"(import "kumiki:strategy/{name}@{version}" (instance))"#)
        };
        let same = import("log", "1.0.1") + &import("actions", "1.0.1");
        assert_eq!(version(&format!("(component {same})")).as_deref(), Some("1.0.1"));
        let mixed = import("log", "1.0.1") + &import("actions", "1.2.0");
        assert_eq!(version(&format!("(component {mixed})")), None);
        assert_eq!(version("(component)").as_deref(), Some("1.0.0"));
    }

    #[test]
    fn a_core_module_without_a_contract_is_refused() {
        assert!(
            message("(module)")
                .starts_with("guest is a core module that does not say which contract it follows")
        );
    }

    #[test]
    fn a_core_module_that_cannot_be_made_a_component_is_refused_with_the_reason() {
        // It says something of its contract, but nothing that can be read.
        let described = message(r#"(module (@custom "component-type:guest" "none"))"#);
        let begin = "guest is a core module that cannot be made a component: ";
        assert!(described.starts_with(begin), "{described}");
        assert!(!described.contains("does not say"), "{described}");
    }

    #[test]
    fn too_many_parts_are_told_before_all_else() {
        let many = format!("(module {})", "(type (func))".repeat(65_537));
        let told = message(&many);
        assert!(told.contains("types, imports, exports and the like; 65536 are allowed"), "{told}");
    }

    #[test]
    fn other_bytes_are_refused() {
        let error = Artefact::from_bytes("guest", b"#!/bin/sh".to_vec()).unwrap_err();
        let told = "guest is not WebAssembly: it does not begin with `\\0asm`";
        assert_eq!(error.to_string(), told);
    }

    #[test]
    fn the_size_limit_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.wasm");
        std::fs::write(&path, [0; 100]).unwrap();
        let error = Artefact::read(&path, 99).unwrap_err().to_string();
        assert!(error.ends_with("large.wasm has 100 bytes; 99 are allowed"), "{error}");
    }

    #[test]
    fn imports_of_nested_components_do_not_count() {
        let nested = r#"(component (component (import "a:b/c" (instance))))"#;
        let bytes = wat::parse_str(nested).unwrap();
        assert!(Artefact::from_bytes("guest", bytes).unwrap().imports().is_empty());
    }

    #[test]
    fn a_formula_may_import_nothing() {
        let component = r#"(component (import "kumiki:strategy/log@1.0.0" (instance)))"#;
        let bytes = wat::parse_str(component).unwrap();
        let error = Artefact::from_bytes_as(&FORMULA, "mine", bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "mine imports `kumiki:strategy/log@1.0.0`; a formula may import nothing. It gets no \
             clock, no randomness, no files and no network"
        );
    }
}
