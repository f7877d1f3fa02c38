//! Strategies in WebAssembly's text, from `guests/wat`: attacks that no compiler would write.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The line in the strategy's text where fields are put in.
const PLACE: &str = ";; MORE";
/// How the strategy's text declares its memory.
const MEMORY: &str = "(memory (export \"memory\") 1)";

fn text(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/wat");
    let path = root.join(format!("{name}.wat"));
    match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// The text of the strategy with the fields of a guest put in.
#[must_use]
pub fn module(guest: &str) -> String {
    text("strategy").replace(PLACE, &text(guest))
}

/// A strategy that wants this many pages of memory from the start.
#[must_use]
pub fn with_memory(pages: u32) -> String {
    text("strategy").replace(MEMORY, &format!("(memory (export \"memory\") {pages})"))
}

/// The component around a module's text, whose texts have this encoding.
///
/// # Panics
/// When the text is no module of the contract.
#[must_use]
pub fn component(module: &str, encoding: StringEncoding) -> Vec<u8> {
    match encoded(module, encoding) {
        Ok(component) => component,
        Err(error) => panic!("{error:#}"),
    }
}

fn encoded(module: &str, encoding: StringEncoding) -> anyhow::Result<Vec<u8>> {
    let mut module = wat::parse_str(module)?;
    let mut resolve = Resolve::default();
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/strategy");
    let (package, _) = resolve.push_path(contract)?;
    let world = resolve.select_world(&[package], Some("strategy"))?;
    embed_component_metadata(&mut module, &resolve, world, encoding, false)?;
    ComponentEncoder::default().validate(true).module(&module)?.encode()
}
