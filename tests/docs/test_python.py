"""docs/python.md: its snippets run in the order of the page, in one process and one new folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import fedprivacy as fp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
SNIPPETS = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE)


SHORTER = {"rounds=20": "rounds=2", "rounds=5)": "rounds=2)"}  # fewer rounds of the same calls


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_snippet_runs(tmp_path: Path) -> None:
    code = "\n".join(SNIPPETS)
    for long, short in SHORTER.items():
        assert long in code
        code = code.replace(long, short)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": "", "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in (
        "epsilonn: no such setting",
        "delta=0.5: must be",
        "rounds=0: must be",
        "People: 4 clients",
        'name = "digits"',
    ):
        assert text in done.stdout
    assert len(list((tmp_path / "tables").iterdir())) == 1


def test_the_snippet_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (snippet,) = re.findall(r"(?ms)^```python\n(.*?)^```$", (ROOT / "README.md").read_text())
    data = "import numpy as np\nx = np.random.default_rng(1).normal(size=(400, 3))\ny, ids = (x[:, 0] > 0).astype(int), np.arange(400) // 4\n"
    exec(data + snippet.replace("rounds=40", "rounds=2") + "\nprint(result.guarantees)", {})
    assert "participant: epsilon = 2 at delta" in capsys.readouterr().out


def test_the_start_is_five_lines_and_no_more() -> None:
    start = [line for line in SNIPPETS[0].splitlines() if line and not line.startswith("import")]
    assert len(start) <= 5


def test_the_page_names_every_call() -> None:
    for name in set(fp.__all__) - {"__version__", "FedPrivacyError"}:
        assert f"fp.{name}" in PAGE, name
