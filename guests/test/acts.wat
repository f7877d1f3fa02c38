;; Test guest: at every 40th row it sends a market order, sets a mark, tells its reason and writes into
;; the log, whatever the size of the window. Its texts are in the encoding that the tests choose: TEXT and
;; COUNT are what it says, SPELLED is `ID-0000` and SPELLED_COUNT its count, WIDTH the bytes of a digit.
(module
  (import "kumiki:strategy/log@1.0.0" "write" (func $log (param i32 i64 i32 i32)))
  (import "kumiki:strategy/actions@1.0.0" "act" (func $act (param i32 i32)))
  (memory (export "memory") 4)
  (global $free (mut i32) (i32.const 8192))
  (global $row (mut i32) (i32.const 0))
  (global $total (mut i32) (i32.const 0))
  (global $orders (mut i32) (i32.const 0))
  (data (i32.const 512) "SPELLED")
  (data (i32.const 4096) "TEXT")
  ;; What the host has written is used up when a call ends.
  (func $done (global.set $free (i32.const 8192)))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    global.get $free
    (global.set $free (i32.add (global.get $free) (local.get 3))))
  ;; `init` answers with what stands at 64: zeros, which are "well".
  (func (export "kumiki:strategy/guest@1.0.0#init") (param i32 i32 i32 i32) (result i32)
    call $done
    i32.const 64)
  (func (export "kumiki:strategy/guest@1.0.0#start") (param i64))
  (func (export "kumiki:strategy/guest@1.0.0#on-order-events") (param i32 i32) call $done)
  (func (export "kumiki:strategy/guest@1.0.0#on-account-events") (param i32 i32) call $done)
  (func (export "kumiki:strategy/guest@1.0.0#stop") (param i64))
  (func (export "kumiki:strategy/guest@1.0.0#advance")
    (param $case i32) (param i64 i32 i64 i64 i64 i64 i64 i64) (param $limit i32) (result i32)
    ;; 0 is `resume`.
    (if (local.get $case) (then (global.set $row (i32.const 0))))
    (loop $next
      (global.set $row (i32.add (global.get $row) (i32.const 1)))
      (global.set $total (i32.add (global.get $total) (i32.const 1)))
      (if (i32.rem_u (global.get $total) (i32.const 40))
        (then (br_if $next (i32.lt_u (global.get $row) (local.get $limit))))
        (else call $speak)))
    call $done
    global.get $row)
  ;; A digit of the number of orders, at its place from the end of the identifier.
  (func $digit (param $place i32) (param $value i32)
    (local $at i32)
    (local.set $at (i32.add (i32.const 512) (i32.mul (i32.const WIDTH) (local.get $place))))
    (i32.store8 (local.get $at)
      (i32.add (i32.const 48) (i32.rem_u (local.get $value) (i32.const 10)))))
  (func $name
    (global.set $orders (i32.add (global.get $orders) (i32.const 1)))
    (call $digit (i32.const 6) (global.get $orders))
    (call $digit (i32.const 5) (i32.div_u (global.get $orders) (i32.const 10)))
    (call $digit (i32.const 4) (i32.div_u (global.get $orders) (i32.const 100)))
    (call $digit (i32.const 3) (i32.div_u (global.get $orders) (i32.const 1000))))
  (func $text (param $at i32)
    (i32.store (local.get $at) (i32.const 4096))
    (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const COUNT)))
  (func $identifier (param $at i32)
    (i32.store (local.get $at) (i32.const 512))
    (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const SPELLED_COUNT)))
  ;; Three actions of 104 bytes from 1,024 on; each has its case first and its record 8 bytes later.
  (func $speak
    call $name
    (memory.fill (i32.const 1024) (i32.const 0) (i32.const 312))
    ;; submit: identifier, instrument 0, buy and sell in turns, market, 100 shares, the day.
    (call $identifier (i32.const 1032))
    (i32.store8 (i32.const 1042) (i32.and (global.get $orders) (i32.const 1)))
    (i32.store8 (i32.const 1043) (i32.const 0))
    (i64.store (i32.const 1048) (i64.const 100))
    ;; emit-signal: annotate, with a tag and a note.
    (i32.store8 (i32.const 1128) (i32.const 4))
    (i32.store8 (i32.const 1138) (i32.const 3))
    (i32.store8 (i32.const 1160) (i32.const 1))
    (call $text (i32.const 1164))
    (i32.store8 (i32.const 1172) (i32.const 1))
    (call $text (i32.const 1176))
    ;; narrate: the order, a title and a body.
    (i32.store8 (i32.const 1232) (i32.const 5))
    (i32.store8 (i32.const 1240) (i32.const 1))
    (call $identifier (i32.const 1244))
    (call $text (i32.const 1252))
    (call $text (i32.const 1260))
    (call $act (i32.const 1024) (i32.const 3))
    (call $log (i32.const 1) (i64.const 0) (i32.const 4096) (i32.const COUNT)))
)
