"""A result in at most six lines: what came out, a line for each observer, their terms, the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rich.text import Text

from fedprivacy.documents.estimates import CURATOR_TRUSTED
from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import Guarantee, printed
from fedprivacy.io.console import Terminal
from fedprivacy.statistics.assumptions import StatisticsAssumption
from fedprivacy.tuning.assumptions import TuningAssumption

Row = TypeVar("Row")
_NOISE = {
    "central": "by the server's noise",
    "local": "by each client's own noise",
    "shuffled": "by each client's own noise, if the shuffler is honest",
    "distributed": "by the clients' shares of noise, if the sum is secure",
}
_WHY_NOT: dict[str, str] = {
    Assume.SERVER_SEES_UPDATES: "trusted: sees updates without noise",
    Assume.CLIPPED_ALONE: "clipping alone, nobody adds noise",
    Assume.SERVER_READS: "its process read the records",
    Assume.SUM_AT_SERVER: "its process adds up single messages",
    Assume.SHARE_KNOWN: "may know all of the noise",
    StatisticsAssumption.SERVER_SEES_TOTALS: "trusted: sees exact totals",
    CURATOR_TRUSTED: "trusted: sees all records",
    TuningAssumption.SENT_ALL: "is sent the models of all tries",
}
MOST_ROWS, FEW_ROWS = 30, 10  # of a table of more than 30 rows the first 10 are printed
_LONGEST = 60  # characters of a reason
ASSUMPTIONS = "Assumptions: --verbose or the page."


def show_brief(
    document: Mapping[str, Any],
    result: str,
    guarantees: Sequence[Guarantee],
    beside: Mapping[str, str] | None = None,
    others: Sequence[Guarantee] = (),
    remark: str = "",
) -> None:
    """Prints a result in six lines, or fewer where there are fewer observers.

    Args:
        document: The whole document.
        result: What came out, with each caveat that a reader needs beside it.
        guarantees: Those of one run, or of all runs.
        beside: By observer, the end of its line.
        others: The epsilons in `beside`, with their terms.
        remark: A sentence after the terms.
    """
    console = Terminal(soft_wrap=True)
    console.print(Text.assemble((document["name"], "bold"), f": {result} ({cost_of(document)})"))
    for observer, line in observer_lines(guarantees).items():
        more = (beside or {}).get(observer)
        console.print(f"{line}; {more}" if more else line)
    console.print(terms_line(guarantees, others, remark))
    console.print(f"report: {document['path']}/report.html")


def cost_of(document: Mapping[str, Any]) -> str:
    """Returns the time and memory of a result, which is the operator's."""
    from fedprivacy.documents.envelope import Performance

    return Performance.model_validate(document["performance"]).cost


def answer_of(document: Mapping[str, Any]) -> str:
    """Returns the sentence that the page of a result opens with, as a clause."""
    from fedprivacy.report import page_of

    answer = page_of(document, operator=True).answer
    return "no result" if answer is None else as_clause(answer.sentence)


def observer_lines(guarantees: Sequence[Guarantee]) -> dict[str, str]:
    """Returns a line for each observer: its epsilon, or that it has none, and the reason in brackets.

    Several runs share the line: the range of their epsilons, then the reasons of those without.
    """
    present = dict.fromkeys(guarantee.observer for guarantee in guarantees)
    observers = [*(name for name in OBSERVERS if name in present), *(present.keys() - set(OBSERVERS))]
    groups = {name: [each for each in guarantees if each.observer == name] for name in observers}
    return {name: f"{name}: {_stated(group, guarantees)}" for name, group in groups.items()}


