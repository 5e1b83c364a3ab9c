"""The one filter of result documents: removes what only the operator of a server may see.

Every page, `--json`, export, list, comparison, tracker and notebook shows the copy that `public` makes:

1. fields that a document marks operator-only, and those that are so in every document, are removed;
2. so are accuracy and loss where held-out records belong to clients;
3. so are true values and errors (`simulation_only`), and figures of personal models, of records that are
   neither made up nor declared public;
4. so are results that the claim of an account leaves to the operator (`for_operator`);
5. so are seeds, keys, commands, times and memory, by their names, wherever they occur;
6. of file paths of the machine the last name is left, and texts that quote a removed value lose it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from fedprivacy.documents.quality import MEASURED
from fedprivacy.documents.secret_values import cleaned, cleaner, secret_values
from fedprivacy.errors import InputError

TESTED_NOTE = (
    "Held-out records belong to clients, or may. The accuracies here depend on them without any noise: no "
    "guarantee here holds against those who see them."
)
# Removed where a document has that note: measured on records of clients, and not charged.
MEASURED_ON_CLIENTS = (
    *("rounds[].accuracy", "rounds[].loss", "final.accuracy", "final.loss", "final.per_class"),
    *("rounds[].score", "final.score"),
    *(
        f"{part}[].{key}"
        for part in ("cells", "variations", "options", "baselines", "limits")
        for key in ("accuracy", "accuracies", "score", "scores", "curve", "per_class")
    ),
    *("options[].difference", "limits[].difference", "finding", "limiting", "choice.accuracy"),
    *("rounds[].balanced_accuracy", *MEASURED),
    *("limits.limiting", "limits.planned", "limits.variants"),  # of a run, where it is a table
    *(
        "baseline",
        "baseline_of_half",
        "curves[].points",  # none where the target is above accuracy without noise: that is a result too
        "curves[].law",
        "curves[].held_out",
        "curves[].answer",
    ),  # of a plan
    *("curves[].drawn", "curves[].test", "curves[].planned", "curves[].guarantees", "curves[].epsilon"),
)
# Removed where the document is the operator's: computed from records without noise.
RESULTS = (
    *("observers", "refuted", "ledgers", "audited.words", "audited.neighbours"),  # of an audit
    *("attacks", "trials", "arms", "verdict", "exposures"),  # of a replay
    *("cells[].excess", "cells[].theta", "cells[].bound", "cells[].held_out"),  # of private estimates
    *("exact", "slopes", "surface", "finding"),
)
# The names of made-up or published data, whose true values everybody may see. Any other data are taken to be
# of people.
PUBLIC_DATA = ("digits", "synthetic", "purchase-like")  # made here, or published
SIMULATED = ("bits", "categories", "numbers", "logistic-model", *PUBLIC_DATA)
PERSONAL = ("final.personal",)
# The seed of a simulation determines its noise, which can then be subtracted.
# A digest lets an attacker confirm a guess of the seed, or of the data.
SEEDS = (
    *("seed", "scenario.seed", "scenario.compare.seeds", "command"),
    *("scenario_digest", "noise_key"),
)
# Operator-only in every document, whether or not the document marks it.
ALWAYS_OPERATOR_ONLY = (
    "command",  # it has the seed, which determines the noise of a simulation
    "seed",
    "scenario.seed",
    "scenario.compare.seeds",
    "cells[].seeds",
    "variations[].seeds",
    "options[].seeds",
    "baselines[].seeds",
    "limits[].seeds",
    "error",
    "rounds[].cohort",
    "rounds[].zeroed",
    "rounds[].failures",
    "rounds[].refusals",
    "rounds[].first_failure",
    "rounds[].faults",
    "rounds[].contributed",
    "rounds[].void_reason",
    "estimate",
    "path",  # of the machine
    "noise_key",
    "scenario_digest",
    "performance.seconds",
    "performance.clients_per_second",
    "performance.peak_memory_mb",
)

MOST_PATHS = 200  # the whole document is gone through for each


def marked(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of the fields that are outside every claim, such as `rounds[].cohort`."""
    return tuple(dict.fromkeys([*ALWAYS_OPERATOR_ONLY, *_paths(document, "operator_only")]))


def _paths(document: Mapping[str, Any], key: str) -> list[str]:
    """A document's list of paths."""
    paths = document.get(key) or []
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        raise InputError(f"report: {key} must be a list of paths such as rounds[].cohort.")
    if len(paths) > MOST_PATHS:
        raise InputError(f"report: {key} has {len(paths)} paths, at most {MOST_PATHS} are read.")
    return paths


