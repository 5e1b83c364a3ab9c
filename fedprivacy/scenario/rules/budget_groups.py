"""Rules for groups of clients with stricter budgets."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import (
    GROUPS_ARE_NOT_CORRELATED,
    GROUPS_ARE_NOT_ENCODED,
    GROUPS_ARE_OF_CLIENTS,
    GROUPS_DO_NOT_SHARE_NOISE,
    GROUPS_HAVE_A_FIXED_NORM,
    GROUPS_HAVE_GAUSSIAN_NOISE,
    GROUPS_NEED_COINS,
)
from fedprivacy.sampling.group_limits import OTHERS, least_weight
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.privacy import BUDGET_KEYS, BudgetGroup
from fedprivacy.scenario.rules.groups import NAMED
from fedprivacy.scenario.rules.plan import of_plan

_SET = ("epsilon", "noise_multiplier", "weight", "rate")


def _groups(v: Values) -> dict[str, BudgetGroup]:
    groups = v["privacy.groups"] or {}  # of a file as tables, which are valid by themselves
    return {name: BudgetGroup.model_validate(dict(group)) for name, group in groups.items()}


def _allowed(v: Values) -> tuple[str, ...]:
    """The keys that set a group's budget, under the scenario's trust model and budget."""
    by_epsilon, local = v.given("privacy.epsilon"), v["privacy.trust"] == "local"
    if local:
        return ("epsilon",) if by_epsilon else ("noise_multiplier",)
    return ("epsilon", "weight", "rate") if by_epsilon else ("weight", "rate")


def _listed(keys: tuple[str, ...]) -> str:
    return " or ".join(keys)


def budgets_fit(v: Values) -> Iterator[Finding]:
    """Yields a finding for each group whose budget is not set once, or is larger than that of the others."""
    if v["privacy.trust"] == "none":
        yield from _without_protection(v)
    if v["privacy.trust"] not in ("local", "central"):
        return
    allowed = _allowed(v)
    for name, group in _groups(v).items():
        at, given = ("privacy", "groups", name), [key for key in _SET if getattr(group, key) is not None]
        for key in given:
            if key not in allowed:
                yield Finding(
                    (*at, key),
                    _without_effect(v, key),
                    f"Set {_listed(allowed)}.",
                    literal(getattr(group, key)),
                )
        if not given:
            yield Finding(at, "has no budget of its own", f"Add {_listed(allowed)}.")
        elif len(given) > 1 and set(given) <= set(allowed):
            yield Finding(
                (*at, given[1]), f"given together with {given[0]}, but one sets the budget", "Remove one."
            )
        if group.through is not None and (v["privacy.trust"] == "local" or given != ["epsilon"]):
            yield Finding(
                (*at, "through"),
                "has no effect: it chooses how a group's epsilon is kept under central trust",
                "Remove it.",
                literal(group.through),
            )
        yield from _beyond_the_others(v, name, group)


def _without_protection(v: Values) -> Iterator[Finding]:
    for name, group in _groups(v).items():
        for key in BUDGET_KEYS:
            if getattr(group, key) is not None:
                what = 'has no effect: with trust "none" nobody adds noise, and a group is measured alone'
                remedy = 'Remove it, or set privacy.trust = "central" or "local".'
                yield Finding(("privacy", "groups", name, key), what, remedy, literal(getattr(group, key)))


def _without_effect(v: Values, key: str) -> str:
    if v["privacy.trust"] == "local":
        other = "epsilon" if key == "noise_multiplier" else "noise_multiplier"
        if key in ("weight", "rate"):
            return 'has no effect under trust "local": each message is charged in full, however it is used'
        return f"the section sets privacy.{other}, and a group sets its budget alike"
    if key == "noise_multiplier":
        return 'under trust "central" one noise of the server protects all groups'
    return "the section sets privacy.noise_multiplier, at which the epsilon of nobody is known here"


def _beyond_the_others(v: Values, name: str, group: BudgetGroup) -> Iterator[Finding]:
    at = ("privacy", "groups", name)
    local = v["privacy.trust"] == "local"
    epsilon, noise, rate = v["privacy.epsilon"], v["privacy.noise_multiplier"], v["sampling.rate"]
    if group.epsilon is not None and epsilon is not None and group.epsilon > epsilon:
        yield Finding(
            (*at, "epsilon"),
            f"above privacy.epsilon = {epsilon:g} of the clients in no group: a group may only be stricter",
            "Give the section the largest epsilon, and each stricter one a group.",
            literal(group.epsilon),
        )
    if local and group.noise_multiplier is not None and noise is not None and group.noise_multiplier < noise:
        yield Finding(
            (*at, "noise_multiplier"),
            f"below privacy.noise_multiplier = {noise:g} of the clients in no group: a group may only be "
            "stricter",
            "Give the section the least noise, and each stricter budget a group.",
            literal(group.noise_multiplier),
        )
    if v["sampling.name"] is None or local:
        return
    if v["sampling.name"] == "all" and (group.rate is not None or group.through == "rate"):
        key = "through" if group.rate is None else "rate"
        yield Finding(
            (*at, key),
            'sampling "all" draws nobody, so no group has a rate of its own',
            'Use sampling.name = "poisson", or a weight.',
            literal(getattr(group, key)),
        )
    if group.rate is not None and rate is not None and group.rate > rate:
        yield Finding(
            (*at, "rate"),
            f"above sampling.rate = {rate:g} of the clients in no group: a group may only be stricter",
            f"At most {rate:g}.",
            literal(group.rate),
        )
    least = least_weight(v.population or 1)
    if group.weight is not None and group.weight < least:
        yield Finding(
            (*at, "weight"),
            f"below {least:.3g}, where rounding in a sum of {v.population or 1:,} clients is no longer small",
            f"At least {least:.3g}, or use a rate.",
            literal(group.weight),
        )


def _only_the_file_counts(v: Values) -> bool:
    """Whether the number of all clients is in no setting."""
    return v["data.name"] in NAMED and v["data.clients"] is None


def members_are_apart(v: Values) -> Iterator[Finding]:
    """Yields a finding for each group that has no clients, or clients that it cannot have."""
    population, groups, known = v.population, _groups(v), dict[int, str]()
    everyone, first = v.dealt_clients, v["data.first_clients"]
    for name, group in groups.items():
        at = ("privacy", "groups", name)
        if name == OTHERS:
            yield Finding(at, "is the name of the clients in no group", "Choose another name.")
        if (group.share is None) == (group.clients is None):
            both = group.share is not None
            yield Finding(
                at,
                "has both a share and clients" if both else "has no clients",
                "Remove one." if both else "Add share = 0.2, or clients = [0, 1] with their ids.",
            )
        if group.clients is not None and first is not None and _only_the_file_counts(v):
            yield Finding(
                (*at, "clients"),
                "ids are among all clients, whose number is in the file alone, and data.first_clients draws "
                "who of these takes part",
                "Give the group a share, or let all clients take part.",
            )
        for client in group.clients or ():
            if everyone is not None and client >= everyone:
                what = f"there is no client {client}: ids are from 0 to {everyone - 1}"
                yield Finding((*at, "clients"), what, "Remove it.")
                break
            if client in known:
                twice = known[client] == name
                what = (
                    f"names client {client} twice"
                    if twice
                    else f"client {client} is in group {known[client]} too"
                )
                yield Finding((*at, "clients"), what, "Remove one." if twice else "Remove it from one group.")
                break
            known[client] = name
        if population is not None and group.share is not None and not round(group.share * population):
            yield Finding(
                (*at, "share"),
                f"is less than one of {population:,} clients",
                f"At least {1 / population:.3g}.",
                literal(group.share),
            )
    dealt = sum(round((group.share or 0.0) * (population or 0)) for group in groups.values())
    listed = len(known) if first is None else 0  # who of them takes part is drawn
    if population is not None and dealt + listed >= population:
        yield Finding(
            ("privacy", "groups"),
            f"take {dealt + listed:,} of {population:,} clients, and leave nobody to the budget of the "
            "section",
            "Lower a share, or give the section the largest of these budgets and remove its group.",
        )


BUDGET_GROUP_RULES: tuple[Entry[Values], ...] = (
    of_plan(GROUPS_DO_NOT_SHARE_NOISE),
    of_plan(GROUPS_ARE_OF_CLIENTS),
    of_plan(GROUPS_HAVE_GAUSSIAN_NOISE),
    of_plan(GROUPS_HAVE_A_FIXED_NORM),
    of_plan(GROUPS_ARE_NOT_CORRELATED),
    of_plan(GROUPS_ARE_NOT_ENCODED),
    of_plan(GROUPS_NEED_COINS),
    Rule(
        "server.denoise",
        lambda v: (
            bool(_groups(v)) and v["privacy.trust"] == "local" and v["server.denoise"] not in (None, "none")
        ),
        "the noise of a sum depends on the groups whose clients are in it, and its size has to be known",
        'Set denoise = "none", or remove privacy.groups.',
    ),
    Check(members_are_apart),
    Check(budgets_fit),
)
