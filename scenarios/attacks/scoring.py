"""Scores the targets of one attack on one run, turns the scores into figures, and stores these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from fedprivacy.attacks.combined_scores import choose_score, clustered, supervised
from fedprivacy.attacks.game import Game
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.metrics import area
from fedprivacy.attacks.one_run_epsilon import Guesses, guesses_of
from fedprivacy.attacks.signals import Probe, Vector
from fedprivacy.attacks.targets import Flags, Numbers, Scores, Targets
from fedprivacy.attacks.transcript import TREND
from fedprivacy.attacks.trials import Outcome
from fedprivacy.errors import InputError

BASE = "cosine"  # of a feature that members have more of, whatever the attack


@dataclass(frozen=True)
class AttackResult:
    """The figures of one attack on one run.

    Args:
        score: The name of the score that was chosen for each fold, on the other folds.
        single_score: That which the single direction chose.
        chosen: The targets with the scores that were chosen.
        supervised: The targets with the score that is learned from all scores, which competes with it.
        scores: The AUC of every score, by name; `supervised` and `clustered` are made of all of them.
        blind: The AUC of a score that looks at the record alone: nothing but the game can help it.
        guesses: How a fixed score, chosen on such targets alone, guesses the coins of targets that were drawn
            blind to membership; in words why it cannot.
        lost: The number of unreached targets: the victim refused, or the model could not be evaluated.
        story: Of an ascent, the losses of a typical member and non-member: `loss_story`.
        observed: Of a passive attack the rounds that it saw; 0 is the first after the warm-up.
        accuracy: Of the attacked model on held-out records, before and after.
        seconds: How long it took.
        train_accuracy: Of an attack on the released model, the model's accuracy on what it was trained on.
        exposure: Of one by LiRA, whose records are exposed, and what that rests on.
    """

    score: tuple[str, ...]
    single_score: str
    chosen: Targets
    supervised: Targets
    scores: dict[str, Figure]
    blind: Figure
    guesses: Guesses | str
    lost: int
    story: dict[str, Any] | None
    observed: list[int]
    accuracy: tuple[float, float]
    seconds: float
    train_accuracy: float | None = None
    exposure: dict[str, Any] | None = None

    @property
    def scores_of(self) -> dict[str, Scores]:
        """The scores of "members" and "nonmembers" in the folds that chose what most folds did."""
        most = max(self.score, key=self.score.count)
        alike = np.isin(self.chosen.folds, [fold for fold, name in enumerate(self.score) if name == most])
        scores, members = self.chosen.held_out[alike], self.chosen.members[alike]
        return {"members": scores[members], "nonmembers": scores[~members]}


Result = AttackResult | Outcome  # of an attack that judges targets, of one in trials
_STORED: TypeAdapter[dict[str, Result]] = TypeAdapter(dict[str, Result])


def to_json(results: Mapping[str, Result]) -> dict[str, Any]:
    """The results of some attacks by name, as JSON that keeps every bit of their numbers."""
    stored: dict[str, Any] = _STORED.dump_python(dict(results))
    return stored


def from_json(stored: Any) -> dict[str, Result]:
    """Reads what `to_json` gave; nothing but results is ever made of it.

    Raises:
        InputError: it is something else.
    """
    try:
        return _STORED.validate_python(stored)
    except (ValidationError, InputError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error).rstrip(".")
        raise InputError(f"not a stored result of attacks by this version: {why}. Attack again.") from error


def score_attack(
    features: dict[str, Vector],
    game: Game,
    probe: Probe,
    *,
    delta: float,
    ascended: Tensor | None,
    observed: list[int],
    accuracy: tuple[float, float],
    seconds: float,
    base: str = BASE,
    train_accuracy: float | None = None,
    exposure: dict[str, Any] | None = None,
) -> AttackResult:
    """Chooses a score for each fold of targets on the other folds, and scores the fold by it.

    Args:
        features: By name, as `Targets` takes scores; NaN of targets that were not reached.
        game: The truth.
        probe: The targets.
        delta: That of the guarantee that the guesses are held against.
        ascended: The attacked model, from which an ascent started; None for passive attacks.
        observed: See `AttackResult`.
        accuracy: See `AttackResult`.
        seconds: See `AttackResult`.
        base: The feature that members have more of for certain.
        train_accuracy: See `AttackResult`.
        exposure: See `AttackResult`.

    Raises:
        InputError: too few targets were reached.
    """
    if not features:
        raise InputError("the victim refused every round, so that no target was reached.")
    reached = np.ones(len(game.targets), dtype=bool)
    for values in features.values():
        reached &= np.isfinite(np.atleast_2d(values)).all(axis=0)
    scores = {name: values[..., reached] for name, values in features.items()}
    members, folds = game.members[reached], game.folds[reached]
    classes, fair = probe.y.numpy()[reached], game.fair[reached]
    # What is chosen from is kept short, since among many one looks best by chance; all are learned from.
    simple = {name: values for name, values in scores.items() if not name.startswith(TREND)}
    choice = choose_score(simple, members, folds)
    chosen = Targets(choice.scores, members, folds, classes)
    learned = {"supervised": supervised(scores, members, folds)}
    fixed = {name: values for name, values in scores.items() if values.ndim == 1}
    if base in fixed:  # no membership is read
        learned["clustered"] = clustered(fixed, base)
    blind = probe.x.flatten(1).mean(dim=1).double().numpy()[reached]
    return AttackResult(
        score=choice.names,
        single_score=choice.single,
        chosen=chosen,
        supervised=Targets(learned["supervised"], members, folds, classes),
        scores={
            name: area(Targets(values, members, folds)) for name, values in {**scores, **learned}.items()
        },
        blind=area(Targets(blind, members, folds)),
        guesses=_guesses(
            {name: simple[name][fair] for name in simple if name in fixed}, members[fair], folds[fair], delta
        ),
        lost=int((~reached).sum()),
        story=None if ascended is None else loss_story(probe, ascended, scores, members, reached),
        observed=observed,
        accuracy=accuracy,
        seconds=seconds,
        train_accuracy=train_accuracy,
        exposure=exposure,
    )


def _guesses(scores: Mapping[str, Scores], members: Flags, folds: Numbers, delta: float) -> Guesses | str:
    """The guesses on fair targets by a fixed score that is chosen on known fair targets alone.

    Added targets are as many as members are missing among the fair ones: what is fitted on them may know how
    many measured coins are members.
    """
    if not scores:
        return "every score of this attack is fitted to memberships of targets whose coins are not all fair"
    try:
        chosen = choose_score(scores, members, folds).scores
        return guesses_of(Targets(chosen, members, folds), delta)
    except InputError as error:
        return f"of the targets that were drawn blind to membership too few were reached: {error}"


def histogram(scores: dict[str, Vector], among: Vector | None = None, bins: int = 30) -> dict[str, Any]:
    """Counts members and non-members between score edges; the outer bins include all beyond.

    Args:
        scores: Of "members" and "nonmembers", each of shape (targets,).
        among: The scores that the edges are made for; None: these.
        bins: How many intervals.
    """
    every = np.concatenate(list(scores.values())) if among is None else among
    low, high = np.quantile(every, [0.005, 0.995])
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    counts = {
        kind: np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].tolist()
        for kind, values in scores.items()
    }
    return {"edges": edges.tolist(), **counts}


def loss_story(
    probe: Probe,
    weights: Tensor,
    scores: dict[str, NDArray[np.float64]],
    members: NDArray[np.bool_],
    reached: NDArray[np.bool_],
) -> dict[str, Any]:
    """The loss of a typical member and a typical non-member: before, raised, and after training.

    Typical is the target with the median `recovery` of its kind.
    """
    before = probe.losses(weights).double().numpy()[reached]
    after = np.exp(-scores["loss"])
    raised = after * np.exp(scores["recovery"])
    losses_by_name = {}
    for name, kind in (("member", members), ("nonmember", ~members)):
        places = np.flatnonzero(kind)
        typical = places[np.argsort(scores["recovery"][places])[len(places) // 2]]
        losses_by_name[name] = [float(losses[typical]) for losses in (before, raised, after)]
    return {"moments": ["before", "raised", "after the victim has trained"], **losses_by_name}
