"""Models that are objects are told apart by code and values, and by nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
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
