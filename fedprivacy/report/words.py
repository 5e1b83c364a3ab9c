"""The sentences and numbers of a report: observers, trust models, guarantees, in plain words.

Whether somebody is protected is never decided here: it is read from the guarantees of the document.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedprivacy.guarantees.statement import Guarantee, printed

NO_GUARANTEE = "No guarantee"

OBSERVERS = {
    "server": "the server",
    "analyst": "the analyst",
    "participant": "other participants",
    "outsider": "outsiders",
}

SEES = {
    "server": "sees every message that it receives",
    "participant": "see the global models that they are sent",
    "outsider": "see the final model",
}

TRUSTS = {
    "none": "No noise",
    "central": "Central",
    "local": "Local",
    "distributed": "Distributed",
    "shuffled": "Shuffled",
}

WHO_ADDS_NOISE = {
    "none": "Nobody adds noise.",
    "central": "The server adds the noise, once per round.",
    "local": "Each client adds noise before anything leaves it.",
    "distributed": "Each client adds a share of the noise; the server sees only the secure sum.",
}

# The consequence of a trust model's definition for an observer. Not a claim: the claim is above it.
WHY = {
    ("none", "server"): "It receives each update as it is.",
    ("none", "participant"): "They receive global models without noise.",
    ("none", "outsider"): "They see a final model without noise.",
    ("central", "server"): "It has to be trusted: it receives the updates before the noise is added.",
    ("central", "participant"): "They receive global models that carry the server's noise.",
    ("central", "outsider"): "They see a final model that carries the server's noise.",
    (
        "distributed",
        "server",
    ): "It receives the sum of a round, which carries the noise of all its clients.",
    (
        "distributed",
        "participant",
    ): "They receive models made from noisy sums, and know their share of the noise.",
    ("distributed", "outsider"): "They see a model made from noisy sums.",
    ("local", "server"): "All that it receives already carries the client's noise.",
    ("local", "participant"): "They receive models made from updates that already carried noise.",
    ("local", "outsider"): "They see a model made from updates that already carried noise.",
}

DISTRIBUTED_CAUTION = (
    "Distributed privacy holds against a server that sees the sum of a round and no update: it rests on the "
    "secure sum, and on enough clients in it that do not collude."
)

# The caveats beside every picture that overlays trust models.
CAUTIONS = {
    "local": "Local privacy holds against the server itself, since the noise is added before anything "
    "leaves a client.",
    "central": "Central privacy holds only against those behind the server: the server receives every "
    "update without noise and has to be trusted.",
    "distributed": DISTRIBUTED_CAUTION,
}

# Where the unit of privacy is a record.
WHO_ADDS_NOISE_TO_RECORDS = {
    "none": "Nobody adds noise.",
    "central": "The server adds the noise to the sum of clipped gradients, once per round.",
    "local": "Each client adds noise in every step of its training.",
}

WHY_OF_RECORDS = {
    **WHY,
    ("central", "server"): "It has to be trusted: it receives sums of clipped gradients before the noise is "
    "added.",
    ("local", "server"): "All that it receives was trained with the client's noise in every step.",
    ("local", "participant"): "They receive models made from what was trained with noise in every step.",
    ("local", "outsider"): "They see a model made from what was trained with noise in every step.",
}

CAUTIONS_OF_RECORDS = {
    "local": "Local privacy holds against the server itself, since each client adds the noise as it trains.",
    "central": "Central privacy holds only against those behind the server: the server receives every sum of "
    "clipped gradients without noise and has to be trusted.",
}

CAUTIONS_OF_BOTH = {
    "local": CAUTIONS["local"],
    "central": "Central privacy holds only against those behind the server: the server receives every "
    "update, or sum of clipped gradients, without noise and has to be trusted.",
    "distributed": DISTRIBUTED_CAUTION,
    "unit": "Nor is equal epsilon an equal promise: unit example protects one record, unit client all "
    "records of a client.",
}

UNITS = {"client": "one client (all its records)", "example": "one record"}

_PROTECTED = {"client": "a client", "example": "a record"}

ADJACENCIES = {
    "replace-one": "replacing {unit} by any other",
    "add-remove": "adding or removing {unit}",
    "zero-out": "replacing the contribution of {unit} by nothing",
}

_EVALUATED_ON = {"test": "the held-out test set", "public": "the public part of the data"}

STOPPED = {"interrupted": "Interrupted", "failed": "Failed", "running": "Not finished when this was written:"}

OPERATOR_CAUTION = (
    "These values depend on the participants' data, or give the noise away, and no mechanism has charged the "
    "privacy budget for them. "
    "They lie outside every claim that is made for participants and outsiders. "
    "They are for the operator of the server: do not pass this page on. report.html, beside it, is public."
)
OPERATOR_HEADING = "For the operator only: do not pass this page on"
OPERATOR_ELSEWHERE = (
    "Seed, command, times and counts that depend on the data are operator-only and not on this page: whoever "
    "knows the seed of a simulation knows its noise. The operator has them in operator.html and run.json."
)
ACCURACY_WITHHELD = (
    "There is no accuracy on this page: it was measured on held-out records of clients, without noise, so it "
    "is operator-only (operator.html). To publish one, measure it on public records (evaluation.on)."
)

RESULTS_WITHHELD = (
    "Results are not on this page: they are computed from records without noise, and the claim of the account"
    " that this work is charged to does not hold against those who see them. They are operator-only "
    "(operator.html)."
)

TRUTH_WITHHELD = (
    "True values and errors against them are not on this page: the records are of people and not declared "
    "public (data.public), so both are operator-only (operator.html)."
)

COMMAND_CAUTION = (
    "The exact command gives the same figures on the same machine and torch build. It stands here since it "
    "holds the seed, and seeds are for the operator: who knows the seed of a simulation knows its noise, and "
    "against them no guarantee holds."
)

CHECKED = (
    "What stands behind this page: fedprivacy report derives each guarantee again from the scenario, the "
    "plan and the rounds of the stored record, and refuses a record whose parts disagree. Facts of the data "
    "(how many clients there are, how many records each has, who was drawn) it takes from the record. "
    "Nothing is signed: whoever rewrites a whole record consistently gets a consistent page."
)

COMMAND_ELSEWHERE = (
    "The exact command that gives these figures again holds the seed. Who knows the seed of a simulation "
    "knows its noise, so the command is in the part for the operator only, at the end of this page."
)


def number(value: float | None, digits: int = 4) -> str:
    """A number with a number of significant digits; an em dash for None.

    >>> number(0.00001), number(1234567.0), number(None)
    ('1e-5', '1,234,567', '—')
    """
    if value is None:
        return "—"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return re.sub(r"e([+-])0+", r"e\1", f"{value:.{digits}g}").replace("e+", "e")


def accuracy(value: float | None, unit: str = " %") -> str:
    """An accuracy (a share between 0 and 1) in percent with one decimal.

    >>> accuracy(0.4097), accuracy(0.4097, unit="")
    ('41.0 %', '41.0')
    """
    return f"{100 * value:.1f}{unit}" if value is not None and math.isfinite(value) else number(value)


def share_interval(low: float, high: float) -> str:
    """Both ends of an interval of shares, in percent.

    >>> share_interval(0.4, 0.512)
    '40.0 to 51.2 %'
    """
    return f"{accuracy(low, unit='')} to {accuracy(high)}"


def epsilon(value: float | None) -> str:
    """An epsilon rounded *up* to four significant digits, so that the print never promises too much.

    >>> epsilon(2.00000000001), epsilon(2.0001), epsilon(None)
    ('2', '2.001', 'No guarantee')
    """
    return NO_GUARANTEE if value is None or not math.isfinite(value) else printed(value)


def delta(value: float | None) -> str:
    """A delta rounded *up* to four significant digits, as an epsilon is.

    >>> delta(1e-5), delta(1.23441e-5), delta(0.0)
    ('1e-5', '1.235e-5', '0')
    """
    return number(None if value is None else float(printed(value)))


def seconds(value: float | None) -> str:
    """A duration in words: seconds up to two minutes, minutes above."""
    if value is None or not math.isfinite(value):
        return number(value)
    return f"{number(value, 3)} s" if value < 120 else f"{value / 60:.1f} min"


def listed(parts: Iterable[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    items = list(parts)
    return f" {last} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def counted(number: int, noun: str) -> str:
    """`1 query`, `2 queries`: a number with its noun.

    >>> counted(1, "query"), counted(2, "query"), counted(1200, "clip")
    ('1 query', '2 queries', '1,200 clips')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def observer(name: str) -> str:
    """An observer, in words."""
    return OBSERVERS.get(name, name)


