"""A published claim, the code that computes our figure, and the result of comparing both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError, RunError

EXPECTED, OTHER_DATA = "as expected", "other data"  # ours is the documented figure


@dataclass(frozen=True)
class Measured:
    """Our figure.

    Args:
        ours: The figure.
        cost: The epsilon of the claim's own setting with observer, delta, unit and adjacency, as fields of a
            guarantee; empty where the setting has none.
        run: The directory of the run that it was measured in; empty without a run.
    """

    ours: float
    cost: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True)
class Place:
    """Where a row finds data and stores runs.

    Args:
        out: The folder of run directories.
        data: The file to read in place of the scenario's own; None for that.
    """

    out: Path
    data: Path | None = None


@dataclass(frozen=True)
class Row:
    """A published claim.

    Args:
        name: The name in the table.
        claim: The claim in words, with the setting.
        source: The publication.
        figure: What both figures are, in words.
        published: The published figure.
        expected: Ours, as the documentation states it; the published one where the claim holds.
        tolerance: The largest difference between ours and the expected figure.
        seconds: The time on 2 cores.
        measure: Computes ours.
        data: Returns the file that a run would read; None without a run.
        other_data: Whether ours is on other data or another model than the published figure, so that the two
            are no comparison.
    """

    name: str
    claim: str
    source: str
    figure: str
    published: float
    expected: float
    tolerance: float
    seconds: float
    measure: Callable[[Place], Measured]
    data: Callable[[Place], Path] | None = None
    other_data: bool = False

    def reproduce(self, place: Place) -> dict[str, Any]:
        """Returns the row of the result document; a row without its data states so and is skipped."""
        stated = {
            "name": self.name,
            "claim": self.claim,
            "source": self.source,
            "figure": self.figure,
            "published": self.published,
            "expected": self.expected,
            "tolerance": self.tolerance,
        }
        empty = {"ours": None, "cost": None, "seconds": None, "run": None}
        if self.data is not None and not (file := self.data(place)).is_file():
            reason = f"its data are not here: {file}. Bring the file, or name it: --data FILE"
            return {**stated, **empty, "status": "skipped", "reason": reason}
        start = time.monotonic()
        try:
            measured = self.measure(place)
        except (RunError, InputError) as error:
            return {**stated, **empty, "status": "failed", "reason": str(error)}
        agrees = abs(measured.ours - self.expected) <= self.tolerance
        return {
            **stated,
            "ours": measured.ours,
            "cost": dict(measured.cost) or None,
            # The time of a run may depend on records: its own document has it for the operator.
            "seconds": None if measured.run else round(time.monotonic() - start, 1),
            "run": measured.run or None,
            "status": self._agreement if agrees else "differs",
            "reason": self._comparison(measured.ours),
        }

    @property
    def _agreement(self) -> str:
        return OTHER_DATA if self.other_data else EXPECTED

    def _comparison(self, ours: float) -> str:
        if self.other_data:
            return "ours is on other data or another model, and no comparison with the published figure"
        if abs(ours - self.published) <= self.tolerance:
            return "ours agrees with the published figure"
        return f"ours is {'above' if ours > self.published else 'below'} the published figure"
