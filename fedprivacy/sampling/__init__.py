"""Random cohorts and batches, each with the DpEvent of its draw."""
