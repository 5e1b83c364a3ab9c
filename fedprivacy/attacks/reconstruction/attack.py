"""Reconstruction as an attack in trials: one record of the victim is drawn from a prior, and rebuilt.

In each trial the victim trains on one of the candidates, drawn at random, and on records that the attacker
knows. The candidates are known too: a prior of equal mass. The record counts as rebuilt if a guess is nearer
to it than half the distance to any other candidate (`similarity`), or if the attacker names it. So blind
guesses succeed with probability guesses / candidates at most, which is kappa of the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from fedprivacy.attacks.intervals import CONFIDENCE, Figure, proportion_high, proportion_low
from fedprivacy.attacks.reconstruction import imprint, informed
from fedprivacy.attacks.reconstruction.analytic import FirstLayer, rebuild_record
from fedprivacy.attacks.reconstruction.bound import bound_of_ledger, mass_of_guesses
from fedprivacy.attacks.reconstruction.inverting import Inversion, LocalSteps, check_last_biases, label_of
from fedprivacy.attacks.reconstruction.similarity import Similarity, similarity
from fedprivacy.attacks.trials import (
    GUESSING,
    TRIALS,
    Ceiling,
    Outcome,
    RebuiltPicture,
    Rows,
    Victim,
    Without,
    observations,
)
from fedprivacy.data.images import square_image
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.sections import Reconstruction

Ids = NDArray[np.int64]
ABSENT = "rebuilt of records that were not there"
PSNR, WRONG_PSNR = "median PSNR, dB", "median PSNR of the nearest wrong picture, dB"
SHOWN = 6  # pictures in the report
_KEY = "trials/0"  # of the noise; another key draws other noise


class RecordReconstruction:
    """Rebuilds a record of the victim."""

    success: ClassVar[str] = "the attacker rebuilds the victim's record"
    compares: ClassVar[bool] = False
    comparison: ClassVar[str] = GUESSING
    note: ClassVar[str] = TRIALS

    def chance(self, attack: Reconstruction, without: Without | None = None) -> float:
        """The success of guesses that are made without the update."""
        return mass_of_guesses(attack.guesses, attack.candidates)

    def ceiling(
        self, attack: Reconstruction, ledger: Mapping[str, Any], run: AttackScenario, without: Without | None
    ) -> Ceiling:
        """Reconstruction robustness by the seat's trade-off curve; see `TrialKind.ceiling`."""
        return bound_of_ledger(ledger, attack.seat, self.chance(attack))

    def check(self, attack: Reconstruction, victim: Victim) -> None:
        """Refuses a model that does not fit the method, or too many records; see `TrialKind.check`."""
        of_worlds, of_attacker = victim.pools()
        batch = attack.batch or victim.size
        if batch > victim.size:
            raise InputError(f"batch = {batch}: the victim has {victim.size} records. At most as many.")
        free = len(of_worlds) - (batch - 1)
        if attack.candidates > free:
            raise InputError(
                f"candidates = {attack.candidates}: there are {len(of_worlds)} records to draw from, and "
                f"{batch - 1} more are the victim's. At most {free}, or make data.public_fraction larger."
            )
        if attack.method == "imprint":
            imprint.quantiles(_flat(victim, of_attacker), attack.bins)
        if attack.method in ("analytic", "imprint"):
            FirstLayer.of(victim.module)
        if attack.method == "inverting":
            check_last_biases(victim.module, victim.classes)
        if attack.in_sum and victim.is_noisy:
            raise InputError(
                'sees = "sum": the noise of all other clients is drawn anew in each trial, which is Gaussian '
                'noise alone. Set privacy.mechanism = "gaussian", or sees = "updates".'
            )
        if attack.method == "informed" and victim.is_noisy:
            raise InputError(
                'method = "informed": the noise is no Gaussian noise on whole updates, whose likelihood the '
                'attack takes. Set privacy.mechanism = "gaussian".'
            )

    def run(self, attack: Reconstruction, victim: Victim) -> Outcome:
        """Draws a record from the candidates in each trial, and lets the attacker rebuild it."""
        draw = _Draw.of(attack, victim)
        if attack.method == "informed":
            return _informed(attack, victim, draw)
        return _rebuilding(attack, victim, draw)


@dataclass(frozen=True)
class _Draw:
    """The secrets of all trials.

    Args:
        candidates: The numbers of the candidates, shape (candidates,).
        places: Which of them is the record of each trial, shape (trials,).
        absent: Another one of them, which is in no trial's update, shape (trials,).
        known: The victim's other records in each trial, shape (trials, batch - 1).
    """

    candidates: Ids
    places: Ids
    absent: Ids
    known: Ids

    @classmethod
    def of(cls, attack: Reconstruction, victim: Victim) -> _Draw:
        stream, trials = victim.stream("reconstruction/draw"), attack.trials
        pool = stream.permutation(victim.pools()[0])
        candidates, rest = np.split(pool, [attack.candidates])
        places = stream.integers(attack.candidates, size=trials)
        absent = (places + stream.integers(1, attack.candidates, size=trials)) % attack.candidates
        others = (attack.batch or victim.size) - 1
        known = [stream.choice(rest, others, replace=False) for _ in range(trials)]
        return cls(candidates, places, absent, np.array(known, np.int64).reshape(trials, others))

    def world(self, trial: int, candidate: int) -> Ids:
        """The victim's records in a trial if its record is this candidate."""
        return np.append(self.known[trial], self.candidates[candidate])

    @property
    def worlds(self) -> list[Ids]:
        """The victim's records in each trial."""
        return [self.world(trial, place) for trial, place in enumerate(self.places)]


