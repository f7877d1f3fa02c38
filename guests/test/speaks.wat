;; Test guest: its `_initialize` writes `かぶ` into the log, in the encoding that the tests choose: the
;; bytes and their count are put in by them.
(data (i32.const 512) "TEXT")
(func (export "_initialize")
  (call $log (i32.const 1) (i64.const 0) (i32.const 512) (i32.const COUNT)))
