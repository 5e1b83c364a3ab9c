"""Federated statistics: queries to clients, their private answers, and the results."""
