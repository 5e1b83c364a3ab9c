"""The whole game through the real apps: what must be at chance is, what must be found is.

All with fixed seeds. An interval at 95 % misses a true .5 one time in twenty by chance; where several are
asked about at once, the level is that of all together (Bonferroni), and stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord
from scipy.stats import mannwhitneyu

from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.combined_scores import clustered, supervised
from fedprivacy.attacks.document_claims import attack_claims
from fedprivacy.attacks.roc import auc
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.targets import KNOWN_FOLDS
from fedprivacy.attacks.transcript import Judgement
from fedprivacy.documents.attack import Attack, Measure
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.messages.protocol import parts_of
from fedprivacy.population.partition import Partition
from fedprivacy.report.attacks.figures import described
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch, branches_of
from fedprivacy.scenario.loading import loads
from scenarios.attacks import game_setup as arena_module
from scenarios.attacks.attacker_seats import Outcome, attack_from_seat, raise_of
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.participation_budget import NOTHING, AttackRounds
from scenarios.engines.embedded import EmbeddedGrid
from server import strategy as strategy_module

TEXT = """name = "attacked"
seed = 1
[data]
name = "purchase-like"
records = 400
test_records = 100
features = 60
classes = 30
partition = "iid"
clients = 3
public_fraction = 0.4
[model]
name = "mlp"
hidden = [24]
activation = "tanh"
[training]
learning_rate = 0.3
batch_size = 16
epochs = 2
[server]
rounds = 6
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 60
nonmembers = 60
[attacks.passive]
kind = "passive"
rounds = 3
[attacks.ascent]
kind = "active-gradient-ascent"
targets_per_round = 10
tries = 20
[attacks.isolating]
kind = "passive"
isolating = true
rounds = 3
[attacks.isolating-ascent]
kind = "active-gradient-ascent"
isolating = true
targets_per_round = 10
tries = 20
[attacks.traps]
kind = "active-gradient-ascent"
targets_per_round = 10
trap_units = 2
[attacks.isolating-traps]
kind = "active-gradient-ascent"
isolating = true
targets_per_round = 10
trap_units = 2
[attacks.participant]
kind = "passive"
seat = "participant"
rounds = 3
[attacks.participant-ascent]
kind = "active-gradient-ascent"
seat = "participant"
targets_per_round = 30
tries = 20
"""
SERVER = ("passive", "ascent", "isolating", "isolating-ascent", "traps", "isolating-traps")
LOCAL = (
    'privacy={trust="local", clipping_norm=1.0, epsilon=1.0, delta=1e-3}',
    "server.rounds=75",
    "game.warm_up=2",
)
CENTRAL = (
    'privacy={trust="central", clipping_norm=1.0, epsilon=1.0, delta=1e-3}',
    "server.rounds=60",
    "game.warm_up=6",
)


def scenario(*overrides: str) -> AttackScenario:
    found = loads(TEXT, overrides=overrides)
    assert isinstance(found, AttackScenario)
    return found


@dataclass(frozen=True)
class BranchResult:
    """What one attack saw, played by itself."""

    branch: Branch
    judgement: Judgement
    outcome: Outcome

    @property
    def before(self) -> float:
        return self.outcome.before

    @property
    def after(self) -> float:
        return self.outcome.after[max(self.outcome.after)]


def run_branches(setup: GameSetup, *names: str) -> dict[str, BranchResult]:
    tensors, found = setup.warm_up(), {}
    for name in names or setup.scenario.attacks:
        [branch] = branches_of({name: setup.scenario.attacks[name]}, len(setup.game.targets))
        judgement = Judgement(setup.probe)
        outcome = attack_from_seat(setup, branch, tensors, judgement.see)
        found[name] = BranchResult(branch, judgement, outcome)
    return found


def at_chance(scores: np.ndarray, members: np.ndarray) -> float:
    """The p-value of the members' scores being the others'."""
    return float(mannwhitneyu(scores[members], scores[~members]).pvalue)


def all_scores(setup: GameSetup, outcome: BranchResult) -> dict[str, np.ndarray]:
    """Every score of an attack, with those that are made of all; of the last folds these are blind."""
    found, game = outcome.judgement.features(), setup.game
    made = {
        "supervised": supervised(found, game.members, game.folds)[-1],
        "clustered": clustered(found, "cosine"),
    }
    return {**found, **made}


@pytest.fixture(scope="module")
def honest() -> tuple[GameSetup, dict[str, BranchResult]]:
    setup = GameSetup(scenario())
    return setup, run_branches(setup)


def test_every_attack_reaches_every_target_in_the_rounds_that_it_said(honest) -> None:
    setup, outcomes = honest
    for name, outcome in outcomes.items():
        assert (
            max(outcome.outcome.after)
            == outcome.branch.rounds
            == setup.scenario.attacks[name].rounds_taken(120)
        )
        for values in outcome.judgement.features().values():
            assert values.shape == (120,)
            assert np.isfinite(values).all()


def test_attacks_find_something_on_a_model_that_learns_by_heart(honest) -> None:
    """Else all the tests at chance below would say nothing."""
    setup, outcomes = honest
    members = setup.game.members
    for name, outcome in outcomes.items():
        cosine = outcome.judgement.features()["cosine"]
        found = auc(cosine[members], cosine[~members])
        assert found.value > 0.5
        if name in ("ascent", "isolating", "isolating-ascent"):
            assert found.low > 0.5, name
        if name.endswith("traps"):
            trap = outcome.judgement.features()["trap"]
            assert auc(trap[members], trap[~members]).value > 0.99, name


def test_under_server_attacks_the_global_model_stays_as_good(honest) -> None:
    _, outcomes = honest
    for name in SERVER:
        assert outcomes[name].after > outcomes[name].before - 0.03


def test_an_isolated_victim_leaves_the_global_model_as_it_was(honest) -> None:
    _, outcomes = honest
    for name in ("isolating", "isolating-ascent"):
        assert outcomes[name].before == outcomes[name].after


def test_the_same_seed_gives_the_same_scores_and_the_order_of_attacks_does_not_matter(honest) -> None:
    _, outcomes = honest
    again = run_branches(GameSetup(scenario()), "isolating-ascent", "passive")
    for name, outcome in again.items():
        for feature, values in outcome.judgement.features().items():
            assert np.array_equal(values, outcomes[name].judgement.features()[feature])


@pytest.mark.exhaustive
def test_shuffled_memberships_are_at_chance(honest) -> None:
    """False-alarm rate 1 % over all attacks: each single score of the pool, with coins thrown anew."""
    setup, outcomes = honest
    shuffled = np.random.default_rng(9).permutation(setup.game.members)
    game = replace(setup.game, members=shuffled)
    other = GameSetup.__new__(GameSetup)
    other.game = game
    measured = game.folds >= KNOWN_FOLDS
    p_values = [
        at_chance(values[measured], shuffled[measured])
        for outcome in outcomes.values()
        for values in all_scores(other, outcome).values()
    ]
    assert min(p_values) > 0.01 / len(p_values)
    for outcome in outcomes.values():
        values = outcome.judgement.features()["cosine"]
        figure = auc(values[shuffled], values[~shuffled])
        assert figure.low < 0.5 < figure.high


def test_the_baseline_that_sees_no_model_is_at_chance() -> None:
    """The mean of a record, over twenty seeds' games: false-alarm rate 1 %."""
    p_values = []
    for seed in range(20):
        setup = GameSetup(scenario(f"seed={seed}"))
        values = setup.probe.x.mean(dim=1).double().numpy()
        p_values.append(at_chance(values, setup.game.members))
    assert min(p_values) > 0.01 / len(p_values)


