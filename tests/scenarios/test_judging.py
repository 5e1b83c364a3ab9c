"""What an attack amounts to on one run."""

from __future__ import annotations

import numpy as np

from scenarios.judging import histogram


def test_a_histogram_counts_everybody_once() -> None:
    scores = np.concatenate([np.linspace(0, 1, 500), [1e9, -1e9]])
    told = histogram({"members": scores[::2], "nonmembers": scores[1::2]})
    assert (sum(told["members"]), sum(told["nonmembers"])) == (251, 251)
    assert len(told["edges"]) == len(told["members"]) + 1
    assert max(told["edges"]) < 2
    flat = histogram({"members": np.zeros(2), "nonmembers": np.zeros(2)})
    assert sum(flat["members"]) == 2
    wide = histogram({"members": np.zeros(2), "nonmembers": np.ones(3)}, np.linspace(-9, 9, 50))
    assert wide["edges"][0] < -8
    assert (sum(wide["members"]), sum(wide["nonmembers"])) == (2, 3)
