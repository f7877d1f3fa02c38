//! Components whose large modules are handed to them instead of being inside: the engine compiles each
//! of these modules once, however often what puts them together is damaged.

use std::ops::Range;

use wasmparser::{
    CompositeInnerType, ExternalKind, FuncType, MemoryType, Parser, Payload, TableType, TypeRef,
};
use wasmtime::{Engine, Module};

/// Modules up to this size are wiring and stay inside.
const WIRING_BYTES: usize = 50_000;

/// A large module, compiled.
pub(super) struct Program {
    pub(super) bytes: Vec<u8>,
    pub(super) module: Module,
}

impl Program {
    /// All large modules of a component.
    pub(super) fn all_of(component: &[u8], engine: &Engine) -> Vec<Self> {
        let large = modules(component).into_iter().filter(|range| range.len() > WIRING_BYTES);
        let compile = |range: Range<usize>| {
            let bytes = component[range].to_vec();
            Self { module: Module::new(engine, &bytes).unwrap(), bytes }
        };
        large.map(compile).collect()
    }

    /// The name under which a light component imports it.
    pub(super) fn name(place: usize) -> String {
        format!("program-{place}")
    }
}

/// Where the modules of a component's outermost level are.
fn modules(component: &[u8]) -> Vec<Range<usize>> {
    let (mut depth, mut found) = (0, Vec::new());
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ModuleSection { unchecked_range, .. } => {
                if depth == 0 {
                    found.push(unchecked_range);
                }
                depth += 1;
            }
            Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    found
}