def without_its_members(setup: GameSetup) -> GameSetup:
    """The same game, but the victim trains on fresh records instead of its members, all along."""
    people, victim = setup.fleet.people, setup.game.victim
    dealt = people.partition
    held = [dealt.records(client) for client in range(dealt.clients)]
    held[victim] = held[(victim + 1) % dealt.clients]
    offsets = np.concatenate([[0], np.cumsum([len(records) for records in held])])
    blind = replace(people, partition=Partition(np.concatenate(held), offsets, dealt.public))
    setup.fleet = replace(setup.fleet, people=blind)
    return setup


@pytest.mark.exhaustive
def test_a_victim_that_does_not_train_on_its_members_gives_nothing_away() -> None:
    """False-alarm rate 1 % over all scores of all attacks."""
    setup = without_its_members(GameSetup(scenario("seed=5")))
    measured, members = setup.game.folds >= KNOWN_FOLDS, setup.game.members
    p_values = [
        at_chance(values[measured], members[measured])
        for outcome in run_branches(setup).values()
        for values in all_scores(setup, outcome).values()
    ]
    assert min(p_values) > 0.01 / len(p_values)


class Memoriser:
    """A planted client: it answers with the gradients of its members at the weights that it gets, large."""

    def __init__(self, setup: GameSetup) -> None:
        fleet = setup.fleet
        rows = torch.from_numpy(fleet.people.partition.records(setup.game.victim))
        self.victim, self.probe = setup.game.victim, Probe(fleet.module, fleet.x[rows], fleet.y[rows])

    def __call__(self, message, context, call_next):
        reply = call_next(message, context)
        arrays, _ = parts_of(message) if message.metadata.message_type == "train" else ({}, {})
        if len(arrays.get("clients", ())) == 1 and arrays["clients"][0] == self.victim:
            weights = torch.from_numpy(arrays["weights"].copy())
            told, _ = parts_of(reply)
            told["updates"] = -100 * self.probe.mean_gradient(weights)[0].double().numpy()
            reply.content.array_records["arrays"] = ArrayRecord({k: Array(v) for k, v in told.items()})
        return reply


