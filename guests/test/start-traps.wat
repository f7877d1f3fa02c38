;; Test guest: its start function traps.
(func $broken unreachable)
(start $broken)
