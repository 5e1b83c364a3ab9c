"""Verifies a stored replay: its plans, ledgers, bounds, counts and verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedprivacy.attacks.bounds import RATES
from fedprivacy.attacks.document_claims import (
    TRANSCRIPTS,
    arm_claims,
    attack_claims,
    budget,
    frame_of,
    proved,
    trial_claims,
    verdict_of,
)
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.metrics import BALANCED
from fedprivacy.attacks.one_run_epsilon import Guesses
from fedprivacy.attacks.targets import FOLDS, measured_count
from fedprivacy.attacks.trials import Without, success_rate, trials_of
from fedprivacy.documents.attack import SEES_LESS
from fedprivacy.documents.trial import Unattacked
from fedprivacy.guarantees.charge import under_way
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.data import FileData, Synthetic
from fedprivacy.scenario.model import ByName, Cnn, Mlp, Model
from fedprivacy.verification.differences import placed, refusal, refuse_difference, refuse_length
from fedprivacy.verification.parts import check_status, of_scenario, plain, refuse_parts
from fedprivacy.verification.run import check_plan
from fedprivacy.verification.scenario_without_data import stored_scenario

SOURCE = "its scenario and its plans imply"
AGAIN = "attack again"


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a replay, as it may be shown: what it guarantees is accounted for again.

    Raises:
        InputError: a plan, ledger, bound, empirical epsilon or verdict does not follow from the rest of it.
    """
    check_status(document, where, AGAIN)
    scenario = stored_scenario(AttackScenario, document, where, AGAIN)
    with of_scenario(where, AGAIN):
        variants = _variants(scenario, document["plans"])
    refuse_length(len(document["plans"]), len(variants), "plans", where, "its scenario implies", AGAIN)
    plans = [
        check_plan(data, variant, f"plans[{number}]", where, AGAIN)
        for number, (data, variant) in enumerate(zip(document["plans"], variants, strict=True))
    ]
    with placed(where, "plans", AGAIN):
        ledgers = [plain(Ledger(plan).in_advance().to_json()) for plan in plans]
    refuse_difference(document["ledgers"], ledgers, "ledgers", where, "its plans imply", AGAIN)
    attacks = _checked_attacks(document, scenario, variants, plans, ledgers, where)
    trials = _checked_trials(document, scenario, variants, plans, ledgers, where)
    arms = {"arms": _checked_arms(document, scenario, variants, plans, ledgers, where)}
    implied = {
        **frame_of(scenario, trials),
        "verdict": verdict_of(variants, attacks, trials, ledgers).to_json(),
    }
    implied["notes"] += under_way(document["status"])
    notes = document.get("notes")
    if not scenario.membership_attacks and isinstance(notes, list) and TRANSCRIPTS not in notes:
        # Earlier versions stored nothing of attacks in trials.
        implied["notes"] = [note for note in implied["notes"] if note != TRANSCRIPTS]
    # Its sentence follows from its facts, and another version may have phrased it otherwise.
    verdict = document.get("verdict")
    if isinstance(verdict, dict):
        verdict = {**verdict, "words": implied["verdict"]["words"]}
    refuse_parts({**document, "verdict": verdict}, implied, where, "its counts imply", AGAIN)
    shown = {"attacks": attacks, **({"trials": trials} if trials else {})}
    return {**document, **implied, **shown, **(arms if scenario.arms else {})}


def _variants(scenario: AttackScenario, plans: Sequence[Mapping[str, Any]]) -> list[AttackScenario]:
    """The variants of a scenario, with placeholder data for as many clients instead of its file."""
    data = scenario.data
    if not isinstance(data, FileData):
        return list(scenario.variants)
    clients = max((int(plan["population"]) for plan in plans), default=1)
    # Ten for each client beside the public part, as large as it is.
    records = min(math.ceil(10 * clients / max(1 - data.public_fraction, 1e-6)), 10**9)
    others = Synthetic(
        name="synthetic",
        partition="iid",
        clients=clients,
        records=records,
        public_fraction=data.public_fraction,
    )
    arms = {name: arm.model_copy(update={"data": {}}) for name, arm in scenario.arms.items()}
    # Placeholder data have no columns that could make groups, and groups change no plan.
    plain = scenario.evaluation.model_copy(update={"groups": None, "edges": None})
    attacks = {name: attack.without_data() for name, attack in scenario.attacks.items()}
    # Nor are they images, which a CNN needs; of a plan only the model's size matters, which the record has.
    model: Model = Mlp(name="mlp") if isinstance(scenario.model, Cnn) else scenario.model
    if isinstance(model, ByName):
        model = model.model_copy(update={"features": None})
    update = {"data": others, "model": model, "arms": arms, "evaluation": plain, "attacks": attacks}
    same = scenario.model_copy(update=update)
    read = {"data": data, "model": scenario.model, "evaluation": scenario.evaluation}
    return [
        variant.model_copy(
            update={**read, "attacks": {name: scenario.attacks[name] for name in variant.attacks}}
        )
        for variant in same.variants
    ]


