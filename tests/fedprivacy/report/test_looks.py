"""Series are told apart by colour and by shape, on light and dark paper, also by colour-blind readers."""

from __future__ import annotations

import copy
import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from pages import charts_of, check_looks
from test_charts import DOCUMENTS, PANELS, chart

import fedprivacy.report
from fedprivacy.documents.envelope import Arm
from fedprivacy.report import svg
from fedprivacy.report.charts import looks

CSS = (Path(fedprivacy.report.__file__).parent / "page.css").read_text()
SCHEMES = {
    "light": CSS[CSS.index(":root") : CSS.index("@media")],
    "dark": CSS[CSS.index("prefers-color-scheme: dark") : CSS.index("* { box-sizing")],
    "print": CSS[CSS.index("@media print") :],
}
# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear light.
BLIND = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}  # fmt: skip
TRUSTS = (svg.NONE, svg.CENTRAL, svg.LOCAL, svg.DISTRIBUTED)
PALETTE = (*TRUSTS, *(look[0] for look in looks.MORE))


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ (0.2126, 0.7152, 0.0722))


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def scheme(name: str) -> dict[str, str]:
    known: dict[str, str] = dict(re.findall(r"(--[a-z]+): (#[0-9a-f]{6})", SCHEMES[name]))
    return known


def oklab(light: np.ndarray) -> np.ndarray:
    """Ottosson 2020: distances in it are about as large as they look."""
    to_cones = np.array([
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ])  # fmt: skip
    to_lab = np.array([
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ])  # fmt: skip
    return np.asarray(to_lab @ np.cbrt(to_cones @ np.clip(light, 0, 1)))


@pytest.mark.parametrize("name", SCHEMES)
def test_marks_and_lines_stand_out_from_the_paper(name: str) -> None:
    """WCAG 2.2, 1.4.11: 3 to 1; as labels have the colour of their line they need 4.5 to 1."""
    colours = scheme(name)
    variables = [svg._VARIABLES[placeholder] for placeholder in (*PALETTE, svg.INK, svg.MUTED)]
    faint = {at: contrast(colours[at], colours["--paper"]) for at in variables}
    assert {at: ratio for at, ratio in faint.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("eye", BLIND)
def test_colour_blind_readers_distinguish_the_trust_models(name: str, eye: str) -> None:
    colours = scheme(name)
    seen = {at: oklab(np.array(BLIND[eye]) @ linear(colours[svg._VARIABLES[at]])) for at in TRUSTS}
    for first, second in combinations(TRUSTS, 2):
        assert np.linalg.norm(seen[first] - seen[second]) > 0.07, (first, second)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_no_two_colours_of_the_palette_look_the_same(name: str) -> None:
    colours = scheme(name)
    seen = [oklab(linear(colours[svg._VARIABLES[at]])) for at in PALETTE]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 0.06


def test_up_to_twelve_series_share_neither_a_colour_nor_a_shape() -> None:
    every = looks.series(12)
    assert len({colour for colour, _, _ in every}) == 12
    assert len({marker for _, marker, _ in every}) == 12
    assert len({str(line) for _, _, line in every}) == 12


def test_of_more_series_colour_or_shape_differ_and_neighbours_differ_in_both() -> None:
    every = looks.series(20)
    assert len(set(map(str, every))) == len(every)
    for one, other in pairwise(every):
        assert all(one[part] != other[part] for part in range(3))


def test_looks_of_epsilons_have_no_trust_model_s_colour() -> None:
    assert not {look[0] for look in looks.others(8)} & set(TRUSTS)
    assert len({str(look[1:]) for look in looks.others(8)}) == 8


def test_arms_of_several_trust_models_share_no_look() -> None:
    """Several mechanisms under central and under local trust once had the same looks."""
    arms = [Arm("central"), Arm("central", "b", 1), Arm("local"), Arm("local", "b", 1), Arm("none")]
    drawn = looks.arms(arms)
    assert len({look[0] for look in drawn.values()}) == len(arms)
    assert len({str(look[1:]) for look in drawn.values()}) == len(arms)
    assert drawn[arms[0]] == looks.LOOKS["central"]


@pytest.mark.parametrize("name", PANELS)
def test_no_two_series_of_any_kind_of_panel_look_alike(name: str) -> None:
    check_looks(chart(PANELS[name]))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_two_series_of_a_page_s_charts_look_alike(name: str) -> None:
    for drawn in charts_of(copy.deepcopy(DOCUMENTS[name]())):
        check_looks(drawn)