/// The sections of a component's outermost level: number, and bytes with the header. None where the
/// bytes are no sections.
pub(super) fn sections(component: &[u8]) -> Option<Vec<(u8, Range<usize>)>> {
    let (mut at, mut found) = (8, Vec::new());
    while at < component.len() {
        let start = at;
        let (mut size, mut shift) = (0_usize, 0);
        loop {
            at += 1;
            let byte = *component.get(at)?;
            size |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        at = at.checked_add(1 + size).filter(|end| *end <= component.len())?;
        found.push((component[start], start..at));
    }
    Some(found)
}

/// The component with each of the programs imported where it was inside. None where that cannot be:
/// it is damaged too much, or has types of modules itself.
pub(super) fn component(whole: &[u8], programs: &[Program]) -> Option<Vec<u8>> {
    let sections = sections(whole)?;
    if sections.iter().any(|(id, _)| *id == 3) {
        return None;
    }
    let mut bytes = types(programs);
    for (id, range) in sections {
        let section = &whole[range];
        let place = programs.iter().position(|program| section.ends_with(&program.bytes));
        match place {
            Some(place) if id == 1 => bytes.extend(import(place)),
            _ => bytes.extend(section),
        }
    }
    Some(bytes)
}

/// A section that imports the program at this place, whose type has the same place.
fn import(place: usize) -> Vec<u8> {
    let name = Program::name(place);
    let (length, place) = (u8::try_from(name.len()).unwrap(), u8::try_from(place).unwrap());
    let entry = [&[1, 0, length][..], name.as_bytes(), &[0, 0x11, place]].concat();
    [&[10, u8::try_from(entry.len()).unwrap()][..], &entry].concat()
}

/// The beginning of a component that has the types of the programs and nothing else.
fn types(programs: &[Program]) -> Vec<u8> {
    let types: String = programs.iter().map(|program| type_of(&program.bytes)).collect();
    wat::parse_str(format!("(component {types})")).unwrap()
}

/// The kinds of what a module has, by their numbers.
#[derive(Default)]
struct Has {
    types: Vec<FuncType>,
    functions: Vec<u32>,
    tables: Vec<TableType>,
    memories: Vec<MemoryType>,
    globals: Vec<wasmparser::GlobalType>,
    tags: Vec<u32>,
}

impl Has {
    fn take(&mut self, ty: TypeRef) {
        match ty {
            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => self.functions.push(ty),
            TypeRef::Table(ty) => self.tables.push(ty),
            TypeRef::Memory(ty) => self.memories.push(ty),
            TypeRef::Global(ty) => self.globals.push(ty),
            TypeRef::Tag(ty) => self.tags.push(ty.func_type_idx),
        }
    }

    /// What is exported, in the text format.
    fn text(&self, kind: ExternalKind, index: u32) -> String {
        let index = index as usize;
        match kind {
            ExternalKind::Func | ExternalKind::FuncExact => {
                format!("(func {})", function(&self.types[self.functions[index] as usize]))
            }
            ExternalKind::Table => {
                let ty = &self.tables[index];
                let most = ty.maximum.map_or(String::new(), |most| most.to_string());
                format!("(table {} {most} {})", ty.initial, ty.element_type)
            }
            ExternalKind::Memory => {
                let ty = &self.memories[index];
                let most = ty.maximum.map_or(String::new(), |most| most.to_string());
                format!("(memory {} {most})", ty.initial)
            }
            ExternalKind::Global => {
                let ty = &self.globals[index];
                let kind = ty.content_type;
                if ty.mutable {
                    format!("(global (mut {kind}))")
                } else {
                    format!("(global {kind})")
                }
            }
            ExternalKind::Tag => {
                format!("(tag {})", function(&self.types[self.tags[index] as usize]))
            }
        }
    }

    /// The number and kind of what was taken last.
    fn last(&self, ty: TypeRef) -> (ExternalKind, u32) {
        let (kind, count) = match ty {
            TypeRef::Func(_) | TypeRef::FuncExact(_) => (ExternalKind::Func, self.functions.len()),
            TypeRef::Table(_) => (ExternalKind::Table, self.tables.len()),
            TypeRef::Memory(_) => (ExternalKind::Memory, self.memories.len()),
            TypeRef::Global(_) => (ExternalKind::Global, self.globals.len()),
            TypeRef::Tag(_) => (ExternalKind::Tag, self.tags.len()),
        };
        (kind, u32::try_from(count).unwrap() - 1)
    }
}

fn function(ty: &FuncType) -> String {
    let words =
        |types: &[wasmparser::ValType]| types.iter().map(|ty| format!(" {ty}")).collect::<String>();
    format!("(param{}) (result{})", words(ty.params()), words(ty.results()))
}

/// A module's type in the text format.
fn type_of(module: &[u8]) -> String {
    let (mut has, mut text) = (Has::default(), "(core type (module ".to_owned());
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::TypeSection(types) => {
                for ty in types.into_iter().flat_map(|group| group.unwrap().into_types()) {
                    let CompositeInnerType::Func(ty) = ty.composite_type.inner else {
                        panic!("a type of no function");
                    };
                    has.types.push(ty);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.unwrap();
                    has.take(import.ty);
                    let (kind, index) = has.last(import.ty);
                    let (module, name, what) = (import.module, import.name, has.text(kind, index));
                    text += &format!("(import {module:?} {name:?} {what})");
                }
            }
            Payload::FunctionSection(functions) => {
                has.functions.extend(functions.into_iter().map(Result::unwrap));
            }
            Payload::TableSection(tables) => {
                has.tables.extend(tables.into_iter().map(|table| table.unwrap().ty));
            }
            Payload::MemorySection(memories) => {
                has.memories.extend(memories.into_iter().map(Result::unwrap));
            }
            Payload::GlobalSection(globals) => {
                has.globals.extend(globals.into_iter().map(|global| global.unwrap().ty));
            }
            Payload::TagSection(tags) => {
                has.tags.extend(tags.into_iter().map(|tag| tag.unwrap().func_type_idx));
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export.unwrap();
                    let what = has.text(export.kind, export.index);
                    text += &format!("(export {:?} {what})", export.name);
                }
            }
            _ => {}
        }
    }
    text + "))"
}
