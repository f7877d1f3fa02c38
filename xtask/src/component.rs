//! Turns a guest's core module into a component, and refuses one that imports too much.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use wit_component::{ComponentEncoder, DecodedWasm};

/// Interfaces of our own packages start so; a guest may import nothing else.
const OURS: &str = "kumiki:";

/// Wraps a core module that carries its component type, which names all that it may import.
pub(crate) fn from_module(module: &[u8]) -> Result<Vec<u8>> {
    let component = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .context("its component type cannot be read")?
        .encode()
        .context("it does not fit its component type")?;
    refuse_foreign(component_imports(&component)?)?;
    Ok(component)
}

fn refuse_foreign(names: Vec<String>) -> Result<()> {
    let foreign: BTreeSet<&str> =
        names.iter().map(String::as_str).filter(|name| !name.starts_with(OURS)).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    bail!(
        "it imports {}, but a guest may import only the interfaces of wit/ (`{OURS}...`): \
         no clock, no randomness, no files. Look for the dependency that brings it in",
        foreign.into_iter().collect::<Vec<_>>().join(", ")
    );
}

/// The imports of the component itself, not those of the modules inside it.
fn component_imports(component: &[u8]) -> Result<Vec<String>> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component)? else {
        bail!("it is not a WebAssembly component");
    };
    let imports = resolve.worlds[world].imports.keys();
    Ok(imports.map(|key| resolve.name_world_key(key)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component with one import: an instance without content.
    fn importing(name: &str) -> Vec<u8> {
        let length = u8::try_from(name.len()).expect("a short name");
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        bytes.extend([7, 3, 1, 0x42, 0]); // types: one empty instance type
        bytes.extend([10, length + 5, 1, 0, length]);
        bytes.extend(name.as_bytes());
        bytes.extend([5, 0]); // an instance of type 0
        bytes
    }

    /// A module that imports the function `f` from `module`.
    fn module_importing(module: &str) -> Vec<u8> {
        let length = u8::try_from(module.len()).expect("a short name");
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        bytes.extend([1, 4, 1, 0x60, 0, 0]); // types: one function without anything
        bytes.extend([2, length + 6, 1, length]);
        bytes.extend(module.as_bytes());
        bytes.extend([1, b'f', 0, 0]); // the function `f` of type 0
        bytes
    }

    #[test]
    fn reads_the_imports_of_a_component() {
        let names = component_imports(&importing("wasi:clocks/wall-clock@0.2.0"));
        assert_eq!(names.expect("a component"), ["wasi:clocks/wall-clock@0.2.0"]);
    }

    #[test]
    fn refuses_what_is_not_ours() {
        let names = ["kumiki:strategy/log@1.0.0", "wasi:io/streams", "wasi:io/streams"];
        let names = names.map(str::to_owned).to_vec();
        let error = refuse_foreign(names).err();
        let message = error.expect("one is foreign").to_string();
        assert!(message.starts_with("it imports wasi:io/streams, but a guest"), "{message}");
    }

    #[test]
    fn names_a_foreign_import_of_a_module() {
        let error = from_module(&module_importing("wasi_snapshot_preview1")).err();
        let message = format!("{:#}", error.expect("wasi is foreign"));
        assert!(message.contains("wasi_snapshot_preview1"), "{message}");
    }

    #[test]
    fn what_is_not_a_module_is_refused() {
        assert!(from_module(b"text").is_err());
    }
}
