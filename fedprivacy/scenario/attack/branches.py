"""Branches of a trained run: one active attack, or all passive attacks on the same observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedprivacy.scenario.attack.sections import Ascent, Attack, Passive, Released, TrialAttack


@dataclass(frozen=True)
class Branch:
    """Rounds that run once, and the attacks scored on them.

    Args:
        names: The attacks: a single active one, the passive ones that see the same rounds, or those on the
            released model that train the same references.
        attack: The attack, or the passive one of several that takes most rounds.
        rounds: How many rounds it takes, by each of which clients have answered once more.
        watched: Of passive ones the rounds that any of them observes, rising from 0 or more; else none.
        key: Its identity among the branches of a run: equal keys send the same requests in the same rounds.
    """

    names: tuple[str, ...]
    attack: Attack
    rounds: int
    watched: tuple[int, ...]
    key: str

    @property
    def active(self) -> bool:
        """Whether it changes messages."""
        return isinstance(self.attack, Ascent)

    @property
    def silent(self) -> bool:
        """Whether the branch sends no requests to the run's clients."""
        return not self.rounds

    @property
    def in_trials(self) -> bool:
        """Whether it repeats an experiment instead of judging targets."""
        return isinstance(self.attack, TrialAttack)


def branches_of(attacks: Mapping[str, Attack], targets: int) -> list[Branch]:
    """The branches of a scenario, in the order of its attacks.

    Passive attacks of one seat share theirs: they look at rounds of one and the same training. So do attacks
    on the released model with the same references.

    Args:
        attacks: By name.
        targets: How many records each attack judges.
    """
    groups: dict[str, list[str]] = {}
    for name, attack in attacks.items():
        groups.setdefault(_shared(name, attack), []).append(name)
    return [_branch({name: attacks[name] for name in names}, targets) for names in groups.values()]


def seat_of(attack: Passive) -> str:
    """Which rounds a passive attack can look at: from which seat, and of which stream."""
    parts = ["passive", attack.seat, *["sum"] * attack.in_sum, *["isolating"] * attack.isolating]
    return "-".join([*parts, *([] if attack.attacker is None else [str(attack.attacker)])])


def _shared(name: str, attack: Attack) -> str:
    """The key that the attacks of a branch share; names of attacks have no slash or space."""
    if isinstance(attack, Passive):
        return f"/{seat_of(attack)}"
    return _references(attack) if isinstance(attack, Released) else name


def _references(attack: Released) -> str:
    return f"released {attack.model_dump_json(exclude={'methods', 'kind', 'seat'}, exclude_none=True)}"


def _branch(attacks: Mapping[str, Attack], targets: int) -> Branch:
    longest = max(attacks.values(), key=lambda attack: attack.rounds_taken(targets))
    rounds = longest.rounds_taken(targets)
    watched = {
        number for passive in attacks.values() if isinstance(passive, Passive) for number in passive.watched
    }
    if isinstance(longest, Passive):
        key = f"{seat_of(longest)}/{rounds}"
    elif isinstance(longest, Released):
        key = _references(longest)
    else:
        # A view of single updates is not part of it: runs that were stored before `sees` have their noise.
        unsaid = None if longest.in_sum else {"sees"}
        key = longest.model_dump_json(exclude_none=True, exclude=unsaid)
    return Branch(tuple(attacks), longest, rounds, tuple(sorted(watched)), key)
