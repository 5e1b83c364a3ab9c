"""A stored transcript is what was seen, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedprivacy.attacks.stored_observations import Recording
from fedprivacy.attacks.transcript import Sight
from fedprivacy.errors import InputError


def sight(number: int) -> Sight:
    made = torch.Generator().manual_seed(number)
    return Sight(
        torch.randn(7, generator=made), torch.randn(7, generator=made), torch.randn(3, 7, generator=made),
        round=number,
    )  # fmt: skip


@pytest.fixture
def recording(tmp_path) -> Recording:
    made = Recording(tmp_path / "seen" / "server" / "9")
    for number in (0, 4):  # the victim refused round 8
        made.add(sight(number))
    assert not made.whole
    made.close([0, 4, 8], {"before": 0.5})
    return made


def test_it_gives_back_every_bit_of_the_rounds_that_are_asked_for(recording) -> None:
    again = Recording(recording.folder)
    assert again.whole
    assert again.facts == {"before": 0.5}
    for found, number in zip(again.sights([8, 4, 0]), (0, 4), strict=True):
        for part in ("sent", "update", "others"):
            assert torch.equal(getattr(found, part), getattr(sight(number), part))
        assert (found.round, found.targets) == (number, None)
    assert [found.round for found in again.sights([4])] == [4]


def test_it_covers_the_rounds_that_were_to_be_observed_and_no_others(recording) -> None:
    assert recording.covers([0, 8])
    assert not recording.covers([0, 1])


def test_a_seat_without_others_has_none(tmp_path) -> None:
    made = Recording(tmp_path)
    made.add(Sight(torch.zeros(2), torch.ones(2), torch.empty(0, 2), round=1))
    made.close([1], {})
    [found] = made.sights([1])
    assert found.others.shape == (0, 2)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("round-000004.safetensors", cut),
        ("round-000004.safetensors", change),
        ("round-000004.safetensors", Path.unlink),  # and not: the victim refused
        ("transcript.json", cut),
    ],
)
def test_damage_is_said_with_the_file_and_what_to_do(recording, name, damage) -> None:
    damage(recording.folder / name)
    with pytest.raises(InputError, match=rf"{name}: the transcript is damaged .* Remove .*repeats"):
        list(recording.sights([4])) if "round" in name else recording.covers([0])
