//! The component's side of the contract: generated bindings, and a dialect behind them. The types are
//! the same without wasm, so tests see what the host sees.

use crate::Dialect;

#[expect(
    missing_docs,
    reason = "generated; the contract in wit/order-mapping documents every item"
)]
#[cfg_attr(
    target_arch = "wasm32",
    expect(clippy::allow_attributes_without_reason, reason = "generated")
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/order-mapping",
        world: "order-mapping-at-venue",
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "kumiki_dialect_sdk::wasm::bindings",
        additional_derives: [PartialEq, Eq],
    });
}

#[cfg(target_arch = "wasm32")]
pub use bindings::export;

use bindings::exports::kumiki::order_mapping::{guest as wit, venue};

impl<T: Dialect> wit::Guest for T {
    fn describe() -> wit::Description {
        <T as Dialect>::describe()
    }

    fn plan(order: wit::Order) -> Result<wit::OrderPlan, wit::Refusal> {
        <T as Dialect>::plan(&order)
    }

    fn new_order(
        order: wit::Order,
        account: String,
        allocations: Vec<wit::Allocation>,
    ) -> Result<wit::Request, wit::Refusal> {
        <T as Dialect>::new_order(&order, &account, &allocations)
    }

    fn modify_order(change: wit::Change) -> Result<wit::Request, wit::Refusal> {
        <T as Dialect>::modify_order(&change)
    }

    fn cancel_order(
        venue_order_id: String,
        business_day: Option<String>,
    ) -> Result<wit::Request, wit::Refusal> {
        <T as Dialect>::cancel_order(&venue_order_id, business_day.as_deref())
    }

    fn cancel_all() -> wit::Request {
        <T as Dialect>::cancel_all()
    }

    fn list_orders() -> wit::Request {
        <T as Dialect>::list_orders()
    }

    fn judge(answer: wit::Answer) -> wit::Outcome {
        <T as Dialect>::judge(&answer)
    }

    fn read_orders(rows: Vec<Vec<wit::Field>>) -> Vec<Result<wit::OrderRow, String>> {
        rows.iter().map(|row| T::read_order(row)).collect()
    }

    fn read_frame(fields: Vec<wit::Field>) -> Result<wit::Frame, String> {
        <T as Dialect>::read_frame(&fields)
    }
}

impl<T: Dialect> venue::Guest for T {
    fn scope_of() -> venue::Scope {
        <T as Dialect>::scope()
    }

    fn list_fills(
        venue_order_id: String,
        business_day: Option<String>,
    ) -> Result<wit::Request, wit::Refusal> {
        <T as Dialect>::list_fills(&venue_order_id, business_day.as_deref())
    }

    fn read_fills(rows: Vec<Vec<wit::Field>>) -> Vec<Result<venue::ListedFill, String>> {
        rows.iter().map(|row| T::read_fill(row)).collect()
    }
}
