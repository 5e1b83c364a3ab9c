"""How a model serves held-out users: all of them, and the worst tenth."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.cell import Cell, CellUsers, Figures
from fedprivacy.documents.quality import UserAccuracies
from fedprivacy.report import words
from fedprivacy.report.blocks import Block, Details, Entry, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look


def of_model(users: UserAccuracies, look: Look) -> list[Block | Details]:
    """The worst tenth in a sentence, and the quantiles in a picture."""
    chance = ""
    if users.worst_by_chance is not None:
        chance = (
            f" If it served all users alike, the chance of few records would make it "
            f"{words.accuracy(users.worst_by_chance)}."
        )
    text = (
        f"The worst tenth of {users.users:,} held-out users ({users.worst_users:,}) have a mean accuracy of "
        f"{words.accuracy(users.worst)}; all users {words.accuracy(users.mean)}.{chance}"
    )
    points = tuple(Point(each.share, each.accuracy) for each in users.quantiles)
    if len(points) < 2:
        return [Text(text)]
    panel = Lines(
        Axis("Share of users, the worst first", percent, limits=(0.0, 1.0)),
        Axis("Accuracy that they do not exceed", words.accuracy, tick_text=percent, limits=(0.0, 1.0)),
        (Series((look[0], "", "-"), "Held-out users", points, steps=True),),
        (Reference(users.mean, label=f"Mean of all users: {words.accuracy(users.mean)}"),),
        legend=True,
    )
    caption = (
        "Accuracy on each held-out user's records, in order: at a share of the users, the accuracy that "
        "these do not exceed. No held-out user is a client."
    )
    return [Text(text), Chart("users", "Line chart of the users' accuracies", caption, (panel,)).picture]


def of_cells(cells: Sequence[tuple[str, Cell]], interval: str, epsilon: str) -> Table:
    """All users and the worst tenth in each cell, beside what chance alone would make of the latter.

    Args:
        cells: At least one, each with its name; all have users.
        interval: What the intervals cover.
        epsilon: The terms of the epsilons.
    """
    rows: list[Sequence[Value]] = []
    for label, cell in cells:
        assert cell.users is not None
        rows.append((label, *(_seeds(each) for each in _figures(cell.users))))
    users = cells[0][1].users
    assert users is not None
    caption = (
        f"Accuracy on the records of {users.users or 0:,} held-out users, each counted once, and of the "
        f"worst tenth in each run ({users.worst_users or 0:,}). By chance: the worst tenth of a model that "
        f"serves all users alike, where only the chance of few records separates them. {interval}{epsilon}"
    )
    head = ("Cell", "All users", "Worst tenth", "Worst tenth by chance")
    return Table(caption, head, rows, numeric=frozenset({1, 2, 3}))


def _figures(users: CellUsers) -> tuple[Figures | None, ...]:
    return users.mean, users.worst, users.worst_by_chance


def _seeds(figure: Figures | None) -> Value:
    if figure is None or figure.mean is None:
        return "—"
    ends = figure.interval
    return (
        Entry(words.accuracy(figure.mean), words.share_interval(*ends))
        if ends
        else words.accuracy(figure.mean)
    )
