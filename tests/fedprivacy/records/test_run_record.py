"""What the record of a run says beside its rounds and guarantees."""

from __future__ import annotations

import numpy as np

from fedprivacy.guarantees.per_client import spread


def test_the_spread_of_records_is_that_of_real_clients() -> None:
    assert spread(np.array([200, 31, 173, 150])) == {"smallest": 31, "median": 173, "largest": 200}
    assert spread(np.array([7])) == {"smallest": 7, "median": 7, "largest": 7}
    assert spread(None) is None
