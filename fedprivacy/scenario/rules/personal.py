"""Rules for models of each client's own."""

from __future__ import annotations

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import (
    PERSONAL_MODELS_ARE_NOT_SUMMED,
    PERSONAL_PARTS_ARE_OF_CLIENTS,
    PERSONAL_PARTS_HAVE_ONE_BUDGET,
    PERSONAL_PARTS_NEED_COINS,
)
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan
from fedprivacy.scenario.training import MODE_OF

NO_PERSONAL_MODELS = (
    "clients have personal models in simulations alone: a node hands none to its clients, and loses what "
    "they keep with its SuperNode. Remove training.personal (or training.shared), or run on another engine."
)


def _has_no_effect(key: str, mode: str) -> Rule[Values]:
    return Rule(
        key,
        lambda v: v[key] is not None and v["training.personal"] != mode,
        f"has no effect without personal = {literal(mode)}",
        f"Remove it, or set personal = {literal(mode)}.",
    )


PERSONAL_RULES: tuple[Entry[Values], ...] = (
    Rule(
        "training.personal",
        lambda v: v["training.personal"] == "partial" and not v.given("training.shared"),
        "needs the parameters that are sent; all others stay at each client",
        'Add shared = ["1.*"], patterns of parameter names.',
    ),
    *(_has_no_effect(f"training.{key}", mode) for key, mode in MODE_OF.items()),
    Rule(
        "training.personal",
        lambda v: v["training.personal"] is not None and v.task != CLASSIFICATION,
        "personal models are measured by the classes that they name",
        "Remove it.",
    ),
    Rule(
        "training.personal",
        lambda v: v["training.personal"] is not None and v["training.adversarial"] is not None,
        "an inference network (training.adversarial) is trained beside the model that all clients share",
        "Remove one of them.",
    ),
    Rule(
        "training.proximal",
        lambda v: v["training.personal"] == "partial" and bool(v["training.proximal"]),
        "pulls to the model that a client was sent, which lacks its personal part",
        "Remove it.",
    ),
    of_plan(PERSONAL_PARTS_ARE_OF_CLIENTS),
    of_plan(PERSONAL_PARTS_NEED_COINS),
    of_plan(PERSONAL_PARTS_HAVE_ONE_BUDGET),
    of_plan(PERSONAL_MODELS_ARE_NOT_SUMMED),
)