def test_a_planted_client_that_repeats_its_members_gradients_is_found(monkeypatch) -> None:
    """Each record is of a class of its own, as good as: its gradient is in the sum or it is not."""
    asked = scenario(
        "data.classes=4000", "data.flip=0.5", 'model={name="logistic"}', "game.warm_up=0",
        "attacks={one={kind='passive', rounds=1}, alone={kind='passive', isolating=true, rounds=1}}",
    )  # fmt: skip
    setup = GameSetup(asked)
    planted = Memoriser(setup)
    make_app = arena_module.make_app
    monkeypatch.setattr(
        arena_module, "make_app", lambda fleet, mods, joint: make_app(fleet, (planted, *mods), joint)
    )
    for outcome in run_branches(setup).values():
        cosine = outcome.judgement.features()["cosine"]
        assert auc(cosine[setup.game.members], cosine[~setup.game.members]).value > 0.99


@pytest.mark.exhaustive
def test_under_local_noise_at_epsilon_one_every_attack_is_within_its_bound() -> None:
    """The interval of each AUC reaches below what the ledger allows its seat.

    Each holds at 97.5 % by itself, which is stricter than asking it of all of them together.
    """
    setup = GameSetup(scenario(*LOCAL))
    ledger = Ledger(setup.fleet.plan).in_advance().to_json()
    outcomes, members = run_branches(setup), setup.game.members
    for seat in ("server", "participant"):
        [told] = [one for one in guarantees(ledger) if one.observer == seat]
        assert 0.99 < told.epsilon <= 1.0
        bound = bound_of_ledger(ledger, seat)
        assert bound.curve.auc < 0.7
        for name, outcome in outcomes.items():
            if setup.scenario.attacks[name].seat != seat:
                continue
            for feature, values in outcome.judgement.features().items():
                reached = np.isfinite(values)
                assert reached.all(), (name, feature)
                assert auc(values[members], values[~members]).low < bound.curve.auc


ONE_A_ROUND = 'kind="active-gradient-ascent", targets_per_round=1, tries=3'
FEW = (*LOCAL, "server.rounds=24", "game.members=20", "game.nonmembers=20")


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("attack", "reached"),
    [
        ("", 22),
        (", isolating=true", 22),
        # A participant needs two rounds for each target: one to ascend, one to watch.
        (', seat="participant"', 11),
    ],
)
def test_a_victim_refuses_when_its_answers_are_spent_and_the_targets_are_not_judged(attack, reached) -> None:
    """24 answers, two in the warm-up: one target a round reaches 22 of 40, from whichever seat it comes."""
    setup = GameSetup(scenario(*FEW, f"attacks={{one={{{ONE_A_ROUND}{attack}}}}}"))
    [played] = run_branches(setup).values()
    assert int(np.isfinite(played.judgement.features()["cosine"]).sum()) == reached


def test_what_one_attack_was_answered_is_spent_for_the_next() -> None:
    """24 answers, two in the warm-up; five rounds with all clients, and seven with the victim alone."""
    setup = GameSetup(scenario(*FEW, f"attacks={{one={{{ONE_A_ROUND}}}}}"))
    [branch] = branches_of(setup.scenario.attacks, 40)
    tensors, judgement = setup.warm_up(), Judgement(setup.probe)
    attack_from_seat(setup, branch, tensors, judgement.see, AttackRounds(everybody=5, victim=7))
    assert int(np.isfinite(judgement.features()["cosine"]).sum()) == 24 - 2 - 5 - 7
    assert judgement.attacked.keys() > {"fedmia"}  # the others were asked


def test_budgets_are_charged_too_where_nobody_has_answered_yet() -> None:
    setup = GameSetup(scenario(*FEW, "game.warm_up=0", f"attacks={{one={{{ONE_A_ROUND}}}}}"))
    [branch] = branches_of(setup.scenario.attacks, 40)
    tensors, judgement = setup.warm_up(), Judgement(setup.probe)
    attack_from_seat(setup, branch, tensors, judgement.see, AttackRounds(everybody=20))
    assert int(np.isfinite(judgement.features()["cosine"]).sum()) == 4


