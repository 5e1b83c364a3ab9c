"""Writing scenarios: `fedprivacy new`, the reference of keys, the catalogue of ready ones."""
