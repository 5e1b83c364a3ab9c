"""docs/secure-sum.md: its example runs, and its figures are those of the benchmark."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.secure_sum import PHASES

PAGE = (Path(__file__).parents[2] / "docs" / "secure-sum.md").read_text()


def test_the_example_runs() -> None:
    (code,) = re.findall(r"(?s)```python\n(.*?)```", PAGE)
    names: dict[str, object] = {}
    exec(code, names)
    (total,) = re.findall(r"# (\d+, \d+, \d+)$", code, re.MULTILINE)
    assert str(names["total"].tolist()) == f"[{total}]"  # type: ignore[attr-defined]


def test_the_table_has_each_phase_and_its_bytes() -> None:
    rows = [row.split(" | ") for row in re.findall(r"^\| (\w+ \| [\d.]+ ms.*) \|$", PAGE, re.MULTILINE)]
    assert tuple(row[0] for row in rows) == PHASES
    sent = {row[0]: int(row[-1].replace(",", "")) for row in rows}
    assert sent["shares"] == 32 + 99 * (2 * 33 + 16)  # a share of each secret and a tag, for each peer
    assert sent["inputs"] == 100_000 * 16 // 8
    assert sent["opening"] == 100 * 33


def test_a_client_needs_the_stated_time() -> None:
    first = [float(each) for each in re.findall(r"^\| \w+ \| ([\d.]+) ms", PAGE, re.MULTILINE)]
    assert f"{sum(first) / 1000:.1f} s" in " ".join(PAGE.split("##")[0].split())