def _checked_attacks(
    document: Mapping[str, Any],
    scenario: AttackScenario,
    variants: Sequence[AttackScenario],
    plans: Sequence[Plan],
    ledgers: Sequence[Mapping[str, Any]],
    where: str,
) -> list[dict[str, Any]]:
    """The attacks, with what their variants, plans and guesses imply."""
    order = [(number, name) for number, variant in enumerate(variants) for name in variant.membership_attacks]
    named = _named(document, "attacks", order, where)
    attacks = []
    for number, (attack, (at, name)) in enumerate(zip(document["attacks"], named, strict=True)):
        key, variant = f"attacks[{number}]", variants[at]
        implied = attack_claims(variant, name, at, plans[at], ledgers[at])
        repeats = implied["seeds"] = scenario.game.repeats
        guesses, delta = attack["empirical_epsilon"].get("guesses"), variant.privacy.delta or 0.0
        if guesses is not None:
            with placed(where, f"{key}.empirical_epsilon.guesses", AGAIN):
                implied |= proved(Guesses(**guesses), delta)
            _check_trials(guesses["trials"], variant, repeats, f"{key}.empirical_epsilon.guesses", where)
        else:
            why = {"reason": attack["empirical_epsilon"].get("reason")}
            implied |= {"epsilon_lower_bound": None, "empirical_epsilon": why}
        refuse_parts(attack, implied, where, SOURCE, AGAIN, key)
        refuse_length(
            len(attack["score"]), FOLDS * repeats, f"{key}.score", where, "its scenario implies", AGAIN
        )
        refuse_length(
            len(attack["single_score"]), repeats, f"{key}.single_score", where, "its scenario implies", AGAIN
        )
        _check_points(attack, variant, repeats, key, where)
        attacks.append({**attack, **implied})
    return attacks


def _check_trials(trials: int, variant: AttackScenario, repeats: int, key: str, where: str) -> None:
    """Refuses more coins than fair targets: of each run as many are drawn as the rarer kind counts."""
    most = repeats * min(variant.game.members, variant.game.nonmembers)
    if trials > most:
        raise refusal(where, f"{key}.trials", f"has {trials:,}, {SOURCE} at most {most:,}", AGAIN)


def _check_points(
    attack: Mapping[str, Any], variant: AttackScenario, repeats: int, key: str, where: str
) -> None:
    """Refuses operating points, with which the verdict is made, that no attack of this scenario has."""
    learned = (attack.get("supervised") or {}).get("points")
    if (learned is not None) != bool(variant.arm):
        what = "are of a game without arms" if learned is not None else "are missing"
        raise refusal(where, f"{key}.supervised.points", what, AGAIN)
    most = measured_count(variant.game.members + variant.game.nonmembers)
    targets = []
    for place, points in (("points", attack["points"]), ("supervised.points", learned or {})):
        if points and BALANCED not in points:
            raise refusal(where, f"{key}.{place}", f"has no {BALANCED}", AGAIN)
        for at, runs in points.items():
            here = f"{key}.{place}.{at}"
            if at not in (BALANCED, *(f"{rate:g}" for rate in RATES)):
                raise refusal(where, here, "is no operating point", AGAIN)
            refuse_length(len(runs), repeats, here, where, "its scenario implies", AGAIN)
            counts = [(run["members"], run["nonmembers"]) for run in runs]
            for members, nonmembers in counts:
                game = variant.game
                if members > game.members or nonmembers > game.nonmembers or members + nonmembers > most:
                    raise refusal(where, here, f"counts more targets than {SOURCE}, {most:,} at most", AGAIN)
            targets.append(counts)
            if counts != targets[0]:
                raise refusal(where, here, "counts other targets than another point", AGAIN)
    if not attack["points"]:
        raise refusal(where, f"{key}.points", f"has no {BALANCED}", AGAIN)


def _check_strongest(arm: Mapping[str, Any], variant: AttackScenario, key: str, where: str) -> None:
    """Refuses a strongest attack that is none of this scenario, or not that of as many folds as there are."""
    for seat, best in (arm.get("strongest") or {}).items():
        here = f"{key}.strongest.{seat}.attacks"
        for contender in best["attacks"]:
            attack = variant.membership_attacks.get(contender["name"])
            if attack is None or attack.seat != contender["seat"]:
                raise refusal(where, here, "names an attack that its scenario lacks", AGAIN)
            if contender["seat"] not in SEES_LESS.get(seat, ()):
                raise refusal(where, here, "names an attack that this seat cannot run", AGAIN)
        names = {(contender["name"], contender["supervised"]) for contender in best["attacks"]}
        refuse_length(len(best["attacks"]), len(names), here, where, "its names imply", AGAIN)
        folds = sum(contender["folds"] for contender in best["attacks"])
        if folds != FOLDS or not all(contender["folds"] for contender in best["attacks"]):
            raise refusal(where, here, f"is of {folds} folds in place of {FOLDS}", AGAIN)


