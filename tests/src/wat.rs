//! Strategies in WebAssembly's text, from `guests/test`: attacks that no compiler would write.

use std::ops::Range;
use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap};

/// The version of the contract.
const VERSION: &str = "1.0.0";
/// The line in the strategy's text where fields are put in.
const PLACE: &str = ";; MORE";
/// How the strategy's text declares its memory.
const MEMORY: &str = "(memory (export \"memory\") 1)";

fn text(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/test");
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

/// A function that nothing calls: loops around each other, in each of which all locals change. Compilers merge
/// every local at every loop.
#[must_use]
pub fn loops(loops: usize, locals: usize) -> String {
    let changes: String = (0..locals)
        .map(|local| format!("local.get {local} i32.const 1 i32.add local.set {local}\n"))
        .collect();
    let back: String = (0..loops).map(|depth| format!("local.get 0 br_if {depth}\n")).collect();
    let (begin, end) = ("loop ".repeat(loops), "end ".repeat(loops));
    let declared = "i32 ".repeat(locals);
    format!("(func (local {declared}) {begin}{changes}{back}{end})")
}

/// A strategy with one more function of this kind.
#[must_use]
pub fn with_loops(depth: usize, locals: usize) -> String {
    with_fields(&loops(depth, locals))
}

/// The strategy with further fields.
#[must_use]
pub fn with_fields(fields: &str) -> String {
    text("strategy").replace(PLACE, fields)
}

/// The strategy with so many more functions, which do nothing.
#[must_use]
pub fn with_functions(count: usize) -> String {
    with_fields(&"(func)".repeat(count))
}

/// The bytes of a module or component that is written as text.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The text of a formula module whose name is `hostile`, with the fields of a guest put in.
///
/// # Panics
/// When the module's text does not end as a module does.
#[must_use]
pub fn hostile_formula(guest: &str) -> String {
    let whole = text("formula")
        .replace("COUNT_OF_NAME", "7")
        .replace("COUNT_OF_VERSION", "5")
        .replace("COUNT_OF_SUMMARY", "4")
        .replace("\"NAME\"", "\"hostile\"")
        .replace("\"VERSION\"", "\"1.0.0\"")
        .replace("\"SUMMARY\"", "\"none\"");
    let Some(fields) = whole.trim_end().strip_suffix(')') else { panic!("{whole}") };
    format!("{fields}\n{}\n)", text(guest))
}

/// A strategy that wants this many pages of memory from the start.
#[must_use]
pub fn with_memory(pages: u32) -> String {
    text("strategy").replace(MEMORY, &format!("(memory (export \"memory\") {pages})"))
}

/// The text of a guest that is a module of its own.
#[must_use]
pub fn whole(guest: &str) -> String {
    text(guest)
}

/// The strategy that writes a text into its log, in an encoding: its bytes, and how many units of it
/// they are.
#[must_use]
pub fn speaking(bytes: &[u8], count: usize) -> String {
    let escaped: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    module("speaks").replace("TEXT", &escaped).replace("COUNT", &count.to_string())
}

/// The strategy that acts at every 40th row, and whose texts are in an encoding: how the letters of a
/// text are written, and whether the count of letters says that they are UTF-16 (in the compact one).
#[must_use]
pub fn acting(says: &str, encode: impl Fn(&str) -> Vec<u8>, width: usize, flag: usize) -> String {
    let escaped = |text: &str| -> String {
        encode(text).iter().map(|byte| format!("\\{byte:02x}")).collect()
    };
    let count = |text: &str| ((encode(text).len() / width) | flag).to_string();
    let spelled = "ID-0000";
    text("acts")
        .replace("SPELLED_COUNT", &count(spelled))
        .replace("SPELLED", &escaped(spelled))
        .replace("COUNT", &count(says))
        .replace("TEXT", &escaped(says))
        .replace("WIDTH", &width.to_string())
}

/// The strategy that acts at every 40th row, which asks for its working orders with every event, notes how its
/// allocator is called, and writes that into its log in the end: alignment and size of each block.
///
/// # Panics
/// When its text is another one than this rests on.
#[must_use]
pub fn noting_allocations() -> String {
    let text = acting("", |text| text.as_bytes().to_vec(), 1, 0);
    let (log, events) = ("(func $log (param i32 i64 i32 i32)))", "(param i32 i32) call $done)");
    let digit = |at: u32, value: &str| {
        format!(
            "(i32.store8 (i32.add (global.get $notes) (i32.const {at}))
               (i32.add (i32.const 48) (i32.rem_u {value} (i32.const 10))))"
        )
    };
    let size = |by: u32| format!("(i32.div_u (local.get 3) (i32.const {by}))");
    let note = [
        digit(0, "(local.get 2)"),
        digit(1, &size(1_000)),
        digit(2, &size(100)),
        digit(3, &size(10)),
        digit(4, &size(1)),
    ];
    let note = format!(
        "(if (i32.lt_u (global.get $notes) (i32.const 140000)) (then
           {} (i32.store8 (i32.add (global.get $notes) (i32.const 5)) (i32.const 32))
           (global.set $notes (i32.add (global.get $notes) (i32.const 6)))))",
        note.join("\n")
    );
    let realloc = "(param i32 i32 i32 i32) (result i32)\n    (global.set $free (i32.and";
    let last = "guest@1.0.0#stop\") (param i64))";
    let written = "guest@1.0.0#stop\") (param i64)
         (call $log (i32.const 1) (i64.const 0) (i32.const 131072)
           (i32.sub (global.get $notes) (i32.const 131072))))
       (global $notes (mut i32) (i32.const 131072))";
    let orders = "(import \"kumiki:strategy/portfolio@1.0.0\" \"working-orders\"
         (func $working (param i32)))";
    let changes = [
        ("(memory (export \"memory\") 4)", "(memory (export \"memory\") 64)".to_owned()),
        ("(func $done (global.set $free (i32.const 8192)))", "(func $done)".to_owned()),
        (
            "(global $free (mut i32) (i32.const 8192))",
            "(global $free (mut i32) (i32.const 262144))".to_owned(),
        ),
        (realloc, realloc.replace("(global.set", &format!("{note}\n    (global.set"))),
        (last, written.to_owned()),
        (log, format!("{log}\n{orders}")),
        (events, "(param i32 i32) (call $working (i32.const 256)))".to_owned()),
    ];
    changes.into_iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, &to, 1)
    })
}

