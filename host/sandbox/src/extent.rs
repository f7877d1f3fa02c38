//! How much there is to a module or component, counted before anything else is done with it.
//!
//! What the engine keeps of each function, type or export is a thousand times what a file needs for it, and a
//! component may make instances of components that make instances: a file of 10 KB can stand for millions.

use domain::limits::{COMPONENT_INSTANCES_MAX, COMPONENT_ITEMS_MAX};
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ComponentType, ComponentTypeDeclaration, CompositeInnerType,
    FromReader, Imports, Instance, ModuleTypeDeclaration, Parser, Payload, Result, SectionLimited,
    SubType,
};

/// Types of components and instances that are declared inside of each other: they are read by functions that call
/// themselves.
const TYPES_DEPTH_MAX: usize = 100;

/// There is more of something than is allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMuch {
    pub(crate) what: &'static str,
    pub(crate) used: u64,
    pub(crate) allowed: u64,
}

/// Instances of a component that is given from outside: nobody can tell.
const UNKNOWN: u64 = COMPONENT_INSTANCES_MAX + 1;

/// A component while it is read.
#[derive(Default)]
struct Scope {
    /// Instances that it makes, and those inside of them.
    instances: u64,
    /// The same of each component that it can make an instance of.
    components: Vec<u64>,
}

impl Scope {
    fn of(&self, component: u32) -> u64 {
        self.components.get(component as usize).copied().unwrap_or(UNKNOWN)
    }
}

