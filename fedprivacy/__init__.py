"""fedprivacy: simulate federated learning with differential privacy, and say who is protected from whom."""

__version__ = "0.1.0"
