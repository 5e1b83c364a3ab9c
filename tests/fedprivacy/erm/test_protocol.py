"""What travels between server and silos, and what of it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedprivacy.erm.protocol import SiloReply, SiloRequest
from fedprivacy.errors import FedPrivacyError, InputError

SENT = SiloRequest(2, 7, 1, np.array([1, 3]), np.array([[0.1, -2.0]]), {"trust": "local", "sizes": [3, 4]})
ASKED = np.array([1, 3, 5])
ROWS = np.ones((2, 4, 3))


def test_a_request_survives_the_wire() -> None:
    came = SiloRequest.of(*SENT.parts())
    assert (came.lot, came.step, came.host, came.plan) == (2, 7, 1, SENT.plan)
    assert (came.silos.tolist(), came.thetas.tolist()) == ([1, 3], [[0.1, -2.0]])


@pytest.mark.parametrize(
    "broken",
    [
        {"lot": -1},
        {"lot": "x"},
        {"step": 1.5},
        {"step": None},
        {"host": True},
        {"plan": "{"},
        {"plan": 7},
        {"silos": np.zeros(2)},
        {"silos": np.zeros((1, 2), dtype=np.int64)},
        {"silos": None},
        {"thetas": np.zeros(2)},
        {"thetas": np.zeros((1, 2), dtype=np.float32)},
        {"thetas": None},
    ],
)
def test_what_is_no_request_is_refused(broken: dict[str, Any]) -> None:
    arrays, values = SENT.parts()
    for name, value in broken.items():
        part = arrays if name in arrays else values
        part[name] = value
        if value is None:
            del part[name]
    with pytest.raises(InputError, match="not a request to silos"):
        SiloRequest.of(arrays, values)


def test_fewer_than_were_asked_may_answer() -> None:
    for silos in ([1, 5], [3, 5], []):
        rows = ROWS[: len(silos)]
        reply = SiloReply.of(
            *SiloReply(rows, np.array(silos, dtype=np.int64)).parts(), requested=ASKED, shape=(4, 3)
        )
        assert reply.silos.tolist() == silos


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"silos": np.array([1, 2])}, "names silos"),
        ({"silos": np.array([3, 1])}, "names silos"),
        ({"silos": np.array([3, 3])}, "names silos"),
        ({"silos": np.array([1.0, 3.0])}, "names silos"),
        ({"silos": np.array([1])}, "expected finite"),
        ({"rows": ROWS[:, :1]}, "expected finite"),
        ({"rows": ROWS.astype(np.float32)}, "expected finite"),
        ({"rows": ROWS * np.nan}, "expected finite"),
        ({"rows": None}, "not an answer of silos"),
    ],
)
def test_a_server_takes_no_damaged_reply(changes: dict[str, Any], words: str) -> None:
    arrays, values = SiloReply(ROWS, np.array([1, 3])).parts()
    arrays = {name: one for name, one in (arrays | changes).items() if one is not None}
    with pytest.raises(FedPrivacyError, match=words):
        SiloReply.of(arrays, values, requested=ASKED, shape=(4, 3))