/// The component around a module's text, whose texts have this encoding.
///
/// # Panics
/// When the text is no module of the contract.
#[must_use]
pub fn component(module: &str, encoding: StringEncoding) -> Vec<u8> {
    encoded("strategy", module, encoding, VERSION).unwrap_or_else(|error| panic!("{error:#}"))
}

/// The same for a formula module.
///
/// # Panics
/// When the text is no module of the contract of formulas.
#[must_use]
pub fn formula(module: &str, encoding: StringEncoding) -> Vec<u8> {
    encoded("formula", module, encoding, VERSION).unwrap_or_else(|error| panic!("{error:#}"))
}

/// The component around a module's text, as if the contract had this version.
///
/// # Panics
/// When the text is no module of that contract.
#[must_use]
pub fn component_of_version(module: &str, version: &str) -> Vec<u8> {
    encoded("strategy", module, StringEncoding::UTF8, version)
        .unwrap_or_else(|error| panic!("{error:#}"))
}

fn encoded(
    contract: &str,
    module: &str,
    encoding: StringEncoding,
    version: &str,
) -> anyhow::Result<Vec<u8>> {
    let mut module = wat::parse_str(module)?;
    let mut sources = SourceMap::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit").join(contract);
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let package = |version: &str| format!("package kumiki:{contract}@{version};");
        let text = std::fs::read_to_string(&path)?.replace(&package(VERSION), &package(version));
        sources.push_str(&path.display().to_string(), text);
    }
    let mut resolve = Resolve::default();
    let group = sources.parse().map_err(|(_, error)| anyhow::anyhow!("{error}"))?;
    let package = resolve.push_group(group).map_err(|error| anyhow::anyhow!("{error}"))?;
    let world = resolve.select_world(&[package], Some(contract))?;
    embed_component_metadata(&mut module, &resolve, world, encoding)?;
    ComponentEncoder::default().validate(true).module(&module)?.encode()
}

