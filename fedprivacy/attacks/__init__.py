"""Membership attacks: what an observer can tell of who is in the data, in honest figures, beside the bound."""
