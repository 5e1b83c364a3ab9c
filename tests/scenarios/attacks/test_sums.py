"""Attacks on the sum of a round: what it hides without noise, and what noise in shares adds, by the real apps."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.document_claims import attack_claims
from fedprivacy.attacks.roc import auc
from fedprivacy.attacks.transcript import Judgement
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import branches_of
from fedprivacy.scenario.loading import load, loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks import attacker_seats
from scenarios.attacks.attacker_seats import Outcome, attack_from_seat
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.reference_clients import ReferenceClients
from scenarios.attacks.replay import replay
from server import adversary
from server.sampling import draw_cohort

TEXT = """name = "sums"
seed = 1
[data]
name = "purchase-like"
records = 710
test_records = 800
features = 120
classes = 10
flip = 0.42
scaling = "per-record"
partition = "iid"
clients = 16
public_fraction = 0.1
[model]
name = "logistic"
[training]
learning_rate = 1.0
batch_size = "all"
[server]
rounds = 12
[sampling]
name = "fixed"
cohort = 16
[privacy]
trust = "none"
[game]
members = 40
nonmembers = 40
warm_up = 2
[attacks.looking]
kind = "passive"
sees = "sum"
rounds = 4
[attacks.raising]
kind = "active-gradient-ascent"
sees = "sum"
everybody = true
targets_per_round = 20
"""
LOOKING = TEXT[: TEXT.index("[attacks.raising]")]
SHARES = (
    "privacy={trust='distributed', clipping_norm=1.0, epsilon=1.0, delta=1e-3, bits=20, noise_draw='sum', "
    "adjacency='replace-one'}"
)
ARMS = """[arms.bare]
privacy.trust = "none"
[arms.two]
sampling.cohort = 2
[arms.shares]
"""
TRAPS = ("attacks.raising.trap_units=4", "model={name='mlp', hidden=[80], activation='tanh'}")
# In a larger size class than the clients before and after it.
LARGE_VICTIM = (
    *("federation.chunk_size=1", "game.victim=7", "data.public_fraction=0.5", "data.records=1280"),
    "privacy={trust='local', clipping_norm=1.0, noise_multiplier=1.0}",
)
SEEDS = (1, 2, 3, 4)  # fixed beforehand


def scenario(*overrides: str) -> AttackScenario:
    found = loads(TEXT, overrides=overrides)
    assert isinstance(found, AttackScenario)
    return found


def played(asked: AttackScenario, name: str) -> tuple[GameSetup, Judgement, Outcome]:
    """One attack by itself."""
    asked = asked.model_copy(update={"attacks": {name: asked.attacks[name]}})
    setup = GameSetup(asked)
    [branch] = branches_of(asked.attacks, len(setup.game.targets))
    judgement = Judgement(setup.probe)
    return setup, judgement, attack_from_seat(setup, branch, setup.warm_up(), judgement.see)


def area(name: str, *overrides: str, seeds: tuple[int, ...] = SEEDS, feature: str = "cosine") -> float:
    """The mean AUC of a feature over seeds."""
    areas = []
    for seed in seeds:
        setup, judgement, _ = played(scenario(f"seed={seed}", *overrides), name)
        values, members = judgement.features()[feature], setup.game.members
        areas.append(auc(values[members], values[~members]).value)
    return float(np.mean(areas))


def test_references_train_as_clients_do_on_records_of_nobody() -> None:
    """From one model, the mean of many is that of the run's clients; each is clipped, and none has noise."""
    setup = GameSetup(scenario(SHARES, "privacy.clipping_norm=0.05"))
    references = ReferenceClients(setup)
    weights = torch.zeros(setup.probe.parameters)
    updates = references.updates(weights, 64)
    assert updates.dtype == torch.float32
    assert updates.shape == (800 // 40, len(weights))  # of so many test records, 40 for each client
    assert updates.norm(dim=1).numpy() == pytest.approx(0.05, rel=1e-3)
    assert references.updates(weights, 5).shape == (5, len(weights))

    plain = GameSetup(scenario())
    federation = plain.resume("test", plain.warm_up()).federation
    federation.weights = np.zeros(len(weights))
    total = federation.total(5, np.arange(1, 16)).updates / 15
    mean = ReferenceClients(plain).updates(weights, 64).mean(dim=0).numpy()
    assert np.corrcoef(total, mean)[0, 1] > 0.5


def test_an_attack_takes_the_rounds_that_have_the_victim() -> None:
    """Of cohorts of two of sixteen one in eight has it; the others' sums would show nothing of it."""
    requested: list[list[int]] = []
    cut = adversary.SumObserver.act

    def noting(observer, request):
        if (clients := adversary._clients_of(request)) is not None:
            requested.append(clients.tolist())
        return cut(observer, request)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(adversary.SumObserver, "act", noting)
        _, judgement, outcome = played(scenario("sampling.cohort=2"), "looking")
    assert len(requested) == 4
    assert all(0 in cohort and len(cohort) == 2 for cohort in requested)
    assert len({tuple(cohort) for cohort in requested}) > 1
    assert sorted(judgement.passes) == [0, 1, 2, 3]
    assert max(outcome.after) == 4


@pytest.mark.parametrize(
    ("overrides", "messages"),
    [
        (("federation.chunk_size=1",), 1),
        (("federation.chunk_size=1", "sampling={name='all'}"), 1),
        (("federation.chunk_size=1", "privacy={trust='local', clipping_norm=1.0, noise_multiplier=1.0}"), 1),
        (("federation.chunk_size=1", SHARES.replace("'sum'", "'client'")), 1),
        (("federation.chunk_size=1", SHARES), 16),  # a draw of noise for each message
        (("federation.chunk_size=1", "federation.observe=each"), 16),
        (("federation.chunk_size=1", "federation.hosts=2"), 16),
        (("federation.chunk_size=4",), 4),
        (LARGE_VICTIM, 1),
    ],
)
def test_who_sees_sums_alone_sends_one_message_where_that_changes_no_bit(
    monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], messages: int
) -> None:
    """One after the other in one message, clients are added up as in messages of their own."""
    sent: list[object] = []
    totals: list[np.ndarray] = []
    act, close = adversary.SumObserver.act, adversary.SumObserver.close

    def noting(observer, request):
        if adversary._clients_of(request) is not None:
            sent.append(request)
        return act(observer, request)

    def adding(observer, total):
        totals.append(total.updates)
        return close(observer, total)

    monkeypatch.setattr(adversary.SumObserver, "act", noting)
    monkeypatch.setattr(adversary.SumObserver, "close", adding)
    asked = scenario("attacks.looking.rounds=2", *overrides)
    _, joint, first = played(asked, "looking")
    assert len(sent) == 2 * messages
    monkeypatch.setattr(attacker_seats, "_sums_alike", lambda setup: False)
    _, apart, second = played(asked, "looking")
    assert first == second
    assert len(totals) == 4
    assert np.array_equal(totals[:2], totals[2:])
    features = joint.features(), apart.features()
    assert all((features[0][name] == features[1][name]).all() for name in features[1])


