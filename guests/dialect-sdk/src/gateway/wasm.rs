//! The component's side of the contract of gateways: generated bindings, and a dialect behind them.

use super::GatewayDialect;

#[expect(
    missing_docs,
    reason = "generated; the contract in wit/gateway-mapping documents every item"
)]
#[cfg_attr(
    target_arch = "wasm32",
    expect(clippy::allow_attributes_without_reason, reason = "generated")
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/gateway-mapping",
        world: "gateway-mapping",
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "kumiki_dialect_sdk::gateway::wasm::bindings",
        additional_derives: [PartialEq, Eq],
    });
}

#[cfg(target_arch = "wasm32")]
pub use bindings::export;

use bindings::exports::kumiki::gateway_mapping::guest as wit;

impl<T: GatewayDialect> wit::Guest for T {
    fn describe() -> wit::Description {
        <T as GatewayDialect>::describe()
    }

    fn classify(status: u16, body: String) -> wit::GatewayError {
        <T as GatewayDialect>::classify(status, &body)
    }

    fn read_board(message: String) -> Result<wit::Board, String> {
        <T as GatewayDialect>::read_board(&message)
    }
}
