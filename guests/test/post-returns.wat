;; Test guest: a strategy that frees its answers after they were read, as garbage-collected languages
;; do, and traps when it is called again before. It stands alone, because its calls are its own.
(module
  (memory (export "memory") 1)
  (global $open (mut i32) (i32.const 0))
  (func $enter (if (global.get $open) (then unreachable)) (global.set $open (i32.const 1)))
  (func $leave (if (i32.eqz (global.get $open)) (then unreachable)) (global.set $open (i32.const 0)))
  (func (export "kumiki:strategy/guest@1.0.0#init") (param i32 i32 i32 i32) (result i32)
    call $enter
    i32.const 64)
  (func (export "cabi_post_kumiki:strategy/guest@1.0.0#init") (param i32) call $leave)
  (func (export "kumiki:strategy/guest@1.0.0#start") (param i64) call $enter)
  (func (export "cabi_post_kumiki:strategy/guest@1.0.0#start") call $leave)
  (func (export "kumiki:strategy/guest@1.0.0#advance")
    (param i32 i64 i32 i64 i64 i64 i64 i64 i64 i32) (result i32)
    call $enter
    local.get 9)
  ;; It is told what it answered.
  (func (export "cabi_post_kumiki:strategy/guest@1.0.0#advance") (param i32)
    (if (i32.eqz (local.get 0)) (then unreachable))
    call $leave)
  (func (export "kumiki:strategy/guest@1.0.0#on-order-events") (param i32 i32) call $enter)
  (func (export "cabi_post_kumiki:strategy/guest@1.0.0#on-order-events") call $leave)
  (func (export "kumiki:strategy/guest@1.0.0#on-account-events") (param i32 i32) call $enter)
  (func (export "cabi_post_kumiki:strategy/guest@1.0.0#on-account-events") call $leave)
  (func (export "kumiki:strategy/guest@1.0.0#stop") (param i64) call $enter)
  (func (export "cabi_post_kumiki:strategy/guest@1.0.0#stop") call $leave)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
)
