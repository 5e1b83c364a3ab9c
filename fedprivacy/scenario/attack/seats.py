"""Rules of one attack: the actions possible from its seat."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, First, Rule, exceeds
from fedprivacy.scenario.attack.derived_values import AttackValues


def _not_from(seat: str, key: str, problem: str, remedy: str) -> Rule[AttackValues]:
    """Refuses a key that an attack from this seat cannot have."""
    return Rule(
        key,
        lambda v: v["seat"] == seat and v[key] is not None and v[key] is not False,
        problem,
        remedy,
        shown=False,
    )


ATTACK_RULES: tuple[Entry[AttackValues], ...] = (
    Rule(
        "kind",
        lambda v: v["trials"] is not None and v.around["privacy.trust"] == "distributed",
        "is not made for noise in shares: its trials repeat single updates",
        'Set privacy.trust = "central", "local" or "none".',
    ),
    Rule(
        "kind",
        lambda v: (
            not (v["kind"] == "released" or v["in_sum"] or v["trials"] is not None)
            and v.around["privacy.trust"] == "distributed"
        ),
        'reads or sends single updates, and under trust "distributed" a secure sum shows nobody one',
        'Set sees = "sum" from the server\'s seat, use kind = "released", which attacks the final model, or '
        'privacy.trust = "central" or "local".',
    ),
    Rule(
        "sees",
        lambda v: v["sees"] == "sum" and v["seat"] != "server",
        "a participant sees global models, and no sum",
        'Remove it, or set seat = "server".',
    ),
    Rule(
        "sees",
        lambda v: v["sees"] == "sum" and v.around["server.aggregation"] not in (None, "mean"),
        lambda v: f'with server.aggregation = "{v.around["server.aggregation"]}" no sum is made',
        'Set server.aggregation = "mean", or sees = "updates".',
    ),
    Rule(
        "isolating",
        lambda v: v["sees"] == "sum" and bool(v["isolating"]),
        "the sum of a victim alone is its update",
        'Remove it, or set sees = "updates".',
    ),
    _not_from("server", "attacker", 'has no effect with seat = "server"', "Remove it."),
    _not_from(
        "participant", "isolating", "only the server can isolate", 'Remove it, or set seat = "server".'
    ),
    Rule(
        "attacker",
        lambda v: v["seat"] == "participant" and v.is_victim_or_nobody,
        "must be another client than the victim",
        "Clients count from 0.",
        shown=False,
    ),
    Rule(
        "seat",
        lambda v: v["seat"] == "participant" and v.around.run.population < 2,
        "there is no other client than the victim",
        "Set data.clients to 2 at least.",
        shown=False,
    ),
    Rule(
        "seat",
        lambda v: (
            v["seat"] == "participant" and v["kind"] != "poisoning" and v.around["server.optimizer"] != "sgd"
        ),
        "an attacker cannot take its own share out of the models that this optimizer makes",
        'Set server.optimizer = "sgd".',
        shown=False,
    ),
    Rule(
        "targets_per_round",
        lambda v: exceeds(v["targets_per_round"], v.around.targets),
        lambda v: f"there are {v.around.targets} targets in all",
        lambda v: f"At most {v.around.targets}.",
        shown=False,
    ),
    _not_from(
        "participant",
        "trap_units",
        "only the server sends a model as it is: others are averaged",
        'Remove it, or set seat = "server".',
    ),
    Rule(
        "trap_units",
        lambda v: v["trap_units"] is not None and v["raw"],
        "has no effect with raw = true",
        "Remove one of them.",
    ),
    Rule(
        "trap_units",
        lambda v: v["trap_units"] is not None and v["trap_units"] % 2 == 1,
        "come in pairs",
        "Set an even number, such as 4.",
    ),
    Rule(
        "steepness",
        lambda v: v["steepness"] is not None and v["trap_units"] is None,
        "has no effect without trap_units",
        "Remove it, or set trap_units = 4.",
    ),
    First(
        Rule(
            "trap_units",
            lambda v: v["trap_units"] is not None and v.last_hidden == 0,
            lambda v: f'needs a hidden layer, and model.name = "{v.around["model.name"]}" has none here',
            lambda v: (
                'Remove it, or set model.name = "mlp" and model.activation = "tanh".'
                if v.around["model.name"] == "logistic"
                else 'Remove it, or set model.hidden = [128] and model.activation = "tanh".'
            ),
        ),
        Rule(
            "trap_units",
            lambda v: v["trap_units"] is not None and v.around["model.activation"] == "relu",
            "a ReLU is not saturated behind a target, so it would raise the loss on other records",
            'Set model.activation = "tanh", or remove it.',
        ),
        Rule(
            "trap_units",
            lambda v: exceeds(v.planted, v.last_hidden),
            lambda v: (
                f"{v['targets_per_round']} targets a round need {v.planted} units, and the last hidden layer "
                f"has {v.last_hidden}"
            ),
            "Set targets_per_round or trap_units lower, or a larger model.hidden.",
        ),
    ),
    _not_from("server", "boost", 'has no effect with seat = "server"', "Remove it."),
    Rule(
        "everybody",
        lambda v: bool(v["everybody"]) and (v["seat"] == "participant" or v["isolating"]),
        "only a server that does not isolate the victim sends to all",
        "Remove it.",
        shown=False,
    ),
)
