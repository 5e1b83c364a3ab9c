"""Code that a scenario names: found, called, and told from other code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fedprivacy.errors import InputError
from fedprivacy.models.by_name import flat_weights
from fedprivacy.models.from_code import call, load, source_digest
from fedprivacy.scenario import Code, Mlp
from fedprivacy.training.model_spec import model_spec

NET = """
from torch import nn

def make(features, classes, width=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(features[0], width), nn.Tanh(), nn.Linear(width, classes))
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes modules into the current folder, and forgets those that were imported before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)

    def write(**texts: str) -> None:
        for name, text in texts.items():
            file = tmp_path / (name.replace("__", "/") + ".py")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        for name in set(sys.modules) - known:
            if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]

    yield write
    write()


def code(factory: str = "nets_a:make", **options: object) -> Code:
    return Code(name="code", factory=factory, options=options)


def refused(options: Code) -> str:
    with pytest.raises(InputError) as caught:
        model_spec(options, (4,), 2, allow_code=True)
    return str(caught.value)


def digest() -> str:
    return model_spec(code(), (4,), 2, allow_code=True).code


def test_without_permission_nothing_is_imported(write) -> None:
    write(nets_a="raise SystemExit('was run')")
    with pytest.raises(InputError, match=r'model.factory = "nets_a:make": .* never runs code.* --allow-code'):
        model_spec(code(), (4,), 2)
    assert "nets_a" not in sys.modules


def test_a_factory_gets_the_shape_of_the_data_and_its_options(write) -> None:
    write(nets_a=NET)
    model = model_spec(code(width=5), (4,), 2, allow_code=True)
    assert [tuple(p.shape) for p in model.build(1).parameters()] == [(5, 4), (5,), (2, 5), (2,)]


def test_a_module_in_a_package_of_the_current_folder_is_found(write) -> None:
    write(pkg_a__inner=NET)
    assert model_spec(code("pkg_a.inner:make"), (4,), 2, allow_code=True).code


def test_weights_follow_from_the_seed_alone(write) -> None:
    write(nets_a=NET)
    model = model_spec(code(), (4,), 2, allow_code=True)
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    one, same, other = (flat_weights(model.build(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_factory_cannot_change_the_scenario(write) -> None:
    write(
        nets_a=NET.replace("width=3", "widths").replace("    return", "    width = widths.pop()\n    return")
    )
    options = code(widths=[3])
    assert model_spec(options, (4,), 2, allow_code=True)
    assert options.options == {"widths": [3]}


@pytest.mark.parametrize(
    ("text", "factory", "said"),
    [
        (NET, "nets_b:make", r"there is no module nets_b\. Start the command where it lies \(now: /.*\)"),
        (NET, "nets_a.deeper:make", r"there is no module nets_a\.deeper; nets_a is the one in /"),
        (NET, "nets_a:mak", r"the module nets_a in /.* has no function mak\. It has: make\."),
        ("make = 3", "nets_a:make", r"has no function make\."),
        (
            "import nothing_like_this",
            "nets_a:make",
            r"its import raises ModuleNotFoundError: No module named",
        ),
        ("x = 1 / 0", "nets_a:make", r"its import raises ZeroDivisionError: division by zero\."),
        ("raise SystemExit", "nets_a:make", r"its import raises SystemExit\."),
        ("def make(", "nets_a:make", r"its import raises SyntaxError"),
        (
            "def make(): pass",
            "nets_a:make",
            r"called with features=\(4,\), classes=2 it raises TypeError: make",
        ),
        ("def make(**given): raise KeyError", "nets_a:make", r"it raises KeyError\."),
        ("def make(**given): return 3", "nets_a:make", r"it returns int, an nn\.Module is needed\."),
    ],
)
def test_what_is_wrong_with_a_factory(write, text: str, factory: str, said: str) -> None:
    write(nets_a=text)
    message = refused(code(factory))
    assert message.startswith(f'model.factory = "{factory}": ')
    assert re.search(said, message), message


def test_options_that_the_factory_does_not_take_are_named(write) -> None:
    write(nets_a=NET)
    assert "classes=2, depth=2 it raises TypeError" in refused(code(depth=2))


def test_other_source_is_other_code(write) -> None:
    """Where a helper differs the layers look the same: only the source tells."""
    other = NET.replace("nn.Tanh()", "nn.Sigmoid()")
    helped = "from nets_help import helped\nimport nets_deep\n" + NET.replace(
        "nn.Tanh()", "nn.Tanh(*helped())"
    )
    helper, changed = ("def helped():\n    return ()\n", "def helped():\n    return []\n")
    found = []
    for texts in (
        {"nets_a": NET},
        {"nets_a": other},
        {"nets_a": helped, "nets_help": helper, "nets_deep": ""},
        {"nets_a": helped, "nets_help": changed, "nets_deep": ""},
        {"nets_a": helped, "nets_help": helper, "nets_deep": "x = 1"},
        {"nets_a": NET},
    ):
        write(**texts)
        found.append(digest())
    assert found[0] == found[-1]
    assert len(set(found)) == len(found) - 1


def test_what_a_factory_reads_from_a_file_is_other_code(write) -> None:
    """The same source, other weights at the same seed."""
    reads = NET.replace("def make", "import pathlib, torch\n\ndef make").replace(
        "    return", "    torch.rand(int(pathlib.Path('draws').read_text()))\n    return"
    )
    found = []
    for draws in "121":
        write(nets_a=reads)
        Path("draws").write_text(draws)
        found.append(digest())
    assert found[0] == found[2] != found[1]


def test_where_an_object_lies_in_memory_is_not_part_of_the_code(write) -> None:
    printed = NET.replace("nn.Tanh()", "Shown()") + (
        "\nclass Shown(nn.Module):\n    def forward(self, x):\n        return x\n"
        "    def extra_repr(self):\n        return repr(object())\n"
    )
    write(nets_a=printed)
    options, found = code(), set()
    for _ in range(3):
        kept = call(load(options), options, (4,), 2, 0)
        found.add(source_digest(options, kept))
    assert len(found) == 1


def test_a_layer_of_an_installed_package_can_be_the_factory() -> None:
    """Its own source is read, not that of all of torch."""
    module = torch.nn.Linear(4, 2)
    one, other = (source_digest(code(f"torch.nn{of}:Linear"), module) for of in ("", ".modules"))
    assert one != other


def test_a_model_by_name_is_described_by_the_scenario() -> None:
    model = model_spec(Mlp(name="mlp"), (4,), 2)
    assert model.code == ""
    assert [p.device.type for p in model.build(1).parameters()] == ["cpu"] * 4