def test_a_raised_loss_for_the_victim_alone_needs_a_message_of_its_own() -> None:
    sent: list[int] = []
    act = adversary.SumObserver.act

    def noting(observer, request):
        if (clients := adversary._clients_of(request)) is not None:
            sent.append(len(clients))
        return act(observer, request)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(adversary.SumObserver, "act", noting)
        alone = ("federation.chunk_size=1", "attacks.raising.everybody=false")
        played(scenario(*alone, "attacks.raising.targets_per_round=40"), "raising")
    assert sent == [1] * 32


def test_a_victim_without_answers_left_is_observed_no_more() -> None:
    asked = loads(LOOKING, overrides=[SHARES, "sampling.cohort=2", "privacy.max_participations=3"])
    _, judgement, outcome = played(asked, "looking")
    assert 1 <= len(judgement.passes) <= 3
    assert max(outcome.after) == 4


@pytest.mark.exhaustive
def test_without_noise_a_larger_sum_hides_more_from_a_server_that_looks_on_and_not_all() -> None:
    areas = [area("looking", f"sampling.cohort={clients}") for clients in (1, 4, 16)]
    assert areas[0] > 0.95
    assert areas[0] > areas[1] + 0.02 > areas[2] + 0.04
    assert areas[2] > 0.6


@pytest.mark.exhaustive
def test_raised_losses_find_in_a_sum_what_looking_on_does_not() -> None:
    steep = ("training.learning_rate=4.0", "attacks.raising.targets_per_round=10", "server.rounds=20")
    assert area("raising", *steep, seeds=SEEDS[:2]) > area("looking", *steep, seeds=SEEDS[:2]) + 0.05


@pytest.mark.parametrize("sent", [(), ("attacks.raising.everybody=false", "federation.chunk_size=1")])
def test_a_sum_hides_no_trap_unit(sent: tuple[str, ...]) -> None:
    """The others of sixteen clients do not move the units, whether they get them or not."""
    assert area("raising", *TRAPS, *sent, seeds=SEEDS[:1], feature="trap") > 0.99


def test_a_sum_that_is_not_centred_shows_less() -> None:
    """Without taking off what is expected of the others, fifteen of sixteen parts are in the way."""
    centred = area("looking")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(adversary, "expected_sum", lambda references, clients: 0 * references[0])
        bare = area("looking")
    assert centred > bare + 0.02


def test_secure_sum_and_plain_sum_without_noise_show_nearly_the_same() -> None:
    """With hardly any noise the decoded sum is the plain one up to rounding: one view, two ways to it."""
    clipped = "privacy={trust='none', clipping_norm=1.0}"
    shares = (SHARES.replace("epsilon=1.0", "noise_multiplier=1e-3"), "server.rounds=12")
    plain = played(scenario(clipped), "looking")[1].features()["cosine"]
    shared = played(scenario(*shares), "looking")[1].features()["cosine"]
    assert np.corrcoef(plain, shared)[0, 1] > 0.95


