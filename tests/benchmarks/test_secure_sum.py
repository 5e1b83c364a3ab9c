"""The benchmark of a secure sum: every phase is measured, a wrong sum is seen, and a void round is stated."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.secure_sum import PHASES, MeasuredRound, main
from fedprivacy.errors import RunError
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.server import Server

PARAMETERS = Parameters(dimension=50, bits=12, clients=10, survivors=7, colluders=0, threshold=6)


def test_each_phase_is_measured() -> None:
    measured = MeasuredRound(PARAMETERS, (10, 10, 10, 10))
    assert measured.void == ""
    assert [(row.phase, row.answered) for row in measured.rows] == list(
        zip(PHASES, (10, 9, 8, 7, 6), strict=True)
    )
    assert min(min(row.clients, row.server) for row in measured.rows) > 0
    assert [row.sent for row in measured.rows if row.phase != "consistency"][1:] == [
        32 + 9 * (2 * 33 + 16),  # a share of each secret and a tag
        50 * 12 // 8,
        9 * 33,
    ]


def test_a_void_round_is_stated() -> None:
    measured = MeasuredRound(PARAMETERS, (0, 40, 0, 0))
    assert "6 clients in the phase of inputs, fewer than 7" in measured.void
    assert len(measured.rows) == 3


def test_a_wrong_sum_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    total = Server.total
    monkeypatch.setattr(Server, "total", lambda self: total(self) ^ np.int64(1))
    with pytest.raises(RunError, match="wrong"):
        MeasuredRound(PARAMETERS, (0, 0, 0, 0))


def test_it_prints_a_table_for_each_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("benchmarks.secure_sum.KILLED", ((0, 0, 0, 0), (10, 10, 10, 0), (0, 40, 0, 0)))
    main(clients=10, dimension=20)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("the sum is right") == 2
    assert "nobody killed: the sum is right" in printed
    assert "10 % killed after keys, 10 % killed after shares" in printed
    assert "fewer than 7. No sum is released" in printed
