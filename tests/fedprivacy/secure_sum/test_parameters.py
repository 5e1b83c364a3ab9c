"""Parameters of a secure sum: those without protection are refused with the reason."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fedprivacy.errors import InputError
from fedprivacy.secure_sum.parameters import Parameters

GOOD = Parameters(dimension=10, bits=16, clients=10, survivors=7, colluders=3, threshold=7)


def test_conditions_hold_up_to_their_bounds() -> None:
    assert GOOD.least_threshold == 7
    Parameters(10, 28, 1, 1, 0, 1)
    for clients in range(1, 12):
        for survivors in range(1, clients + 1):
            for colluders in range(survivors):
                for threshold in range(clients + 2):
                    good = colluders < threshold <= survivors and 2 * threshold > clients + colluders
                    try:
                        Parameters(10, 2, clients, survivors, colluders, threshold)
                    except InputError:
                        assert not good
                    else:
                        assert good


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"dimension": 0}, "dimension = 0"),
        ({"dimension": 2**32 + 1}, "Sum in parts"),
        ({"bits": 1}, "bits = 1: must be from 2 to 28"),
        ({"bits": 29}, "bits = 29: must be from 2 to 28"),
        ({"clients": 0}, "clients = 0"),
        ({"survivors": 0}, "survivors = 0: must be from 1 to clients = 10"),
        ({"survivors": 11}, "survivors = 11: must be from 1 to clients = 10"),
        ({"colluders": -1}, "colluders = -1: must be from 0 to survivors - 1 = 6"),
        ({"colluders": 7}, "colluders = 7: must be from 0 to survivors - 1 = 6"),
        ({"threshold": 3}, "3 colluders could open every secret alone. Use at least 7"),
        ({"threshold": 8}, "7 survivors could not open their sum"),
        ({"threshold": 6}, "two halves of the 10 clients different survivors .* Use at least 7"),
    ],
)
def test_refusals_name_the_reason(changes: dict[str, int], text: str) -> None:
    with pytest.raises(InputError, match=text):
        replace(GOOD, **changes)


@pytest.mark.parametrize("name", [field.name for field in fields(Parameters)])
@pytest.mark.parametrize("value", [7.0, 7.5, True, "7", None])
def test_values_that_are_no_integers_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{name} = {value!r}: must be an integer"):
        replace(GOOD, **{name: value})


def test_each_parameter_is_signed() -> None:
    others = [
        replace(GOOD, **{name: value})
        for name, value in [("dimension", 11), ("bits", 17), ("clients", 9), ("colluders", 2)]
    ]
    encoded = {
        each.encoded()
        for each in (GOOD, *others, replace(GOOD, survivors=8), replace(GOOD, survivors=8, threshold=8))
    }
    assert len(encoded) == 7
