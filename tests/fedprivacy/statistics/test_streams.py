"""Two runs never share noise, unless they are the same run."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.statistics.population import people
from fedprivacy.statistics.streams import statistics_streams

TABLE = """
name = "table"
[data]
name = "npz"
path = "{path}"
[queries.age]
kind = "mean"
column = "age"
low = 0.0
high = 9.0
[privacy]
trust = "central"
epsilon = 1.0
"""


def draw(scenario) -> float:
    columns = [query.column for query in scenario.queries.values()]
    streams = statistics_streams(scenario, people(scenario.data, columns))
    return float(streams.noise("release/seen").random())


@pytest.mark.parametrize(
    "change",
    [
        "seed=2",
        "privacy.epsilon=2.0",
        "privacy.delta=1e-3",
        "privacy.trust=local",
        "privacy.adjacency=add-remove",
        "queries.seen.weight=2.0",
        "queries.seen.above=0.25",
        "queries.more={kind='count'}",
        "data.clients=101",
        "data.seed=1",
        "data.share=0.61",
        "federation.hosts=2",
    ],
)
def test_another_run_has_other_noise(make_statistics, change: str) -> None:
    assert draw(make_statistics()) != draw(make_statistics(change))


@pytest.mark.parametrize(
    "change", ["name=other", "description=x", "duration='1 s'", "tuning=x", "compare.repeats=9"]
)
def test_words_about_a_run_do_not_change_its_noise(make_statistics, change: str) -> None:
    assert draw(make_statistics()) == draw(make_statistics(change))


def test_the_data_count_and_not_where_they_lie(make_statistics, make_table, tmp_path) -> None:
    path = make_table(age=[1.0, 2.0, 3.0], other=[0.0, 0.0, 0.0])
    moved = tmp_path / "moved.npz"
    moved.write_bytes(path.read_bytes())
    first, same = (draw(make_statistics(text=TABLE.format(path=at))) for at in (path, moved))
    assert first == same
    make_table(age=[1.0, 2.0, 4.0], other=[0.0, 0.0, 0.0])
    assert draw(make_statistics(text=TABLE.format(path=path))) != first


def test_each_query_and_each_first_client_has_a_stream_of_its_own(make_statistics) -> None:
    scenario = make_statistics()
    streams = statistics_streams(scenario, people(scenario.data, ["answer"]))
    drawn = [
        streams.noise(purpose, member=member).random()
        for purpose in ("release/a", "release/b", "answers/a", "answers/b")
        for member in range(50)
    ]
    assert len(np.unique(drawn)) == len(drawn)
