//! Proves from a component's own bytes that the host may call the program inside directly: there is
//! one program, every function of the contract is lifted from it and every import lowered to it with
//! options that [`crate::abi`] speaks, and nothing else is between. What it finds are the names and
//! options to call with; what it does not find is the reason to leave the call to the engine.

mod shim;
#[cfg(test)]
mod tests;
mod wiring;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use domain::GuestLimit;
use domain::fault::FaultKind;
use wasmparser::{CanonicalOption, ComponentExternalKind, ExternalKind, Parser, Payload, TypeRef};
use wasmtime::Result;

use crate::contract::Contract;
use crate::state::State;
use crate::version::InterfaceName;
use shim::{Fixup, Shim};
use wiring::{ComponentPart, CoreExport, CoreFunction, CoreInstance, Function, Wiring};

/// How the program inside a component is called directly.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Where the program's module is in the component.
    pub(crate) program: Range<usize>,
    /// What each import of the program is.
    pub(crate) imports: Vec<HostImport>,
    /// The program's export that is its memory.
    pub(crate) memory: String,
    /// The program's export that is its allocator.
    pub(crate) realloc: String,
    /// The program's exports that set it up, in order.
    pub(crate) set_up: Vec<String>,
    /// The functions of the contract, by their names there.
    pub(crate) functions: BTreeMap<String, LiftedFunction>,
    /// Modules that the component instantiates; the direct path needs one of them.
    pub(crate) instances: usize,
}

impl Plan {
    /// The limit on instances holds for the component as it is, so that it is the same on both paths.
    ///
    /// # Errors
    /// With the breach in the state when there are more.
    pub(crate) fn allow_instances(&self, state: &mut State) -> Result<()> {
        let allowed = state.limits.instances;
        if self.instances <= allowed {
            return Ok(());
        }
        let (limit, allowed) = (GuestLimit::Instances, allowed as u64);
        state.breach(FaultKind::Budget { limit, used: allowed + 1, allowed })
    }
}

/// An import of the program: where it looks for it, and which function of the contract it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostImport {
    pub(crate) module: String,
    pub(crate) name: String,
    /// The interface without package and version: `log`.
    pub(crate) interface: String,
    pub(crate) function: String,
}

/// A function of the contract: the program's exports behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiftedFunction {
    pub(crate) export: String,
    /// What is called when the answer has been read.
    pub(crate) post_return: Option<String>,
}

/// Why a component's program is not called directly.
type Proof<T> = Result<T, String>;

/// Finds out how the program of a valid component of this contract is called directly.
///
/// # Errors
/// The reason why it cannot be.
pub(crate) fn prove(contract: &Contract, component: &[u8]) -> Proof<Plan> {
    let wiring = Wiring::read(component)?;
    if wiring.starts {
        return Err("it has a start function of the component model".to_owned());
    }
    only_names_inside(component, &wiring)?;
    let lifted = lifted_functions(contract, component, &wiring)?;
    Prover::new(component, &wiring, &lifted)?.plan(&lifted)
}

/// Sees to it that no component inside, of which an instance is made, does work of its own: the direct path would
/// leave that out.
fn only_names_inside(component: &[u8], wiring: &Wiring<'_>) -> Proof<()> {
    let made = wiring.instances.iter().filter_map(|part| match part {
        ComponentPart::Component { component, .. } => Some(*component),
        _ => None,
    });
    for inside in made.collect::<BTreeSet<u32>>() {
        renamed(inside_bytes(component, wiring, inside)?)?;
    }
    Ok(())
}

/// A component inside.
fn inside_bytes<'w>(component: &'w [u8], wiring: &Wiring<'_>, inside: u32) -> Proof<&'w [u8]> {
    let range = wiring.components.get(inside as usize).cloned().flatten();
    let bytes = range.and_then(|range| component.get(range));
    bytes.ok_or_else(|| "a component inside is not its own".to_owned())
}

/// A lifted function: its core function and options.
type Lift<'w> = (&'w CoreFunction<'w>, &'w [CanonicalOption]);