@pytest.mark.parametrize("noisy", [False, True])
def test_branches_of_one_run_share_the_training_but_not_the_noise(noisy: bool) -> None:
    """Else who holds two branches could take the noise away: same round, same client, other weights."""
    rounds = ("attacks.passive.rounds=1", "attacks.isolating.rounds=1")
    outcomes = run_branches(GameSetup(scenario(*(LOCAL if noisy else ()), *rounds)), "passive", "isolating")
    seen, alone = (outcome.judgement.features()["cosine"] for outcome in outcomes.values())
    # The victim gets the same weights in both; without noise it makes the same of them.
    apart = np.abs(seen - alone).max()
    assert apart > np.abs(seen).max() / 2 if noisy else apart < 1e-6


def test_nor_do_they_share_the_central_noise() -> None:
    """Two branches from a participant's seat see the same round; that one goes on longer changes its noise."""
    branches = (
        "attacks={a={kind='passive', seat='participant', rounds=1}, "
        "b={kind='passive', seat='participant', rounds=2}}"
    )
    outcomes = run_branches(GameSetup(scenario(*CENTRAL, branches)))
    first, second = (outcome.judgement.features([0])["cosine"] for outcome in outcomes.values())
    assert np.abs(first - second).max() > np.abs(first).max() / 2


class Taken:
    """The replies of the victim to a branch, by round."""

    def __init__(self, *overrides: str, spent: AttackRounds = NOTHING) -> None:
        attacks = "attacks={one={kind='passive', rounds=2}}"
        self.setup = GameSetup(scenario(*LOCAL, attacks, *overrides))
        [branch] = branches_of(self.setup.scenario.attacks, 120)
        self.updates: list[np.ndarray] = []
        attack_from_seat(
            self.setup,
            branch,
            self.setup.warm_up(),
            lambda seen: self.updates.append(seen.update.numpy()),
            spent,
        )


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    "other",
    [
        {"overrides": ("game.warm_up=3",)},  # its second round is the other's third of training
        {"overrides": ("game.members=50",)},
        {"overrides": ("game.nonmembers=50",)},
        {"spent": AttackRounds(everybody=3)},
        {"spent": AttackRounds(victim=3)},
    ],
)
def test_whatever_else_is_asked_is_answered_with_other_noise(other) -> None:
    """The noise is hundreds of times an update: with the same noise, the difference of two is next to nothing."""
    first, second = Taken(), Taken(*other.get("overrides", ()), spent=other.get("spent", AttackRounds()))
    for one in first.updates:
        for another in second.updates:
            assert np.linalg.norm(one - another) > np.linalg.norm(one)
    assert all(map(np.array_equal, Taken().updates, first.updates))


def test_attacks_do_not_change_the_run_that_they_are_played_on() -> None:
    few = scenario(*CENTRAL, "attacks={one={kind='passive', rounds=1}}")
    many = scenario(
        *CENTRAL, "attacks={one={kind='passive', rounds=2}, two={kind='passive', rounds=4}}", "game.repeats=3"
    )
    weights = [GameSetup(one).warm_up()["weights"] for one in (few, many)]
    assert np.array_equal(*weights)


def test_a_game_that_the_coins_do_not_give_is_refused() -> None:
    with pytest.raises(InputError, match=r"game\.members = 120: by fair coins"):
        GameSetup(scenario("game.members=120", "seed=3"))


@pytest.mark.parametrize(("tested", "refused"), [(None, True), ([3, 4], True), ([4, 5], False)])
@pytest.mark.parametrize("attack", ["passive", "poisoning"])
def test_a_game_whose_test_records_may_be_clients_is_refused(
    tmp_path: Path, tested: list[int] | None, refused: bool, attack: str
) -> None:
    """All may see the accuracies of attacked models, which no noise covers."""
    stream, path = np.random.default_rng(0), tmp_path / "users.npz"
    x, y = stream.random((400, 4, 4)), np.arange(400) % 3
    named = {} if tested is None else {"user_test": np.resize(tested, 400)}
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, user_train=np.arange(400) % 4, **named)
    attacks = {
        "passive": '{kind = "passive", rounds = 1}',
        "poisoning": '{kind = "poisoning", target = 0, pixels = [[3, 3]], value = 4.0}',
    }
    asked = scenario(
        f'data={{name="npz", path="{path}", partition="by-user"}}',
        "game={members=20, nonmembers=20, warm_up=2}" if attack == "passive" else "game={warm_up=2}",
        f"attacks={{only={attacks[attack]}}}",
    )
    if refused:
        with pytest.raises(InputError, match=r"data\.path: test records belong to clients, or may"):
            GameSetup(asked)
    else:
        assert GameSetup(asked).game.people.partition.clients == 4


