"""Scenarios of attacks to be played, and documents of attacks at several epsilons, over time, of many seeds.

Such a document is made of one that was played: its shape is real, its figures are what a test needs.
"""

from __future__ import annotations

import copy
from typing import Any

from fedprivacy.attacks.bounds import bound_of_pair
from fedprivacy.documents.attack import SEES_LESS

GAME = """
name = "who-was-in"
description = "Whose record was it?"
seed = 3
[data]
name = "purchase-like"
partition = "iid"
clients = 3
records = 400
test_records = 200
public_fraction = 0.4
features = 100
classes = 4
[model]
name = "mlp"
hidden = [16]
activation = "tanh"
[training]
batch_size = 16
learning_rate = 0.1
[server]
rounds = 4
[sampling]
name = "all"
[federation]
chunk_size = 1
[game]
warm_up = 2
members = 30
nonmembers = 60
[attacks.listening]
kind = "passive"
rounds = 2
"""
BARE = """
[attacks.raising]
kind = "active-gradient-ascent"
targets_per_round = 45
[attacks.listening-aside]
kind = "passive"
seat = "participant"
rounds = 2
[privacy]
trust = "none"
"""
PRIVATE = """
[privacy]
trust = "local"
epsilon = 4.0
delta = 1e-5
clipping_norm = 1.0
"""

EPSILONS = (1.0, 8.0, 64.0)
LEFT = {1.0: 0.05, 8.0: 0.3, 64.0: 0.8, None: 1.0}  # of what an attack is better than guessing
ACCURACY = {1.0: 0.31, 8.0: 0.72, 64.0: 0.9, None: 0.95}
DELTA = 1e-5
UNDRAWN = {"roc": [], "histograms": [], "story": None}  # what takes most of the time to draw


def measure(value: float, half: float = 0.05) -> dict[str, Any]:
    """A figure with its interval."""
    ends = {"low": max(0.0, value - half), "high": min(1.0, value + half)}
    return {"value": value, **ends, "covers": "targets"}


def at_levels(document: dict[str, Any], strengths: dict[str, float], trust: str = "local") -> dict[str, Any]:
    """The attacks of a document without privacy at three epsilons too; `strengths` are their AUC without."""
    found = []
    for epsilon in (*EPSILONS, None):
        for one in document["attacks"]:
            left, accuracy = LEFT[epsilon], ACCURACY[epsilon]
            auc = 0.5 + (strengths[one["name"]] - 0.5) * left
            other = copy.deepcopy(one)
            other.update(
                epsilon=epsilon,
                trust="none" if epsilon is None else trust,
                observed=None,
                members=100,
                nonmembers=500,
                auc=measure(auc),
                balanced_accuracy=measure(0.5 + (auc - 0.5) * 0.8),
                tpr_at_fpr={"0.1": measure(auc - 0.4), "0.01": measure(0.9 * (auc - 0.49)), "0.001": None},
                model_accuracy={"before": accuracy, "after": accuracy},
            )
            if epsilon is not None and not (trust == "central" and one["seat"] == "server"):
                other.update(promised(epsilon, one["seat"], trust))
            elif epsilon is not None:
                other["guarantee"].update(trust=trust, delta=DELTA, unit="client", adjacency="replace-one")
            found.append(other)
    scenario = copy.deepcopy(document["scenario"])
    scenario["privacy"] = {**scenario["privacy"], "trust": trust}
    scenario["game"] = {**scenario["game"], "epsilons": list(EPSILONS), "unprotected": True}
    return {**document, "attacks": found, "scenario": scenario}


def with_clipping(document: dict[str, Any]) -> dict[str, Any]:
    """The attacks of `at_levels` with clipping alone too, where they find a little less than without."""
    found = [one for one in document["attacks"] if one["epsilon"] is None]
    for one in map(copy.deepcopy, tuple(found)):
        one.update(mechanism="clip-only", auc=measure(one["auc"]["value"] - 0.02))
        one["model_accuracy"] = {"before": 0.93, "after": 0.93}
        one["guarantee"].update(
            assumptions=["clipping alone is a heuristic: nobody adds noise"],
            words=f"No guarantee against the {one['seat']}: clipping alone is a heuristic: nobody adds noise.",
        )
        found.append(one)
    private = [one for one in document["attacks"] if one["epsilon"] is not None]
    scenario = {**document["scenario"], "game": {**document["scenario"]["game"], "clipped": True}}
    return {**document, "attacks": [*found, *private], "scenario": scenario}


def promised(epsilon: float, seat: str, trust: str) -> dict[str, Any]:
    """A guarantee against a seat, and the bound that follows from it."""
    guarantee = {
        "observer": seat, "trust": trust, "epsilon": epsilon, "delta": DELTA, "unit": "client",
        "adjacency": "replace-one", "rounds": 4, "accountant": "PLD", "assumptions": ["noise is drawn"],
        "words": f"Against the {seat}: at most epsilon = {epsilon:g} at delta = 1e-05, unit client, "
        "adjacency replace-one.",
    }  # fmt: skip
    bound = bound_of_pair(epsilon, DELTA, "client", "replace-one", seat)
    return {"guarantee": guarantee, "bound": bound.to_json()}


