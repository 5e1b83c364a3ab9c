"""The drawn ROC curve, as result documents store it and the report reads it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from fedprivacy.io.document_part import Part

Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Curve(Part):
    """An ROC curve, or the bound on one, as points with straight lines between them.

    Args:
        fpr: False positive rates, not falling.
        tpr: True positive rates, not falling.
    """

    fpr: tuple[Rate, ...] = Field(min_length=2)
    tpr: tuple[Rate, ...]

    @model_validator(mode="after")
    def _rising(self) -> Curve:
        if len(self.fpr) != len(self.tpr):
            raise ValueError("fpr and tpr are not equally many")
        if any(later < earlier for axis in (self.fpr, self.tpr) for earlier, later in pairwise(axis)):
            raise ValueError("fpr and tpr must not fall")
        return self

    def at(self, fpr: float) -> float:
        """The TPR at an FPR; the upper end of an upright part."""
        x, y = np.array(self.fpr), np.array(self.tpr)
        after = int(np.searchsorted(x, fpr, side="right"))
        if after == 0 or after == len(x):
            return float(y[max(0, after - 1)])
        share = (fpr - x[after - 1]) / (x[after] - x[after - 1])
        return float(y[after - 1] + share * (y[after] - y[after - 1]))

    def to_json(self) -> dict[str, list[float]]:
        """The points as a JSON object."""
        return {"fpr": list(self.fpr), "tpr": list(self.tpr)}
