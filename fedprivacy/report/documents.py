"""The result documents that a report is made from, read at the file boundary.

Only what the report prints is named here; everything else in a document is ignored, and everything
that a run may lack (it was interrupted, it had no privacy) is optional. What a document marks as
operator-only is taken out before any claim is printed (`redaction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from fedprivacy.errors import InputError
from fedprivacy.report.parts import Cell, Final, Guarantee, Part, Performance, Privacy, Round
from fedprivacy.report.redaction import operator_only, redact

SCHEMA = 1
TRUST_ORDER = ("none", "central", "distributed", "local")


class Document(Part):
    """What every kind of document has."""

    name: str = "unnamed"
    path: str | None = None
    status: str = "finished"
    error: str | None = None
    started: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    scenario: dict[str, Any] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    performance: Performance | None = None

    def setting(self, section: str, key: str) -> Any:
        """One setting of the scenario, or None."""
        part = self.scenario.get(section)
        return part.get(key) if isinstance(part, Mapping) else None

    @property
    def evaluated_on(self) -> str:
        """`test` or `public`: where accuracy and loss were measured."""
        return str(self.setting("evaluation", "on") or "test")


class RunDocument(Document):
    """A federated run."""

    rounds: tuple[Round, ...] = ()
    final: Final | None = None
    privacy: Privacy = Privacy()


@dataclass(frozen=True)
class Arm:
    """What one line of a comparison shows.

    Args:
        trust: The trust model.
        asked: The local mechanism asked for, where several are compared; else None.
        place: Which of the arms of its trust model it is, counted from 0.
    """

    trust: str
    asked: str | None = None
    place: int = 0


class CompareDocument(Document):
    """Trust models against each other, over epsilons and seeds."""

    cells: tuple[Cell, ...] = ()
    finding: str | None = None
    interval: str | None = None

    @property
    def trusts(self) -> list[str]:
        """The trust models asked for or found, from the one that protects from fewest observers on."""
        found = dict.fromkeys([*map(str, self._asked("trusts")), *(cell.trust for cell in self.cells)])
        return sorted(found, key=lambda name: TRUST_ORDER.index(name) if name in TRUST_ORDER else 9)

    @property
    def arms(self) -> list[Arm]:
        """What is compared: the trust models in their order, the local one once for each mechanism."""
        arms: list[Arm] = []
        for trust in self.trusts:
            named = map(str, self._asked("mechanisms")) if trust == "local" else ()
            ran = (cell.asked for cell in self.cells if cell.trust == trust)
            every = list(dict.fromkeys([*named, *ran])) or [None]
            arms += [Arm(trust, asked, place) for place, asked in enumerate(every)]
        return arms

    @property
    def averaged(self) -> str:
        """What each accuracy is: a mean over seeds, or that of the only one."""
        several = any(len(cell.accuracies) > 1 for cell in self.cells)
        return "mean over the seeds" if several else "of one seed"

    def targets(self, arm: Arm) -> list[float | None]:
        """The epsilons asked for; trust none has the one target None."""
        if arm.trust == "none":
            return [None]
        return [float(e) for e in self._asked("epsilons") if isinstance(e, (int, float))]

    def of(self, arm: Arm) -> list[Cell]:
        """The cells of an arm, from the strictest epsilon on."""
        found = (c for c in self.cells if (c.trust, c.asked) == (arm.trust, arm.asked))
        return sorted(found, key=lambda cell: cell.epsilon or 0.0)

    def widest(self) -> list[Cell]:
        """The cell of each arm at its largest epsilon: where the noise disturbs least."""
        return [cells[-1] for arm in self.arms if (cells := self.of(arm))]

    def guarantees(self, arm: Arm | None = None) -> list[Guarantee]:
        """The guarantees of one arm, or of all."""
        return [g for cell in (self.cells if arm is None else self.of(arm)) for g in cell.guarantees]

    def guarantees_under(self, trust: str) -> list[Guarantee]:
        """The guarantees of all arms of a trust model."""
        return [g for cell in self.cells if cell.trust == trust for g in cell.guarantees]

    def _asked(self, key: str) -> list[Any]:
        value = self.setting("compare", key)
        return value if isinstance(value, list) else []


NAMED = 8  # mistakes of a damaged document that an error names
_WANTED = {
    "float": "a number", "finite_number": "a finite number", "int": "a whole number", "string": "text",
    "tuple": "a list", "dict": "a table", "model": "a table", "bool": "true or false",
}  # fmt: skip

KINDS: dict[str, type[Document]] = {"run": RunDocument, "compare": CompareDocument}


def read(document: Mapping[str, Any], source: str = "report") -> Document:
    """The document without its operator-only fields, checked.

    Args:
        document: What `run.json` holds.
        source: What an error names: the file that it came from.

    Raises:
        InputError: the schema or the kind is unknown, or a field is not what its schema says.
    """
    if not isinstance(document, Mapping):
        raise InputError(f"{source}: a result document is a table of fields, not {type(document).__name__}.")
    schema, kind = document.get("schema"), document.get("kind")
    if schema != SCHEMA or isinstance(schema, bool):
        raise InputError(
            f"{source}: schema = {schema!r} is unknown; this version reads schema {SCHEMA}. "
            "Render it with the version of fedprivacy that wrote it."
        )
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"{source}: kind = {kind!r} is unknown; a report is made from {' or '.join(KINDS)}.")
    try:
        return KINDS[kind].model_validate(redact(document, operator_only(document)))
    except ValidationError as error:
        found = list(dict.fromkeys(f"{_place(one) or kind} {_wrong(one)}" for one in error.errors()))
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise InputError(
            f"{source}: damaged: {'; '.join(found[:NAMED])}{more}. Restore the file, or run it again."
        ) from None


def _place(error: ErrorDetails) -> str:
    """`cells[1].accuracy`; of a choice of types that one alone."""
    loc = error["loc"][:-1] if error["loc"] and error["loc"][-1] in ("int", "str") else error["loc"]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


def _wrong(error: ErrorDetails) -> str:
    """What pydantic found wrong, in our words."""
    sort = error["type"]
    if sort == "missing":
        return "is missing"
    if sort == "value_error":
        return f"is wrong: {error['msg'].removeprefix('Value error, ')}"
    wanted = next((what for start, what in _WANTED.items() if sort.startswith(start)), None)
    return f"is not {wanted}" if wanted else f"is wrong: {error['msg'][:1].lower()}{error['msg'][1:]}"
