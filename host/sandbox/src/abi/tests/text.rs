//! A contract's text as the only guide: what stands in memory in words, and values put there.

use wit_parser::{Resolve, SizeAlign, Type, TypeDefKind};

pub(super) struct Contract {
    pub(super) resolve: Resolve,
    sizes: SizeAlign,
}

impl Contract {
    pub(super) fn new(of: &crate::contract::Contract) -> Self {
        let (resolve, _) = crate::program::parsed(of, of.version).unwrap();
        let mut sizes = SizeAlign::default();
        sizes.fill(&resolve);
        Self { resolve, sizes }
    }

    pub(super) fn named(&self, name: &str) -> Type {
        let is_it = |(_, one): &(_, &wit_parser::TypeDef)| one.name.as_deref() == Some(name);
        Type::Id(self.resolve.types.iter().find(is_it).unwrap().0)
    }

    pub(super) fn kind(&self, of: &Type) -> Option<&TypeDefKind> {
        match of {
            Type::Id(id) => Some(&self.resolve.types[*id].kind),
            _ => None,
        }
    }

    pub(super) fn size(&self, of: &Type) -> usize {
        self.sizes.size(of).size_wasm32()
    }

    fn align(&self, of: &Type) -> usize {
        self.sizes.align(of).align_wasm32()
    }

