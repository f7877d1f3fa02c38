//! How much there is to a component, counted before a compiler sees it.
//!
//! What the engine keeps of each function, type or export is a thousand times what a file needs for it, and a
//! component may make instances of components that make instances: a file of 10 KB can stand for millions.

use domain::limits::{COMPONENT_INSTANCES_MAX, COMPONENT_ITEMS_MAX};
use wasmparser::{
    ComponentAlias, ComponentDefinedType, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ComponentType, ComponentTypeDeclaration, CompositeInnerType, CoreType,
    Instance, InstanceTypeDeclaration, Parser, Payload, RecGroup, Result, SubType,
};

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

/// What a component has more of than [`COMPONENT_ITEMS_MAX`] or [`COMPONENT_INSTANCES_MAX`].
///
/// # Errors
/// When it cannot be read.
pub(crate) fn too_much(component: &[u8]) -> Result<Option<TooMuch>> {
    // None for a module, which makes no instances.
    let mut scopes = vec![Some(Scope::default())];
    let (mut items, mut instances) = (0_u64, 0_u64);
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        items += count(&payload)?;
        match payload {
            Payload::ModuleSection { .. } => scopes.push(None),
            Payload::ComponentSection { .. } => scopes.push(Some(Scope::default())),
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
        if items > COMPONENT_ITEMS_MAX {
            let what = "or more functions, types, imports, exports and the like";
            return Ok(Some(TooMuch { what, used: items, allowed: COMPONENT_ITEMS_MAX }));
        }
    }
    let what = "or more instances of modules and components";
    Ok((instances > COMPONENT_INSTANCES_MAX).then_some(TooMuch {
        what,
        used: instances,
        allowed: COMPONENT_INSTANCES_MAX,
    }))
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

/// How many things a section lists.
fn count(payload: &Payload<'_>) -> Result<u64> {
    let count = match payload {
        // One entry may be a group of many types.
        Payload::TypeSection(groups) => {
            return groups.clone().into_iter().map(|group| Ok(types_of(&group?))).sum();
        }
        Payload::ComponentTypeSection(types) => {
            return types.clone().into_iter().map(|of| Ok(declared(&of?))).sum();
        }
        Payload::ImportSection(part) => part.count(),
        Payload::FunctionSection(part) => part.count(),
        Payload::TableSection(part) => part.count(),
        Payload::MemorySection(part) => part.count(),
        Payload::TagSection(part) => part.count(),
        Payload::GlobalSection(part) => part.count(),
        Payload::ExportSection(part) => part.count(),
        Payload::ElementSection(part) => part.count(),
        Payload::DataSection(part) => part.count(),
        Payload::InstanceSection(part) => part.count(),
        Payload::CoreTypeSection(types) => {
            return types.clone().into_iter().map(|of| Ok(core_type(&of?))).sum();
        }
        Payload::ComponentInstanceSection(part) => part.count(),
        Payload::ComponentAliasSection(part) => part.count(),
        Payload::ComponentCanonicalSection(part) => part.count(),
        Payload::ComponentImportSection(part) => part.count(),
        Payload::ComponentExportSection(part) => part.count(),
        Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => 1,
        _ => 0,
    };
    Ok(u64::from(count))
}

/// A type with what it declares.
fn declared(of: &ComponentType<'_>) -> u64 {
    let inside = match of {
        ComponentType::Component(all) => {
            let each = all.iter().map(|one| match one {
                ComponentTypeDeclaration::Type(of) => declared(of),
                _ => 1,
            });
            each.sum()
        }
        ComponentType::Instance(all) => {
            let each = all.iter().map(|one| match one {
                InstanceTypeDeclaration::Type(of) => declared(of),
                _ => 1,
            });
            each.sum()
        }
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

/// A core type with what it declares.
fn core_type(of: &CoreType<'_>) -> u64 {
    match of {
        CoreType::Rec(group) => types_of(group),
        CoreType::Module(all) => 1 + all.len() as u64,
    }
}

/// Core types, each with the values that it takes and gives, a hundred of which count as one.
fn types_of(group: &RecGroup) -> u64 {
    let values = |of: &SubType| match &of.composite_type.inner {
        CompositeInnerType::Func(of) => of.params().len() + of.results().len(),
        CompositeInnerType::Struct(of) => of.fields.len(),
        _ => 0,
    };
    group.types().map(|of| 1 + values(of) as u64 / 100).sum()
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
    }
}