@pytest.mark.parametrize(("more", "names"), [((), ("looking", "raising")), (TRAPS, ("raising",))])
def test_noise_in_shares_keeps_every_attack_on_the_sum_within_the_servers_bound(
    more: tuple[str, ...], names: tuple[str, ...]
) -> None:
    asked = scenario(SHARES, *more)
    setup = GameSetup(asked)
    bound = bound_of_ledger(Ledger(setup.fleet.plan).in_advance().to_json(), "server")
    assert bound.curve is not None
    assert bound.curve.auc < 0.75
    assert str(TrainingAssumption.IDEAL_SUM) in bound.assumptions
    for name in names:
        _, judgement, _ = played(asked, name)
        assert ("trap" in judgement.features()) == bool(more)
        members = setup.game.members
        for values in judgement.features().values():
            assert auc(values[members], values[~members]).low < bound.curve.auc


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict:
    found = loads(TEXT + ARMS, overrides=[SHARES])
    assert isinstance(found, AttackScenario)
    return replay(found, tmp_path_factory.mktemp("out"), workers=1, report=False)


def test_the_document_states_the_sum_that_was_seen_and_the_servers_guarantee(document) -> None:
    assert document["status"] == "finished"
    seen = {(attack["arm"], attack["name"]): attack for attack in document["attacks"]}
    assert {key: attack["clients_in_sum"] for key, attack in seen.items()} == {
        (arm, name): 2 if arm == "two" else 16
        for arm in ("bare", "two", "shares")
        for name in ("looking", "raising")
    }
    for (arm, _), attack in seen.items():
        assert attack["seat"] == "server"
        if arm == "bare":
            assert attack["bound"]["auc"] is None
            continue
        assert attack["guarantee"]["observer"] == "server"
        assert attack["guarantee"]["epsilon"] == pytest.approx(1.0, abs=1e-3)
        assert str(TrainingAssumption.IDEAL_SUM) in attack["guarantee"]["assumptions"]
        assert attack["bound"]["auc"] < 0.75
    assert any("trains clients of its own on test records" in note for note in document["notes"])
    assert document["verdict"]["holds"] is True
    assert document["verdict"]["checks"] > 0
    assert sorted(document["verdict"]["unbounded"]) == [
        "looking (bare, no privacy)",
        "raising (bare, no privacy)",
    ]
    assert checked_document(Path(document["path"]))["attacks"] == document["attacks"]


def test_another_size_of_the_sum_is_refused_on_reading(document, tmp_path) -> None:
    folder = shutil.copytree(document["path"], tmp_path / "copy")
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"clients_in_sum": 16', '"clients_in_sum": 2'))
    with pytest.raises(InputError, match="clients_in_sum"):
        checked_document(folder)


@pytest.mark.exhaustive
def test_transcripts_of_sums_are_scored_again_without_a_round(document, tmp_path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a round was played")

    stored = Path(document["path"])
    asked = load(stored / "scenario.toml")
    asked = asked.model_copy(update={"attacks": {"looking": asked.attacks["looking"]}})
    monkeypatch.setattr(attacker_seats, "attack_from_seat", refuse)
    again = replay(asked, tmp_path, workers=1, stored=stored, report=False)
    first = [attack for attack in document["attacks"] if attack["name"] == "looking"]
    assert [a["auc"] for a in again["attacks"]] == [a["auc"] for a in first]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("seed", SEEDS)
def test_clients_that_have_answered_enough_cost_the_attack_no_round(seed: int) -> None:
    """Clients answer 6 times, in 8 rounds of half of them and in the attack; those who are spent are not drawn."""
    limits = (
        f"seed={seed}",
        "sampling.cohort=8",
        "server.rounds=30",
        "game.warm_up=8",
        "privacy.max_participations=6",
        "privacy.min_survivors=4",
    )
    alone = loads(LOOKING, overrides=(SHARES, *limits))
    assert isinstance(alone, AttackScenario)
    setup, judgement, _ = played(alone, "looking")
    before = np.zeros(16, int)
    # Of the warm-up's rounds the victim was in some, and each of the attack's takes one more answer.
    for number in range(8):
        drawn = draw_cohort(setup.fleet.plan, Ledger(setup.fleet.plan), setup.fleet.streams, number)
        before[drawn] += 1
    assert len(judgement.passes) == min(4, 6 - before[0])


def test_the_clients_in_a_sum_are_counted_where_the_victim_is_in_every_round() -> None:
    plain = scenario("sampling={name='poisson', rate=0.1}")
    plan = GameSetup(plain).fleet.plan
    claims = attack_claims(plain, "looking", 0, plan, Ledger(plan).in_advance().to_json())
    assert claims["clients_in_sum"] == 2  # 1 + 15 / 10
    halved = scenario("federation.dropout=0.5", "federation.observe=sum")
    claims = attack_claims(
        halved, "looking", 0, GameSetup(halved).fleet.plan, Ledger(plan).in_advance().to_json()
    )
    assert claims["clients_in_sum"] == 8
