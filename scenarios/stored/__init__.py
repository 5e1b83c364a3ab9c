"""Stored results: listed, shown and compared with each other."""
