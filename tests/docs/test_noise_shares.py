"""docs/noise-shares.md: its example runs, and numbers outside the generated table are computed again."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from generators.noise_shares import CASES, calibrated, central_variance, markdown
from scipy import stats

from benchmarks.noise_shares import CASES as MEASURED
from benchmarks.noise_shares import DELTA
from fedprivacy.accounting.integer_sums import tau
from fedprivacy.mechanisms.skellam import Skellam

PAGE = (Path(__file__).parents[2] / "docs" / "noise-shares.md").read_text()
FLAT = " ".join(PAGE.split())


def test_the_example_runs() -> None:
    (code,) = re.findall(r"(?s)```python\n(.*?)```", PAGE)
    names: dict[str, object] = {}
    exec(code, names)
    assert isinstance(names["noise"], Skellam)
    assert names["noise"].noise_multiplier > 0


def test_the_table_has_every_case() -> None:
    rows = markdown().splitlines()
    assert len(rows) == len(CASES) + 2
    assert rows[3] == "| 100 | 256 | 4 | 14 | 1.004 | 1.151 | 0.4375 KiB |"


def test_the_first_answer_covers_the_table() -> None:
    rows = [row.strip("| ").split(" | ") for row in markdown().splitlines()[2:]]
    for column, words in (
        (4, "total is {} to {} times that under central trust"),
        (5, "and {} to {} times by the exact"),
    ):
        ratios = [float(row[column]) for row in rows if int(row[3]) >= 16 and row[0] in ("100", "1,000")]
        assert words.format(f"{min(ratios):.2f}", f"{max(ratios):.2f}") in FLAT


def ratio(bits: int) -> float:
    """Of the last row, at other bits."""
    clients, dimension, target, _ = CASES[-1]
    return calibrated(clients, dimension, target, bits).variance(clients) / central_variance(target)


def test_the_rule_of_bits_is_the_variance_of_rounding() -> None:
    """Within the room that noise and rounding take: a tenth."""
    assert "a variance of 16 n^3/(4^b d)" in FLAT
    for clients, dimension, target, bits in ((1000, 16, 4.0, 16), (10_000, 1024, 8.0, 18), CASES[-1]):
        mechanism = calibrated(clients, dimension, target, bits)
        rounding = clients / 4 / mechanism.scale**2
        assert 16 * clients**3 / (4**bits * dimension) == pytest.approx(rounding, rel=0.1)


def test_numbers_in_the_text() -> None:
    assert f"probability {1 - math.exp(-0.5):.0%} at least".replace("%", " %") in FLAT
    assert tau(4.0, 100) < 1e-15  # a share of standard deviation 2
    mechanism = calibrated(1000, 256, 4.0, 14)
    spread = mechanism.variance(1000) - (1000 / 4 - 1000 / 6) / mechanism.scale**2
    ratios = (each / central_variance(4.0) for each in (spread, mechanism.variance(1000)))
    assert "the first ratio is then {:.3f} in place of {:.3f}".format(*ratios) in FLAT
    assert f"18 bits the first ratio is {ratio(18):.0f}" in FLAT
    assert f"at 22 bits the first ratio would be {ratio(22):.3f}" in FLAT
    assert f"four deviations in {2e6 * stats.norm.sf(4):.0f} of 10^6 draws" in FLAT
    bounds = [
        Skellam(1.0, 0.0, d, bits, n, n).calibrated(epsilon, DELTA, "zero-out").wrap_chance
        for n, d, epsilon, bits in MEASURED
    ]
    assert f"(`wrap_chance`), is {100 * min(bounds):.2f} to {100 * max(bounds):.2f} %" in FLAT
