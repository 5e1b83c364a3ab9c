"""What must hold where training is a defence: adversarial regularisation, early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.on_nodes import ON_NODES
from fedprivacy.scenario.values import Values

_OF_NETWORK = {"adversarial_steps": 1, "adversarial_first": 0}


def inference_network_has_a_gain(v: Values) -> Iterator[Finding]:
    if v.given("training.adversarial"):
        return
    for key, usual in _OF_NETWORK.items():
        if v[f"training.{key}"] not in (None, usual):
            yield Finding(
                ("training", key),
                "has no effect without training.adversarial",
                "Remove it, or set adversarial = 3.0, the weight of the inference network.",
                literal(v[f"training.{key}"]),
            )


def adversarial_is_of_clients(v: Values) -> Iterator[Finding]:
    gain = v["training.adversarial"]
    if gain is not None and v["privacy.unit"] == "example":
        # The network has seen every record, so that no bound on one record's gradient bounds what it adds.
        yield Finding(
            ("training", "adversarial"),
            'works with privacy.unit = "client" alone: through the inference network each record is in the '
            "gradients of all others",
            'Remove it, or set privacy.unit = "client".',
            literal(gain),
        )


_READS = {
    "training.adversarial": "whose records the inference network could compare with",
    "server.patience": "whose loss could say when training ends",
}


def defences_have_references(v: Values) -> Iterator[Finding]:
    private, nodes = v.private, v["data.name"] == ON_NODES
    if not nodes and (private is None or private != v.owners):
        return
    for key, why in _READS.items():
        if v[key] is not None:
            yield Finding(
                tuple(key.split(".")),
                f"there is no public part of the data {why}",
                "Remove it: nodes hold their own records alone."
                if nodes
                else "Set data.public_fraction = 0.3.",
                literal(v[key]),
            )


def stopping_can_act(v: Values) -> Iterator[Finding]:
    patience, every, rounds = v["server.patience"], v["evaluation.every"], v["server.rounds"]
    if None not in (patience, every, rounds) and patience * every >= rounds:
        yield Finding(("server", "patience"), *too_patient(every, rounds, "server.rounds"), literal(patience))


def too_patient(every: int, rounds: int, key: str) -> tuple[str, str]:
    """What is wrong, and what to do, where training is over before early stopping could end it.

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


DEFENCE_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    inference_network_has_a_gain,
    adversarial_is_of_clients,
    defences_have_references,
    stopping_can_act,
)
