"""Comparisons, tuning and audits: many runs of one scenario, and what they show together."""
