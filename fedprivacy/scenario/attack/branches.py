"""Branches of a trained run: one active attack, or all passive attacks on the same observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedprivacy.scenario.attack.sections import Attack


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
        return self.attack.active

    @property
    def silent(self) -> bool:
        """Whether the branch sends no requests to the run's clients."""
        return not self.rounds


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
        groups.setdefault(attack.shared_key or name, []).append(name)
    return [_branch({name: attacks[name] for name in names}, targets) for names in groups.values()]


def _branch(attacks: Mapping[str, Attack], targets: int) -> Branch:
    longest = max(attacks.values(), key=lambda attack: attack.rounds_taken(targets))
    rounds = longest.rounds_taken(targets)
    watched = {number for attack in attacks.values() for number in attack.watched}
    return Branch(tuple(attacks), longest, rounds, tuple(sorted(watched)), longest.branch_key(rounds))
