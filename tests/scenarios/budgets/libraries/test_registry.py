"""Every library: its help names its settings, its document its observers, and no mistake passes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fedprivacy.errors import InputError
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import Guarantee
from scenarios.budgets.libraries.registry import BY_NAME, LIBRARIES

# Settings of each mechanism that take no time to account for.
SETTINGS = [
    ("flower", ["epsilon=8", "delta=1e-5", "clipping_norm=1", "sensitivity=1", "rounds=100"]),
    ("flower", ["noise_multiplier=1", "clipping-norm=1", "num_sampled_clients=20", "rounds=10"]),
    ("flower", ["noise_multiplier=1", "num_sampled_clients=100", "clip_norm_lr=0.2", "rounds=10"]),
    ("pfl", ["central_privacy_mechanism=gaussian", "central_epsilon=2", "cohort_size=50"]),
    ("pfl", ["cohort_size=50"]),
    ("pfl", ["central_privacy_mechanism=norm_clipping_only"]),
    ("opacus", ["noise_multiplier=1", "dataset_size=1000", "batch_size=10", "accountant=gdp"]),
    ("opacus", ["noise_multiplier=1", "dataset_size=1000", "batch_size=10", "poisson_sampling=false"]),
    ("nvflare", ["weights=1000"]),
    ("nvflare", ["percentile=10"]),
]


def document(name: str, *words: str, adjacency: str | None = None) -> dict[str, Any]:
    return BY_NAME[name].load().document(words, adjacency)


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@pytest.mark.parametrize("entry", LIBRARIES, ids=lambda entry: entry.name)
def test_help_names_every_setting_and_its_default(entry) -> None:
    library = entry.load()
    assert library.name == entry.name
    for section in library.kind.variants.values():
        for key, about in section.model_fields.items():
            assert re.search(rf"\b{key}\b", entry.help), key
            if key == library.kind.tag or about.is_required() or about.default is None:
                continue
            stated = re.findall(rf"\b{key} \(([^)]*)\)", entry.help)
            default = str(about.default).lower()
            assert any(
                text.partition(";")[0] == default or number(text) == about.default for text in stated
            ), key


@pytest.mark.parametrize(("name", "words"), SETTINGS)
def test_each_document_states_a_guarantee_or_a_reason_for_each_observer(name: str, words: list[str]) -> None:
    result = document(name, *words)
    assert (result["schema"], result["kind"], result["mechanism"]) == (1, "budget", name)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    stated = [Guarantee.model_validate(each) for each in result["guarantees"]]
    assert tuple(each.observer for each in stated) == OBSERVERS
    for each in stated:
        assert each.assumptions
        assert each.words
        assert each.holds == ("No guarantee" not in each.words)
        if each.holds:
            for part in ("delta = ", "unit ", "accountant ", "provided that", str(each.adjacency)):
                assert part in each.words
    for row in result["table"]:
        assert set(row) >= {"epsilon", "delta", "unit", "adjacency", "sampling", "rounds", "accountant"}
    assert "\n" not in result["words"]


@pytest.mark.parametrize(("name", "words"), SETTINGS)
def test_an_unknown_setting_and_adjacency_are_refused_together(name: str, words: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        document(name, *words, "colour=1", adjacency="any")
    lines = str(refused.value).splitlines()
    assert any(line.startswith("colour=1: unknown key.") for line in lines)
    assert "--adjacency any: must be one of replace-one, add-remove, zero-out." in lines


@pytest.mark.parametrize("name", ["flower", "nvflare"])
def test_local_messages_have_no_add_remove(name: str) -> None:
    words = next(words for each, words in SETTINGS if each == name)
    with pytest.raises(InputError, match=r"none is added or removed\. Give --adjacency replace-one"):
        document(name, *words, adjacency="add-remove")
