"""Rules between the run, the game and the attacks of an attack scenario, each part valid by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, First, Rule, beneath, broken_rules, exceeds
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import APART
from fedprivacy.scenario.attack.derived_values import AttackValues, GameValues
from fedprivacy.scenario.attack.sections import Attack, GameSettings
from fedprivacy.scenario.on_nodes import ON_NODES
from fedprivacy.scenario.rules.defences import too_patient
from fedprivacy.scenario.scenario import Scenario


def between(run: Scenario, game: GameSettings, attacks: Mapping[str, Attack]) -> Iterator[Finding]:
    """Yields all mistakes between the parts, each valid by itself."""
    task = getattr(run.data, "task", CLASSIFICATION)
    if task != CLASSIFICATION:
        what = f"the attacks score the probabilities of classes, and data.task = {literal(task)} has none"
        remedy = 'Attack a model of classes: set data.task = "classification".'
        if run.data.name == "text":  # which has no other task
            remedy = 'Attack a model of classes: take another data set, such as data.name = "digits".'
        yield Finding(("data", "task"), what, remedy)
        return
    yield from broken_rules(GAME_RULES, GameValues(run, game, attacks))


def _too_few_records(key: str) -> Rule[GameValues]:
    """Refuses more targets than fair coins can be expected to give; the draw itself counts them."""

    def broken(v: GameValues) -> bool:
        drawn = v.by_user or (v.has_targets and v.public > 0)
        return drawn and v.pool is not None and 2 * v[f"game.{key}"] > v.pool

    def problem(v: GameValues) -> str:
        pool = f"the victim's {v.of_victim} records and the {v.public} public ones are {v.pool}"
        if v.by_user:
            pool = f"no user has more than {v.pool} records"
        return f"{pool}, and a fair coin for each makes about {(v.pool or 0) // 2} {key} of them"

    return Rule(
        f"game.{key}",
        broken,
        problem,
        lambda v: (
            "Ask for fewer."
            if v.by_user
            else "Ask for fewer, or deal more records to a client or to the public part."
        ),
    )


def _without_public(v: GameValues) -> str:
    """The remedy of a game of users with public ones: all that reads their records goes with them."""
    readers = {
        "evaluation.on": v["evaluation.on"] == "public",
        "server.patience": v["server.patience"] is not None,
        "training.adversarial": v["training.adversarial"] is not None,
    }
    names = [key for key, reads in readers.items() if reads]
    return f"Remove it, and what reads public records: {', '.join(names)}." if names else "Remove it."


def _answers_last(v: GameValues) -> Iterator[Finding]:
    """Refuses an attack that begins, or continues, after clients have given their last answer.

    Their noise is made for so many answers, and those to one attack are spent for the next.
    """
    if not v.limits_answers:
        return
    began, most = v.answers_before, v.most_answers
    for branch in v.branches:
        if began >= most:
            yield Finding(
                ("attacks", branch.names[0]),
                f"clients answer {most} times, which is what their noise is made for, and the warm-up "
                "and the attacks before this one take all of them",
                "Set server.rounds higher, with fewer targets, or play this attack in a run of its own.",
            )
        for name in branch.names:
            attack = v.attacks[name]
            if attack.needs_every_round and began < most < began + branch.rounds:
                yield Finding(
                    ("attacks", name, "rounds"),
                    f"clients answer {most} times, and {most - began} answers are left to this attack",
                    f"At most {most - began}, or set server.rounds higher.",
                    str(branch.rounds),
                )
            if attack.watched and began < most <= began + attack.watched[0]:
                yield Finding(
                    ("attacks", name),
                    f"clients answer {most} times, and all of these answers are given before the first "
                    "round that is observed",
                    "Set skip lower, or server.rounds higher.",
                )
        began += branch.rounds


def _global_models_last(v: GameValues) -> Iterator[Finding]:
    """Refuses attacks that take more rounds than the noise of the global models is made for."""
    training = [branch for branch in v.branches if not branch.attack.isolating]
    taken = sum(branch.rounds for branch in training)
    if training and v["privacy.trust"] == "central" and v.began + taken > v.run.server.rounds:
        yield Finding(
            ("attacks", training[-1].names[0]),
            f"with this one the attacks take {taken} rounds after a warm-up of {v.began}, and the noise "
            f"of the global models is made for server.rounds = {v.run.server.rounds}",
            f"Set game.warm_up, and server.rounds to at least {taken} more.",
        )


def _of_attacks(v: GameValues) -> Iterator[Finding]:
    for name, attack in v.attacks.items():
        yield from beneath(("attacks", name), broken_rules(attack.rules, AttackValues(attack, v)))


def _begins_too_late(v: GameValues) -> bool:
    return v.limits_answers and bool(v.branches) and v.answers_before >= v.most_answers


def _batches_move(v: GameValues) -> bool:
    """Whether a record in or out moves others: no adjacency covers the game's coin then."""
    whole = v["training.batches"] == "shuffled" and v["training.batch_size"] == "all"
    return v["privacy.unit"] == "example" and v["training.batches"] != "poisson" and not whole


