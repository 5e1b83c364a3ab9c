"""Choosing hyperparameters on private data, with the choice charged for."""
