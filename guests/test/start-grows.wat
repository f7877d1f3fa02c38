;; Test guest: its start function asks over and over for memory that its own maximum does not allow, which its
;; tests give it.
(func $forever (loop (drop (memory.grow (i32.const 1))) br 0))
(start $forever)
