"""Random streams: named and counter-based, or from the operating system."""