def test_an_ascent_can_be_sent_to_everybody() -> None:
    """Then the others' updates begin where the victim's does, and it still gives the victim away."""
    setup = GameSetup(scenario("attacks.ascent.everybody=true"))
    [played] = run_branches(setup, "ascent").values()
    cosine = played.judgement.features()["cosine"]
    assert auc(cosine[setup.game.members], cosine[~setup.game.members]).low > 0.5
    assert played.after > played.before - 0.05


def test_the_raw_step_is_a_mode_of_the_scenario() -> None:
    setup = GameSetup(scenario("attacks.ascent.raw=true", "attacks.ascent.step=0.7"))
    raw, level, none = (
        raise_of(setup, setup.scenario.attacks[name]) for name in ("ascent", "isolating-ascent", "passive")
    )
    assert (raw.level, raw.step) == (None, 0.7)
    assert level.level == 3.0
    assert none is None


def test_the_warm_up_sends_clients_together_and_trains_the_same_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = GameSetup(scenario())
    sent: list[int] = []
    push = EmbeddedGrid._replies

    def counted(grid, messages, *rest):
        messages = list(messages)
        sent.append(len(messages))
        return push(grid, messages, *rest)

    monkeypatch.setattr(EmbeddedGrid, "_replies", counted)
    together = setup.warm_up()
    assert set(sent) == {1}  # the greeting, and one message a round
    sent.clear()
    monkeypatch.setattr(arena_module, "WARM_UP_CHUNK", 1)
    alone = setup.warm_up()
    assert sent.count(3) == setup.scenario.warm_up  # one message for each client
    # Equal but for the order in which the server adds up.
    np.testing.assert_allclose(together["weights"], alone["weights"], rtol=1e-12, atol=1e-12)


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(
    ("overrides", "messages"),
    [
        ((), 2),
        (LOCAL, 2),
        (("federation.observe=each",), 3),
    ],
)
@pytest.mark.parametrize("name", ["participant", "participant-ascent"])
def test_around_a_participant_the_others_are_sent_one_message(
    monkeypatch: pytest.MonkeyPatch, name: str, overrides: tuple[str, ...], messages: int
) -> None:
    """It observes the global models and its own update, which are equal but for the order of additions."""
    setup = GameSetup(scenario(*overrides))
    [branch] = [each for each in branches_of(setup.scenario.attacks, 120) if name in each.names]
    tensors, sent = setup.warm_up(), []
    aggregate = strategy_module.aggregate

    def counted(requested, *args, **kwargs):
        sent.append(len(requested))
        return aggregate(requested, *args, **kwargs)

    monkeypatch.setattr(strategy_module, "aggregate", counted)
    judgement = Judgement(setup.probe)
    outcome = attack_from_seat(setup, branch, tensors, judgement.see)
    assert set(sent) == {messages}
    sent.clear()
    resume = GameSetup.resume

    def apart(setup, *args, attacker=None, **kwargs):
        return resume(setup, *args, **kwargs)

    monkeypatch.setattr(GameSetup, "resume", apart)
    expected = Judgement(setup.probe)
    assert attack_from_seat(setup, branch, tensors, expected.see) == outcome
    assert set(sent) == {3}  # a message for each client
    features = judgement.features(), expected.features()
    assert features[0].keys() == features[1].keys()
    for feature, values in features[0].items():
        np.testing.assert_allclose(values, features[1][feature], rtol=1e-4, atol=1e-5)


def test_the_claims_of_an_attack_name_the_way_in_which_it_raises_losses() -> None:
    raising = scenario("attacks.ascent.everybody=true", "attacks.isolating-ascent.raw=true")
    plan = GameSetup(raising).fleet.plan
    ledger = Ledger(plan).in_advance().to_json()
    claims = {name: attack_claims(raising, name, 0, plan, ledger) for name in raising.attacks}
    assert claims["traps"]["trap_units"] == 2
    assert claims["ascent"]["everybody"] is claims["isolating-ascent"]["raw"] is True
    shown = {
        name: described(Attack(**claim, auc=Measure(value=0.9, low=0.8, high=1.0)))
        for name, claim in claims.items()
    }
    assert shown["isolating-traps"] == "isolating, trap units, 10 targets a round"
    of_server = [shown[name] for name in raising.attacks if claims[name]["seat"] == "server"]
    assert len(set(of_server)) == len(of_server) == 6
