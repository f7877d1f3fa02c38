;; Test guest: it traps while it sets itself up.
(func $_initialize (export "_initialize") unreachable)
