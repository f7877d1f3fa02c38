;; Test guest: each of its memories is within the limit, all together are beyond it.
(memory 400) (memory 400) (memory 400)
