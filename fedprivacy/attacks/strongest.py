"""The strongest attack at a seat, chosen for each fold on the others: no choice flatters its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedprivacy.attacks.metrics import Performance, known_areas, performance
from fedprivacy.attacks.targets import FOLDS, Targets


@dataclass(frozen=True)
class Contender:
    """One score of one attack.

    Args:
        name: The attack.
        seat: Its seat.
        supervised: Whether its score is learned from all its scores, and not the one that was chosen.
    """

    name: str
    seat: str
    supervised: bool


@dataclass(frozen=True)
class Strongest:
    """The strongest attack of each fold, measured there.

    Args:
        folds: In how many folds each contender was chosen, those of most folds first.
        runs: The figures of each run, over all its folds.
    """

    folds: Mapping[Contender, int]
    runs: Sequence[Performance]


def strongest(contenders: Mapping[Contender, Sequence[Targets]]) -> Strongest:
    """For each fold takes the contender with the largest AUC on the other folds, the mean over runs.

    Args:
        contenders: Their targets in each run, at least one; of two as good the first is taken.
    """
    areas = {
        contender: np.mean([[area.value for area in known_areas(run)] for run in runs], axis=0)
        for contender, runs in contenders.items()
    }
    chosen = [max(areas, key=lambda contender: float(areas[contender][fold])) for fold in range(FOLDS)]
    directions = {contender: [run.directions for run in contenders[contender]] for contender in chosen}
    runs = range(len(next(iter(contenders.values()))))
    figures = [performance([directions[best][run][fold] for fold, best in enumerate(chosen)]) for run in runs]
    return Strongest(dict(Counter(chosen).most_common()), figures)
