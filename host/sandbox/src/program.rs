//! Holds a component against the text of its contract.

use wit_parser::{PackageId, Resolve, SourceMap};

use crate::contract::Contract;

/// A contract, parsed, as if its package had this version.
pub(crate) fn parsed(contract: &Contract, version: &str) -> Result<(Resolve, PackageId), String> {
    let package = |version: &str| format!("package {}@{version};", contract.package);
    let mut sources = SourceMap::default();
    for &(name, text) in contract.files {
        sources.push_str(name, text.replace(&package(contract.version), &package(version)));
    }
    let mut resolve = Resolve::default();
    let group = sources.parse().map_err(|(_, error)| error.to_string())?;
    let package = resolve.push_group(group).map_err(|error| error.to_string())?;
    Ok((resolve, package))
}

/// Checks that the component is valid, and one of this contract with this version of its interfaces.
pub(crate) fn check(contract: &Contract, version: &str, component: &[u8]) -> Result<(), String> {
    let (resolve, package) = parsed(contract, version)?;
    let world = resolve
        .select_world(&[package], Some(contract.world))
        .map_err(|error| error.to_string())?;
    wit_component::targets(&resolve, world, component).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{FORMULA, STRATEGY};

    #[test]
    fn a_component_is_held_against_the_contract() {
        let component = wat::parse_str("(component)").unwrap();
        for contract in [&STRATEGY, &FORMULA] {
            for version in ["1.0.0", "1.0.1"] {
                let error = check(contract, version, &component).unwrap_err();
                let guest = format!("{}/guest@{version}", contract.package);
                assert!(error.contains(&guest), "{error}");
            }
        }
    }

    #[test]
    fn what_is_not_valid_is_refused() {
        let mut component = wat::parse_str("(component (core module))").unwrap();
        component.truncate(component.len() - 3);
        assert!(check(&STRATEGY, "1.0.0", &component).is_err());
    }
}
