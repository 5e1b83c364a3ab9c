"""From files to arrays; it knows no scenario."""
