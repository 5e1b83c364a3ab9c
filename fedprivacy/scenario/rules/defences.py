"""Rules for training that defends: adversarial regularisation, early stopping."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.on_nodes import ON_NODES

_OF_NETWORK = {"adversarial_steps": 1, "adversarial_first": 0}


def _needs_gain(key: str, usual: int) -> Rule[Values]:
    return Rule(
        key,
        lambda v: not v.given("training.adversarial") and v[key] not in (None, usual),
        "has no effect without training.adversarial",
        "Remove it, or set adversarial = 3.0, the weight of the inference network.",
    )


def _needs_references(key: str, why: str) -> Rule[Values]:
    def broken(v: Values) -> bool:
        nothing_public = v.private is not None and v.private == v.owners
        return v[key] is not None and (v["data.name"] == ON_NODES or nothing_public)

    return Rule(
        key,
        broken,
        f"there is no public part of the data {why}",
        lambda v: (
            "Remove it: nodes hold their own records alone."
            if v["data.name"] == ON_NODES
            else "Set data.public_fraction = 0.3, or remove it."
        ),
    )


def _measurements_come_too_late(v: Values) -> bool:
    patience, every, rounds = v["server.patience"], v["evaluation.every"], v["server.rounds"]
    return None not in (patience, every, rounds) and patience * every >= rounds


def _too_patient(v: Values) -> tuple[str, str]:
    return too_patient(v["evaluation.every"], v["server.rounds"], "server.rounds")


def too_patient(every: int, rounds: int, key: str) -> tuple[str, str]:
    """The problem and its remedy where training is over before early stopping could end it.

    Args:
        every: Rounds from one measurement to the next.
        rounds: Of training.
        key: Which sets them.
    """
    least = max(0, (rounds - 1) // every)
    remedy = f"Set patience to at most {least}" if least else "Remove it"
    return (
        f"has no effect: with evaluation.every = {every} there are not so many measurements before the last "
        f"of {rounds} rounds",
        f"{remedy}, or make {key} larger.",
    )


DEFENCE_RULES: tuple[Entry[Values], ...] = (
    *(_needs_gain(f"training.{key}", usual) for key, usual in _OF_NETWORK.items()),
    # The network has seen every record, so that no bound on one record's gradient bounds its contribution.
    Rule(
        "training.adversarial",
        lambda v: v["training.adversarial"] is not None and v["privacy.unit"] == "example",
        'works with privacy.unit = "client" alone: through the inference network each record is in the '
        "gradients of all others",
        'Remove it, or set privacy.unit = "client".',
    ),
    _needs_references("training.adversarial", "whose records the inference network could compare with"),
    _needs_references("server.patience", "whose loss could say when training ends"),
    Rule(
        "server.patience",
        _measurements_come_too_late,
        lambda v: _too_patient(v)[0],
        lambda v: _too_patient(v)[1],
    ),
)