def evaluated_on(name: str) -> str:
    """Where accuracy was measured, in words."""
    return _EVALUATED_ON.get(name, name)


def trust(name: str) -> str:
    """The trust model's title."""
    return TRUSTS.get(name, capital(name))


def target(epsilon: float | None) -> str:
    """The target epsilon of a cell, rounded up as every epsilon is."""
    return "none" if epsilon is None else printed(epsilon)


def terms(guarantees: Iterable[Guarantee]) -> str:
    """The terms of every epsilon: delta, unit and adjacency, each combination once.

    Returns:
        `delta 1e-5, unit client, adjacency replace-one`; empty where nobody has a guarantee.
    """
    units: dict[tuple[str, str | None], dict[str, None]] = {}
    for g in guarantees:
        if g.holds:
            units.setdefault((delta(g.delta), g.adjacency), {})[str(g.unit)] = None
    parts = (
        f"delta {shown}, unit {listed(group, 'or')}, adjacency {adjacency}"
        for (shown, adjacency), group in units.items()
    )
    return listed(parts, "or")


def protected(units: Iterable[str | None]) -> str:
    """The protected units of guarantees, in words.

    >>> protected(["client"]), protected(["example", "client", "example"])
    ('a client', 'a record, or a client,')
    """
    who = [_PROTECTED.get(unit or "", f"one {unit}") for unit in dict.fromkeys(units)]
    return f"{', or '.join(who)}," if len(who) > 1 else "".join(who)


