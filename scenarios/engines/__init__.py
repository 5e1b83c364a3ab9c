"""Engines: where the Flower apps of a run are run, each behind a Flower grid."""
