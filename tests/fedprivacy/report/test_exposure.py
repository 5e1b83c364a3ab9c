"""The exposure of secrets on the page: its bound has an observer and assumptions, and is rounded up."""

from __future__ import annotations

from typing import Any

from fedprivacy.documents.quality import Exposure, ExposureBound
from fedprivacy.report.exposure import of_run, sentence


def exposure(**changed: Any) -> Exposure:
    bound = {
        "bits": 3.44,
        "observer": "outsider",
        "adjacency": "add-remove",
        "steps": 2,
        "basis": "Gaussian noise",
        "assumptions": ("no client colludes",),
        **changed,
    }
    return Exposure(
        copies=10, candidates=10**4, bits=(2.0, 1.0), mean=1.5, chance=1.44, bound=ExposureBound(**bound)
    )


def test_the_sentence_has_the_observer_the_adjacency_and_the_assumptions() -> None:
    words = sentence(exposure())
    assert "an outsider, who sees the final model" in words
    assert "add-remove, in two steps" in words
    assert "at most 3.5 bits over draws of the secrets" in words
    assert words.endswith("provided that no client colludes.")
    assert "two steps" not in sentence(exposure(steps=1))


def test_the_chart_has_the_same_bound_rounded_up() -> None:
    from types import SimpleNamespace

    [section] = of_run(SimpleNamespace(final=SimpleNamespace(exposure=exposure())))  # type: ignore[arg-type]
    picture = str(section.blocks[1])
    assert "Bound of the mean: 3.5 bits" in picture
    assert "3.4 bits" not in picture
