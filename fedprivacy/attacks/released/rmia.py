"""RMIA, the relative membership attack (Zarifzadeh, Liu and Shokri 2024).

LR(x, z) = (Pr(x | theta) / Pr(x)) / (Pr(z | theta) / Pr(z)), with Pr(. | theta) the target's probability of
the label and Pr(.) its mean over models with and without the record. The score of x is the share of
population records z, which nobody trained on, over which x prevails: LR(x, z) >= gamma.
"""

from __future__ import annotations

import math

import numpy as np

from fedprivacy.attacks.released.lira import check
from fedprivacy.attacks.released.references import Flags
from fedprivacy.attacks.released.signals import Signals, losses
from fedprivacy.errors import InputError

GAMMA = 2.0
OFFLINE_A = 0.3


def rmia(
    target: Signals,
    references: Signals,
    members: Flags,
    population: Signals,
    population_references: Signals,
    *,
    gamma: float = GAMMA,
    offline: bool = False,
    a: float = OFFLINE_A,
) -> Signals:
    """The score of each record, larger for rather a member, in [0, 1], shape (records,).

    Args:
        target: Logit-scaled confidences of the target model, shape (records,).
        references: Of the reference models, shape (models, records).
        members: Which records each of these was trained on, shape (models, records).
        population: The target's confidences in the records z, shape (population,).
        population_references: The references' in them, shape (models, population); none was trained on them.
        gamma: How far x has to prevail, above 0.
        offline: Whether Pr(x) comes from models without x alone: (1 + a)/2 Pr_out(x) + (1 - a)/2 (the paper's
            equation 10). Pr(z) always does.
        a: In [0, 1]; 1 takes Pr_out as it is. The closer to 0, the closer to 1 Pr_in is taken to be.

    Raises:
        InputError: shapes differ, a value is out of range, or a record lacks models.
    """
    check(target, references, members)
    outside = np.zeros(population_references.shape, dtype=bool)
    check(population, population_references, outside)
    if not len(population) or len(population_references) != len(references):
        raise InputError("population: must hold records, and be asked of every reference.")
    if not (math.isfinite(gamma) and gamma > 0):
        raise InputError(f"gamma = {gamma}: must be above 0. 1 or 2 is usual.")
    if not 0 <= a <= 1:
        raise InputError(f"a = {a}: must lie between 0 and 1. 0.3 is usual.")
    without = _log_mean(references, ~members, "without")
    mean = _assumed(without, a)
    if not offline:
        mean = np.logaddexp(without, _log_mean(references, members, "with")) - math.log(2)
    ratios = -losses(target) - mean
    others = -losses(population) - _assumed(_log_mean(population_references, ~outside, "without"), a)
    beaten = np.searchsorted(np.sort(others), ratios - math.log(gamma), side="right")
    return beaten / len(others)


def _assumed(without: Signals, a: float) -> Signals:
    """The logarithm of Pr, from that of Pr_out: as if Pr_in were a Pr_out + 1 - a."""
    least = math.log((1 - a) / 2) if a < 1 else -math.inf
    return np.logaddexp(without + math.log((1 + a) / 2), least)


def _log_mean(references: Signals, counted: Flags, which: str) -> Signals:
    """The logarithm of the mean probability over the models that count, shape (records,)."""
    models = counted.sum(axis=0)
    if not models.all():
        raise InputError(f"references: a record has no model {which} it; train more references.")
    logs = np.where(counted, -losses(references), -np.inf)
    return np.logaddexp.reduce(logs, axis=0) - np.log(models)
