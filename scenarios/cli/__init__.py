"""The `fedprivacy` command: parses options, calls, prints."""
