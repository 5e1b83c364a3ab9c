"""The kinds of attacks, by the name that a scenario gives them.

A kind is a class in a file of `fedprivacy.attacks`, and its line here. The reader of scenarios, the planner,
the account of what an attack spends, the verdict, documents, pages and references take all else from that
class. It is imported when it is first used, so that this room needs none of that room, which is above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

from pydantic import PlainValidator, SerializeAsAny

from fedprivacy.scenario.attack.sections import Attack
from fedprivacy.scenario.kinds import Kind

REGISTRY: dict[str, str] = {
    "passive": "fedprivacy.attacks.passive:Passive",
    "active-gradient-ascent": "fedprivacy.attacks.gradient_ascent:GradientAscent",
    "released": "fedprivacy.attacks.released.attack:Released",
    "property": "fedprivacy.attacks.property_inference:Property",
    "attribute": "fedprivacy.attacks.attribute_inference:Attribute",
    "reconstruction": "fedprivacy.attacks.reconstruction.attack:Reconstruction",
    "poisoning": "fedprivacy.attacks.poisoning.attack:Poisoning",
}


class AttackKinds(Mapping[str, type[Attack]]):
    """The class of each kind in `REGISTRY`."""

    def __getitem__(self, name: str) -> type[Attack]:
        module, _, kind = REGISTRY[name].partition(":")
        loaded: type[Attack] = getattr(import_module(module), kind)
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY)

    def __len__(self) -> int:
        return len(REGISTRY)


def _of_kind(value: Any) -> Attack:
    """Reads the table of an attack by its kind."""
    if isinstance(value, Attack):
        return value
    name = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"kind must be one of {', '.join(REGISTRY)}")
    return ATTACK_KINDS[name].model_validate(value)


ATTACK_KINDS = AttackKinds()
AnyAttack = Annotated[SerializeAsAny[Attack], PlainValidator(_of_kind)]
ATTACK = Kind(ATTACK_KINDS, "kind", "attack")
