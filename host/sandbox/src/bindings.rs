//! The contract as Rust types, generated from `wit/strategy`.

#![allow(
    missing_docs,
    clippy::allow_attributes_without_reason,
    clippy::expect_used,
    clippy::unwrap_used,
    unused_qualifications,
    unreachable_pub,
    reason = "generated; the contract documents every item"
)]

wasmtime::component::bindgen!({
    path: "../../wit/strategy",
    world: "strategy",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: { default: trappable },
});
