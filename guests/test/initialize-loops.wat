;; Test guest: it never finishes setting itself up.
(func $_initialize (export "_initialize") (loop br 0))