    /// Places of a record's fields.
    fn places<'a>(&self, fields: impl IntoIterator<Item = &'a Type>) -> Vec<(usize, &'a Type)> {
        let offsets = self.sizes.field_offsets(fields);
        offsets.into_iter().map(|(offset, of)| (offset.size_wasm32(), of)).collect()
    }

    /// Where the payload of a case begins.
    fn payload<'a>(&self, payloads: impl IntoIterator<Item = Option<&'a Type>>) -> usize {
        let widest = payloads.into_iter().flatten().map(|of| self.align(of)).max();
        1_usize.next_multiple_of(widest.unwrap_or(1))
    }

    pub(super) fn list(&self, of: &Type, memory: &[u8], at: usize) -> String {
        let (pointer, length) =
            (number(memory, at, 4) as usize, number(memory, at + 4, 4) as usize);
        let item = |index| self.decode(of, memory, pointer + index * self.size(of));
        format!("[{}]", (0..length).map(item).collect::<Vec<_>>().join(", "))
    }

    /// What stands in memory, in words.
    pub(super) fn decode(&self, of: &Type, memory: &[u8], at: usize) -> String {
        assert_eq!(at % self.align(of), 0);
        match (of, self.kind(of)) {
            (Type::String, _) => {
                let pointer = number(memory, at, 4) as usize;
                let length = number(memory, at + 4, 4) as usize;
                format!("'{}'", str::from_utf8(&memory[pointer..pointer + length]).unwrap())
            }
            (_, Some(TypeDefKind::Type(same))) => self.decode(same, memory, at),
            (_, Some(TypeDefKind::List(of))) => self.list(of, memory, at),
            (_, Some(TypeDefKind::Option(of))) => match memory[at] {
                0 => "none".to_owned(),
                1 => self.decode(of, memory, at + self.payload([Some(of)])),
                other => panic!("option case {other}"),
            },
            (_, Some(TypeDefKind::Enum(cases))) => {
                cases.cases[usize::from(memory[at])].name.clone()
            }
            (_, Some(TypeDefKind::Record(record))) => {
                let places = self.places(record.fields.iter().map(|field| &field.ty));
                let fields = record.fields.iter().zip(places).map(|(field, (offset, of))| {
                    format!("{}: {}", field.name, self.decode(of, memory, at + offset))
                });
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            (_, Some(TypeDefKind::Variant(variant))) => {
                let case = &variant.cases[usize::from(memory[at])];
                let start = self.payload(variant.cases.iter().map(|case| case.ty.as_ref()));
                let payload = case.ty.as_ref().map(|of| self.decode(of, memory, at + start));
                format!("{}({})", case.name, payload.unwrap_or_default())
            }
            _ => match of {
                Type::Bool | Type::U8 => memory[at].to_string(),
                Type::U16 => number(memory, at, 2).to_string(),
                Type::U32 => number(memory, at, 4).to_string(),
                Type::U64 => number(memory, at, 8).to_string(),
                Type::S64 => number(memory, at, 8).cast_signed().to_string(),
                other => panic!("{other:?}"),
            },
        }
    }

    /// Puts a value at a pointer; texts and lists go behind everything else.
    pub(super) fn encode(&self, of: &Type, value: &Value, memory: &mut Vec<u8>, at: usize) {
        match (of, self.kind(of), value) {
            (Type::String, _, Value::Text(text)) => {
                let pointer = memory.len();
                memory.extend_from_slice(text.as_bytes());
                put(memory, at, pointer as u64, 4);
                put(memory, at + 4, text.len() as u64, 4);
            }
            (_, Some(TypeDefKind::Type(same)), _) => self.encode(same, value, memory, at),
            (_, Some(TypeDefKind::List(of)), Value::List(values)) => {
                let pointer = memory.len().next_multiple_of(self.align(of));
                memory.resize(pointer + values.len() * self.size(of), 0xEE);
                put(memory, at, pointer as u64, 4);
                put(memory, at + 4, values.len() as u64, 4);
                for (index, value) in values.iter().enumerate() {
                    self.encode(of, value, memory, pointer + index * self.size(of));
                }
            }
            (_, Some(TypeDefKind::Option(_)), Value::None) => memory[at] = 0,
            (_, Some(TypeDefKind::Option(of)), _) => {
                memory[at] = 1;
                self.encode(of, value, memory, at + self.payload([Some(of)]));
            }
            (_, Some(TypeDefKind::Enum(cases)), Value::Case(name, _)) => {
                let case = cases.cases.iter().position(|case| case.name == *name).unwrap();
                put(memory, at, case as u64, 1);
            }
            (_, Some(TypeDefKind::Record(record)), Value::Fields(values)) => {
                let places = self.places(record.fields.iter().map(|field| &field.ty));
                assert_eq!(places.len(), values.len());
                for ((offset, of), value) in places.into_iter().zip(values) {
                    self.encode(of, value, memory, at + offset);
                }
            }
            (_, Some(TypeDefKind::Variant(variant)), Value::Case(name, payload)) => {
                let case = variant.cases.iter().position(|case| case.name == *name).unwrap();
                put(memory, at, case as u64, 1);
                let start = self.payload(variant.cases.iter().map(|case| case.ty.as_ref()));
                if let Some(of) = &variant.cases[case].ty {
                    self.encode(of, payload, memory, at + start);
                }
            }
            (_, Some(TypeDefKind::Result(result)), Value::Case(name, payload)) => {
                let case = ["ok", "err"].iter().position(|case| case == name).unwrap();
                put(memory, at, case as u64, 1);
                let payloads = [result.ok.as_ref(), result.err.as_ref()];
                if let Some(of) = payloads[case] {
                    self.encode(of, payload, memory, at + self.payload(payloads));
                }
            }
            (Type::F64, _, Value::Double(number)) => put(memory, at, number.to_bits(), 8),
            (_, _, Value::Number(number)) => {
                put(memory, at, number.cast_unsigned(), self.size(of));
            }
            other => panic!("{:?} for {:?}", other.2, other.0),
        }
    }
}

/// A value for the encoder.
#[derive(Debug)]
pub(super) enum Value {
    None,
    Number(i64),
    Double(f64),
    Text(&'static str),
    List(Vec<Value>),
    Fields(Vec<Value>),
    Case(&'static str, Box<Value>),
}

pub(super) fn case(name: &'static str, payload: Value) -> Value {
    Value::Case(name, Box::new(payload))
}

pub(super) fn enumerated(name: &'static str) -> Value {
    case(name, Value::None)
}

fn number(memory: &[u8], at: usize, bytes: usize) -> u64 {
    (0..bytes).map(|index| u64::from(memory[at + index]) << (8 * index)).sum()
}

fn put(memory: &mut [u8], at: usize, value: u64, bytes: usize) {
    memory[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}
