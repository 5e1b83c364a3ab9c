"""Membership attacks: how well an observer infers who is in the data, compared with the bound."""
