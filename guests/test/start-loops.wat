;; Test guest: its start function never returns.
(func $forever (loop br 0))
(start $forever)
