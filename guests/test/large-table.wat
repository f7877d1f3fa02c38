;; Test guest: its table has one entry more than allowed.
(table 20001 funcref)