def reach(guarantees: Sequence[Guarantee]) -> str:
    """The observers with and without a guarantee under a trust model."""
    against = dict.fromkeys(observer(g.observer) for g in guarantees if g.holds)
    trusted = dict.fromkeys(observer(g.observer) for g in guarantees if not g.holds)
    if not against:
        return "no guarantee against anyone"
    return f"holds against {listed(against)}" + (f", not against {listed(trusted)}" if trusted else "")


def meaning(g: Guarantee, why: Mapping[tuple[str, str], str] = WHY) -> str:
    """One guarantee as a plain sentence without assumptions; `why`: the reasons for none, by trust."""
    if g.epsilon is None or not g.holds:
        return unprotected(g, why) or f"Nothing is guaranteed against {observer(g.observer)}."
    what, who = capital(change(g.adjacency, g.unit)), observer(g.observer)
    return (
        f"{what} changes the probability of anything that {who} can see by a factor of at most "
        f"{factor(g.epsilon)}, plus delta ({number(g.delta)})."
    )


def unprotected(g: Guarantee, why: Mapping[tuple[str, str], str] = WHY) -> str:
    """The reason for no guarantee, as a sentence; empty where none is stated.

    Args:
        g: Without an epsilon.
        why: The consequences of trust models. Only without noise, and for a server that adds it, do they
            explain a missing guarantee; elsewhere the guarantee itself states the reason.
    """
    row = (g.trust or "", g.observer)
    if row in why and (g.trust == "none" or row == ("central", "server")):
        return why[row]
    return f"{capital(g.assumptions[0])}." if g.assumptions else ""


def change(adjacency: str | None, unit: str | None) -> str:
    """The change between two data sets that a guarantee makes indistinguishable.

    >>> change("add-remove", "example")
    'adding or removing one record'
    """
    what = UNITS.get(unit or "", f"one {unit}")
    known = ADJACENCIES.get(adjacency or "")
    return known.format(unit=what) if known else f"a change ({adjacency}) of {what}"


def factor(value: float) -> str:
    """e to the power epsilon, rounded up as epsilon is.

    >>> factor(1.0), factor(8.0), factor(100.0)
    ('2.719', '2,981', 'e^100')
    """
    return epsilon(math.exp(value)) if value <= 20 else f"e^{epsilon(value)}"


def how_to_read(epsilons: Sequence[float], changes: str, epsilon_terms: str) -> str:
    """The meaning of epsilon, with the factor for these epsilons."""
    factors = [f"{factor(value)} at epsilon {epsilon(value)}" for value in epsilons]
    return (
        f"How to read epsilon: {changes} changes the probability of anything that the observer can see by a "
        "factor of at most e to the power epsilon, plus delta. Smaller is stronger. "
        f"The factor is {listed(factors)} ({epsilon_terms}, against the observers named here)."
    )


def sampling(value: Any) -> str:
    """The sampling of cohorts, from a scenario's `sampling` section or the document's words."""
    if not isinstance(value, Mapping):
        return str(value) if value else "—"
    name, rate, cohort = value.get("name"), value.get("rate"), value.get("cohort")
    if name == "poisson" and isinstance(rate, (int, float)):
        return f"Poisson: each client by its own coin, rate {number(rate)}"
    if name == "fixed" and isinstance(cohort, (int, float)):
        return f"a fixed number of clients, {number(cohort)}, without replacement"
    if name == "all":
        return "all clients in every round"
    separation, groups = value.get("separation"), value.get("groups")
    if name == "cyclic-poisson" and isinstance(rate, (int, float)):
        in_turn = f"{groups} groups in turn, " if isinstance(groups, int) and groups > 1 else ""
        return f"cyclic Poisson: {in_turn}each client of the group by its own coin, mean rate {number(rate)}"
    if name == "separated" and isinstance(cohort, (int, float)) and isinstance(separation, (int, float)):
        apart = f"each at most once in {number(separation)} rounds"
        return f"cohorts of {number(cohort)} clients, {apart}, and no secret who"
    return ", ".join(f"{key} {entry}" for key, entry in value.items() if entry is not None) or "—"


def progress(status: str, done: int, planned: int | None, what: str) -> str:
    """The progress: `Finished: 100 rounds.`, `Interrupted after 12 of 100 rounds.`"""
    of = f"{done:,} of {planned:,} {what}" if planned and planned != done else f"{done:,} {what}"
    if status == "finished":
        return f"Finished: {of}."
    if status in ("interrupted", "failed"):
        return f"{STOPPED[status]} after {of}."
    return f"{STOPPED.get(status, capital(status) + ':')} {of}."


def direction(exponent: float) -> str:
    """Whether x to an exponent falls or rises with x.

    >>> [direction(one) for one in (-2.0, 0.01, 0.4)]
    ['falls', 'hardly changes,', 'rises']
    """
    if abs(exponent) < 0.05:
        return "hardly changes,"
    return "falls" if exponent < 0 else "rises"
