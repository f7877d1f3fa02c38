;; Gives a strategy the trades of a batch one by one, each as a window of its own, without leaving
;; WebAssembly in between. The trades are in a memory that the strategy cannot reach, so it sees none of
;; them before its turn. Tells it what happened to its orders, too, with all memory that this needs of it.
(module
  (import "strategy" "memory" (memory $strategy 0))
  ;; `advance` with a `window` laid flat: the case, the joined payloads, and the limit.
  (import "strategy" "advance"
    (func $advance (param i32 i64 i32 i64 i64 i64 i64 i64 i64 i32) (result i32)))
  ;; Its allocator: an old block, its size, the alignment, and the new size.
  (import "strategy" "cabi_realloc" (func $allocate (param i32 i32 i32 i32) (result i32)))
  (import "strategy" "on-order-events" (func $tell (param i32 i32)))
  ;; What the host answers itself: an instrument, and where the strategy wants the record.
  (import "host" "get-position" (func $ask-host (param i32 i32)))

  ;; 0: not 0 once the strategy has written into its log or asked for something with `act`, so that the host has to
  ;; be told.
  ;; 4: how many positions are answered here; 0 between the batches.
  ;; 8: not 0 once the strategy is told of its orders, and not only asked for memory: it may call the host then.
  ;; 64: those positions as the contract lays them out, 32 bytes each.
  ;; From 1,024 on four columns for 2,048 trades: times, prices, shares, and instruments.
  ;; From 54,272 on what happened to orders: a block of 12 bytes for each text (where its pointer goes, where
  ;; it is, and its bytes), then the list, then the texts.
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

  ;; Tells of $count events, the list of which is at $list; the blocks of its texts end at $end. A place that is
  ;; none is a trap.
  (func (export "deliver") (param $list i32) (param $count i32) (param $end i32)
    (local $size i32) (local $to i32) (local $first i32) (local $block i32) (local $from i32)
    (local.set $size (i32.mul (local.get $count) (i32.const 88)))
    (local.set $first
      (call $allocate (i32.const 0) (i32.const 0) (i32.const 8) (local.get $size)))
    (if (i32.and (local.get $first) (i32.const 7)) (then (unreachable)))
    ;; The memory may be larger once the texts have their place: the list's was none all the same.
    (if (i64.gt_u
          (i64.add (i64.extend_i32_u (local.get $first)) (i64.extend_i32_u (local.get $size)))
          (i64.shl (i64.extend_i32_u (memory.size $strategy)) (i64.const 16)))
      (then (unreachable)))
    (local.set $block (i32.const 54272))
    (if (i32.lt_u (local.get $block) (local.get $end)) (then
      (loop $next
        (local.set $size (i32.load $batch offset=8 (local.get $block)))
        (local.set $from (i32.load $batch offset=4 (local.get $block)))
        (local.set $to
          (call $allocate (i32.const 0) (i32.const 0) (i32.const 1) (local.get $size)))
        (i32.store $batch (i32.load $batch (local.get $block)) (local.get $to))
        (if (i32.lt_u (i32.sub (local.get $size) (i32.const 4)) (i32.const 5))
          (then
            ;; 4 to 8 bytes, as almost all have: the first four and the last four.
            (i32.store $strategy (local.get $to) (i32.load $batch (local.get $from)))
            (local.set $size (i32.sub (local.get $size) (i32.const 4)))
            (i32.store $strategy (i32.add (local.get $to) (local.get $size))
              (i32.load $batch (i32.add (local.get $from) (local.get $size)))))
          (else
            ;; Also where there is nothing to copy, which must be inside the memory then.
            (memory.copy $strategy $batch (local.get $to) (local.get $from) (local.get $size))))
        (br_if $next
          (i32.lt_u
            (local.tee $block (i32.add (local.get $block) (i32.const 12)))
            (local.get $end))))))
    (local.set $to (local.get $first))
    (local.set $end (i32.add (local.get $list) (i32.mul (local.get $count) (i32.const 88))))
    (loop $record
      (i64.store $strategy (local.get $to) (i64.load $batch (local.get $list)))
      (i64.store $strategy offset=8 (local.get $to) (i64.load $batch offset=8 (local.get $list)))
      (i64.store $strategy offset=16 (local.get $to) (i64.load $batch offset=16 (local.get $list)))
      (i64.store $strategy offset=24 (local.get $to) (i64.load $batch offset=24 (local.get $list)))
      (i64.store $strategy offset=32 (local.get $to) (i64.load $batch offset=32 (local.get $list)))
      (i64.store $strategy offset=40 (local.get $to) (i64.load $batch offset=40 (local.get $list)))
      (i64.store $strategy offset=48 (local.get $to) (i64.load $batch offset=48 (local.get $list)))
      (i64.store $strategy offset=56 (local.get $to) (i64.load $batch offset=56 (local.get $list)))
      (i64.store $strategy offset=64 (local.get $to) (i64.load $batch offset=64 (local.get $list)))
      (i64.store $strategy offset=72 (local.get $to) (i64.load $batch offset=72 (local.get $list)))
      (i64.store $strategy offset=80 (local.get $to) (i64.load $batch offset=80 (local.get $list)))
      (local.set $to (i32.add (local.get $to) (i32.const 88)))
      (br_if $record
        (i32.lt_u
          (local.tee $list (i32.add (local.get $list) (i32.const 88)))
          (local.get $end))))
    (i32.store $batch (i32.const 8) (i32.const 1))
    (call $tell (local.get $first) (local.get $count)))

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
