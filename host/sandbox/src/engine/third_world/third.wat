;; A guest of the third world.
(module
  (import "kumiki:third/venue@1.0.0" "send" (func $send (param i32 i32 i64 i32)))
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 4096))
  ;; A block that changes its size keeps what it holds: texts of UTF-16 are laid out in two steps.
  (func (export "cabi_realloc")
    (param $old i32) (param $size i32) (param $align i32) (param $new i32) (result i32)
    (local $to i32)
    (local.set $to (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $to) (local.get $new)))
    (memory.copy (local.get $to) (local.get $old)
      (select (local.get $size) (local.get $new) (i32.lt_u (local.get $size) (local.get $new))))
    local.get $to)
  ;; The answer of the venue stands at 64, as the host wrote it: it is the guest's own too.
  (func (export "kumiki:third/guest@1.0.0#order") (param i32 i32 i64) (result i32)
    (call $send (local.get 0) (local.get 1) (local.get 2) (i32.const 64))
    i32.const 64)
  (func (export "kumiki:third/guest@1.0.0#spin") (loop br 0))
  (func (export "kumiki:third/guest@1.0.0#grow") (param i32) (result i32)
    (memory.grow (local.get 0)))
)