def _informed(attack: Reconstruction, victim: Victim, draw: _Draw) -> Outcome:
    """Picks the candidate whose update without noise is the likeliest.

    A server sends the first model in each round: records that are new to a model have the longest gradients.
    """
    successes = 0
    if attack.seat == "server":
        victim = victim.sending(victim.weights[0])
    every = range(attack.candidates)
    # Without other records each trial has the same candidates' updates.
    alone = draw.known.shape[1] == 0
    clean = _clean(victim, draw, 0, every) if alone else None
    for trials, observed in observations(victim, draw.worlds, _KEY):
        for trial, row in zip(trials, observed, strict=True):
            updates = _clean(victim, draw, trial, every) if clean is None else clean
            successes += int(informed.pick(row, updates) == draw.places[trial])
    return Outcome(successes, attack.trials)


def _clean(victim: Victim, draw: _Draw, trial: int, candidates: range) -> Rows:
    worlds = [draw.world(trial, candidate) for candidate in candidates]
    return victim.answers(worlds, "candidates", noisy=False)


def _rebuilding(attack: Reconstruction, victim: Victim, draw: _Draw) -> Outcome:
    """Rebuilds pictures from each trial's observation, and compares them with the candidates."""
    sent, rebuild = _method(attack, victim)
    pictures, levels = _flat(victim, draw.candidates), _Levels.of(_flat(victim, victim.pools()[1]))
    stretched = levels.stretched(pictures)
    image = square_image(victim.records(draw.candidates[:1])[0].shape[1:])
    present: list[Similarity] = []
    shown: list[RebuiltPicture] = []
    absent = 0
    for trials, observed in observations(sent, draw.worlds, _KEY):
        for trial, row in zip(trials, observed, strict=True):
            guesses = levels.stretched(rebuild(row, draw.world(trial, draw.places[trial])))
            for place in (draw.places[trial], draw.absent[trial]):
                others = np.delete(stretched, place, axis=0)
                measured = similarity(stretched[place][None], guesses, others)
                if place == draw.absent[trial]:
                    absent += int(measured.rebuilt[0])
                    continue
                present.append(measured)
                if image is not None and len(shown) < SHOWN:
                    parts = stretched[place], guesses[measured.guess[0]], others[measured.wrong[0]]
                    shown.append(_picture(image, parts, measured))
    return Outcome(
        sum(int(measured.rebuilt[0]) for measured in present),
        attack.trials,
        {ABSENT: _rate(absent, attack.trials)},
        {
            PSNR: float(np.median([measured.psnr[0] for measured in present])),
            WRONG_PSNR: float(np.median([measured.wrong_psnr[0] for measured in present])),
        },
        tuple(shown),
    )


Rebuild = Callable[[NDArray[np.float64], Ids], NDArray[np.float64]]


def _method(attack: Reconstruction, victim: Victim) -> tuple[Victim, Rebuild]:
    """The victim as the attack addresses it, and the function from an observation to pictures."""
    module, weights = victim.module, victim.weights[0]
    if attack.method == "imprint":
        edges = imprint.quantiles(_flat(victim, victim.pools()[1]), attack.bins)
        layer = FirstLayer.of(module)
        sent = victim.sending(imprint.imprinted(weights, module, edges))
        return sent, lambda row, world: imprint.rebuild_records(row, layer)
    if attack.method == "analytic":
        layer = FirstLayer.of(module)
        return victim, lambda row, world: rebuild_record(row, layer)[None]
    steps, rate = victim.local_steps
    levels = _Levels.of(_flat(victim, victim.pools()[1]))
    search = Inversion(attack.search_steps, variation=attack.variation, low=levels.low, high=levels.high)
    stream = victim.stream("reconstruction/search")
    at = torch.from_numpy(weights)

    def invert(row: NDArray[np.float64], world: Ids) -> NDArray[np.float64]:
        x, y = victim.records(world)
        # The attacker knows the labels of the victim's other records, and infers that of the record.
        labels = np.append(y[:-1], label_of(row, victim.classes, y[:-1]))
        observed, local = torch.from_numpy(row), LocalSteps(steps, rate)
        return search.rebuild(module, at, observed, torch.from_numpy(labels), x.shape[1:], local, stream)

    return victim, invert


def _flat(victim: Victim, numbers: Ids) -> NDArray[np.float64]:
    """Records as rows of numbers."""
    x, _ = victim.records(numbers)
    return x.reshape(len(x), -1).astype(np.float64)


@dataclass(frozen=True)
class _Levels:
    """The least and the largest value of public records, which become 0 and 1."""

    low: float
    high: float

    @classmethod
    def of(cls, public: NDArray[np.float64]) -> _Levels:
        return cls(float(public.min()), float(public.max()))

    def stretched(self, pictures: NDArray[np.float64]) -> NDArray[np.float64]:
        return (pictures - self.low) / ((self.high - self.low) or 1.0)


def _picture(
    image: tuple[int, int], parts: tuple[NDArray[np.float64], ...], measured: Similarity
) -> RebuiltPicture:
    channels, side = image
    original, rebuilt, wrong = map(_digits, parts)
    return RebuiltPicture(
        side, channels, original, rebuilt, wrong, float(measured.psnr[0]), float(measured.wrong_psnr[0])
    )


def _digits(picture: NDArray[np.float64]) -> str:
    """A hexadecimal digit for each number from 0 to 1; others are cut."""
    levels = np.nan_to_num(picture, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0) * 15
    return "".join(f"{level:x}" for level in levels.round().astype(int))


def _rate(hits: int, trials: int) -> Figure:
    error = (1 - CONFIDENCE) / 2
    return Figure(hits / trials, proportion_low(hits, trials, error), proportion_high(hits, trials, error))
