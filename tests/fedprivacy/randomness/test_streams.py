from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.randomness.streams import Streams


def test_a_stream_does_not_depend_on_what_else_was_drawn() -> None:
    alone = Streams(7).stream("noise", round=3, member=5).standard_normal(10)
    streams = Streams(7)
    streams.stream("noise", round=3, member=4).standard_normal(1000)
    assert np.array_equal(alone, streams.stream("noise", round=3, member=5).standard_normal(10))


@pytest.mark.parametrize(
    "other",
    [
        lambda: Streams(8).stream("noise", round=3, member=5),
        lambda: Streams(7).stream("cohort", round=3, member=5),
        lambda: Streams(7).stream("noise", round=4, member=5),
        lambda: Streams(7).stream("noise", round=3, member=6),
        lambda: Streams(7).stream("noise", round=5, member=3),
    ],
)
def test_seed_purpose_round_and_member_each_give_another_stream(other) -> None:
    own = Streams(7).stream("noise", round=3, member=5).standard_normal(1000)
    assert abs(np.corrcoef(own, other().standard_normal(1000))[0, 1]) < 0.15


def test_neighbouring_streams_never_overlap() -> None:
    # A counter-based generator counts blocks from its own (round, member): no draw of one stream
    # can appear in the next, however many are made.
    first = Streams(1).stream("noise", member=0).integers(2**63, size=50_000)
    second = Streams(1).stream("noise", member=1).integers(2**63, size=50_000)
    assert not np.intersect1d(first, second).size


def test_round_and_member_are_not_mixed_up() -> None:
    pairs = [(0, 10**6), (1, 0), (0, 1), (10**6, 0)]
    first = {Streams(1).stream("noise", round=r, member=m).integers(2**63) for r, m in pairs}
    assert len(first) == len(pairs)


def test_streams_in_turn_are_those_that_are_made_one_by_one() -> None:
    """However much of the last one was used, also half a word of it."""
    streams = Streams(5, "run")
    for many, one in ((streams.streams, streams.stream), (streams.noises, streams.noise)):
        for member, stream in zip((3, 1, 2**40), many("batches", (3, 1, 2**40), round=7), strict=True):
            own = one("batches", round=7, member=member)
            for generator in (stream, own):
                generator.integers(2**16, dtype=np.uint32)
            assert np.array_equal(stream.standard_normal(33), own.standard_normal(33))
