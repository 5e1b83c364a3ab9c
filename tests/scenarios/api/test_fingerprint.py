"""Models that are objects are told apart by code and values, and by nothing else."""

from __future__ import annotations

import argparse
import datetime
import enum
import functools
import importlib
import operator
import re
import subprocess
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from scenarios.api.fingerprint import fingerprint

ROOT = Path(__file__).parents[3]


def with_width(width: int) -> Callable[[], nn.Module]:
    return lambda: nn.Linear(2, width)


def defined(text: str) -> object:
    """What `make` is after a cell of a notebook with this text, which has no source file."""
    names: dict = {"__name__": "__nowhere__", "nn": nn, "np": np}
    exec(compile(text, "<cell>", "exec"), names)
    return names["make"]


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
    def forward(self, x):
        return HELP(self.layer(x)) * 2
def HELP(x):
    return x + 1
def make():
    return Net()
"""


def test_models_that_differ() -> None:
    first, second = lambda: nn.Linear(2, 2), lambda: nn.Linear(2, 3)  # on one line
    module = nn.Linear(2, 2)
    models = [
        first, second, with_width(1), with_width(2), partial(with_width, 1), partial(with_width, 2), nn.Linear, nn.Conv2d,
        module, nn.Linear(2, 2), nn.Sequential(module), nn.Linear(2, 2).to(torch.bfloat16),
        *(defined(text) for text in (NET, NET.replace("* 2", "* 3"), NET.replace("+ 1", "+ 2"), NET.replace("2, 2", "2, 4"))),
        defined("W = 1\ndef make(): return W"), defined("W = 2\ndef make(): return W"),
        defined("def make(a): return a + 1"), defined("def make(a): return a - 1"),
        defined("def make(a=1): return a"), defined("def make(a=2): return a"),
        defined("def make(a={1, 2}): return a"), defined("def make(a=np.ones(2)): return a"),
    ]  # fmt: skip
    prints = [fingerprint(model) for model in models]
    assert len(set(prints)) == len(models)


def build(*parts: object) -> nn.Module:
    return nn.Linear(2, 2)


class Slotted:
    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        self.width = width


@dataclass
class Config:
    width: int


class Named(NamedTuple):
    width: int


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


class Masked(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((2,), value), persistent=False)


def cached(text: str) -> object:
    return functools.cache(defined(text))


def disguised(add: int) -> Callable:
    @functools.wraps(torch.nn.functional.relu)
    def act(x: torch.Tensor) -> torch.Tensor:
        return x + add

    return act


def hooked(add: int) -> nn.Module:
    module = nn.Linear(2, 2)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    module.register_forward_hook(lambda _, __, out: out + add)
    return module


def with_attribute(width: int) -> Callable:
    make = defined("def make(): return make.width")
    make.width = width
    return make


PAIRS = {
    "torch functions": (torch.relu, torch.tanh),
    "torch.nn functions": (nn.functional.relu, nn.functional.gelu),
    "namespaces": (SimpleNamespace(a=1), SimpleNamespace(a=2)),
    "options": (argparse.Namespace(a=1), argparse.Namespace(a=2)),
    "ranges": (range(3), range(4)),
    "slices": (slice(3), slice(4)),
    "deques": (deque([1]), deque([2])),
    "decimals": (Decimal(1), Decimal(2)),
    "fractions": (Fraction(1, 2), Fraction(1, 3)),
    "bytearrays": (bytearray(b"a"), bytearray(b"b")),
    "series": (pd.Series([1, 2]), pd.Series([1, 3])),
    "frames": (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": ["y"]})),
    "arrays of objects": (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
    "cached functions": (cached("def make(): return 1"), cached("def make(): return 2")),
    "builtins": (max, min),
    "bound builtins": ([1].count, [2].count),
    "ufuncs": (np.sin, np.cos),
    "dtypes": (torch.float32, torch.float64),
    "numpy dtypes": (np.dtype("f4"), np.dtype("f8")),
    "devices": (torch.device("cpu"), torch.device("meta")),
    "slots": (Slotted(1), Slotted(2)),
    "dataclasses": (Config(1), Config(2)),
    "named tuples": (Named(1), Named(2)),
    "enums": (Kind.ONE, Kind.TWO),
    "defaults": (defaultdict(int), defaultdict(float)),
    "ordered": (OrderedDict(a=1), OrderedDict(a=2)),
    "getters": (operator.itemgetter(1), operator.itemgetter(2)),
    "paths": (Path("a"), Path("b")),
    "patterns": (re.compile("a"), re.compile("b")),
    "dates": (datetime.date(2000, 1, 1), datetime.date(2000, 1, 2)),
    "generators": (np.random.default_rng(1), np.random.default_rng(2)),
    "vectorized": (np.vectorize(lambda x: x + 1), np.vectorize(lambda x: x + 2)),
    "python ufuncs": (np.frompyfunc(lambda x: x + 1, 1, 1), np.frompyfunc(lambda x: x + 2, 1, 1)),
    "buffers that are not saved": (Masked(1.0), Masked(2.0)),
    "hooks": (hooked(1), hooked(2)),
    "attributes of functions": (with_attribute(1), with_attribute(2)),
    "disguised functions": (disguised(1), disguised(2)),
    "weak references": (weakref.ref(Named), weakref.ref(Config)),
    "opaque": (iter(lambda: 1, 2), iter(lambda: 1, 3)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_value_of_a_model_counts(name: str) -> None:
    one, two = PAIRS[name]
    for make in (
        lambda value: value,
        lambda value: partial(build, act=value),
        lambda value: partial(build, [value]),
    ):
        assert fingerprint(make(one)) != fingerprint(make(two))
        if name not in ("python ufuncs", "opaque"):
            assert fingerprint(make(one)) == fingerprint(make(one))


def test_a_global_name_that_is_only_an_attribute_does_not_count() -> None:
    one, two = (defined(f"loss = {number}\ndef make(module): return module.loss") for number in (1, 2))
    assert fingerprint(one) == fingerprint(two)


@pytest.mark.parametrize("text", ["globals()['W']", "eval('W')", "importlib.import_module('own').W"])
def test_what_is_reached_by_a_text_is_new_each_time(text: str) -> None:
    make = defined(f"def make(): return {text}")
    assert fingerprint(make) != fingerprint(make)


def test_what_cannot_be_seen_into_is_new_each_time() -> None:
    values = (each for each in (1, 2))  # an equal print would cover another inside
    assert fingerprint(partial(build, values)) != fingerprint(partial(build, values))


@pytest.mark.parametrize(
    "text",
    [
        "import fedprivacy_own as own\ndef make(): return own.build()",
        "def make():\n    import fedprivacy_own\n    return fedprivacy_own.build()",
        "def make():\n    from fedprivacy_own import build\n    return build()",
    ],
)
def test_code_of_an_own_module_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    prints = []
    for number in (1, 1, 2):
        own = f"import numpy as np, torch, logging\nLOG = logging.getLogger('a')\ndef build(): return {number}\n"
        (tmp_path / "fedprivacy_own.py").write_text(own)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        sys.modules.pop("fedprivacy_own", None)
        importlib.invalidate_caches()
        prints.append(fingerprint(defined(text)))
    sys.modules.pop("fedprivacy_own")
    assert prints[0] == prints[1] != prints[2]


def test_models_that_are_the_same() -> None:
    module = nn.Linear(2, 2)
    assert fingerprint(module) == fingerprint(module)
    assert fingerprint(with_width(3)) == fingerprint(with_width(3))
    assert fingerprint(defined(NET)) == fingerprint(defined("# a comment\n\n" + NET))


def test_values_of_a_module_count() -> None:
    module = nn.Dropout(0.1)
    before = fingerprint(module)
    module.p = 0.2
    assert fingerprint(module) != before


def test_a_function_that_names_itself_ends() -> None:
    assert fingerprint(defined("def make(): return make\nmake.again = make"))


def test_other_processes_have_the_same_prints() -> None:
    code = "from scenarios.api.fingerprint import fingerprint\ndef make(a={'x', 'y', 'z'}): return frozenset('abc'), a\nprint(fingerprint(make))"
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(prints) == 1
