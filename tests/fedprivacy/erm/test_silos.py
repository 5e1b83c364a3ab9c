"""Silos: who adds the noise, how much of it there is, and what each observer is promised. Audited as the server."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound
from fedprivacy.erm import (
    GradientPerturbation,
    HuberSVM,
    Logistic,
    Objective,
    ObjectivePerturbation,
    OneShotAverage,
    OutputPerturbation,
    SiloGradients,
    minimise,
)
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.federated import purpose_of
from fedprivacy.erm.federated import together as side_by_side
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams

K, N, D = 5, 200, 2
OBJECTIVE = Objective(Logistic(), 0.05, K * N, D)
DESCENT = GradientPerturbation(OBJECTIVE, 1.0, 1e-4, radius=2.0, steps=50)


def silos(sizes: tuple[int, ...] = (N,) * K) -> list[tuple[np.ndarray, np.ndarray]]:
    found = []
    for silo, size in enumerate(sizes):
        stream = Streams(4).stream("silo", member=silo)
        x = stream.uniform(-0.7, 0.7, (size, D))
        found.append((x, np.where(x @ [3.0, -2.0] + stream.logistic(size=size) > 0, 1.0, -1.0)))
    return found


def together(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


@pytest.mark.parametrize("kind", [OutputPerturbation, ObjectivePerturbation])
def test_the_average_is_that_of_the_silos_own_estimates(kind: type) -> None:
    sizes = (100, 300, 50)
    average = OneShotAverage(kind(OBJECTIVE, 4.0), sizes)
    found = average.fit(silos(sizes), Streams(4))
    own = [
        kind(replace(OBJECTIVE, records=size), 4.0).fit(x, y, Streams(4).noise(purpose_of(average), member=i))
        for i, (size, (x, y)) in enumerate(zip(sizes, silos(sizes), strict=True))
    ]
    assert np.allclose(found.theta, sum(size * e.theta for size, e in zip(sizes, own, strict=True)) / 450)
    assert [g.observer for g in found.guarantees] == ["server", "participant", "outsider"]
    assert {g.epsilon for g in found.guarantees} == {4.0}
    assert all("each record is in one silo alone" in g.words and g.trust == "local" for g in found.guarantees)


def test_two_releases_share_no_noise() -> None:
    """At twice the epsilon it would be half as large, and twice the one less the other the exact average."""
    held = silos((100, 100))
    one, two = (
        OneShotAverage(OutputPerturbation(OBJECTIVE, epsilon), (100, 100)).fit(held, Streams(1)).theta
        for epsilon in (0.5, 1.0)
    )
    apart = OneShotAverage(OutputPerturbation(OBJECTIVE, 1e4), (100, 100)).fit(held, Streams(1)).theta
    assert np.linalg.norm(2 * two - one - apart) > 1e-2


@pytest.mark.exhaustive
def test_noise_of_the_average_is_root_k_times_that_of_one_curator() -> None:
    """Of silos of one size: K times the noise each, averaged over K of them."""
    average = OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0, 1e-4), (N,) * K).fit(silos(), Streams(4))
    curator = OutputPerturbation(OBJECTIVE, 1.0, 1e-4)
    assert average.noise == pytest.approx(math.sqrt(K) * curator.noise)
    nothing = [(np.zeros((N, D)), y) for _, y in silos()]  # the minimum is 0 in each silo
    told = np.array(
        [
            OneShotAverage(curator, (N,) * K).fit(nothing, Streams(seed)).theta
            for seed in range(300)
        ]
    )  # fmt: skip
    assert told.std() == pytest.approx(average.noise, rel=0.12)  # 600 numbers: four standard errors


def test_the_average_of_a_rich_budget_is_near_the_minimum_of_all() -> None:
    exact = minimise(OBJECTIVE, *together(silos()), 1e-8)
    found = OneShotAverage(ObjectivePerturbation(OBJECTIVE, 1e3), (N,) * K).fit(silos(), Streams(4))
    assert np.linalg.norm(found.theta - exact) < 0.1


def test_one_silo_is_a_curator() -> None:
    whole = [together(silos())]
    for trust in ("local", "central"):
        one = SiloGradients(DESCENT, trust).fit(whole, Streams(4))  # type: ignore[arg-type]
        assert one.noise == DESCENT.noise
        assert one.guarantees[-1].epsilon == DESCENT.guarantee.epsilon


def test_without_noise_silos_take_the_steps_of_a_curator() -> None:
    """To say so the noise is made very small: the paths agree to within it."""
    rich = replace(DESCENT, epsilon=1e4, step_size=0.3)
    curator = rich.fit(*together(silos()), Streams(1).noise("curator")).theta
    for trust in ("local", "central"):
        federated = SiloGradients(rich, trust).fit(silos(), Streams(4)).theta  # type: ignore[arg-type]
        assert np.allclose(federated, curator, atol=20 * rich.noise)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("runs", "error"), [(25, 0.6), (150, 0.25)])
def test_local_noise_is_root_k_times_central_noise(runs: int, error: float) -> None:
    nothing = [(np.zeros((N, D)), y) for _, y in silos()]
    spread = {}
    for trust in ("local", "central"):
        descent = SiloGradients(replace(DESCENT, step_size=0.05, radius=100.0), trust)  # type: ignore[arg-type]
        thetas = np.array([descent.fit(nothing, Streams(seed)).theta for seed in range(runs)])
        spread[trust] = thetas.std()
        assert descent.noise(K) == pytest.approx(DESCENT.noise * (math.sqrt(K) if trust == "local" else 1))
    # Two numbers of each run: a standard error of 6 % of the ratio for 150 runs, and of 14 % for 25.
    assert spread["local"] / spread["central"] == pytest.approx(math.sqrt(K), rel=error)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("trust", ["local", "central"])
def test_excess_risk_stays_below_the_bound(trust: str, rate: float) -> None:
    descent = SiloGradients(replace(DESCENT, rate=rate, epsilon=2.0), trust)  # type: ignore[arg-type]
    x, y = together(silos())
    best = OBJECTIVE.value(minimise(OBJECTIVE, x, y, 1e-8), x, y)
    found = [
        OBJECTIVE.value(descent.fit(silos(), Streams(seed)).theta, x, y) - best for seed in range(10)
    ]  # fmt: skip
    assert 0 <= np.mean(found) <= descent.excess_bound(K)


def test_each_observer_has_its_promise() -> None:
    server, participant, outsider = SiloGradients(DESCENT).fit(silos(), Streams(4)).guarantees
    assert server.epsilon == pytest.approx(1.0)
    assert (server.observer, server.trust) == ("server", "local")
    # Who sees sums alone has the noise of all silos against it, or of all but its own.
    assert outsider.epsilon < participant.epsilon < server.epsilon  # type: ignore[operator]
    for guarantee, shares in ((outsider, K), (participant, K - 1)):
        cost = epsilon(DESCENT.event_of(shares), 1e-4, "replace-one").epsilon
        assert guarantee.epsilon == cost
        assert "every silo adds its noise" in guarantee.words
    nobody, participant, outsider = SiloGradients(DESCENT, "central").fit(silos(), Streams(4)).guarantees
    assert nobody.epsilon is None
    assert (
        "No guarantee against the server, which sees each message of a silo: the server is trusted"
        in nobody.words
    )
    assert participant.epsilon == outsider.epsilon == pytest.approx(1.0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_an_audit_from_the_servers_seat_proves_no_more_than_is_claimed(adjacency: str) -> None:
    """The sum of what a silo sends, whose one record has slope -1 or 1 (or is gone); false alarms 1e-3."""
    hinge = Objective(HuberSVM(0.5), 0.0, 2, 1)
    claimed = GradientPerturbation(hinge, 1.0, 0.01, adjacency, radius=0.5, steps=6, step_size=1e-3)
    other = -1.0 if adjacency == "replace-one" else 0.0
    proved = {}
    for name, drawn in (("honest", claimed), ("halved", replace(claimed, epsilon=2.2))):
        scores = []
        for world, sign in enumerate((1.0, other)):
            victim = (np.ones((1, 1)), np.array([sign])) if sign else (np.zeros((0, 1)), np.zeros(0))
            told = []
            for trial in range(800):
                transcript: list[np.ndarray] = []
                SiloGradients(drawn).fit(
                    [victim, (np.ones((1, 1)), np.ones(1))], Streams(trial, f"{world}"), transcript
                )
                told.append(-np.array(transcript)[:, 0, 0].sum())
            scores.append(np.array(told))
        proved[name] = gaussian_bound(scores[0], scores[1], 0.01, 0.999).epsilon
    assert 0.35 < proved["honest"] <= claimed.guarantee.epsilon  # type: ignore[operator]
    assert proved["halved"] > 1.0


def test_silos_have_noise_of_their_own_and_the_same_streams_give_the_same_bits() -> None:
    transcript: list[np.ndarray] = []
    nothing = [(np.zeros((N, D)), y) for _, y in silos()]
    one = SiloGradients(DESCENT).fit(nothing, Streams(4), transcript)
    again = SiloGradients(DESCENT).fit(nothing, Streams(4))
    assert (one.theta == again.theta).all()
    noise = np.array(transcript)
    assert noise.shape == (50, K, D)
    assert len(np.unique(noise)) == noise.size
    assert np.abs(np.corrcoef(noise[:, :, 0].T)[np.triu_indices(K, 1)]).max() < 0.65  # 50 steps: 4.5 errors


def test_delta_is_held_against_the_records_of_all_silos() -> None:
    """Each could be the one that is given away: ten silos of a hundred are a thousand records."""
    objective = replace(OBJECTIVE, records=100)
    with pytest.raises(
        InputError, match=r"delta = 0.001: must be below 1/\(number of all 10 silos' records\)"
    ):
        OneShotAverage(OutputPerturbation(objective, 1.0, 1e-3), (100,) * 10)
    average = OneShotAverage(OutputPerturbation(objective, 1.0, 0.9e-3), (100,) * 10)
    assert all("10 silos are public, 1,000 in all" in one.words for one in average.guarantees(10))


def test_what_is_assumed_of_some_silos_is_said_of_those() -> None:
    """Small silos raise their regularisation further; the one of all would be true of the first alone."""
    little = ObjectivePerturbation(replace(OBJECTIVE, regularisation=1e-6), 1.0, raise_regularisation=True)
    average = OneShotAverage(little, (10, 90, 10))
    raised = {a.objective.records: a.solved.regularisation for a in average.approaches}
    assert raised[10] == pytest.approx(9 * raised[90])
    for one in average.guarantees(3):
        assert [said for said in one.assumptions if "raised" in said] == [
            f"in silos of {size} records the regularisation was raised to {raised[size]:.4g}, which depends "
            "on no record"
            for size in (10, 90)
        ]
        assert len(set(one.assumptions)) == len(one.assumptions)
    guessed = OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0, adjacency="add-remove"), (100, 200))
    assert f"in each silo {ErmAssumption.CROWDED}" in guessed.guarantees(2)[0].assumptions
    assert ErmAssumption.CROWDED not in guessed.guarantees(2)[0].assumptions


def test_the_noise_of_silos_of_other_sizes_is_said_of_the_least_and_the_largest() -> None:
    average = OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0), (100, 300, 50))
    small, _, large = (average.approaches[silo].words for silo in (2, 0, 1))
    assert small != large
    assert average.words(3) == f"in each of 3 silos its own: of 50 records {small}; of 300 records {large}"
    alike = OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0), (100, 100))
    assert alike.words(2) == f"in each of 2 silos {alike.approaches[0].words}"


def test_one_that_is_absent_counts_as_zero_with_its_weight() -> None:
    average = OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0), (100, 300, 100))
    lead = average.lead(3, Streams(4))
    assert next(lead).tolist() == [0.0, 0.0]
    assert lead.send(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])).tolist() == pytest.approx([0.4, 0.8])
    # A sum that did not come leaves the step of the others' sums alone, divided by all records.
    descent = SiloGradients(replace(DESCENT, step_size=0.5, radius=100.0), "local")
    lead = descent.lead(K, Streams(4))
    next(lead)
    sums = np.zeros((K, D))
    sums[0] = [40.0, -8.0]
    assert lead.send(sums).tolist() == pytest.approx([-0.5 * 40 / (K * N), 0.5 * 8 / (K * N)])


@pytest.mark.parametrize("trust", ["local", "central"])
def test_absent_noise_is_not_counted_on(trust: str) -> None:
    """Where two of five silos were absent, an outsider's promise rests on the noise of three."""
    federated = SiloGradients(DESCENT, trust)  # type: ignore[arg-type]
    whole, fewer = ({g.observer: g.epsilon for g in federated.guarantees(silos)} for silos in (5, 3))
    assert whole["server"] == fewer["server"]
    if trust == "central":
        assert whole == fewer  # the server's noise is all there
        return
    assert fewer["outsider"] == epsilon(DESCENT.event_of(3), 1e-4, "replace-one").epsilon
    assert fewer["outsider"] > whole["outsider"]  # type: ignore[operator]
    assert fewer["participant"] > whole["participant"]  # type: ignore[operator]


