"""Published claims, each with our figure beside it and the epsilon of its own setting."""
