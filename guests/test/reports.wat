;; Test guest: it reports a parameter as the tests have it: name and value, and how often it is done in
;; `init` and in `start` (INIT and START are calls of `$tell`) are put in by them.
(module
  (import "kumiki:strategy/parameters@1.0.0" "report" (func $report (param i32 i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "NAME")
  (data (i32.const 768) "VALUE")
  (func $tell (call $report (i32.const 512) (i32.const N_BYTES) (i32.const 768) (i32.const V_BYTES)))
  (func (export "kumiki:strategy/guest@1.0.0#init") (param i32 i32 i32 i32) (result i32)
    INIT
    i32.const 64)
  (func (export "kumiki:strategy/guest@1.0.0#start") (param i64) START)
  (func (export "kumiki:strategy/guest@1.0.0#advance")
    (param i32 i64 i32 i64 i64 i64 i64 i64 i64 i32) (result i32)
    local.get 9)
  (func (export "kumiki:strategy/guest@1.0.0#on-order-events") (param i32 i32))
  (func (export "kumiki:strategy/guest@1.0.0#on-account-events") (param i32 i32))
  (func (export "kumiki:strategy/guest@1.0.0#stop") (param i64))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 32768)
)
