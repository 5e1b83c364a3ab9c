"""Membership attacks: what an observer can tell of who is in the data, in figures, beside the bound."""
