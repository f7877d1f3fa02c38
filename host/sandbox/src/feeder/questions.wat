;; Stands for `get-position` while the strategy is made, because what answers it needs the strategy's memory.
(module
  (table (export "answers") 1 1 funcref)
  (func (export "get-position") (param i32 i32)
    (return_call_indirect (param i32 i32) (local.get 0) (local.get 1) (i32.const 0))))
