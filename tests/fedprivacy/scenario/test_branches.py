"""Which attacks share the rounds that they look at."""

from __future__ import annotations

from fedprivacy.attacks.gradient_ascent import GradientAscent
from fedprivacy.attacks.passive import Passive
from fedprivacy.scenario.attack.branches import branches_of


def passive(**settings: object) -> Passive:
    return Passive.model_validate({"kind": "passive", **settings})


def ascent(**settings: object) -> GradientAscent:
    return GradientAscent.model_validate({"kind": "active-gradient-ascent", **settings})


def test_passive_attacks_of_one_seat_look_at_the_same_rounds() -> None:
    attacks = {
        "early": passive(rounds=3),
        "climb": ascent(targets_per_round=10),
        "late": passive(rounds=2, skip=4, every=5),
        "alone": passive(rounds=3, isolating=True),
        "inside": passive(rounds=3, seat="participant"),
        "other": passive(rounds=3, seat="participant", attacker=2),
    }
    branches = branches_of(attacks, 95)
    assert [branch.names for branch in branches] == [
        ("early", "late"), ("climb",), ("alone",), ("inside",), ("other",),
    ]  # fmt: skip
    assert [branch.rounds for branch in branches] == [10, 10, 3, 4, 4]
    assert branches[0].watched == (0, 1, 2, 4, 9)
    assert branches[1].watched == ()
    assert [branch.active for branch in branches] == [False, True, False, False, False]
    assert len({branch.key for branch in branches}) == 5


def test_other_questions_have_other_keys_and_the_same_ones_the_same() -> None:
    """The key chooses the noise: who asks something else must not get the same noise."""

    def key(attack: Passive | GradientAscent) -> str:
        return branches_of({"one": attack}, 60)[0].key

    assert key(ascent()) == key(ascent())
    assert (
        len({key(ascent()), key(ascent(step=0.2)), key(ascent(isolating=True)), key(passive(rounds=60))}) == 4
    )
    assert key(passive(rounds=3)) != key(passive(rounds=4))
    # Of the same rounds others are looked at: the answers are the same.
    assert key(passive(rounds=3)) == key(passive(rounds=1, skip=2))
