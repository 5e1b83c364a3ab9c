"""The cost of other libraries' privacy settings, accounted for with the ledger's own events."""
