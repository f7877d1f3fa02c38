//! Components in WebAssembly's text: what is proven of them, and why of others nothing is.

use super::*;
use crate::contract::STRATEGY;

/// A program with all that a lifted function may name.
const PROGRAM: &str = r#"(core module $m
    (memory (export "m") 1) (memory (export "m2") 1)
    (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "r2") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "f") (param i32 i32))
    (func (export "p")))
  (core instance $i (instantiate $m))"#;

/// A component that lifts one function, `start` of a text, with these options.
fn lifting(options: &str) -> String {
    format!(
        r#"{PROGRAM}
        (func $f (param "t" string) (canon lift (core func $i "f") {options}))
        (instance $e (export "start" (func $f)))
        (export "kumiki:strategy/guest@1.0.0" (instance $e))"#
    )
}

fn proven(parts: &str) -> Proof<Plan> {
    prove(&STRATEGY, &wat::parse_str(format!("(component {parts})")).unwrap())
}

fn reason(parts: &str) -> String {
    proven(parts).unwrap_err()
}

const MEMORY: &str = r#"(memory (core memory $i "m"))"#;
const REALLOC: &str = r#"(realloc (core func $i "r"))"#;

#[test]
fn names_and_options_are_read() {
    let post_return = r#"(post-return (core func $i "p"))"#;
    let plan = proven(&lifting(&format!("string-encoding=utf8 {MEMORY} {REALLOC} {post_return}")));
    let plan = plan.unwrap();
    assert_eq!((plan.memory.as_str(), plan.realloc.as_str()), ("m", "r"));
    let post_return = Some("p".to_owned());
    let start = LiftedFunction { export: "f".to_owned(), post_return };
    assert_eq!(plan.functions, [("start".to_owned(), start)].into());
    assert!(plan.imports.is_empty() && plan.set_up.is_empty());
    let plain = proven(&lifting(&format!("{MEMORY} {REALLOC}"))).unwrap();
    assert_eq!(plain.functions["start"].post_return, None, "UTF-8 is what nothing says");
}

#[test]
fn other_encodings_are_a_reason() {
    let with = |encoding: &str| reason(&lifting(&format!("{encoding} {MEMORY} {REALLOC}")));
    assert_eq!(with("string-encoding=utf16"), "its texts are UTF-16");
    assert_eq!(with("string-encoding=latin1+utf16"), "its texts are Latin-1 or UTF-16");
}

#[test]
fn one_memory_and_one_allocator_serve_all() {
    let two = |options: &str| {
        let second = format!(
            r#"(func $g (param "t" string) (canon lift (core func $i "f") {options}))
            (instance $e (export "start" (func $f)) (export "stop" (func $g)))"#
        );
        let first = lifting(&format!("{MEMORY} {REALLOC}"));
        reason(&first.replace(r#"(instance $e (export "start" (func $f)))"#, &second))
    };
    let other_memory = format!(r#"(memory (core memory $i "m2")) {REALLOC}"#);
    assert_eq!(two(&other_memory), "its functions use several memories");
    let other_realloc = format!(r#"{MEMORY} (realloc (core func $i "r2"))"#);
    assert_eq!(two(&other_realloc), "its functions use several allocators");
}

#[test]
fn a_second_program_is_a_reason() {
    let other = r#"(core module $o (memory 1)) (core instance (instantiate $o))"#;
    let text = lifting(&format!("{MEMORY} {REALLOC}")) + other;
    assert_eq!(reason(&text), "it is composed of 2 programs");
    let unused = lifting(&format!("{MEMORY} {REALLOC}")) + "(core module (memory 1))";
    assert!(proven(&unused).is_ok(), "what is not instantiated does nothing");
}

/// A component whose program imports `write` of the log through a shim that `fixup` fills.
fn importing(shim_body: &str, fixup: &str) -> String {
    format!(
        r#"(import "kumiki:strategy/log@1.0.0"
            (instance $log (export "write" (func (param "t" string)))))
        (core module $shim
            (type $t (func (param i32 i32)))
            (table (export "table") 1 funcref)
            (func (export "0") (param i32 i32) {shim_body}))
        (core instance $s (instantiate $shim))
        (core module $m
            (import "host" "say" (func (param i32 i32)))
            (memory (export "m") 1)
            (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable)
            (func (export "init"))
            (func (export "f") (param i32 i32)))
        (core instance $i (instantiate $m
            (with "host" (instance (export "say" (func $s "0"))))))
        (alias core export $i "m" (core memory $memory))
        (core func $write (canon lower (func $log "write") (memory $memory)))
        {fixup}
        (func $f (param "t" string) (canon lift (core func $i "f") {MEMORY} {REALLOC}))
        (instance $e (export "start" (func $f)))
        (export "kumiki:strategy/guest@1.0.0" (instance $e))"#
    )
}

const JUMP: &str = "local.get 0 local.get 1 i32.const 0 call_indirect (type $t)";
const FIXUP: &str = r#"
    (core module $fixup
        (import "s" "table" (table 1 funcref))
        (import "a" "0" (func $w (param i32 i32)))
        (import "m" "init" (func $init))
        (elem (i32.const 0) func $w)
        (func $set-up call $init)
        (start $set-up))
    (core instance (instantiate $fixup
        (with "s" (instance $s)) (with "m" (instance $i))
        (with "a" (instance (export "0" (func $write))))))"#;

#[test]
fn imports_are_followed_through_a_shim() {
    let plan = proven(&importing(JUMP, FIXUP)).unwrap();
    let import = HostImport {
        module: "host".to_owned(),
        name: "say".to_owned(),
        interface: "log".to_owned(),
        function: "write".to_owned(),
    };
    assert_eq!(plan.imports, [import]);
    assert_eq!(plan.set_up, ["init"], "what the fixup calls is called");
}

#[test]
fn a_shim_that_does_more_is_a_program() {
    for body in [
        "local.get 1 local.get 0 i32.const 0 call_indirect (type $t)",
        "local.get 0 i32.const 7 i32.const 0 call_indirect (type $t)",
        "unreachable",
    ] {
        assert_eq!(reason(&importing(body, FIXUP)), "it is composed of 2 programs", "{body}");
    }
    let counting = FIXUP.replace("call $init)", "call $init i32.const 1 drop)");
    assert_eq!(reason(&importing(JUMP, &counting)), "it is composed of 2 programs");
    assert_eq!(
        reason(&importing(JUMP, "")),
        "`say` of its program is no function of the contract",
        "nothing fills the slot"
    );
}

#[test]
fn a_component_inside_that_works_is_a_reason() {
    let inner = lifting(&format!("{MEMORY} {REALLOC}"));
    let text = format!(
        r#"(component $c {inner}) (instance $n (instantiate $c))
        (alias export $n "kumiki:strategy/guest@1.0.0" (instance $e))
        (export "kumiki:strategy/guest@1.0.0" (instance $e))"#
    );
    assert_eq!(reason(&text), "it is composed of components that do work of their own");
    assert_eq!(reason(""), "`guest` is not made by the component itself");
}
