"""Attacks on the sum of a round against the number of clients in it, with noise and without."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import Attack, Level
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, frontier, headline, levels, price_chart
from fedprivacy.report.blocks import Group, Picture, Section, Table, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series, looks
from fedprivacy.report.charts.looks import Look

Kind = tuple[str, Level, str | None]  # trust model, level of privacy, unit of the guarantee


def sections(document: ReplayDocument) -> list[Section]:
    """The picture, where attacks saw sums of different numbers of clients; else no section."""
    attacks = [attack for attack in document.attacks if attack.clients_in_sum is not None]
    if len({attack.clients_in_sum for attack in attacks}) < 2:
        return []
    return [Section("sums", "What the sum of more clients hides", [_picture(attacks)], folded=False)]


def _picture(attacks: Sequence[Attack]) -> Picture:
    bounded = any(attack.bound.auc is not None for attack in attacks)
    caption = " ".join(
        [
            "AUC of each attack from the seat of a server that sees the sum of a round's clients and no "
            "update, by the number of clients in the sum, with its 95 % interval; guessing gives 0.5 (thin "
            "line).",
            "Dashed in the same colour: the most that the guarantee allows any attack; where no such line is "
            "drawn, nothing is guaranteed."
            if bounded
            else "Nothing is guaranteed against this server.",
            *_terms(attacks),
            figures.covered(attacks),
        ]
    )
    names = list(dict.fromkeys(attack.name for attack in attacks))
    return Chart(
        "sums",
        "Charts of the AUC of attacks on sums by the number of clients in the sum",
        caption.strip(),
        tuple(_panel(attacks, name) for name in names),
        tables=(_table(attacks, caption.strip()),),
    ).picture


def _terms(attacks: Sequence[Attack]) -> list[str]:
    """The terms of every epsilon in the picture, and the sum on which the guarantees rest."""
    guarantees = [attack.guarantee for attack in attacks if attack.guarantee is not None]
    held = [guarantee for guarantee in guarantees if guarantee.holds]
    if not held:
        return []
    sums = (TrainingAssumption.IDEAL_SUM, TrainingAssumption.MASKED_SUM)
    bases = dict.fromkeys(text for g in held for text in g.assumptions if TrainingAssumption.of(text) in sums)
    rests = f", provided that the sum is an {'; '.join(bases)}" if bases else ""
    return [f"Each epsilon is against the server, at {words.terms(held)}{rests}."]


def _kinds(attacks: Sequence[Attack]) -> dict[Kind, Look]:
    """The look of each trust model at each level of privacy: the trust model's own for its first level."""
    kinds = list(dict.fromkeys(map(_kind, attacks)))
    rest, chosen = iter(looks.others(len(kinds))), dict[Kind, Look]()
    for kind in kinds:
        first = all(kind[0] != known[0] for known in chosen)
        chosen[kind] = looks.LOOKS.get(kind[0], looks.LOOKS["none"]) if first else next(rest)
    return {kind: (color, marker or "d", line) for kind, (color, marker, line) in chosen.items()}


def _kind(attack: Attack) -> Kind:
    unit = None if attack.guarantee is None or attack.epsilon is None else attack.guarantee.unit
    return str(attack.trust), attack.level, unit


def _label(kind: Kind) -> str:
    trust, level, unit = kind
    if trust == "none":
        return levels.name(level)
    return f"{trust}, {levels.name(level)}" + (f", unit {unit}" if unit == "example" else "")


def _panel(attacks: Sequence[Attack], name: str) -> Lines:
    """The lines of one attack."""
    sizes = sorted({float(attack.clients_in_sum or 0) for attack in attacks})
    series, bounds = [], []
    bounded = [kind for kind in _kinds(attacks) if any(_kind(a) == kind and a.bound.auc for a in attacks)]
    for kind, look in _kinds(attacks).items():
        drawn = sorted(
            (a for a in attacks if a.name == name and _kind(a) == kind),
            key=lambda a: a.clients_in_sum or 0,
        )
        points = [(float(a.clients_in_sum or 0), a) for a in drawn]
        if points:
            shown = tuple(Point(x, a.auc.value, (a.auc.low, a.auc.high)) for x, a in points)
            series.append(Series(look, _label(kind), shown, width=1.5))
        allowed = tuple(Point(x, a.bound.auc) for x, a in points if a.bound.auc is not None)
        if allowed:
            drawn_as = (look[0], "_", frontier.dashes(bounded.index(kind), len(bounded)))
            label = price_chart.ALLOWED
            bounds.append(Series(drawn_as, label, allowed, width=1.75, sample=frontier.SAMPLE))
    low = min([figures.GUESSING, *(attack.auc.low for attack in attacks)])
    return Lines(
        Axis(
            "Clients in the sum",
            log=True,
            limits=(sizes[0] * 0.8, sizes[-1] * 1.25),
            ticks={size: words.number(size) for size in sizes},
            phrase="in a sum of {}",
        ),
        price_chart.area_axis("AUC of the attack (lower is better)", low),
        (*bounds, *series),
        (Reference(figures.GUESSING),),
        title=f"Attack {name}: {figures.kind(_first(attacks, name))}",
        legend=True,
    )


def _first(attacks: Sequence[Attack], name: str) -> Attack:
    return next(attack for attack in attacks if attack.name == name)


def _table(attacks: Sequence[Attack], caption: str) -> Table:
    """The figures of the picture."""
    rows: list[list[Value] | Group] = []
    for name in dict.fromkeys(attack.name for attack in attacks):
        rows.append(Group(f"Attack {name}"))
        for attack in (attack for attack in attacks if attack.name == name):
            held = attack.guarantee
            area = f"{figures.share(attack.auc.value)} ({figures.ends(attack.auc)})"
            if not headline.telling(attack.auc):
                area = f"in {figures.ends(attack.auc)} ({headline.too_few(attack.auc)})"
            rows.append(
                [
                    f"{attack.clients_in_sum:,}",
                    _label(_kind(attack)),
                    "none" if held is None else words.epsilon(held.epsilon),
                    area,
                    figures.at_most(attack.bound.auc),
                ]
            )
    head = ("Clients in the sum", "Noise", "Epsilon against the server", "AUC (95 % interval)", "AUC allowed")
    return Table(caption, head, rows, numeric=frozenset({0, 3, 4}), stacked=True)