def measured_on_clients(document: Mapping[str, Any]) -> bool:
    """Whether accuracy and loss depend on held-out records of clients, or may."""
    notes = document.get("notes")
    return isinstance(notes, list | tuple) and TESTED_NOTE in notes


def withholds_truth(document: Mapping[str, Any]) -> bool:
    """Whether a public copy lacks true values and errors: those of records that not everybody may see."""
    scenario = document.get("scenario")
    data = scenario.get("data") if isinstance(scenario, Mapping) else None
    if not document.get("simulation_only"):
        return False
    return not isinstance(data, Mapping) or (
        data.get("name") not in SIMULATED and data.get("public") is not True
    )


def withholds_personal(document: Mapping[str, Any]) -> bool:
    """Whether a public copy lacks the figures of personal models, which are trained without noise."""
    final, scenario = document.get("final"), document.get("scenario")
    if not isinstance(final, Mapping) or final.get("personal") is None:
        return False
    data = scenario.get("data") if isinstance(scenario, Mapping) else None
    return not isinstance(data, Mapping) or (
        data.get("name") not in PUBLIC_DATA and data.get("public") is not True
    )


def withholds_results(document: Mapping[str, Any]) -> bool:
    """Whether a public copy lacks results that the whole document has."""
    return (
        measured_on_clients(document)
        or withholds_truth(document)
        or withholds_personal(document)
        or for_operator(document)
    )


def for_operator(document: Mapping[str, Any]) -> bool:
    """Whether all results are the operator's, as the claim of the account assumes that charged the work."""
    return document.get("for_operator") is True


def operator_only(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of all fields that `public` removes, except those that it knows by their names."""
    measured = MEASURED_ON_CLIENTS if measured_on_clients(document) else ()
    truth = _paths(document, "simulation_only") if withholds_truth(document) else ()
    personal = PERSONAL if withholds_personal(document) else ()
    results = RESULTS if for_operator(document) else ()
    return tuple(dict.fromkeys([*marked(document), *measured, *truth, *personal, *results]))


def public(document: Mapping[str, Any], *, blank: bool = False) -> dict[str, Any]:
    """A copy of a document that may be passed on; the module's text states what it lacks.

    Args:
        document: A result document, or a part of one with its `operator_only` and `notes`.
        blank: Whether a removed field is None, for code that reads each field by its key.

    Raises:
        InputError: `operator_only` is not a list of at most `MOST_PATHS` paths.

    >>> public({"notes": ["Of /home/me/x.npz, by seed 7."], "scenario": {"data": {"seed": 7}}})
    {'public': True, 'notes': ['Of x.npz, by seed (operator-only).'], 'scenario': {'data': {}}}
    """
    clean = cleaner(value for _, value in secret_values(document))
    copied = cleaned(redact(document, operator_only(document), blank=blank), clean, blank=blank)
    head = {key: copied[key] for key in ("schema", "kind") if key in copied}
    return {**head, "public": True, **copied}


def redact(document: Mapping[str, Any], paths: Iterable[str], *, blank: bool = False) -> dict[str, Any]:
    """A copy of the document without the fields at these paths; if `blank` is true, with None there.

    >>> redact({"rounds": [{"round": 1, "cohort": 9}]}, ["rounds[].cohort"])
    {'rounds': [{'round': 1}]}
    """
    redacted = copy.deepcopy(dict(document))
    for path in paths:
        *parents, field = path.split(".")
        name = field.removesuffix("[]")
        for holder in _holders(redacted, parents):
            if blank and name in holder:
                holder[name] = None
            else:
                holder.pop(name, None)
    return redacted


def select(document: Mapping[str, Any], path: str) -> list[Any]:
    """The values at a path, one for each element of the lists on the way, without those that are missing.

    >>> select({"rounds": [{"cohort": 9}, {"cohort": 7}]}, "rounds[].cohort")
    [9, 7]
    """
    *parents, field = path.split(".")
    name = field.removesuffix("[]")
    selected = (holder.get(name) for holder in _holders(document, parents))
    return [value for value in selected if value is not None]


def _holders(document: Mapping[str, Any], parents: list[str]) -> list[Any]:
    """The tables at the end of a path of parents; `name[]` means each element of a list."""
    holders: list[Any] = [document]
    for part in parents:
        name = part.removesuffix("[]")
        inner = [holder.get(name) for holder in holders]
        if part.endswith("[]"):
            inner = [element for elements in inner if isinstance(elements, list) for element in elements]
        holders = [value for value in inner if isinstance(value, Mapping)]
    return holders
