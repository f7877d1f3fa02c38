;; Test guest: a formula module whose value is the close. NAME, VERSION and SUMMARY are its texts in the
;; encoding that the tests choose, each with its count.
(module
  (memory (export "memory") 8)
  (global $free (mut i32) (i32.const 8192))
  (data (i32.const 512) "NAME")
  (data (i32.const 1024) "VERSION")
  (data (i32.const 2048) "SUMMARY")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    global.get $free
    (global.set $free (i32.add (global.get $free) (local.get 3))))
  (func $text (param $at i32) (param $place i32) (param $count i32)
    (i32.store (local.get $at) (local.get $place))
    (i32.store (i32.add (local.get $at) (i32.const 4)) (local.get $count)))
  ;; Name, version, summary, and no parameters.
  (func (export "kumiki:formula/guest@1.0.0#describe") (result i32)
    (call $text (i32.const 64) (i32.const 512) (i32.const COUNT_OF_NAME))
    (call $text (i32.const 72) (i32.const 1024) (i32.const COUNT_OF_VERSION))
    (call $text (i32.const 80) (i32.const 2048) (i32.const COUNT_OF_SUMMARY))
    i32.const 64)
  ;; One input: the close (3) of the day itself.
  (func (export "kumiki:formula/guest@1.0.0#configure") (param i32 i32) (result i32)
    (i32.store8 (i32.const 160) (i32.const 3))
    (call $text (i32.const 132) (i32.const 160) (i32.const 1))
    i32.const 128)
  ;; The column that was handed over is the answer; what comes next is written from the start again.
  (func (export "kumiki:formula/guest@1.0.0#evaluate") (param i32 i32 i32) (result i32)
    (call $text (i32.const 192) (local.get 1) (local.get 0))
    (global.set $free (i32.const 8192))
    i32.const 192)
)