def over_time(document: dict[str, Any], accuracies: dict[tuple[int, int, int], float]) -> dict[str, Any]:
    """The first attack of a document, passive, once for each (first, last, count) that it observed."""
    found = []
    for (first, last, count), accuracy in accuracies.items():
        one = copy.deepcopy(document["attacks"][0])
        one.update(
            name=f"rounds-{first}-{last}",
            attack="passive",
            trust=document["scenario"]["privacy"]["trust"],
            epsilon=document["scenario"]["privacy"].get("epsilon"),
            observed={"first": first, "last": last, "count": count},
            rounds=count,
            balanced_accuracy=measure(accuracy),
            auc=measure(accuracy + 0.03),
            tpr_at_fpr={"0.1": measure(0.3), "0.01": measure(0.06), "0.001": None},
            model_accuracy={"before": 0.5, "after": min(0.99, 0.5 + last / 500)},
            **UNDRAWN,
        )
        found.append(one)
    return {**document, "attacks": found}


def of_seeds(attack: dict[str, Any], seeds: int) -> dict[str, Any]:
    """An attack whose every list by seed has so many entries: of its first seed, a little changed."""
    other = copy.deepcopy(attack)
    other["seeds"] = seeds
    [curve, *_], [bars, *_] = attack["roc"], attack["histograms"]
    other["roc"] = [
        {"fpr": curve["fpr"], "tpr": [min(1.0, tpr * (1 + 0.1 * seed)) for tpr in curve["tpr"]]}
        for seed in range(seeds)
    ]
    other["histograms"] = [bars] * seeds
    if (told := attack.get("story")) is not None:
        first = told[0] if isinstance(told, list) else told
        other["story"] = [
            {
                "moments": first["moments"],
                **{kind: [loss + 0.2 * seed for loss in first[kind]] for kind in ("member", "nonmember")},
            }
            for seed in range(seeds)
        ]
    return other


def in_arms(document: dict[str, Any], strengths: dict[str, float]) -> dict[str, Any]:
    """The attacks of a document in three arms: bare, and central and local at three epsilons."""
    attacks, arms = [], []
    for trust in ("local", "central"):
        found = at_levels(document, strengths, trust)["attacks"]
        name = {None: "bare"}
        for one in found:
            arm = name.get(one["epsilon"], trust)
            if arm == "bare" and trust == "central":
                continue
            attacks.append({**one, **UNDRAWN, "arm": arm, "trust": "none" if arm == "bare" else trust})
            attacks[-1]["supervised"] = None
        for epsilon in (*((None,) if trust == "local" else ()), *EPSILONS):
            arms.append(_arm("bare" if epsilon is None else trust, trust, epsilon))
    for arm in arms:
        for seat, visible in SEES_LESS.items():
            seen = [a for a in attacks if (a["arm"], a["epsilon"]) == (arm["arm"], arm["epsilon"])]
            if seen := [a for a in seen if a["seat"] in visible]:
                arm["strongest"][seat] = best_of(max(seen, key=lambda a: a["auc"]["value"]))
    arms[-1]["skipped"] = {"listening-aside": "an attacker cannot take its own share out"}
    scenario = {**document["scenario"], "arms": {"bare": {}, "central": {}, "local": {}}}
    return {**document, "attacks": attacks, "arms": arms, "scenario": scenario}


def best_of(attack: dict[str, Any], folds: int = 5, **more: Any) -> dict[str, Any]:
    """The strongest attack of a seat: this one in so many folds."""
    contender = {"name": attack["name"], "seat": attack["seat"], "supervised": False, "folds": folds}
    kept = {key: attack[key] for key in ("auc", "balanced_accuracy", "advantage", "tpr_at_fpr")}
    return {"attacks": [{**contender, **more}], **kept}


def _arm(name: str, trust: str, epsilon: float | None) -> dict[str, Any]:
    value = ACCURACY[epsilon]
    seats = ("server", "participant", "outsider")
    held = {} if epsilon is None else {seat: promised(epsilon, seat, trust) for seat in seats}
    if trust == "central":
        held.pop("server", None)
    bare = {
        "trust": trust, "epsilon": None, "delta": None, "unit": None, "adjacency": None,
        "assumptions": ["the server has to be trusted"],
    }  # fmt: skip
    return {
        "arm": name,
        "trust": "none" if epsilon is None else trust,
        "mechanism": None if epsilon is None else "gaussian",
        "unit": "client",
        "adjacency": "replace-one",
        "epsilon": epsilon,
        "seeds": 2,
        "accuracy": {
            "train": {"mean": value + 0.04, "low": value, "high": min(1.0, value + 0.08)},
            "test": {"mean": value, "low": value - 0.04, "high": min(1.0, value + 0.04)},
        },
        "guarantees": [
            held[seat]["guarantee"] if seat in held else {"observer": seat, **bare} for seat in seats
        ],
        "bounds": {seat: held[seat]["bound"] if seat in held else {} for seat in seats},
        "skipped": {},
        "strongest": {},
    }