def _named(
    document: Mapping[str, Any], part: str, order: Sequence[tuple[int, str]], where: str
) -> list[tuple[int, str]]:
    """The variant and the name of each stored attack, in the order of the scenario."""
    named = [(attack["ledger"], attack["name"]) for attack in document.get(part) or ()]
    if document["status"] == "finished":
        refuse_length(len(named), len(order), part, where, "its scenario implies", AGAIN)
    # Of work that broke off some are missing.
    if named != [each for each in order if each in named]:
        raise refusal(where, part, "are others, or in another order, than its scenario has", AGAIN)
    return named


def _checked_trials(
    document: Mapping[str, Any],
    scenario: AttackScenario,
    variants: Sequence[AttackScenario],
    plans: Sequence[Plan],
    ledgers: Sequence[Mapping[str, Any]],
    where: str,
) -> list[dict[str, Any]]:
    """The attacks in trials, with what their variants, plans and counts imply."""
    order = [(number, name) for number, variant in enumerate(variants) for name in trials_of(variant)]
    trials = []
    for number, (at, name) in enumerate(_named(document, "trials", order, where)):
        key, attack = f"trials[{number}]", document["trials"][number]
        refuse_length(
            len(attack["runs"]), scenario.game.repeats, f"{key}.runs", where, "its scenario implies", AGAIN
        )
        if attack.get("public_pictures") and not getattr(scenario.data, "public", False):
            raise refusal(where, f"{key}.public_pictures", "are of records that are not public", AGAIN)
        settings = trials_of(variants[at])[name]
        for run in attack["runs"]:
            if run["trials"] != settings.trials:
                raise refusal(where, f"{key}.runs", f"has other trials than {settings.trials:,}", AGAIN)
            if max(run["successes"], run.get("without") or 0) > run["trials"]:
                raise refusal(where, f"{key}.runs", "has more successes than trials", AGAIN)
            observer = run.get("scored_again")
            if observer is not None and (not settings.scoring or observer == settings.recording):
                raise refusal(where, f"{key}.runs", "has no trials that other settings observe", AGAIN)
        counts = [(run["successes"], run["trials"]) for run in attack["runs"]]
        without = _without(attack, key, where)
        if (without is None) == settings.compares:
            what = "is missing" if without is None else "is of a kind that has none"
            raise refusal(where, f"{key}.without", what, AGAIN)
        implied = trial_claims(variants[at], name, at, plans[at], ledgers[at], counts, without)
        implied["seeds"] = scenario.game.repeats
        refuse_parts(attack, implied, where, SOURCE, AGAIN, key)
        trials.append({**attack, **implied})
    return trials


def _without(attack: Mapping[str, Any], key: str, where: str) -> Without | None:
    """The trials without the attack, whose rate follows from their counts, and whose figures are stored."""
    counts = [run.get("without") for run in attack["runs"]]
    stored = attack.get("without")
    if all(count is None for count in counts) and stored is None:
        return None
    if stored is None or any(count is None for count in counts):
        raise refusal(where, f"{key}.without", "is there for some of its runs alone", AGAIN)
    rate = success_rate([(run["without"], run["trials"]) for run in attack["runs"]])
    figures = Unattacked.model_validate(stored).figures
    if not all(0 <= each.value <= 1 for each in figures.values()):
        raise refusal(where, f"{key}.without.figures", "has a mean outside of [0, 1]", AGAIN)
    return Without(
        rate,
        {name: Figure(each.value, each.low, each.high, each.covers or "") for name, each in figures.items()},
        sum(run["trials"] for run in attack["runs"]),
    )


def _checked_arms(
    document: Mapping[str, Any],
    scenario: AttackScenario,
    variants: Sequence[AttackScenario],
    plans: Sequence[Plan],
    ledgers: Sequence[Mapping[str, Any]],
    where: str,
) -> list[dict[str, Any]]:
    """The arms, with what their variants and plans imply."""
    stored = document.get("arms", [])
    named = [arm["ledger"] for arm in stored]
    order = list(range(len(variants))) if scenario.arms else []
    if document["status"] == "finished":
        refuse_length(len(named), len(order), "arms", where, "its scenario implies", AGAIN)
    expected = [each for each in order if each in named]
    if named != expected:
        raise refusal(where, "arms", "are others, or in another order, than its scenario has", AGAIN)
    arms = []
    for number, (arm, at) in enumerate(zip(stored, named, strict=True)):
        implied = arm_claims(variants[at], at, plans[at], ledgers[at], budget(variants[at], plans[at]))
        implied["seeds"] = scenario.game.repeats
        refuse_parts(arm, implied, where, SOURCE, AGAIN, f"arms[{number}]")
        _check_strongest(arm, variants[at], f"arms[{number}]", where)
        arms.append({**arm, **implied})
    return arms
