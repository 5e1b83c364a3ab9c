"""Charts as files: in each format, in the page's light colours, with the terms of their epsilons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.report.figures import FORMATS, write_figures
from fedprivacy.report.svg import _VARIABLES
from scenarios.experiments.comparison import compare


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory, make_scenario) -> dict[str, Any]:
    only = ("server.rounds=2", 'compare={trusts=["central", "none"], epsilons=[2.0, 4.0], seeds=[1]}')
    return compare(make_scenario(*only), tmp_path_factory.mktemp("runs"), workers=1)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("kind", FORMATS)
def test_each_chart_is_a_file_of_its_own(document, tmp_path: Path, kind: str) -> None:
    paths = write_figures(document, tmp_path / "figures", kind)
    assert len(paths) >= 2
    assert all(path.suffix == f".{kind}" and path.stat().st_size > 2000 for path in paths)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        *(path.name for path in paths), "captions.txt",
    }  # fmt: skip


def test_no_placeholder_is_left_and_colours_are_those_of_the_page(document, tmp_path: Path) -> None:
    for path in write_figures(document, tmp_path, "svg"):
        used = set(re.findall(r"#[0-9a-f]{6}\b", path.read_text()))
        assert not used & set(_VARIABLES)
        assert "#0072b2" in used  # central


@pytest.mark.exhaustive
def test_a_bitmap_has_ink_on_white_and_a_margin(document, tmp_path: Path) -> None:
    for path in write_figures(document, tmp_path, "png"):
        pixels = matplotlib.image.imread(path)[..., :3]
        edges = (pixels[:10], pixels[-10:], pixels[:, :10], pixels[:, -10:])
        assert all(np.all(edge == 1.0) for edge in edges)
        assert pixels.min() < 0.4


def test_captions_state_the_terms_of_every_epsilon(document, tmp_path: Path) -> None:
    """Each caption by itself: a chart in a paper stands without the finding of the page."""
    paths = write_figures(document, tmp_path, "svg")
    captions = (tmp_path / "captions.txt").read_text().split("\n\n")
    by_chart = {caption.partition(": ")[0]: caption for caption in captions}
    shown = [path for path in paths if "epsilon" in path.read_text().lower()]
    assert {path.name for path in shown} >= {"frontier.svg", "curves.svg"}
    for path in shown:
        text = by_chart[path.name]
        assert "delta " in text
        assert "unit client" in text
        assert "adjacency replace-one" in text
        assert "not against the server" in text
        assert "above" not in text


def test_a_chart_without_epsilons_has_no_terms(document, tmp_path: Path) -> None:
    document = {**document, "cells": [cell for cell in document["cells"] if cell["trust"] == "none"]}
    write_figures(document, tmp_path, "svg")
    assert "delta" not in (tmp_path / "captions.txt").read_text()


def test_links_are_not_followed(document, tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine", tmp_path / "figures"
    mine.mkdir()
    (mine / "text").write_text("mine")
    folder.symlink_to(mine)
    with pytest.raises(InputError, match="not a folder of its own"):
        write_figures(document, folder, "svg")
    assert [path.name for path in mine.iterdir()] == ["text"]
    folder.unlink()
    folder.mkdir()
    for name in ("captions.txt", "frontier.svg"):
        (folder / name).symlink_to(mine / "text")
    write_figures(document, folder, "svg")
    assert (mine / "text").read_text() == "mine"
    assert "<svg" in (folder / "frontier.svg").read_text()


def test_the_same_document_gives_the_same_svg(document, tmp_path: Path) -> None:
    first, second = (write_figures(document, tmp_path / name, "svg") for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_an_unknown_format_is_refused_before_anything_is_written(document, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--figures gif: no such format"):
        write_figures(document, tmp_path / "figures", "gif")
    assert not (tmp_path / "figures").exists()
