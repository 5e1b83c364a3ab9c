"""The frozen privacy plan of a run: how it is calibrated, and how a mechanism is chosen for it."""
