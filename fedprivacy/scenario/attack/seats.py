"""Rules that kinds of attacks share: the actions possible from a seat."""

from __future__ import annotations

from fedprivacy.io.rule_table import Rule
from fedprivacy.scenario.attack.derived_values import AttackValues


def not_from(seat: str, key: str, problem: str, remedy: str) -> Rule[AttackValues]:
    """Refuses a key that an attack from this seat cannot have."""
    return Rule(
        key,
        lambda v: v["seat"] == seat and v[key] is not None and v[key] is not False,
        problem,
        remedy,
        shown=False,
    )


# Of a kind that may see the sum of a round alone.
SUM_RULES: tuple[Rule[AttackValues], ...] = (
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
)
# Of a kind with a participant's seat.
OTHER_CLIENT: Rule[AttackValues] = Rule(
    "seat",
    lambda v: v["seat"] == "participant" and v.around.run.population < 2,
    "there is no other client than the victim",
    "Set data.clients to 2 at least.",
    shown=False,
)
# Of a kind that observes global models from there.
PLAIN_STEPS: Rule[AttackValues] = Rule(
    "seat",
    lambda v: v["seat"] == "participant" and v.around["server.optimizer"] != "sgd",
    "an attacker cannot take its own share out of the models that this optimizer makes",
    'Set server.optimizer = "sgd".',
    shown=False,
)
# Of a kind that infers something of the victim from the noisy sums of single rounds.
SINGLE_SUM_RULES: tuple[Rule[AttackValues], ...] = (
    Rule(
        "seat",
        lambda v: v["seat"] == "participant" and v.around["privacy.trust"] == "local",
        "the server sees each client's noisy update, from which all that a participant sees is computed",
        'Set seat = "server".',
    ),
    Rule(
        "seat",
        lambda v: v["seat"] == "participant" and v.around["privacy.bands"] is not None,
        "the noise of sums is correlated over rounds, which this attack does not model",
        'Set seat = "server", or remove privacy.bands.',
    ),
)
