"""The observed effect of a fault on an engine, as a row of the table of docs/faults.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """The outcome of a run.

    Args:
        document: Its record.
        ended: How it ended, in words.
    """

    document: Mapping[str, Any]
    ended: str


@dataclass
class Row:
    """The observed effect of one fault on one engine.

    Args:
        fault: Its name.
        engine: Where it was played.
        seen: By trust model.
        epsilons: Of the runs without it, by trust model and observer.
    """

    fault: str
    engine: str
    seen: dict[str, Seen] = field(default_factory=dict)
    epsilons: dict[str, dict[str, float | None]] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        """The row of the table."""
        counted, mean = self._both(_counted), self._both(_estimate)
        return self.fault, self.engine, counted, self._both(lambda s: s.ended), mean, self.guarantee

    @property
    def guarantee(self) -> str:
        """Whether what is claimed with the fault is what is claimed without it, or less."""
        claims = {trust: self._claims(trust) for trust in self.seen}
        return next(iter(claims.values())) if len(set(claims.values())) == 1 else _by_trust(claims)

    def _claims(self, trust: str) -> str:
        now, before = epsilons(self.seen[trust].document), self.epsilons[trust]
        if now == before:
            return "the same"
        for who, epsilon in now.items():
            was = before[who]
            if epsilon is not None and (was is None or epsilon < was - 1e-9):
                return f"WRONG: {who} {epsilon:.4g}, without the fault {was}"
        return "; ".join(
            f"{who} {_number(before[who])} becomes {_number(epsilon)}"
            for who, epsilon in now.items()
            if epsilon != before[who]
        )

    def _both(self, describe: Callable[[Seen], str]) -> str:
        texts = {trust: describe(seen) for trust, seen in self.seen.items()}
        return next(iter(texts.values())) if len(set(texts.values())) == 1 else _by_trust(texts)


def _by_trust(texts: Mapping[str, str]) -> str:
    return "; ".join(f"{trust}: {text}" for trust, text in texts.items())


def _number(epsilon: float | None) -> str:
    return "none" if epsilon is None else f"{epsilon:.3g}"


def _counted(seen: Seen) -> str:
    total = Counter[str]()
    for event in seen.document["rounds"]:
        total.update(event["faults"])
    rounds = len(seen.document["rounds"])
    if not rounds:
        return "no completed round"
    counted = ", ".join(f"`{kind}` {round(count / rounds, 1):g}" for kind, count in total.items())
    return f"{counted} a round" if counted else "nothing"


def _estimate(seen: Seen) -> str:
    estimate = seen.document["estimate"]
    if not seen.document["rounds"]:
        return "—"
    if estimate["unbiased"]:
        return "unbiased"
    if estimate["unbiased"] is None:
        return "not known"
    coin = "by a coin" in estimate["words"]
    return f"{estimate['share']:.3g} of the whole; {'same direction' if coin else 'not unbiased'}"


def epsilons(document: Mapping[str, Any]) -> dict[str, float | None]:
    return {guarantee["observer"]: guarantee["epsilon"] for guarantee in document["privacy"]["guarantees"]}


def table(rows: Sequence[Row]) -> str:
    """The table, in Markdown."""
    head = ("fault", "engine", "the record counts", "the round ends", "the mean update", "the guarantee")
    lines = [head, tuple("---" for _ in head), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
