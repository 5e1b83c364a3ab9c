"""Poisoning: malicious clients change what the model does; a certificate bounds how much.

`poisoned_records` has the records that they train on, `attack` runs it in trials, `certificate` the most that
a run's noise lets so many of them reach.
"""
