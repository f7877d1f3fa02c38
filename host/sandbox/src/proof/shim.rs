//! The two small modules with which tools tie the knot between a program and its imports: the *shim*,
//! whose functions jump through a table, and the *fixup*, which fills that table and may set the
//! program up. A module is taken for one of them only when its code is nothing else.

use std::collections::BTreeMap;

use wasmparser::{
    BinaryReaderError, ConstExpr, ElementItems, ElementKind, ExternalKind, FunctionBody, Operator,
    Parser, Payload, TypeRef,
};

/// A shim: each export jumps to one slot of its table.
#[derive(Debug, Default)]
pub(crate) struct Shim<'a> {
    /// The name of the table, where it is exported.
    pub(crate) table: Option<&'a str>,
    /// The slot behind each function.
    pub(crate) slots: BTreeMap<&'a str, u32>,
}

/// A fixup: what it does when it is made.
#[derive(Debug, Default)]
pub(crate) struct Fixup<'a> {
    /// The table that it fills: module and name of the import.
    pub(crate) table: Option<(&'a str, &'a str)>,
    /// The slots that it fills with imported functions.
    pub(crate) filled: Vec<(u32, (&'a str, &'a str))>,
    /// The imported functions that it calls then, in order.
    pub(crate) called: Vec<(&'a str, &'a str)>,
}

type Read<T> = Result<Option<T>, BinaryReaderError>;

impl<'a> Shim<'a> {
    /// Reads a module; none when it is no shim.
    pub(crate) fn read(module: &'a [u8]) -> Read<Self> {
        let mut exports = Vec::new();
        let mut slots = Vec::new();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ExportSection(section) => {
                    for export in section {
                        exports.push(export?);
                    }
                }
                Payload::CodeSectionEntry(body) => match jump(&body)? {
                    Some(slot) => slots.push(slot),
                    None => return Ok(None),
                },
                Payload::TableSection(tables) if tables.count() == 1 => {}
                Payload::Version { .. }
                | Payload::TypeSection(_)
                | Payload::FunctionSection(_)
                | Payload::CodeSectionStart { .. }
                | Payload::CustomSection(_)
                | Payload::End(_) => {}
                _ => return Ok(None),
            }
        }
        let mut shim = Self::default();
        for export in exports {
            match (export.kind, slots.get(export.index as usize)) {
                (ExternalKind::Func, Some(slot)) => drop(shim.slots.insert(export.name, *slot)),
                (ExternalKind::Table, _) => shim.table = Some(export.name),
                _ => return Ok(None),
            }
        }
        Ok(Some(shim))
    }
}

/// The slot to which a function jumps with its own arguments, if it does nothing else. What it is
/// called with fits: the module is valid and the table has one type for each slot.
fn jump(body: &FunctionBody<'_>) -> Read<u32> {
    if body.get_locals_reader()?.get_count() > 0 {
        return Ok(None);
    }
    let mut arguments = 0;
    let mut operators = body.get_operators_reader()?;
    loop {
        match operators.read()? {
            Operator::LocalGet { local_index } if local_index == arguments => arguments += 1,
            Operator::I32Const { value } => {
                let call = operators.read()?;
                let is_jump = matches!(call, Operator::CallIndirect { table_index: 0, .. });
                let ends = matches!(operators.read()?, Operator::End) && operators.eof();
                return Ok((is_jump && ends).then_some(value.cast_unsigned()));
            }
            _ => return Ok(None),
        }
    }
}

impl<'a> Fixup<'a> {
    /// Reads a module; none when it is no fixup.
    pub(crate) fn read(module: &'a [u8]) -> Read<Self> {
        let mut fixup = Self::default();
        let mut functions = Vec::new();
        let mut start = None;
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        let place = (import.module, import.name);
                        match import.ty {
                            TypeRef::Func(_) => functions.push(place),
                            TypeRef::Table(_) if fixup.table.is_none() => fixup.table = Some(place),
                            _ => return Ok(None),
                        }
                    }
                }
                Payload::StartSection { func, .. } => start = Some(func as usize),
                Payload::ElementSection(elements) => {
                    for element in elements {
                        let element = element?;
                        let Some(filled) = fill(element.kind, element.items, &functions)? else {
                            return Ok(None);
                        };
                        fixup.filled.extend(filled);
                    }
                }
                Payload::CodeSectionEntry(body) if fixup.called.is_empty() => {
                    match (calls(&body, &functions)?, start == Some(functions.len())) {
                        (Some(called), true) => fixup.called = called,
                        _ => return Ok(None),
                    }
                }
                Payload::FunctionSection(defined) if defined.count() <= 1 => {}
                Payload::Version { .. }
                | Payload::TypeSection(_)
                | Payload::CodeSectionStart { .. }
                | Payload::CustomSection(_)
                | Payload::End(_) => {}
                _ => return Ok(None),
            }
        }
        if let Some(imported) = start.and_then(|index| functions.get(index)) {
            fixup.called.push(*imported);
        }
        Ok(Some(fixup))
    }
}

type Place<'a> = (&'a str, &'a str);

/// The slots that an element segment fills with imported functions, if it does that.
fn fill<'a>(
    kind: ElementKind<'_>,
    items: ElementItems<'_>,
    imported: &[Place<'a>],
) -> Read<Vec<(u32, Place<'a>)>> {
    let ElementKind::Active { table_index: None | Some(0), offset_expr } = kind else {
        return Ok(None);
    };
    let (Some(first), ElementItems::Functions(functions)) = (constant(&offset_expr)?, items) else {
        return Ok(None);
    };
    let mut filled = Vec::new();
    for (slot, function) in (first..).zip(functions) {
        let Some(place) = imported.get(function? as usize) else { return Ok(None) };
        filled.push((slot, *place));
    }
    Ok(Some(filled))
}

fn constant(expression: &ConstExpr<'_>) -> Read<u32> {
    let mut operators = expression.get_operators_reader();
    let value = match operators.read()? {
        Operator::I32Const { value } => value.cast_unsigned(),
        _ => return Ok(None),
    };
    Ok(matches!(operators.read()?, Operator::End).then_some(value))
}

/// The imported functions that a function calls, if it does nothing else.
fn calls<'a>(body: &FunctionBody<'_>, imported: &[Place<'a>]) -> Read<Vec<Place<'a>>> {
    if body.get_locals_reader()?.get_count() > 0 {
        return Ok(None);
    }
    let mut called = Vec::new();
    let mut operators = body.get_operators_reader()?;
    loop {
        match operators.read()? {
            Operator::Call { function_index } => match imported.get(function_index as usize) {
                Some(place) => called.push(*place),
                None => return Ok(None),
            },
            Operator::End => return Ok(operators.eof().then_some(called)),
            _ => return Ok(None),
        }
    }
}
