"""Attacks on the released model, from outside: no seat in the federation, the final weights or outputs alone.

`references` trains the models that an attacker compares with, `signals` says what models make of records,
`lira`, `rmia`, `thresholds`, `shadow` and `network` score records, `battery` runs them all on one target
model, `exposure` says whose records are told, `concentration` how unevenly.
"""
