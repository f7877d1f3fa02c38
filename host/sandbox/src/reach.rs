//! Whether a program calls one of its imports for sure: from an export along calls that name their
//! function. Calls through tables prove nothing, because toolchains of interpreted languages put
//! everything that a contract has into a table, whether a strategy uses it or not.

use wasmparser::{BinaryReaderError, ExternalKind, Operator, Parser, Payload, TypeRef};

/// What is known of a program's functions.
#[derive(Default)]
struct Calls {
    /// Functions that are imported come first; which of them is looked for.
    imported: u32,
    wanted: Option<u32>,
    exported: Vec<u32>,
    /// Of each function of its own, the functions that it names in calls.
    called: Vec<Vec<u32>>,
}

/// Whether an export reaches the import of this module and name. What cannot be read reaches nothing.
pub(crate) fn is_called(program: &[u8], import: (&str, &str)) -> bool {
    Calls::read(program, import).is_ok_and(|calls| calls.reach_it())
}

impl Calls {
    fn read(program: &[u8], wanted: (&str, &str)) -> Result<Self, BinaryReaderError> {
        let mut calls = Self::default();
        for payload in Parser::new(0).parse_all(program) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        if !matches!(import.ty, TypeRef::Func(_)) {
                            continue;
                        }
                        if (import.module, import.name) == wanted {
                            calls.wanted = Some(calls.imported);
                        }
                        calls.imported += 1;
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            calls.exported.push(export.index);
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let mut named = Vec::new();
                    for operator in body.get_operators_reader()? {
                        match operator? {
                            Operator::Call { function_index }
                            | Operator::ReturnCall { function_index } => named.push(function_index),
                            _ => {}
                        }
                    }
                    calls.called.push(named);
                }
                _ => {}
            }
        }
        Ok(calls)
    }

    fn reach_it(&self) -> bool {
        let Some(wanted) = self.wanted else { return false };
        let mut seen = vec![false; self.called.len()];
        let mut next = self.exported.clone();
        while let Some(function) = next.pop() {
            if function == wanted {
                return true;
            }
            let Some(own) = function.checked_sub(self.imported) else { continue };
            let own = own as usize;
            if seen.get(own) == Some(&false) {
                seen[own] = true;
                next.extend(&self.called[own]);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(body: &str) -> bool {
        let text = format!(
            r#"(module (import "host" "other" (func)) (import "host" "wanted" (func))
                (table 1 funcref) (elem (i32.const 0) $apart)
                (func $apart call 1) (func $between call $last) (func $last {body})
                (func (export "run") call $between))"#
        );
        is_called(&wat::parse_str(text).unwrap(), ("host", "wanted"))
    }

    #[test]
    fn calls_by_name_are_followed_and_tables_are_not() {
        assert!(called("call 1"));
        assert!(called("return_call 1"));
        assert!(called("call $between call 1"));
        assert!(!called("call 0"));
        assert!(!called("i32.const 0 call_indirect"));
        assert!(!is_called(b"no program", ("host", "wanted")));
    }
}
