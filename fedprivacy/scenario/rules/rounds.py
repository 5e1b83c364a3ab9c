"""Rules for the clients of a round, their hosts, and the messages that an observer sees."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, First, Rule, exceeds
from fedprivacy.mechanisms.combinations import (
    COHORT_WITHIN_POPULATION,
    COHORTS_COME_APART,
    LOCAL_ANSWERS_ARE_SEEN,
)
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan

MIN_RATE = 1e-12

ROUND_RULES: tuple[Entry[Values], ...] = (
    First(of_plan(COHORT_WITHIN_POPULATION), of_plan(COHORTS_COME_APART)),
    Rule(
        "federation.hosts",
        lambda v: exceeds(v["federation.hosts"], v.population),
        lambda v: f"more hosts than the {v.population} clients",
        lambda v: f"At most {v.population}.",
    ),
    Rule(
        "privacy.adjacency",
        {
            "sampling.name": "fixed",
            "privacy.trust": "central",
            "privacy.unit": "client",
            "privacy.adjacency": "add-remove",
        },
        'no accountant supports it together with trust "central" and sampling "fixed"',
        'Use adjacency = "replace-one" or "zero-out", or sampling name = "poisson".',
    ),
    Rule(
        "sampling.rate",
        lambda v: exceeds(MIN_RATE, v["sampling.rate"]),
        f"below {MIN_RATE:g}, which no accountant can reckon with",
        "The probability that a client joins a round, such as 0.1.",
    ),
    of_plan(LOCAL_ANSWERS_ARE_SEEN),
    Rule(
        "evaluation.on",
        lambda v: v["evaluation.on"] == "public" and v.private is not None and v.private == v.owners,
        "there is no public part of the data to evaluate on",
        'Set data.public_fraction = 0.1, or on = "test".',
    ),
    Rule(
        "privacy.noise_draw",
        {"privacy.trust": "local", "privacy.noise_draw": "sum", "federation.observe": "each"},
        'one draw of noise for a sum cannot be seen in single messages, and federation.observe = "each" '
        "shows these: each needs a draw of its own",
        'Use noise_draw = "client", or observe = "sum".',
    ),
)
