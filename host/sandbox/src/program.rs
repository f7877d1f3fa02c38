//! Finds the program in a component and holds it against the contract.
//!
//! The host calls the core module inside a component itself (see [`crate::abi`]), so a strategy is a
//! component around one program, as the SDK, wit-bindgen and wasm-tools make it. The wiring around
//! it is validated, held against the world `strategy`, and then not needed any more.

use wasmparser::{Parser, Payload, TypeRef};
use wit_parser::{PackageId, Resolve, SourceMap};

/// An export that only a strategy's program has.
const ADVANCE: &str = "kumiki:strategy/guest@1.0.0#advance";

/// The contract's text.
pub(crate) const CONTRACT: [(&str, &str); 3] = [
    ("types.wit", include_str!("../../../wit/strategy/types.wit")),
    ("host.wit", include_str!("../../../wit/strategy/host.wit")),
    ("world.wit", include_str!("../../../wit/strategy/world.wit")),
];

/// The contract, parsed.
pub(crate) fn contract() -> Result<(Resolve, PackageId), String> {
    let mut sources = SourceMap::default();
    for (name, text) in CONTRACT {
        sources.push_str(name, text);
    }
    let mut resolve = Resolve::default();
    let group = sources.parse().map_err(|(_, error)| error.to_string())?;
    let package = resolve.push_group(group).map_err(|error| error.to_string())?;
    Ok((resolve, package))
}

/// Checks that the component is a strategy of this contract.
pub(crate) fn check(component: &[u8]) -> Result<(), String> {
    let (resolve, package) = contract()?;
    let world =
        resolve.select_world(&[package], Some("strategy")).map_err(|error| error.to_string())?;
    wit_component::targets(&resolve, world, component, false).map_err(|error| format!("{error:#}"))
}

/// The bytes of the one program inside a component.
///
/// Beside it stand modules that tie the knot between a program and its imports; they have no memory.
pub(crate) fn find(component: &[u8]) -> Result<&[u8], String> {
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
        let found = describe(module).map_err(|error| error.to_string())?;
        programs += usize::from(found.has_memory || found.is_strategy);
        if found.is_strategy {
            program = Some(module);
        }
    }
    match (program, programs) {
        (Some(program), 1) => Ok(program),
        (None, _) => Err(format!("no module inside exports `{ADVANCE}`")),
        (Some(_), _) => Err(format!(
            "it is composed of {programs} programs; a strategy is one, as the SDK, wit-bindgen and \
             `wasm-tools component new` make it"
        )),
    }
}

/// What is of interest in a module.
#[derive(Default)]
struct Found {
    is_strategy: bool,
    has_memory: bool,
}

fn describe(module: &[u8]) -> wasmparser::Result<Found> {
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ExportSection(exports) => {
                for export in exports {
                    found.is_strategy |= export?.name == ADVANCE;
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

    const STRATEGY: &str = r#"(core module (memory 1)
        (func (export "kumiki:strategy/guest@1.0.0#advance")))"#;

    fn component(parts: &[&str]) -> Vec<u8> {
        wat::parse_str(format!("(component {})", parts.concat())).unwrap()
    }

    #[test]
    fn the_program_is_found_beside_its_wiring() {
        let wiring = "(core module (table (export \"t\") 1 funcref))";
        let bytes = component(&[wiring, STRATEGY, wiring]);
        assert!(describe(find(&bytes).unwrap()).unwrap().is_strategy);
        assert_eq!(
            find(&component(&[wiring])).unwrap_err(),
            "no module inside exports `kumiki:strategy/guest@1.0.0#advance`"
        );
    }

    #[test]
    fn composed_components_are_refused() {
        let importing = r#"(core module (import "m" "memory" (memory 1)))"#;
        for other in [STRATEGY, "(core module (memory 1))", importing] {
            let error = find(&component(&[STRATEGY, other])).unwrap_err();
            assert!(
                error.starts_with("it is composed of 2 programs; a strategy is one"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_component_is_held_against_the_contract() {
        let error = check(&component(&[STRATEGY])).unwrap_err();
        assert!(error.contains("kumiki:strategy/guest@1.0.0"), "{error}");
    }
}
