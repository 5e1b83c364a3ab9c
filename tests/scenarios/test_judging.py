"""What an attack amounts to on one run."""

from __future__ import annotations

import numpy as np

from scenarios.judging import histogram


def test_a_histogram_counts_everybody_once() -> None:
    scores = np.concatenate([np.linspace(0, 1, 500), [1e9, -1e9]])
    members = np.arange(502) % 2 == 0
    told = histogram(scores, members)
    assert sum(told["members"]) == members.sum()
    assert sum(told["nonmembers"]) == (~members).sum()
    assert len(told["edges"]) == len(told["members"]) + 1
    assert max(told["edges"]) < 2
    flat = histogram(np.zeros(4), np.array([True, True, False, False]))
    assert sum(flat["members"]) == 2
