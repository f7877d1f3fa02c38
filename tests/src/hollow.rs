//! Components whose programs are taken out: what is left says how a component is put together, and
//! compiles in milliseconds where the interpreter of a language takes half a minute.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use wasmparser::{CompositeInnerType, ExternalKind, FuncType, Parser, Payload, TypeRef, ValType};

use crate::wat::{number, section, sections};

/// Modules up to this size are wiring and stay as they are.
const WIRING_BYTES: usize = 50_000;
/// What a function answers: an address in every memory, or a row when it is asked to advance.
const ANSWER: usize = 4_096;

/// The component with each of its large modules made hollow: the same types, imports and exports, and
/// functions that do nothing but answer a constant.
///
/// # Errors
/// When it is no component, or a module of it has what this does not know.
pub fn component(whole: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = whole[..8].to_vec();
    for (id, range) in sections(whole) {
        let old = &whole[range.clone()];
        match id {
            0 => {}
            1 if old.len() > WIRING_BYTES => {
                // After the section's number and its size in LEB128.
                let size = 1 + old[1..].iter().take_while(|byte| **byte & 0x80 != 0).count();
                bytes.extend(section(1, &module(&old[size + 1..])?));
            }
            _ => bytes.extend(old),
        }
    }
    Ok(bytes)
}

/// What of a module is kept, and what its functions are.
#[derive(Default)]
struct Kept<'m> {
    /// Sections before the functions and between functions and exports, as they are.
    before: Vec<u8>,
    between: Vec<u8>,
    types: Vec<Option<FuncType>>,
    /// The type of each function; imported ones first.
    functions: Vec<u32>,
    imported: u32,
    exports: Vec<wasmparser::Export<'m>>,
}

fn module(whole: &[u8]) -> Result<Vec<u8>> {
    let kept = Kept::read(whole)?;
    // One function for each type and answer that an export needs.
    let mut made: BTreeMap<(u32, usize), u32> = BTreeMap::new();
    let mut exports = number(kept.exports.len());
    for export in &kept.exports {
        let mut index = export.index;
        if export.kind == ExternalKind::Func && index >= kept.imported {
            let ty = *kept.functions.get(index as usize).context("a function is missing")?;
            let answer = if export.name.ends_with("#advance") { 1 } else { ANSWER };
            let next = kept.imported + u32::try_from(made.len())?;
            index = *made.entry((ty, answer)).or_insert(next);
        }
        exports.extend(number(export.name.len()));
        exports.extend(export.name.as_bytes());
        exports.push(kind(export.kind)?);
        exports.extend(number(index as usize));
    }
    let mut order: Vec<_> = made.into_iter().collect();
    order.sort_by_key(|(_, index)| *index);
    let (mut functions, mut code) = (number(order.len()), number(order.len()));
    for ((ty, answer), _) in order {
        functions.extend(number(ty as usize));
        let known = kept.types.get(ty as usize).and_then(Option::as_ref);
        let body = body(known.context("a function has no type of a function")?, answer)?;
        code.extend([number(body.len()), body].concat());
    }
    let parts = [
        whole[..8].to_vec(),
        kept.before,
        section(3, &functions),
        kept.between,
        section(7, &exports),
        section(10, &code),
    ];
    Ok(parts.concat())
}

impl<'m> Kept<'m> {
    fn read(whole: &'m [u8]) -> Result<Self> {
        let mut kept = Self::default();
        for payload in Parser::new(0).parse_all(whole) {
            match payload? {
                Payload::TypeSection(types) => {
                    for group in types {
                        kept.types.extend(group?.into_types().map(
                            |ty| match ty.composite_type.inner {
                                CompositeInnerType::Func(ty) => Some(ty),
                                _ => None,
                            },
                        ));
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        if let TypeRef::Func(ty) = import?.ty {
                            kept.functions.push(ty);
                            kept.imported += 1;
                        }
                    }
                }
                Payload::FunctionSection(functions) => {
                    for ty in functions {
                        kept.functions.push(ty?);
                    }
                }
                Payload::ExportSection(exports) => {
                    kept.exports = exports.into_iter().collect::<Result<_, _>>()?;
                }
                _ => {}
            }
        }
        for (id, range) in sections(whole) {
            match id {
                1 | 2 => kept.before.extend(&whole[range]),
                4..=6 | 13 => kept.between.extend(&whole[range]),
                // Start, elements, code, data and custom sections go.
                _ => {}
            }
        }
        Ok(kept)
    }
}

/// A function that answers a constant.
fn body(ty: &FuncType, answer: usize) -> Result<Vec<u8>> {
    const END: u8 = 0x0b;
    let mut body = vec![0];
    for result in ty.results() {
        match result {
            ValType::I32 => body.extend([&[0x41][..], &signed(answer)].concat()),
            ValType::I64 => body.extend([&[0x42][..], &signed(answer)].concat()),
            ValType::F32 => body.extend([0x43, 0, 0, 0, 0]),
            ValType::F64 => body.extend([0x44, 0, 0, 0, 0, 0, 0, 0, 0]),
            other => anyhow::bail!("no constant of {other:?} is known"),
        }
    }
    body.push(END);
    Ok(body)
}

/// A number above zero as signed LEB128: a last group whose highest bit is set would be below zero.
fn signed(value: usize) -> Vec<u8> {
    let mut bytes = number(value);
    if let Some(last) = bytes.last_mut().filter(|last| **last & 0x40 != 0) {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}

fn kind(kind: ExternalKind) -> Result<u8> {
    Ok(match kind {
        ExternalKind::Func | ExternalKind::FuncExact => 0,
        ExternalKind::Table => 1,
        ExternalKind::Memory => 2,
        ExternalKind::Global => 3,
        ExternalKind::Tag => 4,
    })
}
