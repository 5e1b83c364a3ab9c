"""The tasks that a model can learn, by the form of a record's targets."""

from __future__ import annotations

from typing import Final

CLASSIFICATION: Final = "classification"  # one class of several
REGRESSION: Final = "regression"  # one number or several
MULTI_LABEL: Final = "multi-label"  # several labels, each yes or no
NEXT_TOKEN: Final = "next-token"  # at each position of a text the token that follows
NAMED = (CLASSIFICATION, NEXT_TOKEN)  # a model names the class, or token, of its largest output
TASKS = (CLASSIFICATION, REGRESSION, MULTI_LABEL, NEXT_TOKEN)
