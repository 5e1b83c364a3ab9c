"""When early stopping ends, against a reckoning by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.training.early_stopping import has_ended, has_stopped, words


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_it_ends_where_the_least_loss_lies_patience_measurements_back(patience: int) -> None:
    rng = np.random.default_rng(patience)
    for _ in range(50):
        losses = rng.integers(0, 8, 12).astype(float)  # with ties, which are no improvement
        for count in range(13):
            known = losses[:count]
            first_best = int(np.argmin(known)) if count else 0  # argmin takes the first of equal ones
            by_hand = count > 0 and count - 1 - first_best >= patience
            assert has_stopped(known.tolist(), patience) == by_hand


def test_a_loss_that_is_not_finite_is_no_improvement() -> None:
    assert has_stopped([float("nan"), float("inf")], 2)
    assert not has_stopped([float("nan"), 5.0], 2)


def test_rounds_that_were_not_measured_do_not_count() -> None:
    def rounds(*losses: float | None) -> list[dict[str, float | None]]:
        return [{"accuracy": None if loss is None else 0.5, "loss": loss} for loss in losses]

    assert has_ended(rounds(1.0, None, 2.0), 9, 1)
    assert not has_ended(rounds(1.0, None, None), 9, 1)
    assert not has_ended(rounds(1.0, 2.0, 3.0), 9, None)
    assert has_ended(rounds(3.0, 2.0, 1.0), 3, None)
    assert has_ended([{"accuracy": 0.1, "loss": None}], 9, 1)  # too large to be written down


def test_the_loss_on_public_records_is_read_where_it_is_beside_another() -> None:
    rounds = [
        {"accuracy": 0.5, "loss": loss, "public_loss": public} for loss, public in ((1, 3), (2, 2), (3, 1))
    ]
    assert not has_ended(rounds, 9, 1)
    assert has_ended(
        [{**one, "loss": -one["loss"], "public_loss": -one["public_loss"]} for one in rounds], 9, 2
    )
    assert has_ended([{"accuracy": None, "loss": None, "public_loss": loss} for loss in (1.0, None)], 9, 1)


def test_the_record_says_what_the_rule_looked_at_and_what_is_charged() -> None:
    said = words(4, 9, 2, stopped=True, noise=True)
    assert "ended after 4 of 9 rounds" in said
    assert "public records alone" in said
    assert "All 9 planned rounds are charged" in said
    assert "charged" not in words(4, 9, 1, stopped=True, noise=False)
