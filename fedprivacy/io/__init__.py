"""Bytes in and out, hardened: what a user or a stranger names is read and written within bounds."""
