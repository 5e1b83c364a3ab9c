"""How many people would narrow an interval enough, under each trust model."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from fedprivacy.attacks import sample_size
from fedprivacy.report.statistics.answer import too_few
from fedprivacy.statistics.shuffling import message_epsilon

QUERIES = {"seen-it": {"kind": "mean-of-bits", "weight": 3.0}, "other": {"kind": "mean-of-bits"}}


def needed(trust: str, width: float, people: int) -> int:
    settings = {"epsilon": 0.1, "delta": 1e-8}
    document: Any = SimpleNamespace(
        trust=trust,
        privacy=SimpleNamespace(population=people),
        scenario={"queries": QUERIES},
        setting=lambda section, key: settings[key],
    )
    row = SimpleNamespace(interval=(0.0, width))
    query: Any = SimpleNamespace(name="seen-it", kind="mean-of-bits", rows=[row])
    return int(too_few(document, query).split("about ")[1].split(" ")[0].replace(",", ""))


@pytest.mark.parametrize(("trust", "power"), [("none", 2), ("local", 2), ("central", 1)])
def test_people_needed_grow_by_the_law_of_the_noise(trust: str, power: int) -> None:
    assert needed(trust, 0.8, 1000) == pytest.approx(1000 * 4**power)


def test_behind_a_shuffler_the_people_needed_have_the_width_that_is_aimed_at() -> None:
    def width(people: int) -> float:
        part = 0.75 * message_epsilon(0.1, people, 1e-8)
        return 1.96 / (math.sqrt(people) * math.sinh(part / 2))

    people = needed("shuffled", width(500), 500)
    assert width(people) == pytest.approx(sample_size.GOAL, rel=0.06)
    ratio = width(500) / sample_size.GOAL
    assert 500 * ratio < people < 500 * ratio**2
