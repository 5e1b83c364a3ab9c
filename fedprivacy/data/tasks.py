"""The tasks that a model can learn, by the form of a record's targets."""

from __future__ import annotations

CLASSIFICATION = "classification"  # one class of several
REGRESSION = "regression"  # one number or several
MULTI_LABEL = "multi-label"  # several labels, each yes or no
TASKS = (CLASSIFICATION, REGRESSION, MULTI_LABEL)
