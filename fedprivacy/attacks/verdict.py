"""Tests whether all attacks of a replay stay under their bounds, corrected for their number.

One interval above its bound proves little where many attacks were run: one of twenty is expected to be. That
none is above its bound proves no guarantee: the attacks may be weak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedprivacy.attacks.bounds import Bound
from fedprivacy.attacks.intervals import proportion_high, proportion_low
from fedprivacy.attacks.roc import Counts
from fedprivacy.errors import InputError

ERROR = 0.05  # the probability of a false alarm, of all checks together
_LARGEST_ERROR = 0.5  # `_refuted` needs ends at 1/4 at most


@dataclass(frozen=True)
class Case:
    """One attack before the court.

    Args:
        name: The attack.
        bound: The most that is allowed at its seat.
        points: Its operating points, with the counts of each run: `fedprivacy.attacks.metrics.points_of`.
    """

    name: str
    bound: Bound
    points: Mapping[str, Sequence[Counts]]


@dataclass(frozen=True)
class TrialCase:
    """An attack in trials before the court.

    Args:
        name: The attack.
        successes: Over all runs.
        trials: Over all runs.
        allowed: The largest probability of success; None without a guarantee.
        allowed_at: The same where it follows from a measured rate, of which one end is wrong with this
            probability.
    """

    name: str
    successes: int
    trials: int
    allowed: float | None
    allowed_at: Callable[[float], float | None] | None = None


@dataclass(frozen=True)
class Refutation:
    """An operating point, or a rate of success, above the bound.

    Args:
        attack: Whose.
        at: Which: "balanced", or the FPR that its threshold aims at; of an attack in trials "success".
        tpr: The TPR, or the probability of success, is at least this.
        fpr: And the FPR at most this; None of an attack in trials.
        allowed: The largest TPR that the bound allows at this FPR, or the largest probability of success.
    """

    attack: str
    at: str
    tpr: float
    fpr: float | None
    allowed: float

    @property
    def words(self) -> str:
        """The figures in words."""
        if self.fpr is None:
            return (
                f"{self.attack} succeeds in at least {_percent(self.tpr)} of trials, where at most "
                f"{_percent(self.allowed)} are allowed"
            )
        return (
            f"{self.attack} finds at least {_percent(self.tpr)} of the members at an FPR of at most "
            f"{_percent(self.fpr)}, where at most {_percent(self.allowed)} are allowed"
        )

    def to_json(self) -> dict[str, Any]:
        """The refutation as a JSON object."""
        return {
            "attack": self.attack,
            "at": self.at,
            "tpr": self.tpr,
            "fpr": self.fpr,
            "allowed": self.allowed,
        }


@dataclass(frozen=True)
class Verdict:
    """The joint verdict of all attacks on the guarantees.

    Args:
        checked: The attacks with a bound.
        unbounded: Those without: nothing is guaranteed against them, and nothing was checked.
        checks: How many operating points were held against a bound.
        error: The probability of a false alarm, of all checks together.
        refuted: The points above their bound, those furthest above first.
        scored_again: The attacks whose trials were observed before for other settings, which are not checked.
    """

    checked: tuple[str, ...]
    unbounded: tuple[str, ...]
    checks: int
    error: float
    refuted: tuple[Refutation, ...]
    scored_again: tuple[str, ...] = ()

    @property
    def holds(self) -> bool | None:
        """Whether all attacks stay under their bounds; None where there was nothing to check."""
        return not self.refuted if self.checks else None

    @property
    def words(self) -> str:
        """The verdict in plain sentences."""
        again = ""
        if self.scored_again:
            listed = _listed(self.scored_again)
            again = f" Not checked, since trials that were observed before are no fresh test: {listed}."
        if not self.checks:
            nothing = "no fresh trial" if self.scored_again else "no attack"
            return f"There is nothing to check: {nothing} has a bound to stay under.{again}"
        basis = (
            f"({_counted(self.checks, 'check')}, at most {100 * self.error:.3g} % chance of a false alarm)"
        )
        rest = again
        if self.unbounded:
            it = "it" if len(self.unbounded) == 1 else "them"
            rest += f" Not checked, since nothing is guaranteed against {it}: {_listed(self.unbounded)}."
        if not self.refuted:
            single = len(self.checked) == 1
            several = f"None of {len(self.checked)} attacks refutes its bound"
            result = f"The attack {self.checked[0]} does not refute its bound" if single else several
            return f"{result} {basis}, which proves no guarantee.{rest}"
        names, worst = list(dict.fromkeys(single.attack for single in self.refuted)), self.refuted[0]
        return (
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} above what the guarantee allows: "
            f"{worst.words} {basis}. "
            "An assumption of the guarantee does not hold, or there is a mistake in noise, accounting or "
            f"game: do not rely on it before this is explained.{rest}"
        )

    def to_json(self) -> dict[str, Any]:
        """The verdict as a JSON object."""
        return {
            "holds": self.holds,
            "checks": self.checks,
            "error": self.error,
            "checked": list(self.checked),
            "unbounded": list(self.unbounded),
            "refuted": [refutation.to_json() for refutation in self.refuted],
            **({"scored_again": list(self.scored_again)} if self.scored_again else {}),
            "words": self.words,
        }


def verdict(
    cases: Sequence[Case | TrialCase], error: float = ERROR, scored_again: Sequence[str] = ()
) -> Verdict:
    """Holds every operating point of every attack against its bound, all at once.

    A point refutes its bound if the lower end of its TPR is above what the curve allows at the upper end of
    its FPR, both exact (Clopper and Pearson 1934). With k points each end is given error/(2k) (Bonferroni),
    so that all of them together are wrong with probability `error` at most, whatever they share.

    *Mirror images need no check of their own.* The curve is symmetric: neighbours may be exchanged. Calling
    those below the threshold non-members has TPR 1 - FPR and FPR 1 - TPR, and its check is this one. An
    attack that is right less often than chance is not turned round: its score was to be larger for members.

    *The counts are those of a single direction*: thresholds, scores and models were fitted on some folds of
    the targets, and others are counted. Counts of all folds, each at thresholds of the others, would be more,
    but each target would be counted in one fold and help to fit for the rest: no exact end holds for their
    sum.

    *What the targets of a run share* is its noise, and the ends take each target as judged by chance of its
    own. Under a guarantee for whole clients this does no harm. Let a0 be the chance that a run refutes under
    memberships drawn anew, which its scores do not depend on. All targets of the victim are one step of the
    guarantee, so that a false alarm has probability TPR(a0) at most on the bound's own curve, and with ten
    members and as many non-members or more this is far below its share of `error`. Under guarantees for
    single records it is proved for pure epsilon-DP and fair coins (Steinke, Nasr and Jagielski 2023: right
    guesses are at most as many as independent ones give); where much hangs for all targets on one event, such
    as a rare participation, that event alone can raise a false alarm.

    Args:
        cases: The attacks; the rate of success of one in trials is a check of one end.
        error: The probability of a false alarm, above 0 and at most 0.5.
        scored_again: Attacks whose settings may have been chosen after their trials; no case is among them.

    Raises:
        InputError: the error is out of range, or a count is larger than the number of targets.
    """
    if not 0 < error <= _LARGEST_ERROR:
        raise InputError(f"error = {error}: must be above 0 and at most {_LARGEST_ERROR}; 0.05 is usual.")
    bounded = [case for case in cases if _is_bounded(case)]
    checks = sum(len(case.points) if isinstance(case, Case) else 1 for case in bounded)
    each = error / max(1, 2 * checks)
    refuted = [
        refutation
        for case in bounded
        for refutation in (_refuted(case, each) if isinstance(case, Case) else _refuted_in_trials(case, each))
    ]
    return Verdict(
        checked=tuple(case.name for case in bounded),
        unbounded=tuple(case.name for case in cases if not _is_bounded(case)),
        checks=checks,
        error=error,
        refuted=tuple(sorted(refuted, key=lambda refutation: refutation.allowed - refutation.tpr)),
        scored_again=tuple(scored_again),
    )


def _is_bounded(case: Case | TrialCase) -> bool:
    return (case.bound.curve if isinstance(case, Case) else case.allowed) is not None


def _refuted_in_trials(case: TrialCase, error: float) -> Iterator[Refutation]:
    """The rate of success, if its exact lower end is above the bound.

    Two ends at `error` each are allowed for: one of the rate, and one of what a measured bound follows from.
    """
    _check_count(case.name, case.successes, case.trials)
    allowed = case.allowed if case.allowed_at is None else case.allowed_at(error)
    least = proportion_low(case.successes, case.trials, 2 * error if case.allowed_at is None else error)
    if allowed is not None and least > allowed:
        yield Refutation(case.name, "success", least, None, allowed)


def _refuted(case: Case, error: float) -> Iterator[Refutation]:
    """The points of an attack above its curve, each end at `error`.

    The counts of several runs are added up. Each run has a TPR and an FPR of its own, and a sum of binomials
    of different chances is less spread than the binomial of their mean: the ends hold for the mean all the
    more (Hoeffding 1956; from two successes on, for ends at 1/4 at most). A TPR is a mean over
    members and an FPR over non-members, though, and the curve bounds the first by the second only if both
    weigh the runs alike. An FPR weighed by members is at most the other one times the largest ratio of a
    run's share of the members to its share of the non-members.
    """
    curve = case.bound.curve
    assert curve is not None
    for at, runs in case.points.items():
        for run in runs:
            _check_count(case.name, run.hits, run.members)
            _check_count(case.name, run.alarms, run.nonmembers)
        members, others = sum(run.members for run in runs), sum(run.nonmembers for run in runs)
        hits, alarms = sum(run.hits for run in runs), sum(run.alarms for run in runs)
        tpr = proportion_low(hits, members, error) if hits > 1 else 0.0
        fpr = proportion_high(alarms, others, error) if others - alarms > 1 else 1.0
        weight = max(run.members * others / (members * run.nonmembers) for run in runs)
        fpr = min(1.0, weight * fpr)
        allowed = float(curve.tpr(fpr))
        if tpr > allowed:
            yield Refutation(case.name, at, tpr, fpr, allowed)


def _check_count(name: str, count: int, total: int) -> None:
    """Refuses counts that have no rate: NaN is above no bound, so that the verdict would be that it holds."""
    if not 0 <= count <= total or total == 0:
        raise InputError(f"{name}: counts {count} of {total} targets: the count must lie between 0 and all.")


def _percent(rate: float) -> str:
    return f"{100 * rate:.2f} %"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
