"""What must hold between the run, the game and the attacks of an attack scenario."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.attack.branches import branches_of
from fedprivacy.scenario.attack.sections import Ascent, Attack, GameSettings, Passive, Released
from fedprivacy.scenario.data import FlwrDatasets, Npz
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.rules.defences import too_patient
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.training import PoissonTraining, ReplacementTraining


def between(run: Scenario, game: GameSettings, attacks: Mapping[str, Attack]) -> Iterator[Finding]:
    """All that does not hold, where each part is valid by itself."""
    if isinstance(run.data, OnNodes):
        what = "members and non-members are drawn from records that are here, and these are on nodes"
        yield Finding(("data", "name"), what, 'Take another data set, such as "npz".', literal(run.data.name))
        return
    if run.data.partition not in ("iid", "fixed-records"):
        yield Finding(
            ("data", "partition"),
            "members and non-members must come from the same pool, so records must be dealt at random",
            'Set partition = "iid".',
            literal(run.data.partition),
        )
    if not run.data.public_fraction:
        remedy = "Non-members are drawn from the public part, which no client owns: 0.2, say."
        yield Finding(("data", "public_fraction"), "there are no records to be non-members", remedy, "0.0")
    if run.data.scaling == "public":
        yield Finding(
            ("data", "scaling"),
            "the public part, of which the victim's members come, would be in every client's scaling",
            'Set scaling to another way, such as "bounds".',
            literal("public"),
        )
    if game.victim >= run.population:
        what = f"there is no such client: clients are 0 to {run.population - 1}"
        yield Finding(("game", "victim"), what, "", str(game.victim))
    yield from _enough_records(run, game)
    yield from _enough_rounds(run, game, attacks)
    yield from _stopping(run, game)
    if run.sampling.name != "all":
        remedy = 'Set sampling.name = "all".'
        yield Finding(("sampling", "name"), "an attacked client must be in every round", remedy)
    if run.federation.chunk_size != 1:
        yield Finding(
            ("federation", "chunk_size"),
            "messages hold sums over several clients, and no single update could be seen or sent",
            "Set chunk_size = 1.",
            str(run.federation.chunk_size),
        )
    trains = any(not isinstance(attack, Released) for attack in attacks.values())
    if run.training.device != "cpu" and trains:
        what = "an attack is played on the CPU"
        yield Finding(("training", "device"), what, 'Set device = "cpu".', literal(run.training.device))
    if run.privacy.noise_draw == "sum":
        what = "the noise is drawn for sums, and no single update could be seen or sent"
        yield Finding(("privacy", "noise_draw"), what, 'Set noise_draw = "client".', literal("sum"))
    quantile = getattr(run.privacy, "clipping_quantile", None)
    if quantile is not None:
        what = "attacks know answers that were clipped to one norm, and this one changes from round to round"
        yield Finding(("privacy", "clipping_quantile"), what, "Remove it.", literal(quantile))
    if run.privacy.encoding is not None:
        what = "attacks know answers that were clipped, and these are encoded too"
        yield Finding(("privacy", "encoding"), what, "Remove it.", literal(run.privacy.encoding))
    yield from _fixed_draws(run)
    for name, attack in attacks.items():
        yield from (
            Finding(("attacks", name, key), what, remedy)
            for key, what, remedy in _of_attack(run, game, attack)
        )


def _fixed_draws(run: Scenario) -> Iterator[Finding]:
    """Refuses batches in which a record in or out moves others: no adjacency covers the game's coin then."""
    training = run.training
    if run.privacy.unit != "example" or isinstance(training, PoissonTraining):
        return
    if isinstance(training, ReplacementTraining) or training.batch_size != "all":
        yield Finding(
            ("training", "batches"),
            "a record in or out, which is the coin of the game, changes here which others share a batch: "
            'unit = "example" does not cover that',
            'Set batches = "poisson", or batch_size = "all" with shuffled ones.',
            literal(training.batches),
        )


def _enough_records(run: Scenario, game: GameSettings) -> Iterator[Finding]:
    """Refuses more targets than fair coins can be expected to give; the draw itself counts them."""
    data = run.data
    if isinstance(data, OnNodes):
        return  # which is told above
    records = data.facts.records if isinstance(data, Npz | FlwrDatasets) else data.train_records
    public = round(records * data.public_fraction)
    records_each = math.ceil((records - public) / run.population)
    for key, wanted in (("members", game.members), ("nonmembers", game.nonmembers)):
        if public and 2 * wanted > records_each + public:
            yield Finding(
                ("game", key),
                f"the victim's {records_each} records and the {public} public ones are "
                f"{records_each + public}, and a fair "
                f"coin for each makes about {(records_each + public) // 2} {key} of them",
                "Ask for fewer, or deal more records to a client or to the public part.",
                str(wanted),
            )


