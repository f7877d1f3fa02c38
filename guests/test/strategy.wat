;; A strategy in WebAssembly's text: it takes every call and does nothing. The attacks beside it are
;; further fields, which the tests put in the place of the last line but one.
(module
  (import "kumiki:strategy/log@1.0.0" "write" (func $log (param i32 i64 i32 i32)))
  (import "kumiki:strategy/actions@1.0.0" "act" (func $act (param i32 i32)))
  (memory (export "memory") 1)
  ;; `init` answers with what stands at 64: zeros, which are "well".
  (func (export "kumiki:strategy/guest@1.0.0#init") (param i32 i32 i32 i32) (result i32)
    i32.const 64)
  (func (export "kumiki:strategy/guest@1.0.0#start") (param i64))
  (func (export "kumiki:strategy/guest@1.0.0#advance")
    (param i32 i64 i32 i64 i64 i64 i64 i64 i64 i32) (result i32)
    local.get 9)
  (func (export "kumiki:strategy/guest@1.0.0#on-order-events") (param i32 i32))
  (func (export "kumiki:strategy/guest@1.0.0#on-account-events") (param i32 i32))
  (func (export "kumiki:strategy/guest@1.0.0#stop") (param i64))
  ;; Memory is handed out once, from 1,024 on; this strategy is given little.
  (global $free (mut i32) (i32.const 1024))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    global.get $free
    (global.set $free (i32.add (global.get $free) (local.get 3))))
  ;; MORE
)
