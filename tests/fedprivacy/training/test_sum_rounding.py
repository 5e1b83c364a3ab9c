"""What rounding moves in a sum of factored updates, against exact arithmetic of fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from fedprivacy.mechanisms.clipping import bounds_of_a_sum, shares_of_norms
from fedprivacy.mechanisms.summation import BLOCK
from fedprivacy.training import layers
from fedprivacy.training.layers import FactoredLinear, FormedLinear, Scale, Step
from fedprivacy.training.layerwise import LayerwiseUpdates


def cancelling(rows: int) -> FactoredLinear:
    """Three clients whose factors nearly cancel, as where training diverges: the products are far longer."""
    stream = np.random.default_rng(0)
    x = torch.from_numpy(stream.standard_normal((3, rows, 2)).astype(np.float32))
    x[:, 1::2] = x[:, ::2]
    back = torch.from_numpy(stream.standard_normal((3, rows, 2)).astype(np.float32)) * 1e6
    back[:, 1::2] = -back[:, ::2] * (1 + 2.0**-20)
    layer = FactoredLinear([torch.zeros(2, 2)], x, Scale(None), given=True)
    layer.forward(None, slice(0, rows))
    layer.descend(back, Step(1.0, 0.0, 0.0, 0.0))
    return layer


@pytest.mark.parametrize("clipping_norm", [1.0, 1e-3, 1e9])
def test_the_sum_is_as_near_the_exact_one_as_is_accounted_for(clipping_norm: float) -> None:
    layer = cancelling(8)
    bound, error = bounds_of_a_sum(clipping_norm, 3)
    assert bound is not None
    total, broken = LayerwiseUpdates([layer]).clipped_total(bound, error)
    shares, _ = shares_of_norms(layer.squares().sqrt(), bound, layer.errors(), error)
    assert not broken.any()
    rows, factors = layer._rows, layer._factors
    exact = [Fraction(0)] * 4
    for client, share in enumerate(shares.tolist()):
        update = [
            sum(
                -Fraction(factors[client, row, o].item()) * Fraction(rows[client, row, i].item())
                for row in range(8)
            )
            * Fraction(share)
            for o in range(2)
            for i in range(2)
        ]
        assert sum(value * value for value in update) <= Fraction(bound) ** 2
        exact = [a + b for a, b in zip(exact, update, strict=True)]
    away = [Fraction(value) - own for value, own in zip(total.tolist(), exact, strict=True)]
    assert sum(value * value for value in away) <= Fraction(3 * error) ** 2


@pytest.mark.parametrize("kind", ["factored", "formed, inputs in front", "formed, outputs in front"])
def test_momentum_and_weight_decay_keep_the_sum_near_the_exact_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of formed layers in both layouts, and of the scale of the weights that were sent."""
    monkeypatch.setattr(layers, "_INPUTS_IN_FRONT", kind == "formed, inputs in front")
    stream = np.random.default_rng(1)
    x, weight, *backs = (
        torch.from_numpy(stream.standard_normal(shape).astype(np.float32))
        for shape in ((3, 4, 2), (2, 2), *[(3, 4, 2)] * 5)
    )
    scale = Scale(x)
    layer = FactoredLinear([weight], x, scale, given=True) if kind == "factored" else FormedLinear([weight])
    for back in backs:
        layer.forward(x, slice(0, 4))
        step = Step(0.5, 0.9, 0.1, 0.2)
        scale.descend(step)
        layer.descend(back.clone(), step)
    bound, error = bounds_of_a_sum(0.5, 3)
    assert bound is not None
    total, broken = LayerwiseUpdates([layer]).clipped_total(bound, error)
    shares, _ = shares_of_norms(layer.squares().sqrt(), bound, layer.errors(), error)
    assert not broken.any()
    exact = [Fraction(0)] * 4
    for client, share in enumerate(shares.tolist()):
        for place, (o, i) in enumerate((o, i) for o in range(2) for i in range(2)):
            if isinstance(layer, FormedLinear):
                update = Fraction(layer.stack()[0][client, o, i].item())
            else:
                factors = layer._factors[client]
                update = (Fraction(scale.weight[client].item()) - 1) * Fraction(weight[o, i].item())
                for row in range(4):
                    update -= Fraction(factors[row, o].item()) * Fraction(x[client, row, i].item())
            exact[place] += Fraction(share) * update
    assert sum(value * value for value in exact) > 0.1
    away = [Fraction(value) - own for value, own in zip(total.tolist(), exact, strict=True)]
    assert sum(value * value for value in away) <= Fraction(3 * error) ** 2


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_both_layouts_of_formed_weights_agree_to_rounding(
    momentum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = np.random.default_rng(2)
    x, weight, bias, *backs = (
        torch.from_numpy(stream.standard_normal(shape).astype(np.float32))
        for shape in ((9, 10, 33), (7, 33), (7,), *[(9, 10, 7)] * 3)
    )
    updates, inner = [], []
    for in_front in (True, False):
        monkeypatch.setattr(layers, "_INPUTS_IN_FRONT", in_front)
        layer = FormedLinear([weight, bias])
        for back in backs:
            inner.append(layer.forward(x, slice(0, 10)))
            inner.append(layer.backward(back))
            layer.descend(back.clone(), Step(0.1, momentum, 0.1, 0.0))
        assert (layer.stack()[0].stride(2) == 1) != in_front
        updates.append(layer.stack())
    for one, other in zip(inner[:6], inner[6:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    for one, other in zip(*updates, strict=True):
        assert one.abs().max() > 0.1
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_a_part_that_rounding_would_move_too_far_is_clipped_harder() -> None:
    layer = cancelling(8)
    shares, _ = shares_of_norms(layer.squares().sqrt(), 1.0, layer.errors(), 1e-12)
    assert (shares * layer.errors() <= 1e-12 * (1 + 1e-9)).all()
    assert (shares < shares_of_norms(layer.squares().sqrt(), 1.0)[0]).all()


@pytest.mark.parametrize("clients", [1, 1000, 10**6, 10**8, 2**31])
def test_what_is_taken_off_the_clipping_norm_is_what_rounding_may_take(clients: int) -> None:
    bound, error = bounds_of_a_sum(2.0, clients)
    assert bound is not None
    unit = Fraction(1, 2**53)
    blocks = 5 * BLOCK * unit + 2 * (2 * unit + 2 * (clients * unit) ** 2)
    moved = clients * (Fraction(error) + 2 * blocks * (1 + Fraction(1, 2**20)))
    assert 2 * moved <= 2 - Fraction(bound) <= Fraction(1, 32)


def test_a_sum_of_more_clients_than_any_scenario_has_is_not_bounded() -> None:
    with pytest.raises(ValueError, match="2147483649 clients"):
        bounds_of_a_sum(1.0, 2**31 + 1)
