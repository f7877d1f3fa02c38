//! The contracts of `wit/`: what each kind of component must export and may import.

use domain::fault::{Fault, FaultKind, Identity};
use domain::formula::FormulaFault;
use domain::order_mapping::MappingFault;

use crate::error::SandboxError;
use crate::version::{self, InterfaceName};

/// One contract: everything that differs between the kinds of components.
///
/// Another one costs a value of this type, generated bindings in [`crate::general`] and the host's
/// side of its imports there. A direct path is optional: it is [`crate::abi`] written by hand, worth
/// it only where a component is called for every trade.
#[derive(Debug)]
pub(crate) struct Contract {
    /// What a component of it is called.
    pub(crate) kind: &'static str,
    /// The files of the package, with their text.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The package: `kumiki:strategy`.
    pub(crate) package: &'static str,
    /// The version of the package that this host has. Guests of the same major version run.
    pub(crate) version: &'static str,
    /// The world that a component must fit.
    pub(crate) world: &'static str,
    /// The interface that every component of it exports: `guest`.
    pub(crate) guest: &'static str,
    /// The same with package and version.
    pub(crate) guest_name: &'static str,
    /// The interfaces of the package that it may import.
    pub(crate) imports: &'static [&'static str],
    /// What may be imported, in words for messages.
    pub(crate) imports_shown: &'static str,
    /// Whether exports named like callbacks of order books and quotes are refused.
    pub(crate) refuses_quotes: bool,
    /// Whether there is a direct path for it.
    pub(crate) is_called_directly: bool,
    /// The fault of a component that failed in a call before it ran.
    pub(crate) fault_of: fn(Identity, &'static str, FaultKind) -> SandboxError,
}

/// What a name is to a contract.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Belonging<'a> {
    /// One of the contract's interfaces, in a version that fits.
    Fits(InterfaceName<'a>),
    /// One of the contract's interfaces, in a version that does not fit.
    OtherVersion,
    /// Something else.
    Foreign,
}

impl Contract {
    /// What the name of an import is to this contract.
    pub(crate) fn judge_import<'a>(&self, name: &'a str) -> Belonging<'a> {
        self.judge(name, self.imports)
    }

    /// What the name of an export is to this contract.
    pub(crate) fn judge_export<'a>(&self, name: &'a str) -> Belonging<'a> {
        self.judge(name, &[self.guest])
    }

    /// The error for a component that is not one of this contract.
    pub(crate) fn refuse(&self, name: &str, reason: String) -> SandboxError {
        SandboxError::NotOfContract {
            kind: self.kind,
            name: name.to_owned(),
            export: self.guest_name,
            reason,
        }
    }

    fn judge<'a>(&self, name: &'a str, interfaces: &[&str]) -> Belonging<'a> {
        match InterfaceName::parse(name) {
            Some(parsed)
                if parsed.package == self.package && interfaces.contains(&parsed.interface) =>
            {
                match version::fits(parsed.version, self.version) {
                    true => Belonging::Fits(parsed),
                    false => Belonging::OtherVersion,
                }
            }
            _ => Belonging::Foreign,
        }
    }
}

/// The contract of strategies.
pub(crate) static STRATEGY: Contract = Contract {
    kind: "strategy",
    files: &[
        ("types.wit", include_str!("../../../wit/strategy/types.wit")),
        ("host.wit", include_str!("../../../wit/strategy/host.wit")),
        ("world.wit", include_str!("../../../wit/strategy/world.wit")),
    ],
    package: "kumiki:strategy",
    version: "1.0.0",
    world: "strategy",
    guest: "guest",
    guest_name: "kumiki:strategy/guest@1.0.0",
    imports: &["types", "actions", "log", "parameters", "portfolio", "aggressor"],
    imports_shown: "only kumiki:strategy/{actions, log, parameters, portfolio, aggressor}@1.0.0",
    refuses_quotes: true,
    is_called_directly: true,
    fault_of: |Identity { component, sha256 }, export, kind| {
        let (ts_event, backtrace) = (None, Vec::new());
        SandboxError::Fault(Box::new(Fault {
            component,
            sha256,
            export,
            ts_event,
            kind,
            backtrace,
        }))
    },
};

/// Formula modules.
pub(crate) static FORMULA: Contract = Contract {
    kind: "formula",
    files: &[("formula.wit", include_str!("../../../wit/formula/formula.wit"))],
    package: "kumiki:formula",
    version: "1.0.0",
    world: "formula",
    guest: "guest",
    guest_name: "kumiki:formula/guest@1.0.0",
    imports: &[],
    imports_shown: "nothing",
    refuses_quotes: false,
    is_called_directly: true,
    fault_of: |Identity { component, sha256 }, export, kind| {
        let backtrace = Vec::new();
        SandboxError::Formula(Box::new(FormulaFault { component, sha256, export, kind, backtrace }))
    },
};

/// Dialects of brokers.
pub(crate) static ORDER_MAPPING: Contract = Contract {
    kind: "dialect",
    files: &[("order-mapping.wit", include_str!("../../../wit/order-mapping/order-mapping.wit"))],
    package: "kumiki:order-mapping",
    version: "1.1.0",
    world: "order-mapping",
    guest: "guest",
    guest_name: "kumiki:order-mapping/guest@1.1.0",
    imports: &[],
    imports_shown: "nothing",
    refuses_quotes: false,
    is_called_directly: false,
    fault_of: |Identity { component, sha256 }, export, kind| {
        let backtrace = Vec::new();
        SandboxError::Dialect(Box::new(MappingFault { component, sha256, export, kind, backtrace }))
    },
};

/// Dialects of local gateways.
pub(crate) static GATEWAY_MAPPING: Contract = Contract {
    kind: "gateway dialect",
    files: &[(
        "gateway-mapping.wit",
        include_str!("../../../wit/gateway-mapping/gateway-mapping.wit"),
    )],
    package: "kumiki:gateway-mapping",
    version: "1.0.0",
    world: "gateway-mapping",
    guest: "guest",
    guest_name: "kumiki:gateway-mapping/guest@1.0.0",
    imports: &[],
    imports_shown: "nothing",
    refuses_quotes: false,
    is_called_directly: false,
    fault_of: ORDER_MAPPING.fault_of,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_have_the_package_and_version_that_is_said() {
        for contract in [&STRATEGY, &FORMULA, &ORDER_MAPPING, &GATEWAY_MAPPING] {
            let package = format!("package {}@{};", contract.package, contract.version);
            assert!(contract.files.iter().all(|(_, text)| text.contains(&package)), "{package}");
            let guest = format!("{}/{}@{}", contract.package, contract.guest, contract.version);
            assert_eq!(contract.guest_name, guest);
        }
    }

    #[test]
    fn names_belong_by_interface_and_major_version() {
        for name in ["kumiki:strategy/log@1.0.0", "kumiki:strategy/log@1.0.1"] {
            assert!(matches!(STRATEGY.judge_import(name), Belonging::Fits(_)), "{name}");
        }
        let other = STRATEGY.judge_import("kumiki:strategy/log@2.0.0");
        assert_eq!(other, Belonging::OtherVersion);
        for name in [
            "kumiki:strategy/clock@1.1.0",
            "wasi:io/poll@0.2.9",
            "log",
            "kumiki:strategy/guest@1.0.0",
        ] {
            assert_eq!(STRATEGY.judge_import(name), Belonging::Foreign, "{name}");
        }
        let export = STRATEGY.judge_export("kumiki:strategy/guest@1.3.0");
        assert!(matches!(export, Belonging::Fits(_)));
    }
}
