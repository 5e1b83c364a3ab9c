"""The arms of a game: what is played in each, and what a user is told who asks for what cannot be."""

from __future__ import annotations

import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads

GOOD = """name = "armed"
seed = 1
[data]
name = "purchase-like"
records = 600
partition = "iid"
clients = 4
public_fraction = 0.4
[model]
name = "logistic"
[server]
rounds = 200
[sampling]
name = "all"
[privacy]
trust = "local"
clipping_norm = 1.0
epsilon = 3.0
delta = 1e-3
[federation]
chunk_size = 1
[game]
members = 30
nonmembers = 60
warm_up = 4
epsilons = [1.0, 8.0]
[attacks.look]
kind = "passive"
rounds = 3
[attacks.inside]
kind = "passive"
seat = "participant"
rounds = 3
[arms.bare]
privacy.trust = "none"
[arms.clipped]
privacy.trust = "none"
privacy.clipping_norm = 0.5
[arms.central]
privacy.trust = "central"
server.optimizer = "momentum"
[arms.local]
server.rounds = 30
[arms.stopped]
privacy.trust = "none"
training.weight_decay = 0.01
game.warm_up = 2
[arms.own]
privacy.epsilon = 5.0
"""


def armed(text: str = GOOD, *overrides: str) -> AttackScenario:
    found = loads(text, overrides=overrides)
    assert isinstance(found, AttackScenario)
    return found


def test_each_arm_is_played_at_each_epsilon_if_it_has_one_and_none_of_its_own() -> None:
    variants = armed().variants
    assert [one.label for one in variants] == [
        "bare, no privacy",
        "clipped, clipping alone",
        "central, epsilon 1",
        "central, epsilon 8",
        "local, epsilon 1",
        "local, epsilon 8",
        "stopped, no privacy",
        "own, epsilon 5",
    ]
    named = {one.arm: one for one in variants}
    assert plan_of(named["clipped"]).mechanism == ClipOnly(0.5)
    assert (named["bare"].privacy.clipping_norm, named["bare"].privacy.trust) == (None, "none")
    # "In every round" follows the arm's rounds, for which its noise is made.
    assert (named["local"].server.rounds, named["local"].privacy.max_participations) == (30, 30)
    assert (named["own"].server.rounds, named["own"].privacy.max_participations) == (200, 200)
    assert (named["stopped"].warm_up, named["stopped"].training.weight_decay) == (2, 0.01)
    assert (named["central"].warm_up, named["central"].server.optimizer) == (4, "momentum")
    for one in variants:
        assert (one.arms, one.game.epsilons, one.seed) == ({}, (), 1)
        assert (one.data, one.model) == (armed().data, armed().model)


def test_an_attack_that_cannot_be_had_in_an_arm_is_left_out_there_with_the_reason() -> None:
    for one in armed().variants:
        left = one.arm == "central"
        assert list(one.attacks) == (["look"] if left else ["look", "inside"])
        assert list(one.skipped) == (["inside"] if left else [])
    [reason, _] = [one.skipped["inside"] for one in armed().variants if one.skipped]
    assert reason.startswith("an attacker cannot take its own share out")


def test_attacks_for_which_no_answers_are_left_are_left_out() -> None:
    """Six answers, of which the warm-up takes four, and looking on the others."""
    short = GOOD.replace("server.rounds = 30", "server.rounds = 6")
    local = next(one for one in armed(short).variants if one.arm == "local")
    assert list(local.attacks) == ["look"]
    assert "take all of them" in local.skipped["inside"]


def test_what_is_saved_is_read_again_as_the_same_scenario() -> None:
    scenario = armed()
    assert armed(scenario.to_toml()) == scenario
    assert [one.label for one in armed(scenario.to_toml()).variants] == [
        one.label for one in scenario.variants
    ]
    assert ("arms", "central") in scenario.sections
    assert "arms" not in armed(GOOD[: GOOD.index("[arms")]).tables()


def test_an_override_reaches_an_arm() -> None:
    local = [one for one in armed(GOOD, "arms.local.server.rounds=40").variants if one.arm == "local"]
    assert [one.server.rounds for one in local] == [40, 40]


# What is replaced in the good file, by what, and how what is said begins.
MISTAKES = {
    "an unknown section": (
        "[arms.bare]\n", "[arms.bare]\nmodel.name = 'mlp'\n", "arms.bare.model: unknown key",
    ),
    "an unknown key": (
        "weight_decay = 0.01", "weight_decoy = 0.01",
        "arms.stopped.training.weight_decoy: unknown key. Did you mean weight_decay?",
    ),
    "a value that cannot be": (
        "clipping_norm = 0.5", "clipping_norm = -0.5", "arms.clipped.privacy.clipping_norm = -0.5",
    ),
    "other records": (
        "weight_decay = 0.01", "momentum = 0.5\ndata.flip = 0.1",
        "arms.stopped.data.flip: all arms play with the same records",
    ),
    "another game": (
        "game.warm_up = 2", "game.members = 20", "arms.stopped.game.members",
    ),
    "a beginning after the end": (
        "game.warm_up = 2", "game.warm_up = 201",
        "arms.stopped.game.warm_up = 201: must be at most server.rounds = 200",
    ),
    "no number of rounds": (
        "game.warm_up = 2", "game.warm_up = true", "arms.stopped.game.warm_up = true: must be a",
    ),
    "what another arm would do": (
        "epsilons = [1.0, 8.0]", "unprotected = true\nepsilons = [1.0]",
        "game.unprotected: has no effect beside [arms.NAME]",
    ),
    "an arm that nobody can attack": (
        "[arms.own]\n", "[arms.own]\nsampling.name = 'poisson'\nsampling.rate = 0.5\n",
        "arms.own.sampling.name: an attacked client must be in every round",
    ),
    "an attack that no arm can have": (
        '[attacks.inside]\nkind = "passive"', '[attacks.inside]\nkind = "passive"\nattacker = 0',
        "attacks.inside.attacker: must be another client than the victim",
    ),
    "a name that is none": ("[arms.bare]", '[arms."a/b"]', 'arms."a/b": must be letters'),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_a_mistake_is_told_at_the_arm_that_makes_it(name: str) -> None:
    old, new, said = MISTAKES[name]
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    with pytest.raises(ScenarioError) as caught:
        loads(text, "my.toml")
    [line] = str(caught.value).split("\n")
    place, _, told = line.removeprefix("my.toml:").partition(": ")
    assert told.startswith(said)
    assert said.split(":")[0].split(" ")[0].split(".")[-1].strip('"') in text.split("\n")[int(place) - 1]


def test_epsilons_need_an_arm_that_they_are_for() -> None:
    with pytest.raises(ScenarioError, match=r"game\.epsilons: has no effect: each arm has no privacy"):
        loads(GOOD[: GOOD.index("[arms.central]")])


def test_arms_that_are_no_tables_are_refused() -> None:
    with pytest.raises(ScenarioError, match="arms: 3 is a whole number, a section is needed"):
        loads("arms = 3\n" + GOOD[: GOOD.index("[arms")])
