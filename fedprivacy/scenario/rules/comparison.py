"""Rules for comparisons: options of a scenario, and mechanisms of messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, First, Rule
from fedprivacy.scenario.sections import NAME, TRUSTS, Compare


@dataclass(frozen=True)
class CompareValues:
    """A valid `[compare]`, beside the keys of `[privacy]`, which may be wrong by themselves."""

    compare: Compare
    privacy: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        section, _, name = key.partition(".")
        return self.privacy.get(name) if section == "privacy" else getattr(self.compare, name, None)

    @property
    def trust(self) -> Any:
        """The scenario's own trust model."""
        return self["privacy.trust"]

    @property
    def messages_are_compared(self) -> bool:
        """Whether a local cell whose unit is a client is among those compared."""
        units = self.compare.units or (self.privacy.get("unit", "client"),)
        return "local" in self.compare.trusts and "client" in units


def _names_and_keys(v: CompareValues) -> Iterator[Finding]:
    """Refuses an option without a name for its folder, or that changes nothing."""
    for name, keys in v.compare.option.items():
        path = ("compare", "option", name)
        if not re.fullmatch(NAME, name):
            yield Finding(path, "must be letters, digits and hyphens, at most 64")
        elif not any(keys.values()):
            yield Finding(path, "has no key, and is what it is compared with", "Add one, or remove it.")


def _alone(key: str) -> Rule[CompareValues]:
    return Rule(
        "compare.option",
        lambda v: bool(v.compare.option) and bool(v[f"compare.{key}"]),
        f"options are compared with the scenario's own {key.removesuffix('s')}, not with several",
        f"Remove compare.{key}, or the options.",
        shown=False,
    )


def _limit(broken: Callable[[CompareValues], bool], what: str, remedy: str) -> Rule[CompareValues]:
    return Rule("compare.limits", broken, what, remedy, shown=False)


MECHANISMS_ARE_OF_MESSAGES = Rule[CompareValues](
    "compare.mechanisms",
    lambda v: "local" in v.compare.trusts and bool(v["compare.mechanisms"]) and not v.messages_are_compared,
    'has no effect without unit "client": they randomise the messages of clients',
    'Remove it, or add "client" to compare.units.',
    shown=False,
)
LIMIT_RULES: tuple[Rule[CompareValues], ...] = (
    _limit(
        lambda v: bool(v["privacy.groups"]),
        "an ablation is measured against one budget for all clients, and privacy.groups sets several",
        "Remove it, or the groups.",
    ),
    _limit(
        lambda v: v["privacy.epsilon"] is None,
        "limits are measured at the scenario's own trust model and epsilon, and it has none",
        "Set privacy.trust and privacy.epsilon, or remove it.",
    ),
    _limit(
        lambda v: bool(v.compare.mechanisms),
        "limits are measured with the scenario's own mechanism, not with several",
        "Remove compare.mechanisms, or the limits.",
    ),
    _limit(
        lambda v: v.trust not in v.compare.trusts or v["privacy.epsilon"] not in v.compare.epsilons,
        "the planned run, with the scenario's own trust model and epsilon, is not among those compared",
        "Add them to compare.trusts and compare.epsilons.",
    ),
    _limit(
        lambda v: bool(v.compare.units) and v["privacy.unit"] not in v.compare.units,
        "the planned run, with the scenario's own unit, is not among those compared",
        "Add privacy.unit to compare.units.",
    ),
    _limit(
        lambda v: len(v.compare.seeds) < 2,
        "a difference is measured only beside its spread over seeds, and there is one seed",
        "Give two or more in compare.seeds; five are usual.",
    ),
)
OPTION_RULES: tuple[Entry[CompareValues], ...] = (
    Check(_names_and_keys),
    First(
        Rule(
            "compare.option",
            lambda v: bool(v.compare.option) and (v.trust not in TRUSTS or v.trust == "none"),
            "an option is compared at the scenario's own trust model and epsilons, and it has none",
            'Set privacy.trust = "central" or "local", or remove it.',
            shown=False,
        ),
        Rule(
            "compare.option",
            lambda v: bool(v.compare.option) and v.trust not in v.compare.trusts,
            lambda v: (
                f"there is nothing to compare with: {v.trust}, the scenario's own, is not in compare.trusts"
            ),
            lambda v: f'Add "{v.trust}" to compare.trusts.',
            shown=False,
        ),
    ),
    _alone("units"),
    _alone("mechanisms"),
)