def _stops_too_late(v: GameValues) -> bool:
    patience = v["server.patience"]
    return patience is not None and patience * v.run.evaluation.every >= v.began


def _too_patient(v: GameValues) -> tuple[str, str]:
    return too_patient(v.run.evaluation.every, v.began, "game.warm_up")


def _answers_differ(key: str, known: str) -> Rule[GameValues]:
    """Refuses attacks on messages that see other answers than they know; the released model has none."""
    return Rule(
        f"privacy.{key}",
        lambda v: v[f"privacy.{key}"] is not None and bool(v.branches),
        f"attacks on messages know answers {known}",
        'Remove it, or attack the released model alone (kind = "released").',
    )


GAME_RULES: tuple[Entry[GameValues], ...] = (
    First(
        Rule(
            "data.name",
            {"data.name": ON_NODES},
            "members and non-members are drawn from records that are here, and these are on nodes",
            'Take another data set, such as "npz".',
        ),
        Check(lambda v: broken_rules(RULES_OF_RECORDS_HERE, v)),
    ),
)
RULES_OF_RECORDS_HERE: tuple[Entry[GameValues], ...] = (
    Rule(
        "data.first_clients",
        lambda v: v["data.first_clients"] is not None,
        "targets are drawn from the records of all clients",
        "Remove it.",
    ),
    Rule(
        "data.partition",
        lambda v: v.has_pools and v["data.partition"] not in ("iid", "fixed-records", "by-user"),
        "members and non-members must come from the same pool, so records must be dealt at random",
        lambda v: (
            'Set partition = "iid" or "fixed-records"'
            + ("." if v.has_public_pools else ', or "by-user" where user_train and user_test name users.')
        ),
    ),
    Rule(
        "data.partition",
        lambda v: v.has_public_pools and v["data.partition"] == "by-user",
        "attacks in trials draw the victim's records and public ones from the same pool, so records must be "
        "dealt at random",
        'Set partition = "iid" or "fixed-records".',
    ),
    Rule(
        "data.public_fraction",
        lambda v: v.by_user and bool(v["data.public_fraction"]),
        "where clients are users, the non-members are records of the victim, and public users have no part "
        "in the game",
        _without_public,
    ),
    Rule(
        "data.public_fraction",
        lambda v: v.has_pools and v["data.partition"] != "by-user" and not v["data.public_fraction"],
        "there are no records to be non-members",
        "Non-members are drawn from the public part, which no client owns: 0.2, say.",
    ),
    Rule(
        "data.scaling",
        lambda v: v.has_pools and v["data.scaling"] == "public",
        "the public part, of which the victim's members come, would be in every client's scaling",
        'Set scaling to another way, such as "bounds".',
    ),
    Rule(
        "game.victim",
        lambda v: v["game.victim"] >= v.run.population,
        lambda v: f"there is no such client: clients are 0 to {v.run.population - 1}",
    ),
    _too_few_records("members"),
    _too_few_records("nonmembers"),
    First(
        Rule(
            "game.warm_up",
            lambda v: exceeds(v.began, v.run.server.rounds),
            lambda v: f"must be at most server.rounds = {v.run.server.rounds}",
        ),
        Rule(
            "game.warm_up",
            _begins_too_late,
            lambda v: (
                f"clients answer {v.most_answers} times, which is what their noise is made for, and the "
                f"attack begins after {v.began} rounds: every one of them would refuse"
            ),
            lambda v: f"At most {v.most_answers - 1}; an attack gets the answers that the warm-up leaves.",
        ),
        Check(_answers_last),
        Check(_global_models_last),
    ),
    Rule(
        "evaluation.on",
        lambda v: v["server.patience"] is not None and v["evaluation.on"] != "public" and not v.by_user,
        "in a game early stopping reads the records that this names, and the accuracy is of test records "
        "whatever it names",
        'Set on = "public".',
    ),
    Rule(
        "server.patience",
        _stops_too_late,
        lambda v: _too_patient(v)[0],
        lambda v: _too_patient(v)[1],
    ),
    First(
        Rule(
            "sampling.name",
            lambda v: v.has_pools and v["sampling.name"] != "all" and not v.sums_alone,
            "an attacked client must be in every round",
            'Set sampling.name = "all".',
            shown=False,
        ),
        Rule(
            "sampling.name",
            lambda v: v.sums_alone and v["sampling.name"] != "all" and v["privacy.trust"] == "central",
            "an attack on sums takes only rounds with the victim, and the epsilons of central trust rest on "
            "cohorts that nobody chooses",
            'Set sampling.name = "all", or another privacy.trust.',
        ),
        Rule(
            "sampling.name",
            lambda v: v.has_pools and v["sampling.name"] in APART,
            "an attack takes one round with the victim after the other, and these lie apart",
            'Set sampling.name = "all" or "fixed".',
        ),
    ),
    Rule(
        "data.test_records",
        lambda v: v.any_sum and v.test_records is not None and v.test_records < 2 * v.of_victim,
        lambda v: (
            f"an attack on sums trains clients of its own on test records, {v.of_victim} each as a client "
            f"has, and there are {v.test_records}"
        ),
        "Take data with more test records, or deal records to more clients.",
        shown=False,
    ),
    Rule(
        "federation.chunk_size",
        lambda v: v["federation.chunk_size"] != 1 and v.addresses_one,
        "messages hold sums over several clients, and no single update could be seen or sent",
        "Set chunk_size = 1.",
    ),
    Rule(
        "training.device",
        lambda v: v["training.device"] != "cpu" and not all(attack.silent for attack in v.attacks.values()),
        "an attack runs on the CPU",
        'Set device = "cpu".',
    ),
    Rule(
        "privacy.noise_draw",
        lambda v: v["privacy.noise_draw"] == "sum" and not v.sums_alone,
        "the noise is drawn for sums, and no single update could be seen or sent",
        'Set noise_draw = "client".',
    ),
    _answers_differ(
        "clipping_quantile", "that were clipped to one norm, and this one changes from round to round"
    ),
    _answers_differ("clipping_layers", "that were clipped as a whole, and these are clipped by layer too"),
    Rule(
        "server.schedule",
        lambda v: v["server.schedule"] not in (None, "constant") and bool(v.branches),
        "attacks on messages take one learning rate of the server for all rounds",
        'Set schedule = "constant", or attack the released model alone (kind = "released").',
    ),
    Rule(
        "server.averaging",
        lambda v: v["server.averaging"] == "tail" and v.began < v.run.server.rounds,
        lambda v: (
            f"covers the last of {v.run.server.rounds} planned rounds, and training ends after {v.began} of "
            "them, where the game begins"
        ),
        'Use averaging = "exponential", or remove game.warm_up, so that the game begins after all rounds.',
    ),
    _answers_differ("encoding", "that were clipped, and these are encoded too"),
    Rule(
        "training.batches",
        lambda v: v.has_targets and _batches_move(v),
        "a record in or out, which is the coin of the game, changes here which others share a batch: "
        'unit = "example" does not cover that',
        'Set batches = "poisson", or batch_size = "all" with shuffled ones.',
    ),
    Check(_of_attacks),
)
_PUBLISHED_BESIDE_ARMS = Rule[GameValues](
    "game.published",
    lambda v: v["game.published"] is not None,
    "has no effect beside [arms.NAME]",
    "Remove it.",
)
_PUBLISHED_WITHOUT_PRIVACY = Rule[GameValues](
    "game.published",
    lambda v: v["game.published"] is not None and v["privacy.trust"] != "none" and not v["game.unprotected"],
    "the published models were trained without privacy, and no run here is",
    "Set game.unprotected = true, or remove it.",
)
_PUBLISHED_ATTACKS = Rule[GameValues](
    "game.published",
    lambda v: (
        v["game.published"] is not None
        and not any(each.is_published and not each.in_sum for each in v.attacks.values())
    ),
    "no attack here is one of the published, which are passive or ascend, and see updates or models",
    'Add [attacks.NAME] with kind = "passive", say, or remove it.',
)


def _not_beside_arms(key: str) -> Rule[GameValues]:
    return Rule(
        f"game.{key}",
        lambda v: bool(v[f"game.{key}"]),
        "has no effect beside [arms.NAME]",
        'Remove it, and add an arm with privacy.trust = "none".',
        shown=False,
    )


def _needs_privacy(key: str) -> Rule[GameValues]:
    return Rule(
        f"game.{key}",
        lambda v: bool(v[f"game.{key}"]) and v["privacy.trust"] == "none",
        'has no effect with privacy.trust = "none"',
        'Remove it, or set privacy.trust = "local" or "central".',
        shown=False,
    )


# Of a game with arms, and of one whose runs the game itself names.
ARMS_RULES: tuple[Entry[GameValues], ...] = (
    _not_beside_arms("clipped"),
    _not_beside_arms("unprotected"),
    _PUBLISHED_BESIDE_ARMS,
)
RULES_OF_VARIANTS = First(
    *map(_needs_privacy, ("epsilons", "clipped", "unprotected")),
    _PUBLISHED_WITHOUT_PRIVACY,
    _PUBLISHED_ATTACKS,
)
