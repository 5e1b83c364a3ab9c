"""The batches of DP-SGD, and their cost for the records of each client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.guarantee import PerClient, Records
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import page_end, words
from fedprivacy.report.blocks import Block, Details, Facts, Section, Table, Text
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Series, looks
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look
from fedprivacy.sampling.batches import BATCHES, Batches, PoissonBatches, ShuffledBatches

# Keys of [training] that have an effect on DP-SGD alone.
_OF_DP_SGD = ("projection", "averaging", "weighting", "trainer")


def without_effect(unit: str | None) -> tuple[str, ...]:
    """The keys of [training] that have none with a unit of privacy."""
    return () if unit == "example" else _OF_DP_SGD


def describe(value: Mapping[str, Any] | None) -> str:
    """The batch sampler, from the record; empty if the record lacks it.

    >>> describe({"name": "poisson", "steps": 10, "rate": 0.2, "batch_size": None})
    '10 Poisson batches of rate 0.2 in a round'
    """
    if not value:
        return ""
    batches = _batches(value)
    return page_end.flat(value) if batches is None else batches.words


def of_run(document: RunDocument) -> list[Section]:
    """The section on DP-SGD; none if the record lacks the batch sampler."""
    privacy = document.privacy
    batches = _batches(privacy.batches or {})
    if batches is None:
        return []
    trust = privacy.trust or "none"
    multiplier = privacy.noise_multiplier
    where = {
        "none": "Each client trains on batches of its own records; nobody adds noise.",
        "local": "DP-SGD inside each client: in every step the gradients of the records in a batch are "
        "clipped and summed, and noise is added to the sum (Abadi et al. 2016).",
        "central": "In every round each client sends the sum of the clipped gradients of one batch; the "
        "trusted server adds up the sums, adds the noise and makes the step.",
    }
    facts = [
        ("Batches", words.capital(batches.words)),
        ("Noise", _noise(trust, multiplier)),
    ]
    blocks: list[Block | Details] = [Text(where.get(trust, "")), Facts([row for row in facts if row[1]])]
    if privacy.records_per_client is not None:
        blocks.append(_drawn(batches, privacy.records_per_client))
    if privacy.per_client is not None:
        blocks += _spread(document, privacy.per_client)
    return [Section("batches", "How records were drawn", blocks)]


def _batches(value: Mapping[str, Any]) -> Batches | None:
    """The batch sampler; None if the record's words are unknown."""
    kind = BATCHES.get(str(value.get("name")))
    try:
        batches = kind(**{key: entry for key, entry in value.items() if key != "name"}) if kind else None
        usable = batches is not None and batches.words and _size(batches, 1) > 0
    except (TypeError, ValueError, ArithmeticError, AssertionError):
        return None
    return batches if usable else None


def _noise(trust: str, multiplier: float | None) -> str:
    """The amount of noise on a sum of gradients; empty without noise."""
    if multiplier is None or trust not in ("local", "central"):
        return ""
    on = "the sum of each batch" if trust == "local" else "the sum over all clients"
    return f"Gaussian, of standard deviation {words.number(multiplier)} clipping norms, on {on}"


def _drawn(batches: Batches, sizes: Records) -> Table:
    """For the smallest, median and largest client: its records, steps and batches."""
    records = list(sizes.named.values())
    rows = [
        ("Records", *(f"{count:,}" for count in records)),
        ("Steps in a round", *(f"{_steps(batches, count):,}" for count in records)),
        ("Records in a batch, on average", *(words.number(_size(batches, count), 3) for count in records)),
    ]
    if isinstance(batches, PoissonBatches):
        chances = (words.number(batches.rate_of(count), 3) for count in records)
        rows.append(("Chance that a record is in a batch", *chances))
    caption = (
        "The number of records of each client counts as public; rates and denominators are computed from it."
    )
    return Table(caption, ("", *sizes.named), rows, numeric=frozenset({1, 2, 3}))


def _steps(batches: Batches, records: int) -> int:
    """The steps of a client of so many records in a round."""
    if isinstance(batches, ShuffledBatches):
        return batches.epochs * (-(-records // batches.batch_size) if batches.batch_size else 1)
    return batches.steps


def _size(batches: Batches, records: int) -> float:
    """The mean size of a batch; of a shuffled pass the last one has the remaining records."""
    if isinstance(batches, ShuffledBatches):
        return records * batches.epochs / _steps(batches, records)
    return batches.mean_size(records)


def _spread(document: RunDocument, spread: PerClient) -> list[Block | Details]:
    """The epsilons of clients' records: in a sentence where they are all the same, else drawn."""
    privacy = document.privacy
    epsilon_terms = words.terms(privacy.guarantees)
    who = words.listed(dict.fromkeys(words.observer(g.observer) for g in privacy.guarantees if g.holds))
    terms = f"({epsilon_terms}, against {who})"
    clients = sum(group.clients for group in spread.groups)
    if len(spread.groups) < 2:
        each = f"A record costs the same in every client ({words.counted(clients, 'client')})"
        return [Text(f"{each}: epsilon {words.epsilon(spread.largest)} {terms}.")]
    text = (
        f"Clients differ in what their records cost: epsilon {words.epsilon(spread.largest)} at most, "
        f"and {words.epsilon(spread.median)} at most in half of the clients {terms}. The guarantees above "
        "state the most that a record of any client may have cost."
    )
    rows = [
        (
            words.epsilon(group.epsilon),
            f"{group.clients:,}",
            "—" if group.answers is None else f"{group.answers:,}",
            "all" if group.records is None else f"{group.records:,} or more",
        )
        for group in spread.groups
    ]
    caption = (
        "Clients in groups of near the same number of answers and records, each at the cost of the dearest "
        f"of them. Each epsilon: {epsilon_terms}, against {who}."
    )
    head = ("Epsilon of a record", "Clients", "Answers", "Records of each")
    table = Table(caption, head, rows, numeric=frozenset({1, 2}))
    shown = f"Share of the {clients:,} clients whose records cost at most so much."
    chart = Chart(
        "spread",
        "Step chart of the share of clients whose records cost at most an epsilon",
        f"{shown} Each epsilon: {epsilon_terms}, against {who}.",
        (_steps_up(spread, looks.look(Arm(privacy.trust or "none"))),),
        terms=text,
        tables=(table,),
    )
    return [Text(text), chart.picture]


def _steps_up(spread: PerClient, look: Look) -> Lines:
    """The share of clients by epsilon, a step up at each group."""
    groups = sorted(spread.groups, key=lambda group: group.epsilon)
    total, reached = sum(group.clients for group in groups), 0
    points = [Point(0.0, 0.0)]
    for group in groups:
        reached += group.clients
        points.append(Point(group.epsilon, reached / total))
    end = 1.06 * groups[-1].epsilon or 1.0
    series = Series((look[0], "", "-"), "", (*points, Point(end, 1.0)), steps=True)
    x = Axis("epsilon of a record (smaller is more private)", limits=(0.0, end), phrase="at epsilon {}")
    y = Axis("Share of clients at or below", percent, limits=(0.0, 1.02))
    return Lines(x, y, (series,))
