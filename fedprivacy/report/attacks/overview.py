"""All attacks in one picture: each AUC with its interval, beside the most that its guarantee allows."""

from __future__ import annotations

from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import figures, headline, levels, price_chart
from fedprivacy.report.blocks import Picture, Table
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Reference, Row, Series
from fedprivacy.report.charts.looks import Look

LOOKS = {"server": (svg.LOCAL, "o"), "participant": (svg.DISTRIBUTED, "D")}
OTHER = (svg.SECOND, "v")
BOUND: Look = (svg.CENTRAL, "|", "")


def picture(document: ReplayDocument) -> Picture:
    """A row for each attack, those of one seat (and one level) together; the bound is an upright line."""
    attacks = [attack for group in document.cells.values() for attack in group]
    rows = [
        (
            levels.label(document, attack),
            words.capital(figures.seat(attack.seat)),
            figures.share(attack.auc.value),
            figures.ends(attack.auc),
            figures.at_most(attack.bound.auc),
        )
        for attack in attacks
    ]
    head = ("Attack", "Seat", "AUC", "95 % interval", "Bound")
    bounded = any(attack.bound.auc is not None for attack in attacks)
    terms = levels.terms(document)
    caption = " ".join(
        [
            "How well each attack distinguishes members from non-members: AUC and 95 % interval. Guessing "
            "gives 0.5 (thin line), 1 is certainty.",
            "The upright blue line is the most that the guarantee against that seat allows; where none is "
            "drawn there is no guarantee."
            if bounded
            else "No bound is drawn, since nothing is guaranteed against these seats.",
        ]
    )
    return Chart(
        "overview",
        "AUC of each attack with its 95 % interval and its bound",
        f"{caption} {terms}".strip(),
        (_panel(document),),
        tables=(Table(f"AUC of each attack. {terms}".strip(), head, rows, numeric=frozenset({2, 3, 4})),),
    ).picture


def _panel(document: ReplayDocument) -> Dots:
    """The rows; with several privacy levels, each level of a seat has a heading."""
    rows: list[Row] = []
    series: dict[str, list[Point]] = {seat: [] for seat in document.seats}
    bounds: list[Point] = []
    for (seat, level), group in document.cells.items():
        if document.several:
            rows.append(Row(f"{words.capital(figures.seat(seat))}, {levels.at(level)}", heading=True))
        for attack in group:
            place = float(len(rows))
            note = "" if document.several else figures.described(attack)
            name = f"{levels.label(document, attack)}, seat of {figures.seat(seat)}:"
            value = "" if headline.telling(attack.auc) else headline.SHORT
            rows.append(Row(attack.name, note, says=name, value=value))
            series[seat].append(Point(attack.auc.value, place, (attack.auc.low, attack.auc.high)))
            if attack.bound.auc is not None:
                bounds.append(Point(attack.bound.auc, place))
    low = min(figures.GUESSING, *(p.interval[0] for points in series.values() for p in points if p.interval))
    drawn = [
        Series((*_look(seat), ""), f"From the seat of {figures.seat(seat)}", tuple(points))
        for seat, points in series.items()
    ]
    return Dots(
        Axis(
            "AUC (0.5: guessing, 1: certain)",
            figures.share,
            tick_text=lambda x: words.number(round(x, 6)),
            limits=(max(0.0, low - 0.03), 1.0),
        ),
        tuple(rows),
        (*drawn, Series(BOUND, price_chart.ALLOWED, tuple(bounds))),
        references=(Reference(figures.GUESSING),),
        values=True,
        missing="no guarantee",
    )


def _look(seat: str) -> tuple[str, str]:
    return LOOKS.get(seat, OTHER)
