"""All attacks against their bounds at once: quiet where the bound holds, loud where it does not.

Replays are simulated with attacks exactly at their bound, the hardest case that must stay quiet. Each test of
a rate has false-alarm rate 1e-6, with fixed seeds.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from fedprivacy.attacks.bounds import Bound, bound_of_pair
from fedprivacy.attacks.combined_scores import supervised
from fedprivacy.attacks.document import attack_document
from fedprivacy.attacks.intervals import proportion_high, proportion_low
from fedprivacy.attacks.metrics import measure, points_of
from fedprivacy.attacks.roc import Counts, Roc
from fedprivacy.attacks.targets import KNOWN_FOLDS, Targets, draw_folds
from fedprivacy.attacks.tradeoff import GaussianCurve
from fedprivacy.attacks.verdict import ERROR, Case, TrialCase, Verdict, verdict
from fedprivacy.errors import InputError

FALSE_ALARM = 1e-6
NOTHING = Bound("participant", None, ("the server adds no noise",))


def bounded(mu: float) -> Bound:
    return Bound("server", GaussianCurve(mu), ())


def game(stream: np.random.Generator, mu: float, count: int = 600) -> Targets:
    """A membership game against Gaussian noise: its likelihood ratio is at its bound at every threshold."""
    members = stream.random(count) < 0.5
    return Targets(stream.normal(size=count) + mu * members, members, draw_folds(count, stream))


def replay(stream: np.random.Generator, mu: float, attacks: int, seeds: int) -> dict[str, list]:
    return {str(number): [measure(game(stream, mu)) for _ in range(seeds)] for number in range(attacks)}


def judged(played: dict[str, list], mu: float) -> Verdict:
    return verdict([Case(name, bounded(mu), points_of(runs)) for name, runs in played.items()])


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("mu", "replays"), [(0.27, 40), (0.0, 150), (0.27, 150), (2.0, 150)])
def test_attacks_at_their_bound_raise_no_more_false_alarms_than_stated(mu: float, replays: int) -> None:
    stream = np.random.default_rng(1)
    alarms = sum(judged(replay(stream, mu, 3, 2), mu).holds is False for _ in range(replays))
    assert alarms <= binom.isf(FALSE_ALARM, replays, ERROR)


@pytest.mark.parametrize("mu", [0.5, 1.0])
def test_half_the_noise_is_found(mu: float) -> None:
    """One of four attacks sees twice the effect that its guarantee allows; the others see nothing."""
    stream = np.random.default_rng(2)
    for _ in range(5):
        played = replay(stream, 0.0, 3, 3) | {
            "broken": [measure(game(stream, 2 * mu, 4000)) for _ in range(3)]
        }
        found = judged(played, mu)
        assert found.holds is False
        assert {one.attack for one in found.refuted} == {"broken"}
        assert all(one.tpr > one.allowed for one in found.refuted)
        assert found.refuted[0].tpr - found.refuted[0].allowed == max(
            one.tpr - one.allowed for one in found.refuted
        )


def drawn(stream: np.random.Generator, curve: GaussianCurve, fpr: float, size: int) -> Counts:
    hits, alarms = stream.binomial(size, float(curve.tpr(fpr))), stream.binomial(size, fpr)
    return Counts(int(hits), size, int(alarms), size)


def test_the_number_of_attacks_is_corrected_for() -> None:
    """Of a hundred attacks at their bound some are above it, each by itself; together they are not."""
    stream, bound, replays = np.random.default_rng(3), bounded(0.5), 120
    alone = together = 0
    for _ in range(replays):
        cases = [
            Case(str(number), bound, {"balanced": [drawn(stream, bound.curve, 0.4, 2000)]})
            for number in range(100)
        ]
        found = verdict(cases)
        assert found.checks == 100
        together += found.holds is False
        alone += any(verdict([case]).holds is False for case in cases)
    assert together <= binom.isf(FALSE_ALARM, replays, ERROR)
    assert alone > binom.isf(FALSE_ALARM, replays, ERROR)


def test_one_strong_attack_stands_out_unless_there_are_too_many_to_tell() -> None:
    point = Counts(52, 100, 10, 100)  # .345 is allowed at FPR .1
    weak = {"balanced": [Counts(10, 100, 10, 100)]}
    cases = [Case("one", bounded(0.5), {"balanced": [point]})]
    assert verdict(cases).holds is False
    assert verdict(cases + [Case(str(n), bounded(0.5), weak) for n in range(200)]).holds is True


def test_runs_with_other_shares_of_members_are_not_simply_added_up() -> None:
    """One run calls everybody a member and one nobody; their sums look like a perfect attack."""
    everybody, nobody = Counts(500, 500, 10, 10), Counts(0, 10, 0, 500)
    assert verdict([Case("a", bounded(0.1), {"balanced": [everybody, nobody]})]).holds is True
    for run in (everybody, nobody):
        assert verdict([Case("a", bounded(0.1), {"balanced": [run]})]).holds is True


def test_runs_of_different_chances_are_covered_by_the_ends_of_their_sum() -> None:
    """Exactly: the probability that the lower end misses the mean, against its error; Hoeffding 1956."""
    trials, error = 12, 0.02
    for chances in ([0.05, 0.3], [0.0, 0.9], [0.5, 0.5], [0.001, 0.1], [0.7, 0.95]):
        sums = np.convolve(*(binom.pmf(np.arange(trials + 1), trials, chance) for chance in chances))
        missed = sum(
            share
            for hits, share in enumerate(sums)
            if hits > 1 and proportion_low(hits, 2 * trials, error) > np.mean(chances)
        )
        assert missed <= error


@pytest.mark.exhaustive(beyond=3)
@pytest.mark.parametrize(("members", "others"), [(10, 10), (20, 20), (60, 60), (50, 250), (250, 50)])
@pytest.mark.parametrize("checks", [1, 16])
def test_what_the_targets_of_a_client_share_raises_no_alarm(members: int, others: int, checks: int) -> None:
    """Exactly, for whatever attack on one run: the curve at the chance of a refutation by guessing.

    The worst number of targets that are called members is taken, and of each point its share of the error.
    """
    error = ERROR / (2 * checks)
    tpr = np.array([proportion_low(hits, members, error) for hits in range(members + 1)])
    fpr = np.array([proportion_high(alarms, others, error) for alarms in range(others + 1)])
    for mu in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
        allowed, guessed = GaussianCurve(mu).tpr(fpr), 0.0
        for called in range(members + others + 1):
            hits = np.arange(max(0, called - others), min(members, called) + 1)
            above = hits[tpr[hits] > allowed[called - hits]]
            guessed = max(guessed, hypergeom.pmf(above, members + others, members, called).sum())
        assert GaussianCurve(mu).tpr(guessed) <= ERROR / checks


def test_the_mirror_image_of_a_point_is_refuted_with_it() -> None:
    """Who is not called a member is called a non-member: hits and correct rejections change places."""
    for hits in range(40, 101):
        one, other = Counts(hits, 100, 20, 80), Counts(60, 80, 100 - hits, 100)
        verdicts = [
            verdict([Case("a", bounded(1.0), {"balanced": [counts]})]).holds for counts in (one, other)
        ]
        assert verdicts[0] == verdicts[1]
    assert verdicts[0] is False


def test_the_curve_itself_is_asked_and_not_its_points() -> None:
    """Between the points that are drawn, straight lines lie below the curve."""
    bound, point = bounded(3.0), Counts(1250, 10_000, 20, 10**6)
    points = bound.to_json()["curve"]
    tpr = proportion_low(point.hits, point.members, ERROR / 2)
    fpr = proportion_high(point.alarms, point.nonmembers, ERROR / 2)
    assert np.interp(fpr, points["fpr"], points["tpr"]) < tpr < bound.curve.tpr(fpr)
    assert verdict([Case("a", bound, {"balanced": [point]})]).holds is True


def test_counts_are_those_of_the_last_folds_at_thresholds_of_the_first() -> None:
    targets = game(np.random.default_rng(4), 1.5, 2400)
    found, known = measure(targets), targets.folds < KNOWN_FOLDS
    members, others = targets.scores[known & targets.members], targets.scores[known & ~targets.members]
    rank = {rate: int(float(rate) * (len(others) + 1)) for rate in ("0.1", "0.01")}
    thresholds = {
        "balanced": Roc.of(members, others).balanced_threshold,
        **{rate: np.sort(others)[-at] for rate, at in rank.items()},
    }
    assert set(found.points) == set(thresholds)
    for name, threshold in thresholds.items():
        above, counts = ~known & (targets.scores > threshold), found.points[name]
        assert (counts.hits, counts.alarms) == (
            (above & targets.members).sum(),
            (above & ~targets.members).sum(),
        )
        assert counts.members + counts.nonmembers == (~known).sum()
    # What the first folds score moves thresholds; their targets are not counted.
    turned = replace(targets, scores=np.where(known, targets.scores + 100.0, targets.scores))
    assert {(c.hits, c.alarms) for c in measure(turned).points.values()} == {(0, 0)}


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("mu", "replays"), [(1.0, 8), (0.0, 60), (1.0, 60)])
def test_learned_scores_at_their_bound_raise_no_more_false_alarms_than_stated(
    mu: float, replays: int
) -> None:
    """Two views with half the information each, joined by regression: at the bound, if it were known."""
    stream, alarms = np.random.default_rng(7), 0
    for _ in range(replays):
        targets = game(stream, 0.0, 300)
        views = stream.normal(size=(2, 300)) + mu / np.sqrt(2) * targets.members
        scores = supervised(dict(zip("ab", views, strict=True)), targets.members, targets.folds)
        alarms += judged({"learned": [measure(replace(targets, scores=scores))]}, mu).holds is False
    assert alarms <= binom.isf(FALSE_ALARM, replays, ERROR)


def test_the_document_holds_the_counts_of_every_run() -> None:
    stream = np.random.default_rng(5)
    runs = [measure(game(stream, 1.0, size)) for size in (2400, 300)]
    data = attack_document(runs, bound=bounded(1.0), empirical="members were picked")
    assert set(data["points"]) == {"balanced", "0.1"}  # too few non-members for .01 in one run
    assert [Counts(**one) for one in data["points"]["balanced"]] == [run.points["balanced"] for run in runs]
    assert json.loads(json.dumps(data["points"])) == data["points"]


def test_attacks_without_a_bound_are_not_checked() -> None:
    perfect = {"balanced": [Counts(100, 100, 0, 100)]}
    nothing = verdict([Case("a", NOTHING, perfect), Case("b", NOTHING, perfect)])
    assert (nothing.checks, nothing.holds, nothing.refuted) == (0, None, ())
    assert nothing.words == "There is nothing to check: no attack has a bound to stay under."
    assert verdict([]).holds is None
    fine = {"balanced": [Counts(10, 100, 10, 100)]}
    some = verdict(
        [Case("a", NOTHING, perfect), Case("b", bounded(1.0), fine), Case("c", bounded(1.0), fine)]
    )
    assert some.words == (
        "None of 2 attacks refutes its bound (2 checks, at most 5 % chance of a false alarm), which proves no "
        "guarantee. Not checked, since nothing is guaranteed against it: a."
    )


def test_the_words_and_the_document_of_a_refutation() -> None:
    bound = bound_of_pair(1.0, 1e-5, "client", "replace-one", "server")
    found = verdict([Case("fine", bound, {"balanced": [Counts(5, 100, 5, 100)]}),
                     Case("ascent", bound, {"balanced": [Counts(99, 100, 2, 100)]})])  # fmt: skip
    assert found.words.startswith("ascent is above what the guarantee allows: ascent finds at least 9")
    assert "(2 checks, at most 5 % chance of a false alarm)" in found.words
    assert "do not rely on it before this is explained." in found.words
    data = found.to_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["holds"], data["checks"], data["checked"]) == (False, 2, ["fine", "ascent"])
    assert [one["attack"] for one in data["refuted"]] == ["ascent"]
    alone = verdict([Case("fine", bound, {"balanced": [Counts(5, 100, 5, 100)]})]).words
    assert alone == (
        "The attack fine does not refute its bound (1 check, at most 5 % chance of a false alarm), which proves "
        "no guarantee."
    )


@pytest.mark.parametrize("error", [0.0, 0.6, float("nan")])
def test_an_error_that_is_no_small_probability_is_refused(error: float) -> None:
    with pytest.raises(InputError, match="error = "):
        verdict([], error)


@pytest.mark.parametrize(
    "counts", [Counts(70, 60, 2, 60), Counts(2, 60, 61, 60), Counts(-1, 60, 0, 60), Counts(0, 0, 0, 60)]
)
def test_counts_without_a_rate_get_no_verdict(counts: Counts) -> None:
    """Their exact ends are NaN, which is above no bound."""
    with pytest.raises(InputError, match=r"greedy: counts .* must lie between 0 and all"):
        verdict([Case("greedy", bounded(1.0), {"balanced": [counts]})])
    with pytest.raises(InputError, match="greedy: counts 7 of 6 targets"):
        verdict([TrialCase("greedy", 7, 6, 0.5)])
