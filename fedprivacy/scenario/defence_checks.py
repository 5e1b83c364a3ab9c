"""What must hold where training is a defence: adversarial regularisation, early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fedprivacy.scenario.findings import Finding, literal
from fedprivacy.scenario.on_nodes import ON_NODES

if TYPE_CHECKING:
    from fedprivacy.scenario.checks import Values

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


def adversarial_has_references(v: Values) -> Iterator[Finding]:
    gain, private = v["training.adversarial"], v.private
    none = v["data.name"] == ON_NODES or (private is not None and private == v.owners)
    if gain is not None and none:
        yield Finding(
            ("training", "adversarial"),
            "there is no public part of the data whose records the inference network could compare with",
            "Remove it: nodes hold their own records alone."
            if v["data.name"] == ON_NODES
            else "Set data.public_fraction = 0.3.",
            literal(gain),
        )


def stopping_looks_at_public_records(v: Values) -> Iterator[Finding]:
    if v["server.patience"] is not None and v["evaluation.on"] == "test":
        yield Finding(
            ("server", "patience"),
            "training would end where the test records say, which then no longer measure it",
            'Set evaluation.on = "public".',
            literal(v["server.patience"]),
        )


DEFENCE_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    inference_network_has_a_gain,
    adversarial_is_of_clients,
    adversarial_has_references,
    stopping_looks_at_public_records,
)
