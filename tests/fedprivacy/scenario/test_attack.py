"""What a user is told about an attack scenario, and what becomes of it as text."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads

GOOD = """name = "attacked"
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
rounds = 5
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
victim = 3
members = 30
nonmembers = 60
[attacks.look]
kind = "passive"
[attacks.climb]
kind = "active-gradient-ascent"
seat = "server"
[attacks.inside]
kind = "passive"
seat = "participant"
"""
CENTRAL = 'trust = "central"\nclipping_norm = 1.0\nnoise_multiplier = 2.0\ndelta = 1e-3'
LOCAL = CENTRAL.replace("central", "local")


def complaints(text: str, *overrides: str) -> list[str]:
    """The lines that a user reads about a text."""
    with pytest.raises(ScenarioError) as caught:
        loads(text, "my.toml", overrides)
    assert caught.value.exit_code == 2
    return str(caught.value).split("\n")


def change(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def test_a_good_file() -> None:
    scenario = loads(GOOD)
    assert isinstance(scenario, AttackScenario)
    assert scenario.warm_up == 5
    assert (scenario.game.victim, scenario.game.repeats) == (3, 1)
    assert list(scenario.attacks) == ["look", "climb", "inside"]
    assert scenario.attacks["climb"].targets_per_round == 1
    assert {("game",), ("attacks", "climb")} <= set(scenario.sections)


def test_how_many_rounds_an_attack_takes() -> None:
    attacks = loads(
        GOOD,
        overrides=["attacks.climb.targets_per_round=40", "attacks.inside.kind=active-gradient-ascent"],
    ).attacks
    assert attacks["look"].rounds_taken(90) == 20
    assert attacks["climb"].rounds_taken(90) == 3
    assert attacks["inside"].rounds_taken(90) == 2 * 90 + 1
    assert loads(GOOD).attacks["inside"].rounds_taken(90) == 21
    late = loads(GOOD, overrides=["attacks.look.skip=4", "attacks.look.every=5", "attacks.look.rounds=5"])
    assert list(late.attacks["look"].watched) == [4, 9, 14, 19, 24]
    assert late.attacks["look"].rounds_taken(90) == 25


# One mistake each: what is replaced in the good file, by what, and all that is said.
ONE_MISTAKE = {
    "a victim that does not exist": (
        [("victim = 3", "victim = 4")],
        ["my.toml:20: game.victim = 4: there is no such client: clients are 0 to 3."],
    ),
    "a victim below zero": (
        [("victim = 3", "victim = -1")],
        ["my.toml:20: game.victim = -1: must be at least 0. The client that is attacked, such as 0."],
    ),
    "more members than the victim has records": (
        [("members = 30\n", "members = 166\n")],
        [
            "my.toml:21: game.members = 166: the victim's 90 records and the 240 public ones are 330, and a "
            "fair coin for each makes about 165 members of them. Ask for fewer, or deal more records to a "
            "client or to the public part."
        ],
    ),
    "more non-members than there can be": (
        [("nonmembers = 60", "nonmembers = 166")],
        [
            "my.toml:22: game.nonmembers = 166: the victim's 90 records and the 240 public ones are 330, and "
            "a fair coin for each makes about 165 nonmembers of them. Ask for fewer, or deal more records to "
            "a client or to the public part."
        ],
    ),
    "non-members that some client trains on": (
        [("public_fraction = 0.4\n", "")],
        [
            "my.toml:3: data.public_fraction = 0.0: there are no records to be non-members. Non-members are "
            "drawn from the public part, which no client owns: 0.2, say."
        ],
    ),
    "records that are not dealt at random": (
        [('partition = "iid"', 'partition = "dirichlet"\nalpha = 0.5')],
        [
            'my.toml:6: data.partition = "dirichlet": members and non-members must come from the same pool, '
            'so records must be dealt at random. Set partition = "iid" or "fixed-records", or "by-user" where '
            "user_train and user_test name users."
        ],
    ),
    "members in the public scaling": (
        [('partition = "iid"', 'partition = "iid"\nscaling = "public"')],
        [
            'my.toml:7: data.scaling = "public": the public part, of which the victim\'s members come, would be '
            'in every client\'s scaling. Set scaling to another way, such as "bounds".'
        ],
    ),
    "only sums are seen": (
        [("chunk_size = 1", "chunk_size = 2")],
        [
            "my.toml:18: federation.chunk_size = 2: messages hold sums over several clients, and no single "
            "update could be seen or sent. Set chunk_size = 1."
        ],
    ),
    "a GPU": (
        [("[server]", '[training]\ndevice = "cuda"\n[server]')],
        ['my.toml:12: training.device = "cuda": an attack runs on the CPU. Set device = "cpu".'],
    ),
    "noise for sums": (
        [
            ('trust = "none"', LOCAL + '\nnoise_draw = "sum"'),
            ("rounds = 5", "rounds = 200"),
            ("victim = 3", "victim = 3\nwarm_up = 1"),
        ],
        [
            'my.toml:20: privacy.noise_draw = "sum": the noise is drawn for sums, and no single update could '
            'be seen or sent. Set noise_draw = "client".'
        ],
    ),
    "single updates under a secure sum": (
        [('trust = "none"', CENTRAL.replace("central", "distributed"))],
        [
            f'my.toml:{line}: attacks.{name}.kind = "{kind}": reads or sends single updates, and under trust '
            '"distributed" a secure sum shows nobody one. Set sees = "sum" from the server\'s seat, use kind = '
            '"released", which attacks the final model, or privacy.trust = "central" or "local".'
            for line, name, kind in (
                (27, "look", "passive"),
                (29, "climb", "active-gradient-ascent"),
                (32, "inside", "passive"),
            )
        ],
    ),
    "the sum from a participant's seat": (
        [('kind = "passive"\nseat = "participant"', 'kind = "passive"\nseat = "participant"\nsees = "sum"')],
        [
            'my.toml:31: attacks.inside.sees = "sum": a participant sees global models, and no sum. Remove it, or '
            'set seat = "server".'
        ],
    ),
    "the sum of an isolated victim": (
        [('seat = "server"', 'sees = "sum"\nisolating = true')],
        [
            "my.toml:28: attacks.climb.isolating = true: the sum of a victim alone is its update. Remove it, or set "
            'sees = "updates".'
        ],
    ),
    "a clipping norm that changes": (
        [
            ('trust = "none"', CENTRAL + "\nclipping_quantile = 0.5"),
            ("rounds = 5", "rounds = 200"),
            ("victim = 3", "victim = 3\nwarm_up = 1"),
        ],
        [
            "my.toml:20: privacy.clipping_quantile = 0.5: attacks on messages know answers that were clipped to one "
            "norm, and this one changes from round to round. Remove it, or attack the released model alone (kind = "
            '"released").'
        ],
    ),
    "updates that are clipped by layer": (
        [
            ('trust = "none"', CENTRAL + '\nclipping_layers = "equal"'),
            ('name = "logistic"', 'name = "mlp"\nhidden = [3]'),
            ("rounds = 5", "rounds = 200"),
            ("victim = 3", "victim = 3\nwarm_up = 1"),
        ],
        [
            'my.toml:21: privacy.clipping_layers = "equal": attacks on messages know answers that were clipped as '
            "a whole, and these are clipped by layer too. Remove it, or attack the released model alone (kind = "
            '"released").'
        ],
    ),
    "updates that are encoded": (
        [
            ('trust = "none"', CENTRAL + '\nencoding = "signs"'),
            ("rounds = 5", "rounds = 200"),
            ("victim = 3", "victim = 3\nwarm_up = 1"),
        ],
        [
            'my.toml:20: privacy.encoding = "signs": attacks on messages know answers that were clipped, and these are '
            'encoded too. Remove it, or attack the released model alone (kind = "released").'
        ],
    ),
    "a client that is not in every round": (
        [('[sampling]\nname = "all"', '[sampling]\nname = "fixed"\ncohort = 4')],
        ['my.toml:14: sampling.name: an attacked client must be in every round. Set sampling.name = "all".'],
    ),
    "a warm-up that is too long": (
        [("victim = 3", "victim = 3\nwarm_up = 6")],
        ["my.toml:21: game.warm_up = 6: must be at most server.rounds = 5."],
    ),
    "a victim that has spent its budget before": (
        [('trust = "none"', LOCAL + "\nmax_participations = 3"), ("victim = 3", "victim = 3\nwarm_up = 3")],
        [
            "my.toml:25: game.warm_up = 3: clients answer 3 times, which is what their noise is made for, and "
            "the attack begins after 3 rounds: every one of them would refuse. At most 2; an attack gets the "
            "answers that the warm-up leaves."
        ],
    ),
    "more rounds than the central noise is made for": (
        [
            ('trust = "none"', CENTRAL),
            ("rounds = 5", "rounds = 112"),
            ("victim = 3", "victim = 3\nwarm_up = 92"),
        ],
        [
            "my.toml:32: attacks.inside: with this one the attacks take 131 rounds after a warm-up of 92, and "
            "the noise of the global models is made for server.rounds = 112. Set game.warm_up, and "
            "server.rounds to at least 131 more.",
        ],
    ),
    "an attack for which no answer is left": (
        [
            ('trust = "none"', LOCAL),
            ("rounds = 5", "rounds = 95"),
            ("victim = 3", "victim = 3\nwarm_up = 1"),
        ],
        [
            "my.toml:32: attacks.inside: clients answer 95 times, which is what their noise is made for, and "
            "the warm-up and the attacks before this one take all of them. Set server.rounds higher, with "
            "fewer targets, or play this attack in a run of its own."
        ],
    ),
    "epsilons without noise": (
        [("victim = 3", "victim = 3\nepsilons = [1.0]")],
        [
            'my.toml:21: game.epsilons: has no effect with privacy.trust = "none". Remove it, or set '
            'privacy.trust = "local" or "central".'
        ],
    ),
    "no privacy anyway": (
        [("victim = 3", "victim = 3\nunprotected = true")],
        [
            'my.toml:21: game.unprotected: has no effect with privacy.trust = "none". Remove it, or set '
            'privacy.trust = "local" or "central".'
        ],
    ),
    "nothing to clip by": (
        [("victim = 3", "victim = 3\nclipped = true")],
        [
            'my.toml:21: game.clipped: has no effect with privacy.trust = "none". Remove it, or set '
            'privacy.trust = "local" or "central".'
        ],
    ),
    "batches of single records that a record in or out changes": (
        [('trust = "none"', 'trust = "none"\nunit = "example"\n[training]\nbatch_size = 16')],
        [
            'my.toml:18: training.batches = "shuffled": a record in or out, which is the coin of the game, changes '
            'here which others share a batch: unit = "example" does not cover that. Set batches = "poisson", or '
            'batch_size = "all" with shuffled ones.'
        ],
    ),
    "an ascent that is sent to everybody and to one": (
        [('seat = "server"', "isolating = true\neverybody = true")],
        [
            "my.toml:28: attacks.climb.everybody: only a server that does not isolate the victim sends to all. "
            "Remove it."
        ],
    ),
    "an attacker that is the victim": (
        [('seat = "participant"', 'seat = "participant"\nattacker = 3')],
        [
            "my.toml:31: attacks.inside.attacker: must be another client than the victim. Clients count from 0."
        ],
    ),
    "an attacker that does not exist": (
        [('seat = "participant"', 'seat = "participant"\nattacker = 4')],
        [
            "my.toml:31: attacks.inside.attacker: must be another client than the victim. Clients count from 0."
        ],
    ),
    "an attacker at the server": (
        [('seat = "server"', 'seat = "server"\nattacker = 1')],
        ['my.toml:28: attacks.climb.attacker: has no effect with seat = "server". Remove it.'],
    ),
    "more targets at once than there are": (
        [('seat = "server"', 'seat = "server"\ntargets_per_round = 91')],
        ["my.toml:28: attacks.climb.targets_per_round: there are 90 targets in all. At most 90."],
    ),
    "a boost at the server": (
        [('seat = "server"', 'seat = "server"\nboost = 4.0')],
        ['my.toml:28: attacks.climb.boost: has no effect with seat = "server". Remove it.'],
    ),
    "trap units without a hidden layer": (
        [('seat = "server"', "trap_units = 2")],
        [
            'my.toml:27: attacks.climb.trap_units = 2: needs a hidden layer, and model.name = "logistic" has none '
            'here. Remove it, or set model.name = "mlp" and model.activation = "tanh".'
        ],
    ),
    "more trap units than the layer has": (
        [
            ('name = "logistic"', 'name = "mlp"\nactivation = "tanh"\nhidden = [30, 20]'),
            ('seat = "server"', "trap_units = 4\ntargets_per_round = 7"),
        ],
        [
            "my.toml:29: attacks.climb.trap_units = 4: 7 targets a round need 28 units, and the last hidden "
            "layer has 20. Set targets_per_round or trap_units lower, or a larger model.hidden."
        ],
    ),
    "trap units that are not pairs": (
        [
            ('name = "logistic"', 'name = "mlp"\nactivation = "tanh"'),
            ('seat = "server"', "trap_units = 3"),
        ],
        ["my.toml:28: attacks.climb.trap_units = 3: come in pairs. Set an even number, such as 4."],
    ),
    "trap units of ReLU": (
        [
            ('name = "logistic"', 'name = "mlp"'),
            ('seat = "server"', "trap_units = 4"),
        ],
        [
            "my.toml:27: attacks.climb.trap_units = 4: a ReLU is not saturated behind a target, so it would raise "
            'the loss on other records. Set model.activation = "tanh", or remove it.'
        ],
    ),
    "trap units in raw steps": (
        [
            ('name = "logistic"', 'name = "mlp"\nactivation = "tanh"'),
            ('seat = "server"', "trap_units = 4\nraw = true"),
        ],
        ["my.toml:28: attacks.climb.trap_units = 4: has no effect with raw = true. Remove one of them."],
    ),
    "trap units of a participant": (
        [
            ('name = "logistic"', 'name = "mlp"\nactivation = "tanh"'),
            ('seat = "server"', 'seat = "participant"\ntrap_units = 4'),
        ],
        [
            "my.toml:29: attacks.climb.trap_units: only the server sends a model as it is: others are averaged. "
            'Remove it, or set seat = "server".'
        ],
    ),
    "steepness of nothing": (
        [('seat = "server"', "steepness = 3.0")],
        [
            "my.toml:27: attacks.climb.steepness = 3.0: has no effect without trap_units. Remove it, or set "
            "trap_units = 4."
        ],
    ),
    "a participant that isolates": (
        [('seat = "participant"', 'seat = "participant"\nisolating = true')],
        [
            "my.toml:31: attacks.inside.isolating: only the server can isolate. Remove it, or set "
            'seat = "server".'
        ],
    ),
    "a participant that does not know its share": (
        [("rounds = 5", 'rounds = 5\noptimizer = "adam"')],
        [
            "my.toml:31: attacks.inside.seat: an attacker cannot take its own share out of the models that "
            'this optimizer makes. Set server.optimizer = "sgd".'
        ],
    ),
    "a participant alone": (
        [("clients = 4", "clients = 1"), ("victim = 3", "victim = 0")],
        [
            "my.toml:30: attacks.inside.seat: there is no other client than the victim. Set data.clients to "
            "2 at least."
        ],
    ),
    "an unknown attack": (
        [('kind = "active-gradient-ascent"', 'kind = "active-gradient-descent"')],
        [
            'my.toml:26: attacks.climb.kind = "active-gradient-descent": unknown attack. Did you mean '
            '"active-gradient-ascent"?'
        ],
    ),
    "an unknown seat": (
        [('seat = "server"', 'seat = "outsider"')],
        [
            'my.toml:27: attacks.climb.seat = "outsider": unknown seat. Known here: "server", "participant".',
        ],
    ),
    "a key of the other attack": (
        [('seat = "server"', "skip = 3")],
        [
            'my.toml:27: attacks.climb.skip: has no effect with kind = "active-gradient-ascent". '
            'Remove it, or set kind = "passive".'
        ],
    ),
    "a misspelt key": (
        [('seat = "server"', "targets_per_rund = 3")],
        ["my.toml:27: attacks.climb.targets_per_rund: unknown key. Did you mean targets_per_round?"],
    ),
    "a level of zero": (
        [('seat = "server"', "level = 0")],
        [
            "my.toml:27: attacks.climb.level = 0: must be above 0 and at most 1000. The loss that targets "
            "are raised to; with raw = true it has no effect."
        ],
    ),
    "published figures of attacks that are not here": (
        [
            ("members = 30\n", 'members = 30\npublished = "texas100"\n'),
            (GOOD[GOOD.index("[attacks.look]") :], '[attacks.out]\nkind = "released"\n'),
        ],
        [
            'my.toml:22: game.published = "texas100": no attack here is one of the published, which are passive '
            'or ascend, and see updates or models. Add [attacks.NAME] with kind = "passive", say, or remove it.'
        ],
    ),
    "published figures beside private runs alone": (
        [
            ('trust = "none"', LOCAL),
            ("rounds = 5", "rounds = 500"),
            ("members = 30\n", 'members = 30\nwarm_up = 5\npublished = "texas100"\n'),
        ],
        [
            'my.toml:26: game.published = "texas100": the published models were trained without privacy, and '
            "no run here is. Set game.unprotected = true, or remove it."
        ],
    ),
    "published figures beside arms": (
        [
            ("members = 30\n", 'members = 30\npublished = "texas100"\n'),
            ("[attacks.look]", "[arms.plain]\n[attacks.look]"),
        ],
        ['my.toml:22: game.published = "texas100": has no effect beside [arms.NAME]. Remove it.'],
    ),
    "too few members": (
        [("members = 30\n", "members = 9\n")],
        [
            "my.toml:21: game.members = 9: must be at least 10. How many of its records are judged, such "
            "as 100."
        ],
    ),
    "a name that is none": (
        [("[attacks.look]", '[attacks."a b"]')],
        ['my.toml:23: attacks."a b": must be letters, digits and hyphens, at most 64.'],
    ),
    "no attack at all": (
        [
            (GOOD[GOOD.index("[attacks.look]") :], ""),
        ],
        ['my.toml: attacks: no attack. Add [attacks.NAME] with kind = "passive", say.'],
    ),
}


@pytest.mark.parametrize("name", ONE_MISTAKE)
def test_one_mistake_is_told_with_its_line_and_what_to_do(name: str) -> None:
    changes, expected = ONE_MISTAKE[name]
    assert sorted(complaints(change(*changes))) == sorted(expected)


def test_all_mistakes_are_told_at_once() -> None:
    told = complaints(
        change(
            ("victim = 3", "victm = 3"), ('kind = "active-', 'knd = "active-'), ("rounds = 5", "rouds = 5")
        )
    )
    assert [line.split(":")[1] for line in told] == ["12", "20", "26"]


def test_overrides_reach_the_game_and_the_attacks_and_are_named_when_wrong() -> None:
    scenario = loads(
        GOOD, overrides=["game.members=20", "attacks.climb.level=2.5", "attacks.new.kind=passive"]
    )
    assert (scenario.game.members, scenario.attacks["climb"].level) == (20, 2.5)
    assert scenario.attacks["new"].rounds == 20
    assert complaints(GOOD, "game.victim=9") == [
        "--set game.victim=9: there is no such client: clients are 0 to 3."
    ]
    assert complaints(GOOD, "attacks.climb.attacker=1") == [
        '--set attacks.climb.attacker=1: has no effect with seat = "server". Remove it.'
    ]


def test_central_noise_bears_an_attack_within_the_rounds_that_it_is_made_for() -> None:
    asked = ["attacks.climb.isolating=true", "game.warm_up=1", "server.rounds=42"]
    scenario = loads(change(('trust = "none"', CENTRAL)), overrides=asked)  # isolated, nothing is released
    assert (
        1 + sum(scenario.attacks[name].rounds_taken(90) for name in ("look", "inside"))
        == scenario.server.rounds
    )


def test_games_on_single_records_may_have_batches_that_a_record_in_or_out_leaves_alone() -> None:
    batches = ('batches="shuffled", batch_size="all"', 'batches="poisson", steps=2, rate=0.5')
    for one in batches:
        assert (
            loads(GOOD, overrides=['privacy.unit="example"', f"training={{{one}}}"]).privacy.unit == "example"
        )
    told = complaints(
        GOOD, 'privacy.unit="example"', 'training={batches="with-replacement", steps=2, batch_size=4}'
    )
    assert ["changes here which others share a batch" in line for line in told] == [True]


def test_clipping_alone_keeps_the_norm_and_nothing_else_and_is_never_called_an_epsilon() -> None:
    text = change(
        ('trust = "none"', LOCAL),
        ("rounds = 5", "rounds = 200"),
        ("victim = 3", "victim = 3\nwarm_up = 1\nclipped = true\nunprotected = true"),
    )
    own, clipped, bare = loads(text).variants
    assert (clipped.privacy.trust, clipped.privacy.clipping_norm, bare.privacy.clipping_norm) == (
        "none",
        1.0,
        None,
    )
    assert clipped.game == bare.game == own.game
    assert not clipped.game.clipped
    assert [one.privacy_label for one in (own, clipped, bare)] == [
        "noise multiplier 2",
        "clipping alone",
        "no privacy",
    ]
    assert plan_of(clipped).mechanism == ClipOnly(1.0)


def test_every_epsilon_and_no_privacy_are_scenarios_of_their_own() -> None:
    text = change(
        ('trust = "none"', CENTRAL.replace("noise_multiplier = 2.0", "epsilon = 3.0")),
        ("rounds = 5", "rounds = 200"),
        ("victim = 3", "victim = 3\nwarm_up = 1\nepsilons = [1.0, 8.0]\nunprotected = true"),
    )
    scenario = loads(text)
    found = [(one.privacy.trust, one.privacy.epsilon) for one in scenario.variants]
    assert found == [("central", 1.0), ("central", 8.0), ("none", None)]
    for one in scenario.variants:
        assert (one.game.epsilons, one.game.unprotected) == ((), False)
        assert one.model_copy(update={"privacy": scenario.privacy, "game": scenario.game}) == scenario
        assert one.variants == [one]
    assert loads(GOOD).variants == [loads(GOOD)]
    alone = scenario.model_copy(update={"game": scenario.game.model_copy(update={"epsilons": ()})})
    assert [one.privacy.epsilon for one in alone.variants] == [3.0, None]


def test_what_is_saved_is_read_again_as_the_same_scenario() -> None:
    text = change(
        ("victim = 3", "victim = 3\nwarm_up = 2\nrepeats = 3"),
        ('seat = "server"', "raw = true\nstep = 0.5\ntargets_per_round = 7\nisolating = true"),
        (
            '[attacks.inside]\nkind = "passive"',
            '[attacks.inside]\nkind = "active-gradient-ascent"\nboost = 4.5',
        ),
    )
    scenario = loads(text)
    saved = scenario.to_toml()
    again = loads(saved)
    assert again == scenario
    assert again.to_toml() == saved
    stored, written = tomllib.loads(saved), tomllib.loads(text)
    assert stored["game"] == {**written["game"], "clipped": False, "unprotected": False, "transcripts": True}
    for name, attack in written["attacks"].items():
        assert {key: stored["attacks"][name][key] for key in attack} == attack
    assert list(stored["attacks"]) == ["look", "climb", "inside"]
    assert "boost" not in stored["attacks"]["climb"]


SUMS = """[attacks.look]
kind = "passive"
sees = "sum"
rounds = 2
[attacks.climb]
kind = "active-gradient-ascent"
sees = "sum"
everybody = true
targets_per_round = 45
"""
SHARES = CENTRAL.replace("central", "distributed") + '\nnoise_draw = "sum"'


def of_sums(*overrides: str, privacy: str = SHARES) -> AttackScenario:
    text = GOOD[: GOOD.index("[attacks.look]")].replace('trust = "none"', privacy) + SUMS
    text = text.replace("rounds = 5", "rounds = 9").replace("[game]", "[game]\nwarm_up = 3")
    return loads(text.replace("chunk_size = 1", "chunk_size = 4"), "my.toml", overrides)


def test_attacks_on_sums_need_no_single_message_and_no_client_in_every_round() -> None:
    assert set(of_sums().attacks) == {"look", "climb"}
    fixed = ("sampling={name='fixed', cohort=2}",)
    assert of_sums(*fixed).privacy.trust == "distributed"
    for privacy in ('trust = "none"', LOCAL):
        assert set(of_sums(*fixed, privacy=privacy).attacks) == {"look", "climb"}
    with pytest.raises(ScenarioError, match="chunk_size = 4: messages hold sums over several clients"):
        of_sums("attacks.climb.everybody=false")  # the victim alone is sent the raised weights
    with pytest.raises(ScenarioError, match=r"sampling\.name: an attacked client must be in every round"):
        of_sums(*fixed, "attacks.look.sees=updates", privacy='trust = "none"')
    with pytest.raises(ScenarioError, match="one round with the victim after the other, and these lie apart"):
        of_sums("sampling={name='separated', cohort=2, separation=2}")
    with pytest.raises(ScenarioError, match="epsilons of central trust rest on cohorts that nobody chooses"):
        of_sums(*fixed, privacy=CENTRAL)
    with pytest.raises(
        ScenarioError, match=r'attacks\.look\.sees.*server\.aggregation = "median" no sum is made'
    ):
        of_sums("server.aggregation=median", "federation.observe=each", privacy='trust = "none"')
    with pytest.raises(ScenarioError, match=r"data\.test_records.*clients of its own on test records"):
        of_sums("data.test_records=3", privacy='trust = "none"')


def test_attacks_on_sums_end_with_the_answers_that_noise_is_made_for() -> None:
    with pytest.raises(ScenarioError, match="clients answer 4 times, which is what their noise is made for"):
        of_sums("privacy.max_participations=4")
    # Of cohorts of two of four clients the victim is in about half of the rounds before.
    drawn = of_sums("privacy.max_participations=6", "sampling={name='fixed', cohort=2}", "game.warm_up=4")
    assert drawn.warm_up == 4
    with pytest.raises(ScenarioError, match="clients answer 2 times"):
        of_sums("privacy.max_participations=2", "sampling={name='fixed', cohort=2}", "game.warm_up=4")


def test_where_clients_are_users_the_victims_records_are_the_pool(tmp_path: Path) -> None:
    stream, path = np.random.default_rng(0), tmp_path / "users.npz"
    x, y = stream.random((240, 4)), np.arange(240) % 3
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, user_train=np.arange(240) % 6)
    old = 'name = "purchase-like"\nrecords = 600\npartition = "iid"\nclients = 4\npublic_fraction = 0.4\n'
    sizes = ("members = 30\nnonmembers = 60", "members = 15\nnonmembers = 15")
    text = change((old, f'name = "npz"\npath = "{path}"\npartition = "by-user"\n'), sizes)
    loaded = loads(text, "my.toml")
    assert isinstance(loaded, AttackScenario)
    assert AttackScenario.from_text(loaded.to_toml()) == loaded
    refused = "where clients are users, the non-members are records of the victim"
    assert any(refused in line for line in complaints(text, "data.public_fraction=0.4"))
    many = complaints(text, "game.nonmembers=21")  # of 40 records
    assert any("game.nonmembers=21: no user has more than 40 records, and a fair" in line for line in many)
    readers = ("data.public_fraction=0.4", "server.patience=1", "evaluation.on=public")
    for override, names in (
        ((), "evaluation.on, server.patience"),
        (("evaluation.on=test",), "server.patience"),
    ):
        found = complaints(text, *readers, *override)
        assert sum("public" in line for line in found) == 1
        assert any(line.endswith(f"Remove it, and what reads public records: {names}.") for line in found)
    asks = '\n[attacks.asks]\nkind = "reconstruction"\nmethod = "analytic"\n'
    assert any(
        'data.partition = "by-user": attacks in trials draw the victim\'s records and public ones' in line
        for line in complaints(text + asks)
    )


def test_trap_units_in_a_cnn_need_a_hidden_layer_of_tanh(tmp_path: Path) -> None:
    stream, path = np.random.default_rng(0), tmp_path / "pictures.npz"
    x, y = stream.random((300, 8, 8)), np.arange(300) % 3
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
    text = change(
        ('name = "purchase-like"\nrecords = 600\n', f'name = "npz"\npath = "{path}"\n'),
        ('name = "logistic"', 'name = "cnn"\nchannels = [4]\nhidden = [40]\nactivation = "tanh"'),
        ('seat = "server"', "trap_units = 4\ntargets_per_round = 10"),
    )
    assert isinstance(loads(text, "my.toml"), AttackScenario)
    [found] = complaints(text, "model.hidden=[]")
    assert 'needs a hidden layer, and model.name = "cnn" has none here' in found
    assert 'set model.hidden = [128] and model.activation = "tanh"' in found
    [found] = complaints(text, "model.activation=relu")
    assert "a ReLU is not saturated behind a target" in found