/// The sections of a component's outermost level: number, and bytes with the header.
#[must_use]
pub fn sections(component: &[u8]) -> Vec<(u8, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 8;
    while at < component.len() {
        let (start, id) = (at, component[at]);
        let mut size = 0;
        for shift in (0..).step_by(7) {
            at += 1;
            size |= usize::from(component[at] & 0x7f) << shift;
            if component[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1 + size;
        found.push((id, start..at));
    }
    found
}

/// The component with one more program in it, which nothing calls.
#[must_use]
pub fn with_another_program(component: &[u8]) -> Vec<u8> {
    let module = wat::parse_str("(module (func (export \"idle\")))").unwrap_or_default();
    let modules = sections(component).iter().filter(|(id, _)| *id == 1).count();
    // One instance: of a module, without arguments.
    let instance = [&[1, 0][..], &number(modules), &[0]].concat();
    [component, &section(1, &module), &section(2, &instance)].concat()
}

/// The bytes with each of `from` replaced by `to`, which is as long.
///
/// # Panics
/// When it is not, or nothing is replaced.
#[must_use]
pub fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "places stay where they are");
    let mut replaced = bytes.to_vec();
    let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes()));
    let mut count = 0;
    for at in places {
        replaced[at..at + to.len()].copy_from_slice(to.as_bytes());
        count += 1;
    }
    assert!(count > 0, "`{from}` is not there");
    replaced
}

/// A component that has the given one inside and hands its imports and its guest interface through,
/// like `kumiki:strategy/guest@1.0.0`: what tools that compose components write.
#[must_use]
pub fn composed(inner: &[u8], imports: &[String], guest: &str) -> Vec<u8> {
    let mut bytes = inner[..8].to_vec();
    // Types and imports stand before the first module, and are the same outside.
    let outer = sections(inner).into_iter().take_while(|(id, _)| *id != 1);
    bytes.extend(outer.filter(|(id, _)| *id != 0).flat_map(|(_, range)| inner[range].to_vec()));
    bytes.extend(section(4, inner));
    let text = |text: &str| [&number(text.len())[..], text.as_bytes()].concat();
    // One instance: the component 0 with each import as it is outside.
    let mut instance = vec![1, 0, 0];
    instance.extend(number(imports.len()));
    for (index, import) in (0..).zip(imports) {
        instance.extend([&text(import)[..], &[5, index]].concat());
    }
    bytes.extend(section(5, &instance));
    let made = u8::try_from(imports.len()).unwrap_or(u8::MAX);
    bytes.extend(section(6, &[&[1, 5, 0, made], &text(guest)[..]].concat()));
    bytes.extend(section(11, &[&[1, 0], &text(guest)[..], &[5, made + 1, 0]].concat()));
    bytes
}

/// A component with so many instances more, of a module that has nothing.
#[must_use]
pub fn with_instances(component: &[u8], count: usize) -> Vec<u8> {
    // A section of modules has one.
    let modules = sections(component).iter().filter(|(id, _)| *id == 1).count();
    let one = [&[0], &number(modules)[..], &[0]].concat();
    let instances = [number(count), one.repeat(count)].concat();
    [component, &section(1, b"\0asm\x01\0\0\0"), &section(2, &instances)].concat()
}

pub(crate) fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &number(content.len())[..], content].concat()
}

/// A whole number in WebAssembly's form.
pub(crate) fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
