"""Models by name or by code, and the flat vector in which their weights travel."""
