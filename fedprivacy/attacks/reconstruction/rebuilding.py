"""The trials of reconstruction: secrets are drawn, records rebuilt, and compared with all candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from fedprivacy.attacks.intervals import CONFIDENCE, Figure, proportion_high, proportion_low
from fedprivacy.attacks.reconstruction import imprint, informed
from fedprivacy.attacks.reconstruction.analytic import FirstLayer, rebuild_record
from fedprivacy.attacks.reconstruction.inverting import Inversion, LocalSteps, label_of
from fedprivacy.attacks.reconstruction.similarity import Similarity, similarity
from fedprivacy.attacks.trials import Outcome, RebuiltPicture, Rows, Victim, observations
from fedprivacy.data.images import square_image

Ids = NDArray[np.int64]
ABSENT = "rebuilt of records that were not there"
PSNR, WRONG_PSNR = "median PSNR, dB", "median PSNR of the nearest wrong picture, dB"
SHOWN = 6  # pictures in the report


class Settings(Protocol):
    """The keys of `attack.Reconstruction` that its trials read."""

    @property
    def observed(self) -> str:
        """The key of the observed answers."""

    @property
    def method(self) -> str:
        """The method."""

    @property
    def seat(self) -> str:
        """The seat."""

    @property
    def trials(self) -> int:
        """The number of trials."""

    @property
    def candidates(self) -> int:
        """The number of candidates."""

    @property
    def batch(self) -> int | None:
        """The number of records that the victim trains on; None: all."""

    @property
    def bins(self) -> int:
        """The bins of an imprint."""

    @property
    def search_steps(self) -> int:
        """The steps of a search."""

    @property
    def variation(self) -> float:
        """The weight of smooth pictures in a search."""


def run_trials(attack: Settings, victim: Victim) -> Outcome:
    """Draws a record from the candidates in each trial, and lets the attacker rebuild it."""
    draw = _Draw.of(attack, victim)
    if attack.method == "informed":
        return _informed(attack, victim, draw)
    return _rebuilding(attack, victim, draw)


def flat_records(victim: Victim, numbers: Ids) -> NDArray[np.float64]:
    """Records as rows of numbers."""
    x, _ = victim.records(numbers)
    return x.reshape(len(x), -1).astype(np.float64)


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
    def of(cls, attack: Settings, victim: Victim) -> _Draw:
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


def _informed(attack: Settings, victim: Victim, draw: _Draw) -> Outcome:
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
    for trials, observed in observations(victim, draw.worlds, attack.observed):
        for trial, row in zip(trials, observed, strict=True):
            updates = _clean(victim, draw, trial, every) if clean is None else clean
            successes += int(informed.pick(row, updates) == draw.places[trial])
    return Outcome(successes, attack.trials)


def _clean(victim: Victim, draw: _Draw, trial: int, candidates: range) -> Rows:
    worlds = [draw.world(trial, candidate) for candidate in candidates]
    return victim.answers(worlds, "candidates", noisy=False)


def _rebuilding(attack: Settings, victim: Victim, draw: _Draw) -> Outcome:
    """Rebuilds pictures from each trial's observation, and compares them with the candidates."""
    sent, rebuild = _method(attack, victim)
    pictures, levels = (
        flat_records(victim, draw.candidates),
        _Levels.of(flat_records(victim, victim.pools()[1])),
    )
    stretched = levels.stretched(pictures)
    image = square_image(victim.records(draw.candidates[:1])[0].shape[1:])
    present: list[Similarity] = []
    shown: list[RebuiltPicture] = []
    absent = 0
    for trials, observed in observations(sent, draw.worlds, attack.observed):
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


def _method(attack: Settings, victim: Victim) -> tuple[Victim, Rebuild]:
    """The victim as the attack addresses it, and the function from an observation to pictures."""
    module, weights = victim.module, victim.weights[0]
    if attack.method == "imprint":
        edges = imprint.quantiles(flat_records(victim, victim.pools()[1]), attack.bins)
        layer = FirstLayer.of(module)
        sent = victim.sending(imprint.imprinted(weights, module, edges))
        return sent, lambda row, world: imprint.rebuild_records(row, layer)
    if attack.method == "analytic":
        layer = FirstLayer.of(module)
        return victim, lambda row, world: rebuild_record(row, layer)[None]
    steps, rate = victim.local_steps
    levels = _Levels.of(flat_records(victim, victim.pools()[1]))
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
