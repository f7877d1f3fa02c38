//! Finds the program in a component and holds it against its contract.
//!
//! The host calls the core module inside a component itself (see [`crate::abi`]), so a strategy or a
//! formula is a component around one program, as the SDK, wit-bindgen and wasm-tools make it. The
//! wiring around it is validated, held against the contract's world, and then not needed any more.

use wasmparser::{Parser, Payload, TypeRef};
use wit_parser::{PackageId, Resolve, SourceMap};

use crate::contract::Contract;

/// A contract, parsed.
pub(crate) fn parsed(contract: &Contract) -> Result<(Resolve, PackageId), String> {
    let mut sources = SourceMap::default();
    for &(name, text) in contract.files {
        sources.push_str(name, text);
    }
    let mut resolve = Resolve::default();
    let group = sources.parse().map_err(|(_, error)| error.to_string())?;
    let package = resolve.push_group(group).map_err(|error| error.to_string())?;
    Ok((resolve, package))
}

/// Checks that the component is one of this contract.
pub(crate) fn check(contract: &Contract, component: &[u8]) -> Result<(), String> {
    let (resolve, package) = parsed(contract)?;
    let world = resolve
        .select_world(&[package], Some(contract.world))
        .map_err(|error| error.to_string())?;
    wit_component::targets(&resolve, world, component, false).map_err(|error| format!("{error:#}"))
}

/// The bytes of the one program inside a component.
///
/// Beside it stand modules that tie the knot between a program and its imports; they have no memory.
pub(crate) fn find<'a>(contract: &Contract, component: &'a [u8]) -> Result<&'a [u8], String> {
    let mut program = None;
    let mut programs = 0;
    for payload in Parser::new(0).parse_all(component) {
        let Payload::ModuleSection { unchecked_range: range, .. } =
            payload.map_err(|error| error.to_string())?
        else {
            continue;
        };
        let module = component
            .get(usize::try_from(range.start).unwrap_or(usize::MAX)..)
            .and_then(|rest| rest.get(..usize::try_from(range.end - range.start).ok()?))
            .ok_or("a module ends outside the component")?;
        let found = describe(contract, module).map_err(|error| error.to_string())?;
        programs += usize::from(found.has_memory || found.is_it);
        if found.is_it {
            program = Some(module);
        }
    }
    match (program, programs) {
        (Some(program), 1) => Ok(program),
        (None, _) => Err(format!("no module inside exports `{}`", contract.mark)),
        (Some(_), _) => Err(format!(
            "it is composed of {programs} programs; a {} is one, as the SDK, wit-bindgen and \
             `wasm-tools component new` make it",
            contract.kind
        )),
    }
}

/// What is of interest in a module.
#[derive(Default)]
struct Found {
    /// It has the contract's mark.
    is_it: bool,
    has_memory: bool,
}

fn describe(contract: &Contract, module: &[u8]) -> wasmparser::Result<Found> {
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ExportSection(exports) => {
                for export in exports {
                    found.is_it |= export?.name == contract.mark;
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    found.has_memory |= matches!(import?.ty, TypeRef::Memory(_));
                }
            }
            Payload::MemorySection(memories) => found.has_memory |= memories.count() > 0,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{FORMULA, STRATEGY as CONTRACT};

    const STRATEGY: &str = r#"(core module (memory 1)
        (func (export "kumiki:strategy/guest@1.0.0#advance")))"#;

    fn component(parts: &[&str]) -> Vec<u8> {
        wat::parse_str(format!("(component {})", parts.concat())).unwrap()
    }

    #[test]
    fn the_program_is_found_beside_its_wiring() {
        let wiring = "(core module (table (export \"t\") 1 funcref))";
        let bytes = component(&[wiring, STRATEGY, wiring]);
        assert!(describe(&CONTRACT, find(&CONTRACT, &bytes).unwrap()).unwrap().is_it);
        assert_eq!(
            find(&CONTRACT, &component(&[wiring])).unwrap_err(),
            "no module inside exports `kumiki:strategy/guest@1.0.0#advance`"
        );
    }

    #[test]
    fn composed_components_are_refused() {
        let importing = r#"(core module (import "m" "memory" (memory 1)))"#;
        for other in [STRATEGY, "(core module (memory 1))", importing] {
            let error = find(&CONTRACT, &component(&[STRATEGY, other])).unwrap_err();
            assert!(
                error.starts_with("it is composed of 2 programs; a strategy is one"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_component_is_held_against_the_contract() {
        let error = check(&CONTRACT, &component(&[STRATEGY])).unwrap_err();
        assert!(error.contains("kumiki:strategy/guest@1.0.0"), "{error}");
    }

    #[test]
    fn a_strategy_is_no_formula() {
        let error = find(&FORMULA, &component(&[STRATEGY])).unwrap_err();
        assert_eq!(error, "no module inside exports `kumiki:formula/guest@1.0.0#evaluate`");
        let formula = r#"(core module (memory 1)
            (func (export "kumiki:formula/guest@1.0.0#evaluate")))"#;
        let error = find(&FORMULA, &component(&[formula, formula])).unwrap_err();
        assert!(error.starts_with("it is composed of 2 programs; a formula is one"), "{error}");
        let error = check(&FORMULA, &component(&[formula])).unwrap_err();
        assert!(error.contains("kumiki:formula/guest@1.0.0"), "{error}");
    }
}
