"""Disparate vulnerability: the records, classes and groups that an attack identifies over models.

An average hides the vulnerable ones: most members may be safe while a few are identified each time (after ML
Privacy Meter; Kulynych et al. 2022). A record is called a member of a model if its score is above a threshold
that a small share of the model's non-members pass. A record's advantage is the share of models
trained on it that call it a member, less the same share of models without it, since some records look like
members to every model. A record is named by its index in the pool; its content is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.attacks.document import over_targets
from fedprivacy.attacks.intervals import CONFIDENCE, Figure, difference, proportion_high, proportion_low
from fedprivacy.attacks.metrics import LEAST_OF_A_CLASS
from fedprivacy.attacks.released.concentration import Carried, Counts, carried, spread
from fedprivacy.attacks.released.references import Flags
from fedprivacy.attacks.released.signals import Signals
from fedprivacy.attacks.roc import auc
from fedprivacy.data.groups import Grouping
from fedprivacy.errors import InputError

Score = Callable[[Signals, Signals, Flags], Signals]
MODELS = "models"  # what a record's intervals cover: the chance of training, and of who else is in


@dataclass(frozen=True)
class Record:
    """One record's exposure, with intervals that cover this record alone.

    Args:
        place: Its position in the pool.
        advantage: Its rate less its rate of false alarms.
        rate: The share of models trained on it in which it is called a member.
        hits: In how many it is.
        models: Of how many.
        alarms: In how many models without it it is called a member.
        others: Of how many.
    """

    place: int
    advantage: Figure
    rate: Figure
    hits: int
    models: int
    alarms: int
    others: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "record": self.place,
            "advantage": self.advantage.to_json(),
            "rate": self.rate.to_json(),
            "hits": self.hits,
            "models": self.models,
            "alarms": self.alarms,
            "others": self.others,
        }


@dataclass(frozen=True)
class Class:
    """The exposure of one class, or of one group: figures and intervals, averaged over models.

    Args:
        auc: None where a model has too few members or non-members of the class.
        rate: The share of its members that are called so; None where a model has no member of it.
        alarms: The share of its non-members that are; None where a model has none.
        records: Of the pool.
    """

    auc: Figure | None
    rate: Figure | None
    alarms: Figure | None
    records: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        figures = {"auc": self.auc, "rate": self.rate, "alarms": self.alarms}
        as_json = {name: None if figure is None else figure.to_json() for name, figure in figures.items()}
        return {**as_json, "records": self.records}


@dataclass(frozen=True)
class Exposure:
    """The exposure of records and classes.

    Args:
        fpr: The share of a model's non-members that pass its threshold.
        hits: For each record, shape (records,): see `Record`.
        models: Likewise.
        alarms: Likewise.
        others: Likewise.
        margins: How far a record's score lies above the threshold, on average over models trained on it.
        classes: By label.
        auc: Of all records together, the mean over models; None where one has no members or no non-members.
        carried: The shares of the most exposed records; empty where not requested, or not known.
        groups: By column, then by group.
    """

    fpr: float
    hits: Counts
    models: Counts
    alarms: Counts
    others: Counts
    margins: Signals
    classes: dict[int, Class]
    auc: Figure | None = None
    carried: tuple[Carried, ...] = ()
    groups: Mapping[str, Mapping[str, Class]] = field(default_factory=dict)

    def most(self, count: int) -> list[Record]:
        """The most exposed records, of those that some models were trained on and some were not.

        Figures of few models are uncertain, so the order is by the lower end of the advantage, then by its
        value, then by the margin. Who is chosen among many is a little flattered by chance.

        Args:
            count: How many, at most.
        """
        places = np.flatnonzero((self.models > 0) & (self.others > 0))
        counts = np.stack([self.hits, self.models, self.alarms, self.others], axis=1)[places]
        kinds, kind = np.unique(counts, axis=0, return_inverse=True)
        advantages = [_advantage(*row.tolist()) for row in kinds]
        keys = np.array([(-advantage.low, -advantage.value) for advantage in advantages]).reshape(-1, 2)[
            kind.reshape(-1)
        ]
        order = np.lexsort((places, -self.margins[places], keys[:, 1], keys[:, 0]))[:count]
        return [
            Record(
                int(places[at]),
                advantages[kind.reshape(-1)[at]],
                _proportion(int(counts[at, 0]), int(counts[at, 1]), MODELS),
                *counts[at].tolist(),
            )
            for at in order
        ]

    def proved(self, error: float = 1 - CONFIDENCE) -> Counts:
        """The places of records that are exposed for certain, all of them at once.

        By Fisher's exact test, one-sided: if a record's coin had no effect, the models that call it a member
        would rarely be among those trained on it so often. With Bonferroni's correction: with probability at
        least 1 - error, no record without any effect is included.
        """
        every, called = self.models + self.others, self.hits + self.alarms
        tails = scipy.stats.hypergeom.sf(self.hits - 1, every, called, self.models)
        return np.flatnonzero(tails <= error / len(self.hits))

    def to_json(self, most: int = 20) -> dict[str, Any]:
        """As a JSON object, with the most exposed records.

        Args:
            most: How many of these.
        """
        proved = self.proved()
        groups = {
            column: {label: part.to_json() for label, part in parts.items()}
            for column, parts in self.groups.items()
        }
        return {
            "fpr": self.fpr,
            "models": int((self.models + self.others)[0]),
            "records": len(self.hits),
            "exposed": len(proved),
            "auc": None if self.auc is None else self.auc.to_json(),
            "carried": [part.to_json() for part in self.carried],
            "spread": spread(self.hits, self.models, self.alarms, self.others, proved),
            "most_exposed": [record.to_json() for record in self.most(most)],
            "classes": {str(label): part.to_json() for label, part in self.classes.items()},
            **({"groups": groups} if groups else {}),
        }


def exposure(
    scores: Signals,
    members: Flags,
    y: NDArray[np.int64],
    fpr: float = 0.01,
    signals: Signals | None = None,
    groups: Sequence[Grouping] = (),
) -> Exposure:
    """Computes the exposure of records, classes and groups to an attack on several models.

    Args:
        scores: Of each record on each model, larger for rather a member, shape (models, records).
        members: Which records each model was trained on, shape (models, records).
        y: Labels, shape (records,).
        fpr: The false positive rate, in (0, 1).
        signals: The models' signals of each record, shape (models, records), from which the shares of the
            most exposed follow; None: these are not computed.
        groups: The groups of the records by several columns.

    Raises:
        InputError: shapes differ, a score is not finite, or a model has too few non-members for such a rate.
    """
    if scores.shape != members.shape or scores.shape[1:] != y.shape or not scores.size:
        raise InputError(
            f"scores: shapes {scores.shape}, {members.shape} of members and {y.shape} of labels; must be "
            "(models, records) twice, and (records,)."
        )
    if not np.isfinite(scores).all():
        raise InputError("scores: NaN or infinite; an attack must give each record a finite score.")
    if not 0 < fpr < 1:
        raise InputError(f"fpr = {fpr}: must lie between 0 and 1. 0.01 is usual.")
    limits = np.array([_thresholds(row, inside, fpr) for row, inside in zip(scores, members, strict=True)])
    above = scores - np.where(members, limits[:, :1], limits[:, 1:])
    models = members.sum(axis=0)
    return Exposure(
        fpr,
        (members & (above > 0)).sum(axis=0),
        models,
        (~members & (above > 0)).sum(axis=0),
        len(scores) - models,
        np.where(members, above, 0.0).sum(axis=0) / np.maximum(models, 1),
        {int(label): _class(scores, members, above > 0, y == label) for label in np.unique(y)},
        _class(scores, members, above > 0, np.ones(len(y), dtype=bool)).auc,
        () if signals is None else carried(signals, above > 0, members),
        {
            group.column: {
                label: _class(scores, members, above > 0, group.codes == code)
                for code, label in enumerate(group.labels)
            }
            for group in groups
        },
    )


def in_turn(score: Score, signals: Signals, members: Flags) -> Signals:
    """The scores of each reference model, attacked with the help of the others, shape (models, records).

    Each record is attacked once for each reference, without further models.

    Args:
        score: From a target's signals, and the signals and members of references, to scores, for example
            LiRA.
        signals: Of the references, shape (models, records).
        members: Which records each was trained on, shape (models, records).
    """
    others = ~np.eye(len(signals), dtype=bool)
    return np.stack(
        [score(scored, signals[rest], members[rest]) for scored, rest in zip(signals, others, strict=True)]
    )


def _thresholds(scores: Signals, inside: Flags, fpr: float) -> tuple[float, float]:
    """The scores above which a record is called a member, for members and for non-members of a model.

    A further non-member is above the first with probability at most `fpr` (proof: `tpr_at`). A non-member is
    compared with the other non-members, as a member is: otherwise it would be part of its own threshold, and
    a score without information would seem to expose records.
    """
    nonmembers = np.sort(scores[~inside])
    # Scores of non-members are exchangeable, so a further one exceeds the k-th largest of n with probability
    # k/(n + 1).
    k = math.floor(fpr * (len(nonmembers) + 1) + 1e-9)
    if k == 0:
        raise InputError(
            f"fpr = {fpr}: needs {math.ceil(1 / fpr) - 1} non-members of each model, and one has "
            f"{len(nonmembers)}; ask for a larger rate."
        )
    place = min(len(nonmembers), math.floor(fpr * len(nonmembers) + 1e-9) + 1)
    return float(nonmembers[-k]), float(nonmembers[-place])


def _class(scores: Signals, members: Flags, called: Flags, in_class: Flags) -> Class:
    areas, rates, alarms = [], [], []
    for values, inside, hit in zip(
        scores[:, in_class], members[:, in_class], called[:, in_class], strict=True
    ):
        if min(inside.sum(), (~inside).sum()) >= LEAST_OF_A_CLASS:
            areas.append(auc(values[inside], values[~inside]))
        if inside.any():
            rates.append(_proportion(int(hit[inside].sum()), int(inside.sum())))
        if not inside.all():
            alarms.append(_proportion(int(hit[~inside].sum()), int((~inside).sum())))
    area, rate, alarm = (
        over_targets(figures) if len(figures) == len(scores) else None for figures in (areas, rates, alarms)
    )
    return Class(area, rate, alarm, int(in_class.sum()))


def _advantage(hits: int, models: int, alarms: int, others: int) -> Figure:
    interval = difference(hits, models, alarms, others)
    return Figure(interval.value, interval.low, interval.high, MODELS)


def _proportion(hits: int, trials: int, covers: str = "targets") -> Figure:
    error = (1 - CONFIDENCE) / 2
    low, high = proportion_low(hits, trials, error), proportion_high(hits, trials, error)
    return Figure(hits / trials, low, high, covers)
