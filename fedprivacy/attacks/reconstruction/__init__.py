"""Reconstruction: attacks that rebuild training records from updates, and the bound on their success."""
