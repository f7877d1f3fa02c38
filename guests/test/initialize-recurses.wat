;; Test guest: it calls itself without end while it sets itself up.
(func $_initialize (export "_initialize") call $_initialize)