def test_estimates_side_by_side_are_those_one_after_the_other() -> None:
    federated, held = SiloGradients(DESCENT), SiloGradients(DESCENT).held(silos())
    streams = [Streams(4, str(run)) for run in range(3)]

    def told(step: int, thetas: np.ndarray) -> np.ndarray:
        return np.array(
            [
                [federated.tell(silo, K, records, theta, step, one) for silo, records in enumerate(held)]
                for theta, one in zip(thetas, streams, strict=True)
            ]
        )

    found = side_by_side([federated.lead(K, one) for one in streams], federated.steps, told)
    alone = [federated.fit(silos(), one).theta.tolist() for one in streams]
    assert found.tolist() == alone


def test_mistakes_are_refused() -> None:
    with pytest.raises(InputError, match="at least one silo"):
        OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0), ())
    with pytest.raises(InputError, match="2 silos, and there are sizes of 1"):
        OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0), (N,)).fit(silos()[:2], Streams(4))
    with pytest.raises(InputError, match="their number is public"):
        OneShotAverage(OutputPerturbation(OBJECTIVE, 1.0), (N - 1,)).fit(silos()[:1], Streams(4))
    with pytest.raises(InputError, match=r"lambda > beta/\(m"):  # a small silo has less to hide in
        OneShotAverage(ObjectivePerturbation(replace(OBJECTIVE, regularisation=1e-3), 1.0), (500, 10))
    with pytest.raises(InputError, match="trust"):
        SiloGradients(DESCENT, "none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="800 records, and the objective is for 1000"):
        SiloGradients(DESCENT).fit(silos()[:4], Streams(4))
    with pytest.raises(InputError, match=r"\|\|x\|\| <= 1"):
        SiloGradients(DESCENT).fit([(9 * x, y) for x, y in silos()], Streams(4))
