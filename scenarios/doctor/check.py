"""One check: what is looked at, what is there, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

OK, WARNING, FAILURE, ABSENT = "ok", "warning", "failure", "absent"


@dataclass(frozen=True)
class Check:
    """What one check found.

    Args:
        name: What was looked at.
        status: "ok"; "warning": something will not go, or go slowly; "failure": runs will not go;
            "absent": an extra that is not installed, which is fine.
        found: What is there.
        remedy: What to do; empty where nothing is.
    """

    name: str
    status: str
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """As a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Step:
    """Checks that are made together.

    Args:
        name: What is looked at, where the step itself fails.
        look: Makes them.
    """

    name: str
    look: Callable[[], Iterable[Check]]

    def checks(self) -> list[Check]:
        """What was found; whatever goes wrong meanwhile is a failure of its own, and no traceback."""
        found: list[Check] = []
        try:
            found.extend(self.look())
        except Exception as error:
            what = f"this check failed: {type(error).__name__}: {str(error)[:500]}"
            found.append(Check(self.name, FAILURE, what, "Install fedprivacy again, or report this."))
        return found