/// What a core module or component has more of than is allowed.
///
/// It is only read, type by type, and never held as a whole or validated.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn too_much(bytes: &[u8]) -> Result<Option<TooMuch>> {
    let (mut items, mut descriptions) = (0, Vec::new());
    if let Some(found) = counted(bytes, &mut items, &mut descriptions)? {
        return Ok(Some(found));
    }
    // What a core module says of its contract is a component of its own, and becomes types of the whole.
    if !Parser::is_component(bytes) {
        for description in descriptions {
            // One that cannot be read is refused where it is needed.
            if let Ok(Some(found)) = counted(description, &mut items, &mut Vec::new()) {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// Adds to `items` and `descriptions` what there is to a module or component; gives what is too much of it.
fn counted<'a>(
    bytes: &'a [u8],
    items: &mut u64,
    descriptions: &mut Vec<&'a [u8]>,
) -> Result<Option<TooMuch>> {
    // None for a module, which makes no instances.
    let mut scopes = vec![Some(Scope::default())];
    let mut instances = 0_u64;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        if let Some(found) = count(bytes, &payload, items)? {
            return Ok(Some(found));
        }
        match payload {
            Payload::ModuleSection { .. } => scopes.push(None),
            Payload::ComponentSection { .. } => scopes.push(Some(Scope::default())),
            Payload::CustomSection(custom) if custom.name().starts_with("component-type") => {
                descriptions.push(custom.data());
            }
            Payload::End(_) => {
                if let Some(Some(ended)) = scopes.pop() {
                    instances = ended.instances;
                    if let Some(Some(outer)) = scopes.last_mut() {
                        outer.components.push(ended.instances);
                    }
                }
            }
            other => section(&mut scopes, other)?,
        }
    }
    let what = "or more instances of modules and components";
    Ok((instances > COMPONENT_INSTANCES_MAX).then_some(TooMuch {
        what,
        used: instances,
        allowed: COMPONENT_INSTANCES_MAX,
    }))
}

/// That there are more of them than is allowed, if so.
fn too_many(items: u64) -> Option<TooMuch> {
    let what = "or more functions, types, imports, exports and the like";
    (items > COMPONENT_ITEMS_MAX).then_some(TooMuch {
        what,
        used: items,
        allowed: COMPONENT_ITEMS_MAX,
    })
}

/// What a section of a component makes or names.
fn section(scopes: &mut [Option<Scope>], payload: Payload<'_>) -> Result<()> {
    let Some((Some(scope), outside)) = scopes.split_last_mut() else { return Ok(()) };
    match payload {
        Payload::InstanceSection(made) => {
            for one in made {
                if let Instance::Instantiate { .. } = one? {
                    scope.instances = scope.instances.saturating_add(1);
                }
            }
        }
        Payload::ComponentInstanceSection(made) => {
            for one in made {
                if let ComponentInstance::Instantiate { component_index, .. } = one? {
                    let inside = scope.of(component_index);
                    scope.instances = scope.instances.saturating_add(inside).saturating_add(1);
                }
            }
        }
        Payload::ComponentAliasSection(aliases) => {
            for alias in aliases {
                match alias? {
                    ComponentAlias::Outer {
                        kind: ComponentOuterAliasKind::Component,
                        count: 0,
                        index,
                    } => scope.components.push(scope.of(index)),
                    ComponentAlias::Outer {
                        kind: ComponentOuterAliasKind::Component,
                        count,
                        index,
                    } => {
                        let place = outside.len().checked_sub(count as usize);
                        let outer = place.and_then(|place| outside.get(place)?.as_ref());
                        scope.components.push(outer.map_or(UNKNOWN, |outer| outer.of(index)));
                    }
                    ComponentAlias::InstanceExport {
                        kind: ComponentExternalKind::Component,
                        ..
                    } => scope.components.push(UNKNOWN),
                    _ => {}
                }
            }
        }
        Payload::ComponentImportSection(imports) => {
            for import in imports {
                if import?.ty.kind() == ComponentExternalKind::Component {
                    scope.components.push(UNKNOWN);
                }
            }
        }
        Payload::ComponentExportSection(exports) => {
            for export in exports {
                let export = export?;
                // An export is also a new name, with an index of its own.
                if export.kind == ComponentExternalKind::Component {
                    scope.components.push(scope.of(export.index));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds what a section lists to `items`, until it is too much.
fn count(bytes: &[u8], payload: &Payload<'_>, items: &mut u64) -> Result<Option<TooMuch>> {
    let count = match payload {
        // One entry may stand for many.
        Payload::TypeSection(groups) => return types(bytes, groups, Part::Group, items),
        Payload::CoreTypeSection(all) => return types(bytes, all, Part::CoreType, items),
        Payload::ComponentTypeSection(all) => return types(bytes, all, Part::Type, items),
        Payload::ImportSection(groups) => {
            return each(groups, items, |group| match group {
                Imports::Single(..) => 1,
                Imports::Compact1 { items: named, .. } => 1 + u64::from(named.count()),
                Imports::Compact2 { names, .. } => 1 + u64::from(names.count()),
            });
        }
        Payload::InstanceSection(made) => {
            return each(made, items, |one| match one {
                Instance::Instantiate { args, .. } => 1 + args.len() as u64,
                Instance::FromExports(exports) => 1 + exports.len() as u64,
            });
        }
        Payload::ComponentInstanceSection(made) => {
            return each(made, items, |one| match one {
                ComponentInstance::Instantiate { args, .. } => 1 + args.len() as u64,
                ComponentInstance::FromExports(exports) => 1 + exports.len() as u64,
            });
        }
        Payload::FunctionSection(part) => part.count(),
        Payload::TableSection(part) => part.count(),
        Payload::MemorySection(part) => part.count(),
        Payload::TagSection(part) => part.count(),
        Payload::GlobalSection(part) => part.count(),
        Payload::ExportSection(part) => part.count(),
        Payload::ElementSection(part) => part.count(),
        Payload::DataSection(part) => part.count(),
        Payload::ComponentAliasSection(part) => part.count(),
        Payload::ComponentCanonicalSection(part) => part.count(),
        Payload::ComponentImportSection(part) => part.count(),
        Payload::ComponentExportSection(part) => part.count(),
        Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => 1,
        _ => 0,
    };
    *items += u64::from(count);
    Ok(too_many(*items))
}

/// Adds what each entry of a section stands for to `items`, until it is too much.
fn each<'a, T: FromReader<'a>>(
    section: &SectionLimited<'a, T>,
    items: &mut u64,
    parts: impl Fn(T) -> u64,
) -> Result<Option<TooMuch>> {
    for one in section.clone() {
        *items += parts(one?);
        if let Some(found) = too_many(*items) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What a section of types consists of.
#[derive(Clone, Copy)]
enum Part {
    /// A type of a component.
    Type,
    /// What a type of a component or instance declares.
    Declaration,
    /// A core type.
    CoreType,
    /// What a type of a core module declares.
    ModuleDeclaration,
    /// A group of core types, or one alone.
    Group,
    /// A core type of a group.
    SubType,
}

/// Adds the types of a section with all their parts to `items`, until it is too much. What is declared inside of
/// another type is not read at once: as a whole it takes many times its bytes.
fn types<T>(
    bytes: &[u8],
    section: &SectionLimited<'_, T>,
    part: Part,
    items: &mut u64,
) -> Result<Option<TooMuch>> {
    /// The bytes that such lists begin with.
    const COMPONENT: u8 = 0x41;
    const INSTANCE: u8 = 0x42;
    const MODULE: u8 = 0x50;
    const GROUP: u8 = 0x4e;
    /// The bytes of what is declared.
    const CORE_TYPE: u8 = 0x00;
    const TYPE: u8 = 0x01;
    /// What an alone core type may begin with.
    const ALONE: u8 = 0x00;

    let range = section.range();
    let start = range.start;
    let mut reader = BinaryReader::new(bytes.get(range).unwrap_or(&[]), start);
    // Lists that are not yet at their end, outermost first, with how much is left of each.
    let mut open = vec![(part, reader.read_var_u32()?)];
    while let Some((part, left)) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        let part = *part;
        let first = reader.clone().read_u8()?;
        match (part, first) {
            (Part::Type, COMPONENT | INSTANCE) => {
                reader.read_u8()?;
                *items += 1;
                open.push((Part::Declaration, reader.read_var_u32()?));
                // Each level is a declaration and the type that is declared.
                let depth = open.len() / 2;
                if depth > TYPES_DEPTH_MAX {
                    let what = "or more types inside of each other";
                    let (used, allowed) = (depth as u64, TYPES_DEPTH_MAX as u64);
                    return Ok(Some(TooMuch { what, used, allowed }));
                }
            }
            (Part::Type, _) => *items += declared(&reader.read()?),
            (Part::Declaration, CORE_TYPE) => {
                reader.read_u8()?;
                open.push((Part::CoreType, 1));
            }
            (Part::Declaration, TYPE) => {
                reader.read_u8()?;
                open.push((Part::Type, 1));
            }
            (Part::Declaration, _) => {
                reader.read::<ComponentTypeDeclaration<'_>>()?;
                *items += 1;
            }
            (Part::CoreType, MODULE) => {
                reader.read_u8()?;
                *items += 1;
                open.push((Part::ModuleDeclaration, reader.read_var_u32()?));
            }
            (Part::CoreType, ALONE) => {
                reader.read_u8()?;
                open.push((Part::Group, 1));
            }
            (Part::CoreType, _) => open.push((Part::Group, 1)),
            (Part::ModuleDeclaration, TYPE) => {
                reader.read_u8()?;
                open.push((Part::Group, 1));
            }
            (Part::ModuleDeclaration, _) => {
                reader.read::<ModuleTypeDeclaration<'_>>()?;
                *items += 1;
            }
            (Part::Group, GROUP) => {
                reader.read_u8()?;
                *items += 1;
                open.push((Part::SubType, reader.read_var_u32()?));
            }
            (Part::Group | Part::SubType, _) => *items += core_type(&reader.read()?),
        }
        if let Some(found) = too_many(*items) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A type that declares no others, with what it consists of.
fn declared(of: &ComponentType<'_>) -> u64 {
    let inside = match of {
        ComponentType::Component(all) => all.len() as u64,
        ComponentType::Instance(all) => all.len() as u64,
        ComponentType::Defined(of) => parts(of),
        ComponentType::Func(of) => of.params.len() as u64,
        ComponentType::Resource { .. } => 0,
    };
    1 + inside
}

/// What a defined type consists of.
fn parts(of: &ComponentDefinedType<'_>) -> u64 {
    let parts = match of {
        ComponentDefinedType::Record(fields) => fields.len(),
        ComponentDefinedType::Variant(cases) => cases.len(),
        ComponentDefinedType::Tuple(types) => types.len(),
        ComponentDefinedType::Flags(names) | ComponentDefinedType::Enum(names) => names.len(),
        _ => 0,
    };
    parts as u64
}

/// A core type with the values that it takes and gives, a hundred of which count as one.
fn core_type(of: &SubType) -> u64 {
    let values = match &of.composite_type.inner {
        CompositeInnerType::Func(of) => of.params().len() + of.results().len(),
        CompositeInnerType::Struct(of) => of.fields.len(),
        _ => 0,
    };
    1 + values as u64 / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<TooMuch> {
        too_much(&wat::parse_str(text).unwrap()).unwrap()
    }

    /// Components inside each other, each of which makes two instances of the next one.
    fn doubled(levels: usize, reached: &str) -> String {
        let mut text = "(component $c0)".to_owned();
        for level in 1..levels {
            let (inside, made) = match reached {
                "outer" => {
                    (String::new(), format!("(alias outer 1 $c{} (component $x))", level - 1))
                }
                _ => (std::mem::take(&mut text).replace("$c", "$x"), String::new()),
            };
            let below =
                if reached == "outer" { "$x".to_owned() } else { format!("$x{}", level - 1) };
            text += &format!(
                "(component $c{level} {inside} {made}
                   (instance (instantiate {below})) (instance (instantiate {below})))"
            );
        }
        format!("(component {text} (instance (instantiate $c{})))", levels - 1)
    }

    #[test]
    fn instances_inside_of_instances_count() {
        for reached in ["inside", "outer"] {
            // Of n levels there are 2 + 4 + ... instances below the last one.
            assert_eq!(found(&doubled(9, reached)), None, "{reached}");
            let much = found(&doubled(24, reached)).unwrap();
            assert_eq!((much.used, much.allowed), ((1 << 24) - 1, COMPONENT_INSTANCES_MAX));
        }
        let modules = "(component (core module $m) (core instance (instantiate $m)))".to_owned();
        assert_eq!(found(&modules), None);
        let many = "(core instance (instantiate $m))".repeat(1_025);
        let many = modules.replace("(core instance (instantiate $m))", &many);
        assert_eq!(found(&many).unwrap().used, 1_025);
    }

    #[test]
    fn an_instance_of_what_is_given_is_one_too_many() {
        let given =
            r#"(component (import "a" (component $given)) (instance (instantiate $given)))"#;
        assert!(found(given).unwrap().used > COMPONENT_INSTANCES_MAX);
        let taken = r#"(component
            (import "a" (instance $a (export "c" (component))))
            (alias export $a "c" (component $c)) (instance (instantiate $c)))"#;
        assert!(found(taken).unwrap().used > COMPONENT_INSTANCES_MAX);
    }

    #[test]
    fn functions_types_and_all_else_count() {
        let half = COMPONENT_ITEMS_MAX as usize / 2;
        let functions = |count: usize| format!("(module {})", "(func)".repeat(count));
        // Functions with one type.
        assert_eq!(found(&functions(2 * half - 1)), None);
        assert!(found(&functions(2 * half)).unwrap().used > COMPONENT_ITEMS_MAX);
        let types = format!("(module (rec {}))", "(type (func))".repeat(2 * half + 1));
        assert!(found(&types).is_some());
        let inside =
            format!("(component (core {} (core {})", &functions(half)[1..], &functions(half)[1..]);
        assert!(found(&inside).is_some());
        let exports = |count: usize| -> String {
            (0..count).map(|number| format!("(export \"e{number}\" (func))")).collect()
        };
        let of_instance = |count| format!("(component (type (instance {})))", exports(count));
        assert_eq!(found(&of_instance(1_000)), None);
        // A type of each function beside its export.
        assert!(found(&of_instance(half + 1)).is_some());
        let nested = format!("(component (type (component (type (instance {})))))", exports(half));
        assert!(found(&nested).is_some());
        let core = "(type (func))".repeat(2 * half);
        let declared = format!("(component (type (component (core type (module {core})))))");
        assert!(found(&declared).is_some());
        let exports: String =
            (0..2 * half).map(|number| format!("(export \"e{number}\" (func $f))")).collect();
        let made = format!(
            "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
               (alias core export $i \"f\" (core func $f)) (core instance {exports}))"
        );
        assert!(found(&made).is_some());
    }

    #[test]
    fn types_inside_of_each_other_count() {
        // A component whose one type declares a type, and so on; deeper than its text may be.
        let nested = |depth: usize| {
            let mut types = vec![1];
            (1..depth).for_each(|_| types.extend([0x41_u8, 1, 1]));
            types.extend([0x41_u8, 0]);
            let mut bytes = b"\0asm\x0d\0\x01\0\x07".to_vec();
            bytes.extend([(types.len() & 0x7f) as u8 | 0x80, (types.len() >> 7) as u8]);
            bytes.extend(types);
            too_much(&bytes).unwrap()
        };
        assert_eq!(nested(TYPES_DEPTH_MAX), None);
        let much = nested(TYPES_DEPTH_MAX + 1).unwrap();
        assert_eq!((much.used, much.allowed), (101, 100));
    }

    #[test]
    fn what_a_core_module_says_of_its_contract_counts() {
        let types = "(type (func))".repeat(COMPONENT_ITEMS_MAX as usize);
        let described = wat::parse_str(format!("(component {types})")).unwrap();
        let mut module = wat::parse_str("(module (func))").unwrap();
        let name = b"component-type:a";
        let mut section = vec![name.len() as u8];
        section.extend_from_slice(name);
        section.extend_from_slice(&described);
        module.push(0);
        // The length in seven bits a byte.
        let mut left = section.len();
        while left >= 0x80 {
            module.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        module.push(left as u8);
        module.extend_from_slice(&section);
        assert!(too_much(&module).unwrap().is_some());
    }
}
