"""From the ledger of releases to a guarantee for each observer."""