def terms_line(guarantees: Sequence[Guarantee], others: Sequence[Guarantee] = (), remark: str = "") -> str:
    """Returns the terms that all epsilons share, a remark, and where the assumptions are.

    Args:
        guarantees: Those of the lines; where their terms differ, each line has its own.
        others: Epsilons beside them, whose terms no line has.
        remark: A sentence after the terms.
    """
    stated, more = _each_terms(guarantees), _each_terms(others)
    if len(stated | more) == 1:
        parts = [f"Each epsilon: {(stated | more).pop()}."]
    else:
        parts = [f"Each epsilon of a guarantee: {stated.pop()}."] if len(stated) == 1 else []
        parts += [f"Each epsilon beside it: {' or '.join(sorted(more))}."] if more else []
    return " ".join(filter(None, [*parts, remark, ASSUMPTIONS]))


def as_clause(sentences: str) -> str:
    """Returns sentences as a part of the brief line, without capitals and full stops.

    >>> as_clause("No limit was measurable. More seeds (compare.seeds) narrow the intervals.")
    'no limit was measurable; more seeds (compare.seeds) narrow the intervals'
    """
    parts = re.split(r"\. (?=[A-Z])", sentences.rstrip("."))
    return "; ".join(f"{part[:1].lower()}{part[1:]}" for part in parts)


def shortened(rows: Sequence[Row], verbose: bool) -> tuple[Sequence[Row], str]:
    """Returns the rows of a table to print, and a line about those left out; empty if none are."""
    if verbose or len(rows) <= MOST_ROWS:
        return rows, ""
    return rows[:FEW_ROWS], f"{len(rows) - FEW_ROWS:,} more rows: --verbose, the page, or --json"


def _stated(group: Sequence[Guarantee], among: Sequence[Guarantee]) -> str:
    """Returns the guarantees against one observer, those alike in a range."""
    several = len(_each_terms(among)) > 1
    held = _alike([each for each in group if each.holds], lambda each: (_change(each), each.trust))
    parts = []
    for alike in held.values():
        epsilons = [each.epsilon or 0.0 for each in alike]
        ends = dict.fromkeys(printed(end) for end in (min(epsilons), max(epsilons)))
        terms = f", {_terms(alike)}" if several else ""
        trust = str(alike[0].trust)
        # Against the shuffler itself, whose place is the server's, nothing rests on the shuffler.
        noise = _NOISE.get("local" if (trust, alike[0].observer) == ("shuffled", "server") else trust)
        parts.append(f"epsilon = {' to '.join(ends)}{terms}{f' ({noise})' if noise else ''}")
    reasons = dict.fromkeys(_reason(each) for each in group if not each.holds)
    parts += [f"no guarantee ({'; '.join(reasons)})"] if reasons else []
    return ", or ".join(parts)


def _each_terms(guarantees: Sequence[Guarantee]) -> set[str]:
    """Returns the terms of each observer's epsilons, by the changes that they protect from."""
    held = [guarantee for guarantee in guarantees if guarantee.holds]
    groups = _alike(held, lambda each: (each.observer, _change(each)))
    return {_terms(group) for group in groups.values()}


def _alike(
    guarantees: Sequence[Guarantee], key: Callable[[Guarantee], object]
) -> dict[object, list[Guarantee]]:
    groups: dict[object, list[Guarantee]] = {}
    for guarantee in guarantees:
        groups.setdefault(key(guarantee), []).append(guarantee)
    return groups


def _terms(alike: Sequence[Guarantee]) -> str:
    """Returns the terms of epsilons of one change; at the largest of several deltas all of them hold."""
    deltas = {each.delta or 0.0 for each in alike}
    return f"delta {'=' if len(deltas) == 1 else 'at most'} {max(deltas):g}, {_change(alike[0])}"


def _change(guarantee: Guarantee) -> str:
    return f"unit {guarantee.unit}, {guarantee.adjacency}"


def _reason(guarantee: Guarantee) -> str:
    text = guarantee.assumptions[0] if guarantee.assumptions else "none is stated"
    short = _WHY_NOT.get(text, text.partition(":")[0])
    return short if len(short) <= _LONGEST else f"{short[:_LONGEST].rpartition(' ')[0]} …"
