"""Attacks on the released model by an outsider who has only its final weights or outputs.

`references` trains the models that an attacker compares with, `signals` computes what models reveal of
records, `lira`, `rmia`, `thresholds`, `shadow` and `network` score records, `battery` runs them all on one
target model, `exposure` computes which records are exposed, `concentration` how unevenly.
"""