def _enough_rounds(run: Scenario, game: GameSettings, attacks: Mapping[str, Attack]) -> Iterator[Finding]:
    """Refuses an attack that begins, or goes on, where the run's noise has been used up.

    What one attack has been answered is spent for the next.
    """
    rounds, privacy = run.server.rounds, run.privacy
    branches = [each for each in branches_of(attacks, game.members + game.nonmembers) if not each.silent]
    began = rounds if game.warm_up is None else game.warm_up
    if began > rounds:
        yield Finding(("game", "warm_up"), f"must be at most server.rounds = {rounds}", "", str(began))
    elif not branches:
        return
    elif privacy.trust == "local" and began >= (most := min(rounds, privacy.max_participations or rounds)):
        yield Finding(
            ("game", "warm_up"),
            f"clients answer {most} times, which is what their noise is made for, and the attack begins "
            f"after {began} rounds: every one of them would refuse",
            f"At most {most - 1}; an attack gets the answers that the warm-up leaves.",
            "" if game.warm_up is None else str(began),
        )
    elif privacy.trust == "local":
        for branch in branches:
            if began >= most:
                yield Finding(
                    ("attacks", branch.names[0]),
                    f"clients answer {most} times, which is what their noise is made for, and the warm-up "
                    "and the attacks before this one take all of them",
                    "Set server.rounds higher, with fewer targets, or play this attack in a run of its own.",
                )
            for name in branch.names:
                attack = attacks[name]
                if isinstance(attack, Passive) and began < most <= began + attack.watched[0]:
                    yield Finding(
                        ("attacks", name),
                        f"clients answer {most} times, and all of these answers are given before the first "
                        "round that is observed",
                        "Set skip lower, or server.rounds higher.",
                    )
            began += branch.rounds
    elif privacy.trust == "central":
        training = [branch for branch in branches if not branch.attack.isolating]
        training_rounds = sum(branch.rounds for branch in training)
        if began + training_rounds > rounds:
            yield Finding(
                ("attacks", training[-1].names[0]),
                f"with this one the attacks take {training_rounds} rounds after a warm-up of {began}, "
                "and the noise "
                f"of the global models is made for server.rounds = {rounds}",
                f"Set game.warm_up, and server.rounds to at least {training_rounds} more.",
            )


def _stopping(run: Scenario, game: GameSettings) -> Iterator[Finding]:
    """Refuses early stopping that looks at test records, or that the warm-up leaves no time."""
    patience, every = run.server.patience, run.evaluation.every
    if patience is None:
        return
    if run.evaluation.on != "public":
        yield Finding(
            ("evaluation", "on"),
            "in a game early stopping reads the records that this names, and the accuracy is of test records "
            "whatever it names",
            'Set on = "public".',
            literal(run.evaluation.on),
        )
    began = run.server.rounds if game.warm_up is None else game.warm_up
    if patience * every >= began:
        yield Finding(("server", "patience"), *too_patient(every, began, "game.warm_up"), literal(patience))


def _of_attack(run: Scenario, game: GameSettings, attack: Attack) -> Iterator[tuple[str, str, str]]:
    if isinstance(attack, Released):
        return
    if attack.seat == "server" and attack.attacker is not None:
        yield "attacker", 'has no effect with seat = "server"', "Remove it."
    if attack.seat == "participant":
        if attack.isolating:
            yield "isolating", "only the server can isolate", 'Remove it, or set seat = "server".'
        if attack.attacker is not None and (
            attack.attacker >= run.population or attack.attacker == game.victim
        ):
            yield "attacker", "must be another client than the victim", "Clients count from 0."
        if run.population < 2:
            yield "seat", "there is no other client than the victim", "Set data.clients to 2 at least."
        if run.server.optimizer != "sgd":
            what = "an attacker cannot take its own share out of the models that this optimizer makes"
            yield "seat", what, 'Set server.optimizer = "sgd".'
    if isinstance(attack, Ascent):
        targets = game.members + game.nonmembers
        if attack.targets_per_round > targets:
            yield "targets_per_round", f"there are {targets} targets in all", f"At most {targets}."
        if attack.seat == "server" and attack.boost is not None:
            yield "boost", 'has no effect with seat = "server"', "Remove it."
        if attack.everybody and (attack.seat == "participant" or attack.isolating):
            yield "everybody", "only a server that does not isolate the victim sends to all", "Remove it."
