"""Federated statistics: what clients are asked, how answers are told, and what becomes of them."""
