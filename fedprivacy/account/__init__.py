"""Accounts of populations: what many runs over the same clients may cost together."""
