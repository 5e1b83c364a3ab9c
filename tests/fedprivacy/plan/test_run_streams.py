"""Which runs share their noise: none, unless they are the same run looked at in another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import population

LOCAL = ("privacy.trust=local",)
SUMS = ("privacy={trust='local', noise_multiplier=2.0, delta=1e-3, clipping_norm=1.0, noise_draw='sum'}",)


def noise(asked, people=None) -> np.ndarray:
    return run_streams(asked, people or population(asked.data)).noise("local").standard_normal(20)


@pytest.mark.parametrize(
    "other",
    [
        ("privacy.noise_multiplier=4.0",),
        ("privacy.clipping_norm=2.0",),
        ("server.rounds=4",),
        ("sampling={name='poisson', rate=0.5}",),
        ("training.learning_rate=0.1",),
        ("data.signal=1.0",),
        ("data.seed=5",),
        ("model={name='mlp', hidden=[3]}",),
        ("training.momentum=0.5",),
        ("federation.timeout=5.0",),
        ("training.weight_decay=0.5",),
        ("training.proximal=0.5",),
        ("seed=2",),
        (*LOCAL,),
    ],
)
def test_another_run_has_other_noise(make_scenario, other) -> None:
    """Runs that differ and share their noise give it away: their difference has none."""
    first, second = noise(make_scenario()), noise(make_scenario(*other))
    assert not np.isin(first, second).any()


def test_the_cells_of_a_comparison_share_cohorts_but_no_noise(make_scenario) -> None:
    asked = make_scenario("compare={epsilons=[1.0, 8.0], seeds=[3]}")
    people = population(asked.data)
    cells = [run_streams(asked.cell("central", epsilon, 3), people) for epsilon in (1.0, 8.0)]
    drawn = [streams.stream("cohort", round=1).random(10) for streams in cells]
    assert np.array_equal(*drawn)
    assert not np.isin(*(streams.noise("central", round=1).standard_normal(10) for streams in cells)).any()


def test_changed_data_has_other_noise(make_scenario) -> None:
    asked = make_scenario()
    people = population(asked.data)
    y = people.dataset.y.copy()
    y[7] = 1 - y[7]
    changed = replace(people, dataset=replace(people.dataset, y=y))
    dealt = replace(people, partition=replace(people.partition, order=people.partition.order[::-1].copy()))
    assert np.array_equal(noise(asked), noise(asked, replace(people)))
    for other in (changed, dealt):
        assert not np.isin(noise(asked), noise(asked, other)).any()


@pytest.mark.parametrize(
    "same",
    [
        ("name=other", "description=words", "duration=words", "tuning=words"),
        ("evaluation.every=2",),
        ("compare.seeds=[7]",),
        ("federation={observe='each', hosts=2, chunk_size=3}",),
    ],
)
def test_the_same_run_seen_in_another_way_has_the_same_noise(make_scenario, same) -> None:
    assert np.array_equal(noise(make_scenario()), noise(make_scenario(*same)))


@pytest.mark.parametrize(
    "defended", [("training.adversarial=3.0",), ("server.patience=1", "evaluation.on=public")]
)
def test_what_a_defence_looks_at_is_in_the_noise(make_scenario, defended) -> None:
    """Two games judge other public records, so that the clients compare with, or end by, the rest of them."""
    public = ("data.records=100", "data.public_fraction=0.3")
    asked = make_scenario(*public, *defended)
    people = population(asked.data)
    fewer = replace(people, judged=people.partition.public[:5])
    assert not np.isin(noise(asked, people), noise(asked, fewer)).any()
    plain = make_scenario(*public)
    assert np.array_equal(noise(plain, people), noise(plain, fewer))


def test_when_it_is_measured_is_in_the_noise_where_that_ends_a_run(make_scenario) -> None:
    public = ("data.records=100", "data.public_fraction=0.3", "server.patience=1", "evaluation.on=public")
    one, other = (noise(make_scenario(*public, f"evaluation.every={every}")) for every in (1, 2))
    assert not np.isin(one, other).any()


def test_one_draw_for_a_chunk_depends_on_how_chunks_are_cut(make_scenario) -> None:
    one, other = (noise(make_scenario(*SUMS, f"federation.chunk_size={size}")) for size in (4, 6))
    assert not np.isin(one, other).any()


def test_other_code_of_the_same_name_has_other_noise(make_scenario) -> None:
    asked = make_scenario("model={name='code', factory='my.models:make'}")
    people = population(asked.data)
    one, same, other = (
        run_streams(asked, people, code).noise("local").random(20) for code in ("a", "a", "b")
    )
    assert np.array_equal(one, same)
    assert not np.isin(one, other).any()
    with pytest.raises(ValueError, match="or with weights of a file needs their digest"):
        run_streams(asked, people)
