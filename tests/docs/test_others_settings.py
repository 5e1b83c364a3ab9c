"""docs/others-settings.md: every number on the page is computed here again."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.guarantees.statement import printed
from scenarios.budgets.libraries.registry import BY_NAME

PAGE = (Path(__file__).parents[2] / "docs" / "others-settings.md").read_text()
FLAT = " ".join(PAGE.split())
LOCAL = ("epsilon=8", "delta=1e-5", "clipping_norm=1", "sensitivity=1", "rounds=100")
CENTRAL = ("noise_multiplier=1", "clipping_norm=1", "num_sampled_clients=20", "rounds=10")
OPACUS = ("noise_multiplier=1.1", "dataset_size=60000", "batch_size=64", "epochs=15")
PFL = (
    "central_privacy_mechanism=gaussian_moments_accountant", "central_epsilon=2", "central_delta=1e-6",
    "central_privacy_clipping_bound=0.4", "cohort_size=50", "central_num_iterations=1500",
    "population=1e6", "users=1000",
)  # fmt: skip


@cache
def document(name: str, *words: str, adjacency: str | None = None) -> dict[str, Any]:
    return BY_NAME[name].load().document(words, adjacency)


def figures(name: str, *words: str, adjacency: str | None = None) -> list[float]:
    return [row["epsilon"] for row in document(name, *words, adjacency=adjacency)["table"]]


def test_flower() -> None:
    once, hundred, zeroed, _ = figures("flower", *LOCAL)
    assert f"{printed(once)} a message, {printed(hundred)} in 100 rounds" in FLAT
    assert f"stays below 8: {printed(zeroed)}." in FLAT
    assert f"its exact epsilon is {printed(once)} (Balle" in FLAT
    multiplier = re.search(r"[\d.]+(?= x the clipping norm)", document("flower", *LOCAL)["words"])
    assert multiplier is not None
    z = float(multiplier[0])
    assert f"that is {z} C." in FLAT
    assert f"mu = 2/{z} = {2 / z:.3f} " in FLAT
    assert f"to {20 / z:.2f}: epsilon {printed(hundred)}" in FLAT
    unequal, equal, drawn = figures("flower", *CENTRAL, "population=100")
    assert f"costs {printed(unequal)}, and {printed(equal)} with equal weights." in FLAT
    assert f"drawn without replacement: {printed(drawn)} for 20 of 100 clients" in FLAT


@pytest.mark.slow
@pytest.mark.exhaustive
def test_pfl() -> None:
    claimed, real, drawn = figures("pfl", *PFL)
    assert claimed <= 2
    words = document("pfl", *PFL)["words"]
    assert "0.6162 x the clipping bound" in words
    assert "a noise multiplier of 0.6162 for it" in FLAT
    assert "0.03081 x the bound" in words
    assert "to 0.03081 x the clipping bound" in FLAT
    assert f"| {printed(real)} at the data's sampling rate; {printed(drawn)} with the noise" in FLAT
    assert f"costs epsilon {printed(real)} there" in FLAT
    assert f"that is epsilon {printed(drawn)}, and" in FLAT
    assert f"and {printed(figures('pfl', *PFL, adjacency='replace-one')[1])} under replace-one" in FLAT


def test_nvflare() -> None:
    counted, bound = figures("nvflare", "weights=7033282")
    assert f"{counted:,.0f} a round by its own ledger, at most {bound:,.0f};" in FLAT
    assert f"n = 703,329: {counted:,.0f} a round" in FLAT
    assert f"epsilon_query/n: {bound:,.0f} is the bound" in FLAT
    assert bound <= 70_334
    earlier, larger = (
        figures("nvflare", f"weights={weights}", "version=before-2.8")[0] for weights in (6970900, 7033282)
    )
    assert f"That is {earlier:,.0f} for d = 6,970,900" in FLAT
    assert f"for DenseNet-121 as above it is {larger:,.0f}." in FLAT


def test_the_size_of_the_model_is_the_one_of_its_layers() -> None:
    """DenseNet-121: growth 32, blocks of 6, 12, 24 and 16 layers, each with two normalisations of four numbers."""
    channels, numbers = 64, 64 * 49 + 4 * 64
    for block, layers in enumerate((6, 12, 24, 16)):
        for _ in range(layers):
            numbers += 4 * channels + 128 * channels + 4 * 128 + 32 * 128 * 9
            channels += 32
        if block < 3:
            numbers += 4 * channels + channels * channels // 2
            channels //= 2
    numbers += 4 * channels + 2 * channels + 2
    assert f"d = {numbers:,} and n" in FLAT


def test_opacus() -> None:
    claimed, replaced = figures("opacus", *OPACUS)
    assert (
        f"costs epsilon {printed(claimed)} (add-remove, delta 1e-5), and {printed(replaced)} for one" in FLAT
    )
    shuffled = document("opacus", *OPACUS, "poisson_sampling=false", adjacency="replace-one")
    cost = printed(shuffled["guarantees"][0]["epsilon"])
    assert f"| {printed(shuffled['claimed']['epsilon'])} | {cost} for one record replaced |" in FLAT
    assert f"without amplification, epsilon {cost} for one record replaced" in FLAT
    limit = document("opacus", *OPACUS, "accountant=gdp")["claimed"]["epsilon"]
    assert f"reports a limit, {printed(limit)} here" in FLAT


def test_the_commands_are_the_settings_of_the_figures() -> None:
    assert f"fedprivacy budget flower {' '.join(LOCAL)}\n" in PAGE
    assert f"fedprivacy budget opacus {' '.join(OPACUS)}\n" in PAGE
