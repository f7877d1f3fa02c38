//! Reads how a component is put together: its index spaces, without a look at types or code.

use std::ops::Range;

use wasmparser::{
    BinaryReaderError, CanonicalFunction, CanonicalOption, ComponentAlias, ComponentExternalKind,
    ComponentInstance, ComponentOuterAliasKind, ExternalKind, Instance, Parser, Payload,
};

use crate::version::full_name;

/// Something that a core instance exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoreExport<'a> {
    /// The core instance.
    pub(crate) instance: u32,
    pub(crate) name: &'a str,
}

/// A core function of a component.
#[derive(Debug, Clone)]
pub(crate) enum CoreFunction<'a> {
    Export(CoreExport<'a>),
    /// `canon lower`
    Lowered {
        function: u32,
        options: Box<[CanonicalOption]>,
    },
    /// Another built-in.
    Other,
}

/// A core instance.
#[derive(Debug)]
pub(crate) enum CoreInstance<'a> {
    /// A module and the core instances that it imports from.
    Module { module: u32, arguments: Vec<(&'a str, u32)> },
    /// A bundle of what is there already.
    Bundle(Vec<(&'a str, ExternalKind, u32)>),
}

/// A function of the component model.
#[derive(Debug, Clone)]
pub(crate) enum Function<'a> {
    /// An import of the component itself.
    Imported(&'a str),
    /// An export of an instance.
    Export { instance: u32, name: &'a str },
    /// `canon lift`
    Lifted { core: u32, options: Box<[CanonicalOption]> },
}

/// An instance of the component model.
#[derive(Debug, Clone)]
pub(crate) enum ComponentPart<'a> {
    /// An import of the component itself.
    Imported(String),
    /// A component inside and its arguments.
    Component { component: u32, arguments: Vec<(&'a str, ComponentExternalKind, u32)> },
    /// A bundle of what is there already.
    Bundle(Vec<(String, ComponentExternalKind, u32)>),
    /// An instance inside of another.
    Nested,
}

/// The index spaces of one component; what is inside of its components is not among them.
#[derive(Debug, Default)]
pub(crate) struct Wiring<'a> {
    /// Where the modules are; none for one that is not in these bytes.
    pub(crate) modules: Vec<Option<Range<usize>>>,
    pub(crate) core_instances: Vec<CoreInstance<'a>>,
    pub(crate) core_functions: Vec<CoreFunction<'a>>,
    pub(crate) memories: Vec<CoreExport<'a>>,
    pub(crate) tables: Vec<CoreExport<'a>>,
    /// Where the components inside are; none for one that is not in these bytes.
    pub(crate) components: Vec<Option<Range<usize>>>,
    pub(crate) instances: Vec<ComponentPart<'a>>,
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) exports: Vec<(String, ComponentExternalKind, u32)>,
    /// It has a start function of the component model.
    pub(crate) starts: bool,
}

type Reading = Result<(), BinaryReaderError>;

impl<'a> Wiring<'a> {
    /// Reads a component that is known to be valid. For others it is an error or nonsense, but never
    /// a panic.
    pub(crate) fn read(component: &'a [u8]) -> Result<Self, String> {
        let mut wiring = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.map_err(|error| error.to_string())?;
            match &payload {
                Payload::ModuleSection { unchecked_range: range, .. }
                | Payload::ComponentSection { unchecked_range: range, .. } => {
                    if depth == 0 {
                        let range = Some(range.clone());
                        match payload {
                            Payload::ModuleSection { .. } => wiring.modules.push(range),
                            _ => wiring.components.push(range),
                        }
                    }
                    depth += 1;
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ if depth == 0 => wiring.section(payload).map_err(|error| error.to_string())?,
                _ => {}
            }
        }
        Ok(wiring)
    }

    fn section(&mut self, payload: Payload<'a>) -> Reading {
        match payload {
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    self.core_instance(instance?);
                }
            }
            Payload::ComponentInstanceSection(instances) => {
                for instance in instances {
                    self.instance(instance?);
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases {
                    self.alias(alias?);
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    self.canonical(function?);
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    let import = import?;
                    self.import(&import.name, import.ty.kind());
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let name = full_name(&export.name);
                    self.export(name, export.kind, export.index);
                }
            }
            Payload::ComponentStartSection { .. } => self.starts = true,
            _ => {}
        }
        Ok(())
    }

    fn core_instance(&mut self, instance: Instance<'a>) {
        self.core_instances.push(match instance {
            Instance::Instantiate { module_index, args } => CoreInstance::Module {
                module: module_index,
                arguments: args.iter().map(|argument| (argument.name, argument.index)).collect(),
            },
            Instance::FromExports(exports) => {
                let each =
                    |export: &wasmparser::Export<'a>| (export.name, export.kind, export.index);
                CoreInstance::Bundle(exports.iter().map(each).collect())
            }
        });
    }

    fn instance(&mut self, instance: ComponentInstance<'a>) {
        self.instances.push(match instance {
            ComponentInstance::Instantiate { component_index, args } => ComponentPart::Component {
                component: component_index,
                arguments: args.iter().map(|one| (one.name, one.kind, one.index)).collect(),
            },
            ComponentInstance::FromExports(exports) => ComponentPart::Bundle(
                exports.iter().map(|one| (full_name(&one.name), one.kind, one.index)).collect(),
            ),
        });
    }

    fn alias(&mut self, alias: ComponentAlias<'a>) {
        match alias {
            ComponentAlias::CoreInstanceExport { kind, instance_index: instance, name } => {
                let export = CoreExport { instance, name };
                match kind {
                    ExternalKind::Func | ExternalKind::FuncExact => {
                        self.core_functions.push(CoreFunction::Export(export));
                    }
                    ExternalKind::Memory => self.memories.push(export),
                    ExternalKind::Table => self.tables.push(export),
                    ExternalKind::Global | ExternalKind::Tag => {}
                }
            }
            ComponentAlias::InstanceExport { kind, instance_index: instance, name } => match kind {
                ComponentExternalKind::Func => {
                    self.functions.push(Function::Export { instance, name });
                }
                ComponentExternalKind::Instance => self.instances.push(ComponentPart::Nested),
                ComponentExternalKind::Module => self.modules.push(None),
                ComponentExternalKind::Component => self.components.push(None),
                ComponentExternalKind::Type | ComponentExternalKind::Value => {}
            },
            ComponentAlias::Outer { kind, .. } => match kind {
                ComponentOuterAliasKind::CoreModule => self.modules.push(None),
                ComponentOuterAliasKind::Component => self.components.push(None),
                ComponentOuterAliasKind::CoreType | ComponentOuterAliasKind::Type => {}
            },
        }
    }

    fn canonical(&mut self, function: CanonicalFunction) {
        match function {
            CanonicalFunction::Lift { core_func_index: core, options, .. } => {
                self.functions.push(Function::Lifted { core, options });
            }
            CanonicalFunction::Lower { func_index: function, options } => {
                self.core_functions.push(CoreFunction::Lowered { function, options });
            }
            _ => self.core_functions.push(CoreFunction::Other),
        }
    }

    fn import(&mut self, name: &wasmparser::ComponentExternName<'a>, kind: ComponentExternalKind) {
        match kind {
            ComponentExternalKind::Func => self.functions.push(Function::Imported(name.name)),
            ComponentExternalKind::Instance => {
                self.instances.push(ComponentPart::Imported(full_name(name)));
            }
            ComponentExternalKind::Module => self.modules.push(None),
            ComponentExternalKind::Component => self.components.push(None),
            ComponentExternalKind::Type | ComponentExternalKind::Value => {}
        }
    }

    /// An export is also a new name for what it exports, with an index of its own.
    fn export(&mut self, name: String, kind: ComponentExternalKind, index: u32) {
        let at = index as usize;
        match kind {
            ComponentExternalKind::Func => {
                self.functions.extend(self.functions.get(at).cloned());
            }
            ComponentExternalKind::Instance => {
                self.instances.extend(self.instances.get(at).cloned());
            }
            ComponentExternalKind::Module => self.modules.push(None),
            ComponentExternalKind::Component => self.components.push(None),
            ComponentExternalKind::Type | ComponentExternalKind::Value => {}
        }
        self.exports.push((name, kind, index));
    }
}
