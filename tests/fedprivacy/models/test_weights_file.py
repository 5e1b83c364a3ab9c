"""Weights from a file: whole, with a place each, and the same at every seed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from fedprivacy.errors import InputError
from fedprivacy.models.weights_file import WeightsFile
from fedprivacy.scenario import Logistic, Mlp
from fedprivacy.scenario.model import Lora
from fedprivacy.training.model_spec import ModelSpec, model_spec

torch.manual_seed(3)
TENSORS = {"1.weight": torch.rand(6, 4), "1.bias": torch.rand(6)}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def write(tensors: dict[str, Tensor] | bytes = TENSORS, name: str = "w.safetensors") -> str:
        if isinstance(tensors, bytes):
            Path(name).write_bytes(tensors)
        else:
            save_file(tensors, name)
        return name

    return write


def spec(**settings: object) -> ModelSpec:
    return model_spec(Mlp(name="mlp", hidden=(6,), **settings), (4,), 3)


def refusal(**settings: object) -> str:
    with pytest.raises(InputError) as caught:
        spec(**settings)
    return str(caught.value)


def test_a_file_replaces_what_it_has_and_the_rest_is_drawn(write) -> None:
    model = spec(weights=write(), freeze=["1.*"])
    one, other = model.build(1), model.build(2)
    for module in (one, other):
        assert torch.equal(module[1].weight, TENSORS["1.weight"])
        assert not module[1].weight.requires_grad
    assert not torch.equal(one[3].weight, other[3].weight)


def test_weights_of_a_file_may_be_trained_and_are_stated_still(write) -> None:
    model = spec(weights=write())
    assert all(value.requires_grad for value in model.build(1).parameters())
    part = model.frozen
    assert part is not None
    assert (part.frozen, part.trained, part.file) == (0, 51, model.code)
    assert part.words.endswith(f"The model starts with weights of a file (digest {part.file}).")


def test_another_file_is_another_model(write) -> None:
    one, same = spec(weights=write()), spec(weights=write(name="moved.safetensors"))
    other = spec(weights=write({**TENSORS, "1.bias": torch.zeros(6)}))
    assert one.code == same.code != other.code
    assert one.frozen == same.frozen != other.frozen


def test_adapted_layers_take_the_weights_of_their_names(write) -> None:
    factor = torch.rand(6, 2)
    rest = {"3.weight": torch.rand(3, 6), "3.bias": torch.rand(3)}
    path = write({**TENSORS, **rest, "1.lora_b.weight": factor})
    module = spec(weights=path, lora=Lora(rank=2, alpha=2.0)).build(1)
    assert torch.equal(module[1].weight, TENSORS["1.weight"])
    assert torch.equal(module[1].lora_b.weight, factor)


def test_a_frozen_parameter_that_the_file_lacks_is_refused(write) -> None:
    """It would stay as it was drawn in every round."""
    path = write({"1.weight": TENSORS["1.weight"]})
    assert refusal(weights=path, freeze=["1.*"]) == (
        f'model.weights = "{path}": it lacks 1.bias, which is frozen, so that training never gives it a '
        "value. Add it to the file, or train it."
    )


def test_tied_parameters_have_any_of_their_names(write) -> None:
    def tied() -> nn.Sequential:
        module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
        module[1].weight = module[0].weight.requires_grad_(False)
        return module

    one, other = torch.rand(3, 3), torch.rand(3, 3)
    for tensors in ({"1.weight": one}, {"0.weight": one, "1.weight": one.clone()}):
        module = tied()
        WeightsFile.read(write(tensors)).load_into(module)
        assert torch.equal(module[0].weight, one)
    with pytest.raises(InputError, match=r"tensors [01]\.weight and [01]\.weight differ"):
        WeightsFile.read(write({"0.weight": one, "1.weight": other})).load_into(tied())


def test_smaller_floats_are_widened(write) -> None:
    half = {name: value.to(torch.bfloat16) for name, value in TENSORS.items()}
    weight = spec(weights=write(half)).build(1)[1].weight
    assert torch.equal(weight, half["1.weight"].float())


def test_a_file_may_not_replace_the_filters_of_features_by_a_formula(write) -> None:
    """Their digest would not be that of the features that the plan names; equal values change nothing."""
    options = Logistic(name="logistic", features="scatternet")
    values = dict(model_spec(options, (8, 8), 2).build(1).named_buffers())
    model_spec(options.model_copy(update={"weights": write(values)}), (8, 8), 2)
    other = write(values | {"1.coarse": 2 * values["1.coarse"]}, "other.safetensors")
    with pytest.raises(InputError, match=r"tensor 1\.coarse differs .* Remove it from the file\."):
        model_spec(options.model_copy(update={"weights": other}), (8, 8), 2)


def test_a_link_is_followed(write) -> None:
    Path("link.safetensors").symlink_to(write())
    assert WeightsFile.read("link.safetensors").digest == WeightsFile.read("w.safetensors").digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file; paths start at /"),
        (b"", "not a whole .safetensors file ("),
        (b"\xff" * 100, "not a whole .safetensors file (ValueError: its header has more than"),
        (
            b"\x10" + b"\0" * 7 + b"{}",
            "not a whole .safetensors file (ValueError: it is cut off in its header",
        ),
        ({}, "it holds no tensors"),
        ({"1.bias": torch.full((6,), torch.nan)}, "tensor 1.bias has numbers that are not finite"),
        (
            {"fc.bias": torch.zeros(6)},
            "the model has no parameter fc.bias. It has: 1.weight, 1.bias, 3.weight, 3.bias",
        ),
        (
            {"1.bias": torch.zeros(5)},
            "tensor 1.bias is float32 (5,), and the model's is float32 (6,). Remove it from the file, or",
        ),
        (
            {"1.bias": torch.zeros(6, dtype=torch.int64)},
            "tensor 1.bias is int64 (6,), and the model's is float32",
        ),
    ],
)
def test_what_is_wrong_with_a_file(write, content, message: str) -> None:
    path = "none.safetensors" if content is None else write(content)
    assert refusal(weights=path).startswith(f'model.weights = "{path}": {message}')


def test_a_file_that_was_cut_is_refused(write) -> None:
    path = Path(write())
    path.write_bytes(path.read_bytes()[:-4])
    assert "not a whole .safetensors file (SafetensorError" in refusal(weights=str(path))
