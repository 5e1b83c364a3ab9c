from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.data.images import scattered, square_image
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import build, flat_weights, formula, unflatten
from fedprivacy.models.evaluation import evaluate
from fedprivacy.models.partial_training import frozen_part
from fedprivacy.models.scattering import Scattering
from fedprivacy.scenario import Cnn, Logistic, Mlp
from fedprivacy.scenario.model import FEATURES, cnn_size, dense_parameters

MLP = Mlp(name="mlp", hidden=(5, 4), activation="tanh")


def test_logistic_starts_at_zero_and_an_mlp_from_its_seed_alone() -> None:
    logistic = build(Logistic(name="logistic"), (8, 8), 10, seed=1)
    assert not flat_weights(logistic).any()
    assert len(flat_weights(logistic)) == 650
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    one, same, other = (flat_weights(build(MLP, (3,), 2, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_unflatten_is_the_inverse_of_flat_weights() -> None:
    module = build(MLP, (3,), 2, seed=1)
    parts = unflatten(module, torch.from_numpy(flat_weights(module)))
    assert all(torch.equal(parts[name], p) for name, p in module.named_parameters())
    with pytest.raises(ValueError, match="parameters"):
        unflatten(module, torch.zeros(3))


def test_evaluate_agrees_with_torch() -> None:
    module = build(MLP, (3,), 2, seed=1)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20_000, 3)).astype(np.float32), rng.integers(0, 2, 20_000)
    found = evaluate(module, flat_weights(module), x, y)
    logits = module(torch.from_numpy(x)).detach()
    assert found.accuracy == pytest.approx(float((logits.argmax(1).numpy() == y).mean()))
    right = [((logits.argmax(1).numpy() == y) & (y == label)).sum() for label in (0, 1)]
    assert found.correct == tuple(right)
    assert found.records == ((y == 0).sum(), (y == 1).sum())
    assert found.loss == pytest.approx(
        float(nn.functional.cross_entropy(logits, torch.from_numpy(y))), rel=1e-5
    )


def test_a_class_without_records_has_no_accuracy() -> None:
    module = build(Logistic(name="logistic"), (2,), 3, seed=1)  # at zero it names every record class 0
    x, y = np.ones((4, 2), dtype=np.float32), np.array([0, 0, 0, 1])
    assert evaluate(module, flat_weights(module), x, y).per_class() == [
        {"class": 0, "label": None, "accuracy": 1.0, "records": 3},
        {"class": 1, "label": None, "accuracy": 0.0, "records": 1},
        {"class": 2, "label": None, "accuracy": None, "records": 0},
    ]
    named = evaluate(module, flat_weights(module), x, y, ("cat", "dog", "bird")).per_class()
    assert [one["label"] for one in named] == ["cat", "dog", "bird"]


@pytest.mark.parametrize(
    ("features", "image"),
    [
        ((64,), (1, 8)),
        ((28, 28), (1, 28)),
        ((28, 28, 1), (1, 28)),
        ((32, 32, 3), (3, 32)),
        ((63,), None),
        ((3072,), None),
        ((3, 32, 32), None),
        ((28, 27), None),
        ((8, 8, 4), None),
        ((8, 8, 1, 1), None),
    ],
)
def test_which_records_are_square_images(features, image) -> None:
    assert square_image(features) == image


@pytest.mark.parametrize("features", [(64,), (28, 28), (32, 32, 3), (9, 9)])
@pytest.mark.parametrize(
    "options",
    [{}, {"channels": (5,), "hidden": (), "kernel_size": 1}, {"channels": (2, 3, 4), "kernel_size": 5}],
)
def test_a_cnn_takes_images_and_is_as_large_as_the_checks_of_a_scenario_reckon(features, options) -> None:
    cnn = Cnn(name="cnn", **options)
    module = build(cnn, features, 7, seed=1)
    assert module(torch.rand(5, *features)).shape == (5, 7)
    counted = {"numbers": 0}

    def count(layer, given, made) -> None:
        counted["numbers"] += made[0].numel()

    for layer in module:
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(count)
    module(torch.rand(1, *features))
    image = square_image(features)
    assert image is not None
    expected = (len(flat_weights(module)), counted["numbers"])
    assert cnn_size(cnn.channels, cnn.kernel_size, cnn.hidden, image, 7) == expected


def test_a_cnn_of_the_usual_benchmarks_can_be_named() -> None:
    cnn = Cnn(name="cnn", channels=(16, 32), kernel_size=5, hidden=(56,))
    module = build(cnn, (784,), 10, seed=1)
    assert len(flat_weights(module)) == 16 * 26 + 32 * (16 * 25 + 1) + 56 * 1569 + 10 * 57
    assert [layer.padding for layer in module if isinstance(layer, nn.Conv2d)] == [(2, 2), (2, 2)]


def test_an_mlp_is_as_large_as_the_checks_of_a_scenario_reckon() -> None:
    assert dense_parameters((3, 5, 4, 2)) == len(flat_weights(build(MLP, (3,), 2, seed=1)))


def test_a_cnn_starts_from_its_seed_alone_and_sees_channels_last_images_as_they_are() -> None:
    cnn = Cnn(name="cnn", channels=(4,), hidden=(), activation="tanh")
    one, same, other = (flat_weights(build(cnn, (8, 8, 3), 2, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    module = build(cnn, (8, 8, 3), 2, seed=1)
    records = torch.rand(2, 8, 8, 3)
    assert torch.equal(module[0](records)[1, 2, 3, 4], records[1, 3, 4, 2])
    flat = build(cnn, (64,), 2, seed=1)
    assert torch.equal(flat(records[..., 0].reshape(2, 64)), build(cnn, (8, 8), 2, seed=1)(records[..., 0]))


def test_a_cnn_refuses_what_is_no_image_and_images_that_are_too_small() -> None:
    with pytest.raises(InputError, match=r"records have the shape \(3, 32, 32\)"):
        build(Cnn(name="cnn"), (3, 32, 32), 10, seed=1)
    with pytest.raises(InputError, match=r"images of 3 x 3 pixels .* At most 1 entries"):
        build(Cnn(name="cnn"), (9,), 10, seed=1)


SCATTERED = {
    "logistic": Logistic(name="logistic", features="scatternet"),
    "mlp": Mlp(name="mlp", hidden=(5,), features="scatternet"),
    "cnn": Cnn(name="cnn", channels=(3,), hidden=(), features="scatternet"),
}


@pytest.mark.parametrize("shape", [(64,), (9, 9), (12, 12, 3)])
@pytest.mark.parametrize("name", SCATTERED)
def test_a_model_on_scattering_coefficients_has_the_size_of_its_shape(
    name: str, shape: tuple[int, ...]
) -> None:
    options, image = SCATTERED[name], square_image(shape)
    assert image is not None
    module, features = build(options, shape, 4, seed=1), scattered(image)
    assert module(torch.rand(2, *shape)).shape == (2, 4)
    width = features[0] * features[1] ** 2
    sizes = {
        "logistic": dense_parameters((width, 4)),
        "mlp": dense_parameters((width, 5, 4)),
        "cnn": cnn_size((3,), 3, (), features, 4)[0],
    }
    assert len(flat_weights(module)) == sizes[name]


def test_scattering_coefficients_of_an_image_are_normalised_by_themselves() -> None:
    """In groups of three channels, without a mean."""
    module = build(SCATTERED["logistic"], (8, 8), 2, seed=1)[:3]
    images = torch.rand(3, 8, 8)
    features = module(images)
    groups = features.unflatten(1, (27, 3)).flatten(2)
    torch.testing.assert_close(groups.mean(2), torch.zeros(3, 27), atol=1e-4, rtol=0)
    torch.testing.assert_close(module(images[1:2]), features[1:2])
    raw = Scattering(8)(images[:, None])
    torch.testing.assert_close(features, nn.functional.group_norm(raw, 27))


# Of a coloured image: a channel, and its features in column 1 of the rows 0 and 1.
VERSION_2 = [
    *((0, 1.48675, 1.6989), (1, -0.62369, -0.68352), (2, -0.73844, -0.6943), (16, 1.46008, 1.06995)),
    *((17, -1.22911, -1.43541), (80, 0.40687, -0.12857), (81, 1.11698, 1.69351), (90, 1.10886, -0.096)),
    *((162, 1.523, 1.79622), (242, 1.13522, 0.48727)),
]


def test_the_features_of_a_version_are_these_numbers() -> None:
    """Other numbers, or another order of channels, are another version: plans name no more than that."""
    number = torch.arange(64).reshape(8, 8)
    grey = ((137 * number**2 + 3100 * number) % 10007).float() / 10007
    image = torch.stack([grey, grey.T, grey**2], dim=-1)
    module = build(SCATTERED["logistic"], (8, 8, 3), 2, seed=1)
    assert isinstance(module, nn.Sequential)
    [features] = module[:3](image[None])
    assert FEATURES["scatternet"].startswith("scatternet, version 2:")
    for channel, *values in VERSION_2:
        assert features[channel, :, 1].tolist() == pytest.approx(values, abs=1e-4)


def test_the_digest_of_features_covers_what_is_in_no_tensor() -> None:
    def digest(eps: float) -> str:
        module = build(SCATTERED["cnn"], (8, 8), 2, seed=1)
        module[2].eps = eps
        return frozen_part(module, features=FEATURES["scatternet"]).digest

    assert digest(1e-5) == digest(1e-5) != digest(1e-4)


@pytest.mark.parametrize("shape", [(7, 7), (49,), (20,), (8, 9), (8, 8, 2)])
def test_records_that_are_no_images_have_no_scattering_coefficients(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r'model\.features = "scatternet": needs square images'):
        build(SCATTERED["mlp"], shape, 2, seed=1)


def test_an_encoder_is_a_formula_only_where_it_has_no_weights_and_no_code() -> None:
    model = build(SCATTERED["logistic"], (8, 8), 2, seed=1)
    assert formula(model[:4]) == formula(build(SCATTERED["logistic"], (8, 8), 3, seed=2)[:4])
    assert formula(model[:4]) != formula(build(SCATTERED["logistic"], (64,), 2, seed=1)[:3])
    assert formula(model[:4]) != formula(build(SCATTERED["logistic"], (9, 9), 2, seed=1)[:4])
    assert formula(model) is None
    assert formula(nn.Sequential(nn.Flatten(), nn.ReLU())) is None
    assert formula(nn.Sequential(nn.GroupNorm(1, 2))) is None


def test_an_encoder_is_another_formula_with_other_tensors_and_none_with_code_beside_it() -> None:
    def encoder() -> nn.Sequential:
        module = build(SCATTERED["logistic"], (8, 8), 2, seed=1)
        assert isinstance(module, nn.Sequential)
        return module[:4]

    other = encoder()
    other[1].fine.mul_(2)
    assert formula(other) not in (None, formula(encoder()))
    hooked, before, replaced = encoder(), encoder(), encoder()
    hooked.register_forward_hook(lambda layer, given, made: 2 * made)
    before[1].register_forward_pre_hook(lambda layer, given: None)
    replaced[0].forward = lambda records: records
    assert [formula(each) for each in (hooked, before, replaced)] == [None] * 3
