;; Gives a strategy the trades of a batch one by one, each as a window of its own, without leaving
;; WebAssembly in between. The trades are in a memory that the strategy cannot reach, so it sees none of
;; them before its turn.
(module
  (import "strategy" "memory" (memory $strategy 0))
  ;; `advance` with a `window` laid flat: the case, the joined payloads, and the limit.
  (import "strategy" "advance"
    (func $advance (param i32 i64 i32 i64 i64 i64 i64 i64 i64 i32) (result i32)))
  ;; What the host answers itself: an instrument, and where the strategy wants the record.
  (import "host" "get-position" (func $ask-host (param i32 i32)))

  ;; 0: not 0 once the strategy has written into its log or asked for something with `act`, so that the host has to
  ;; be told.
  ;; 4: how many positions are answered here; 0 between the batches.
  ;; 64: those positions as the contract lays them out, 32 bytes each.
  ;; From 1,024 on four columns for 2,048 trades: times, prices, shares, and instruments.
  (memory $batch (export "batch") 1 1)

  ;; Hands over the trades from $row up to $limit, at least one of them, and stops where the host has to be
  ;; told. Tells how many rows are handled, or -1 when the strategy says something else.
  (func (export "feed") (param $row i32) (param $limit i32) (result i32)
    (local $at i32)
    (loop $next
      (local.set $at (i32.shl (local.get $row) (i32.const 3)))
      (if (i32.ne (i32.const 1)
            (call $advance
              (i32.const 1)
              (i64.load $batch offset=1024 (local.get $at))
              (i32.load16_u $batch offset=50176 (i32.shl (local.get $row) (i32.const 1)))
              (i64.load $batch offset=17408 (local.get $at))
              (i64.load $batch offset=33792 (local.get $at))
              (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)
              (i32.const 1)))
        (then (return (i32.const -1))))
      (local.set $row (i32.add (local.get $row) (i32.const 1)))
      (br_if $next
        (i32.and
          (i32.lt_u (local.get $row) (local.get $limit))
          (i32.eqz (i32.load $batch (i32.const 0))))))
    (local.get $row))

  ;; Answers what is known here, and asks the host for everything else, also what is to be refused.
  (func (export "get-position") (param $instrument i32) (param $to i32)
    (local $from i32)
    ;; A number of 16 bits in one of 32.
    (local.set $instrument (i32.and (local.get $instrument) (i32.const 0xffff)))
    (if (i32.and
          (i32.lt_u (local.get $instrument) (i32.load $batch (i32.const 4)))
          (i32.eqz (i32.and (local.get $to) (i32.const 7))))
      (then
        (local.set $from (i32.shl (local.get $instrument) (i32.const 5)))
        (i64.store $strategy (local.get $to) (i64.load $batch offset=64 (local.get $from)))
        (i64.store $strategy offset=8 (local.get $to) (i64.load $batch offset=72 (local.get $from)))
        (i64.store $strategy offset=16 (local.get $to) (i64.load $batch offset=80 (local.get $from)))
        (i64.store $strategy offset=24 (local.get $to) (i64.load $batch offset=88 (local.get $from)))
        (return)))
    (call $ask-host (local.get $instrument) (local.get $to))))
