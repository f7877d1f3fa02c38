//! The general path: the engine's component model with generated bindings. It takes every valid
//! component of a contract, whatever it is made of: many core modules, composed components, texts in
//! UTF-16. Another contract costs its bindings and conversions here, and no layout by hand.

mod formula;
mod from_guest;
mod gateway_mapping;
mod host;
mod order_mapping;
mod strategy;
mod to_guest;

use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::version::InterfaceName;

pub(crate) use formula::{Formula, FormulaReady};
pub(crate) use gateway_mapping::{Gateway, GatewayReady};
pub(crate) use order_mapping::{Mapping, MappingReady};
pub(crate) use strategy::{Strategy, StrategyLinker, StrategyReady};

/// Bytes of host memory that lifting may take for each byte that a guest may hand over in one call:
/// the host's records are wider than the guest's. How many bytes the guest handed over is counted
/// when they are here.
const HOST_BYTES_PER_BYTE: usize = 3;
const _: () = assert!(
    size_of::<strategy_bindings::kumiki::strategy::types::Action>()
        <= HOST_BYTES_PER_BYTE * crate::abi::ACTION_BYTES
);

mod strategy_bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/strategy",
        world: "strategy",
        ownership: Borrowing { duplicate_if_necessary: false },
        imports: { default: trappable },
    });
}

mod formula_bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/formula",
        world: "formula",
        ownership: Borrowing { duplicate_if_necessary: false },
    });
}

mod order_mapping_bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/order-mapping",
        world: "order-mapping-at-venue",
    });
}

mod gateway_mapping_bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/gateway-mapping",
        world: "gateway-mapping",
    });
}

/// Every function that a component imports, by interface and name.
pub(crate) fn imported_functions(component: &Component) -> Vec<(String, String)> {
    let engine = component.engine();
    let mut found = Vec::new();
    for (name, item) in component.component_type().imports(engine) {
        let (Some(name), ComponentItem::ComponentInstance(instance)) =
            (InterfaceName::parse(name), item.ty)
        else {
            continue;
        };
        for (function, item) in instance.exports(engine) {
            if matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                found.push((name.interface.to_owned(), function.to_owned()));
            }
        }
    }
    found
}