/// The functions of the contract's guest interface, as they are lifted.
fn lifted_functions<'w>(
    contract: &Contract,
    component: &'w [u8],
    wiring: &'w Wiring<'w>,
) -> Proof<BTreeMap<String, Lift<'w>>> {
    let is_guest = |name: &str| {
        InterfaceName::parse(name).is_some_and(|name| {
            name.package == contract.package && name.interface == contract.guest
        })
    };
    let instance = wiring.exports.iter().find_map(|(name, kind, index)| {
        (*kind == ComponentExternalKind::Instance && is_guest(name))
            .then(|| wiring.instances.get(*index as usize))?
    });
    let lift = |index: u32| match wiring.functions.get(index as usize) {
        Some(Function::Lifted { core, options }) => {
            let core = wiring.core_functions.get(*core as usize);
            core.map(|core| (core, &options[..])).ok_or_else(|| "a function is missing".to_owned())
        }
        _ => Err("a function of it is made by a component inside".to_owned()),
    };
    match instance {
        Some(ComponentPart::Bundle(exports)) => exports
            .iter()
            .filter(|(_, kind, _)| *kind == ComponentExternalKind::Func)
            .map(|(name, _, index)| Ok((name.clone(), lift(*index)?)))
            .collect(),
        Some(ComponentPart::Component { component: inside, arguments }) => {
            let renamed = renamed(inside_bytes(component, wiring, *inside)?)?;
            let argument = |import: &str| {
                let is_it = |(name, kind, _): &&(&str, ComponentExternalKind, u32)| {
                    *name == import && *kind == ComponentExternalKind::Func
                };
                arguments.iter().find(is_it).map(|(_, _, index)| *index)
            };
            renamed
                .into_iter()
                .map(|(name, import)| {
                    let index = argument(import).ok_or("a function is missing")?;
                    Ok((name, lift(index)?))
                })
                .collect()
        }
        _ => Err(format!("`{}` is not made by the component itself", contract.guest)),
    }
}

