//! A dialect of version 1.0 of the contract, which exports one interface.

use domain::order_mapping::OrderMapping as _;
use wit_component::{StringEncoding, embed_component_metadata};

use crate::contract::ORDER_MAPPING;
use crate::{Sandbox, SandboxConfig, program};

/// Its program: it describes itself, and every other function traps.
fn old() -> Vec<u8> {
    let mut text = r#"(module
        (memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
        ;; Places and lengths of name, version and summary, two booleans, and those of the field of rows.
        (data (i32.const 16) "\40\00\00\00\03\00\00\00\44\00\00\00\01\00\00\00")
        (data (i32.const 32) "\48\00\00\00\01\00\00\00\00\00\00\00\4c\00\00\00\04\00\00\00")
        (data (i32.const 64) "old")
        (data (i32.const 68) "1")
        (data (i32.const 72) "x")
        (data (i32.const 76) "rows")
        (func (export "GUEST#describe") (result i32) i32.const 16)"#
        .to_owned();
    for (name, parameters) in [
        ("plan", 1),
        ("new-order", 1),
        ("modify-order", 1),
        ("cancel-order", 5),
        ("cancel-all", 0),
        ("list-orders", 0),
        ("judge", 8),
        ("read-orders", 2),
        ("read-frame", 2),
    ] {
        let parameters = "i32 ".repeat(parameters);
        text += &format!(
            r#"(func (export "GUEST#{name}") (param {parameters}) (result i32) unreachable)"#
        );
    }
    let text = format!("{text})").replace("GUEST", "kumiki:order-mapping/guest@1.0.0");
    let mut module = wat::parse_str(text).unwrap();
    let (resolve, package) = program::parsed(&ORDER_MAPPING, "1.0.0").unwrap();
    let world = resolve.select_world(&[package], Some(ORDER_MAPPING.world)).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

#[test]
fn a_dialect_of_1_0_is_for_this_machine_and_without_details_of_fills() {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let module = sandbox.dialect_from_bytes("old", old()).unwrap();
    let description = module.description();
    assert_eq!((description.name.as_str(), description.order_rows.as_str()), ("old", "rows"));
    assert!(description.hosts.is_empty() && description.fill_rows.is_none(), "{description:?}");
    assert!(description.is_made_for("127.0.0.1", true));
    assert!(!description.is_made_for("kabuka.e-shiten.jp", false));
    let refused = module.instantiate().unwrap().list_fills("1", None).unwrap().unwrap_err();
    assert!(refused.text.starts_with("NO_DETAILS: "), "{refused}");
}
