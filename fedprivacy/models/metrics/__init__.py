"""Metrics of a model on held-out records, each a small class in one registry."""