/// The functions of a component that does nothing but give its imports other names and types.
fn renamed(component: &[u8]) -> Proof<BTreeMap<String, &str>> {
    let wiring = Wiring::read(component)?;
    let is_plain = wiring.modules.is_empty()
        && wiring.components.is_empty()
        && wiring.core_instances.is_empty()
        && wiring.core_functions.is_empty()
        && !wiring.starts;
    if !is_plain {
        return Err("it is composed of components that do work of their own".to_owned());
    }
    let mut found = BTreeMap::new();
    for (name, kind, index) in &wiring.exports {
        match (kind, wiring.functions.get(*index as usize)) {
            (ComponentExternalKind::Func, Some(Function::Imported(import))) => {
                found.insert(name.clone(), *import);
            }
            (ComponentExternalKind::Func, _) => {
                return Err("a function of it is made by a component inside".to_owned());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// What is known of a component while its plan is made.
struct Prover<'w> {
    component: &'w [u8],
    wiring: &'w Wiring<'w>,
    /// The core instance of the program.
    program: u32,
    shims: BTreeMap<u32, Shim<'w>>,
    fixups: Vec<(u32, Fixup<'w>)>,
}

impl<'w> Prover<'w> {
    fn new(
        component: &'w [u8],
        wiring: &'w Wiring<'w>,
        lifted: &BTreeMap<String, Lift<'w>>,
    ) -> Proof<Self> {
        let mut programs = lifted.values().map(|(core, _)| match core {
            CoreFunction::Export(export) => Ok(export.instance),
            _ => Err("it exports one of its own imports".to_owned()),
        });
        let program = programs.next().ok_or("it exports no function")??;
        if programs.any(|other| other != Ok(program)) {
            return Err("its functions are those of several programs".to_owned());
        }
        let (shims, fixups) = (BTreeMap::new(), Vec::new());
        let mut prover = Self { component, wiring, program, shims, fixups };
        prover.sort_modules()?;
        Ok(prover)
    }

    /// Sees to it that beside the program there is nothing but wiring.
    fn sort_modules(&mut self) -> Proof<()> {
        let mut programs = 0;
        for (index, instance) in (0..).zip(&self.wiring.core_instances) {
            let CoreInstance::Module { .. } = instance else { continue };
            let module = self.module_of(index)?;
            let read_error = |error: wasmparser::BinaryReaderError| error.to_string();
            if index == self.program {
                programs += 1;
            } else if let Some(shim) = Shim::read(module).map_err(read_error)? {
                self.shims.insert(index, shim);
            } else if let Some(fixup) = Fixup::read(module).map_err(read_error)? {
                self.fixups.push((index, fixup));
            } else {
                programs += 1;
            }
        }
        match programs {
            1 => Ok(()),
            many => Err(format!("it is composed of {many} programs")),
        }
    }

    /// The module of a core instance.
    fn module_of(&self, instance: u32) -> Proof<&'w [u8]> {
        let range = self.module_range(instance).ok_or("a module of it is not its own")?;
        self.component.get(range).ok_or_else(|| "a module ends outside of it".to_owned())
    }

    fn module_range(&self, instance: u32) -> Option<Range<usize>> {
        match self.wiring.core_instances.get(instance as usize)? {
            CoreInstance::Module { module, .. } => {
                self.wiring.modules.get(*module as usize)?.clone()
            }
            CoreInstance::Bundle(_) => None,
        }
    }

    /// The index of what a core instance imports under a name, if a bundle hands it over.
    fn argument(&self, instance: u32, (module, name): (&str, &str)) -> Option<(ExternalKind, u32)> {
        match self.wiring.core_instances.get(self.giver(instance, module)? as usize)? {
            CoreInstance::Bundle(items) => items
                .iter()
                .find(|(item, ..)| *item == name)
                .map(|(_, kind, index)| (*kind, *index)),
            CoreInstance::Module { .. } => None,
        }
    }

    /// The core instance from which another imports a module.
    fn giver(&self, instance: u32, module: &str) -> Option<u32> {
        match self.wiring.core_instances.get(instance as usize)? {
            CoreInstance::Module { arguments, .. } => {
                arguments.iter().find(|(name, _)| *name == module).map(|(_, index)| *index)
            }
            CoreInstance::Bundle(_) => None,
        }
    }

    /// What a core instance imports under a name: a function of the component, or an export of
    /// another core instance.
    fn imported_function(
        &self,
        instance: u32,
        place: (&'w str, &'w str),
    ) -> Option<CoreFunction<'w>> {
        if let Some((ExternalKind::Func, index)) = self.argument(instance, place) {
            return self.wiring.core_functions.get(index as usize).cloned();
        }
        let giver = self.giver(instance, place.0)?;
        let is_module =
            matches!(self.wiring.core_instances.get(giver as usize)?, CoreInstance::Module { .. });
        is_module.then_some(CoreFunction::Export(CoreExport { instance: giver, name: place.1 }))
    }

    /// The function with which a fixup fills the slot behind a shim's function.
    fn behind_shim(&self, export: CoreExport<'_>) -> Option<CoreFunction<'w>> {
        let shim = self.shims.get(&export.instance)?;
        let slot = shim.slots.get(export.name)?;
        let mut found = None;
        for (instance, fixup) in &self.fixups {
            if fixup.table.and_then(|place| self.table(*instance, place)) != Some(export.instance) {
                continue;
            }
            // The last one to fill a slot is the one that counts.
            let filled = fixup.filled.iter().rev().find(|(filled, _)| filled == slot);
            if let Some((_, place)) = filled {
                found = self.imported_function(*instance, *place);
            }
        }
        found
    }

    /// The shim whose table a core instance imports.
    fn table(&self, instance: u32, place: (&str, &str)) -> Option<u32> {
        let (giver, name) = match self.argument(instance, place) {
            Some((ExternalKind::Table, index)) => {
                let table = self.wiring.tables.get(index as usize)?;
                (table.instance, table.name)
            }
            Some(_) => return None,
            None => (self.giver(instance, place.0)?, place.1),
        };
        (self.shims.get(&giver)?.table == Some(name)).then_some(giver)
    }

    fn plan(&self, lifted: &BTreeMap<String, Lift<'w>>) -> Proof<Plan> {
        let mut options = Options::default();
        let mut functions = BTreeMap::new();
        for (name, (core, of_lift)) in lifted {
            let post_return = options.add(self, of_lift)?;
            let CoreFunction::Export(CoreExport { name: export, .. }) = core else {
                return Err("it exports one of its own imports".to_owned());
            };
            let function = LiftedFunction {
                export: (*export).to_owned(),
                post_return: post_return.map(str::to_owned),
            };
            functions.insert(name.clone(), function);
        }
        let imports = self.imports(&mut options)?;
        Ok(Plan {
            program: self.module_range(self.program).ok_or("its program is not its own")?,
            imports,
            memory: options.memory.ok_or("none of its functions names a memory")?.to_owned(),
            realloc: options.realloc.ok_or("none of its functions names an allocator")?.to_owned(),
            set_up: self.set_up()?,
            functions,
            instances: self.instances(),
        })
    }

    /// Modules that the component instantiates.
    fn instances(&self) -> usize {
        let is_module =
            |instance: &&CoreInstance<'_>| matches!(instance, CoreInstance::Module { .. });
        self.wiring.core_instances.iter().filter(is_module).count()
    }

    /// What every import of the program is.
    fn imports(&self, options: &mut Options<'w>) -> Proof<Vec<HostImport>> {
        let mut found = Vec::new();
        for payload in Parser::new(0).parse_all(self.module_of(self.program)?) {
            let Payload::ImportSection(imports) = payload.map_err(|error| error.to_string())?
            else {
                continue;
            };
            for import in imports.into_imports() {
                let import = import.map_err(|error| error.to_string())?;
                if !matches!(import.ty, TypeRef::Func(_)) {
                    return Err(format!("its program imports `{}`, no function", import.name));
                }
                found.push(self.host_import((import.module, import.name), options)?);
            }
        }
        Ok(found)
    }

    fn host_import(
        &self,
        place: (&'w str, &'w str),
        options: &mut Options<'w>,
    ) -> Proof<HostImport> {
        let unknown = || format!("`{}` of its program is no function of the contract", place.1);
        let function = match self.imported_function(self.program, place).ok_or_else(unknown)? {
            CoreFunction::Export(export) => self.behind_shim(export).ok_or_else(unknown)?,
            other => other,
        };
        let CoreFunction::Lowered { function, options: of_lower } = function else {
            return Err(unknown());
        };
        let Some(Function::Export { instance, name }) =
            self.wiring.functions.get(function as usize)
        else {
            return Err(unknown());
        };
        let Some(ComponentPart::Imported(interface)) =
            self.wiring.instances.get(*instance as usize)
        else {
            return Err(unknown());
        };
        options.add(self, &of_lower)?;
        let interface = InterfaceName::parse(interface).ok_or_else(unknown)?.interface;
        Ok(HostImport {
            module: place.0.to_owned(),
            name: place.1.to_owned(),
            interface: interface.to_owned(),
            function: (*name).to_owned(),
        })
    }

    /// The functions of the program that are called when it is made.
    fn set_up(&self) -> Proof<Vec<String>> {
        let mut found = Vec::new();
        for (instance, fixup) in &self.fixups {
            for place in &fixup.called {
                match self.imported_function(*instance, *place) {
                    Some(CoreFunction::Export(export)) if export.instance == self.program => {
                        found.push(export.name.to_owned());
                    }
                    _ => return Err("it is set up by something else than itself".to_owned()),
                }
            }
        }
        Ok(found)
    }
}

/// The canonical options that all functions share.
#[derive(Default)]
struct Options<'w> {
    memory: Option<&'w str>,
    realloc: Option<&'w str>,
}

impl<'w> Options<'w> {
    /// Takes the options of one function; tells its post-return.
    fn add(&mut self, prover: &Prover<'w>, options: &[CanonicalOption]) -> Proof<Option<&'w str>> {
        let mut post_return = None;
        let exported = |index: u32| match prover.wiring.core_functions.get(index as usize) {
            Some(CoreFunction::Export(export)) if export.instance == prover.program => {
                Ok(export.name)
            }
            _ => Err("an allocator or post-return is not its program's".to_owned()),
        };
        for option in options {
            match *option {
                CanonicalOption::UTF8 => {}
                CanonicalOption::UTF16 => return Err("its texts are UTF-16".to_owned()),
                CanonicalOption::CompactUTF16 => {
                    return Err("its texts are Latin-1 or UTF-16".to_owned());
                }
                CanonicalOption::Memory(index) => {
                    let memory = prover.wiring.memories.get(index as usize);
                    let own = memory.filter(|memory| memory.instance == prover.program);
                    let name = own.ok_or("its memory is not its program's")?.name;
                    if *self.memory.get_or_insert(name) != name {
                        return Err("its functions use several memories".to_owned());
                    }
                }
                CanonicalOption::Realloc(index) => {
                    let name = exported(index)?;
                    if *self.realloc.get_or_insert(name) != name {
                        return Err("its functions use several allocators".to_owned());
                    }
                }
                CanonicalOption::PostReturn(index) => post_return = Some(exported(index)?),
                CanonicalOption::Async | CanonicalOption::Callback(_) => {
                    return Err("a function of it is asynchronous".to_owned());
                }
                CanonicalOption::CoreType(_) | CanonicalOption::Gc => {
                    return Err("its values lie in the engine's heap".to_owned());
                }
            }
        }
        Ok(post_return)
    }
}
