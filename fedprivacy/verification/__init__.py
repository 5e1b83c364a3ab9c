"""Stored records: what a document states is derived again from its parts, and held against it."""
