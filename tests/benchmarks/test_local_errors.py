"""The benchmark of local mechanisms: its table, its files, and its figures against independent ones."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from benchmarks.local_errors import DELTA, NOTES, PER_BIT, REFERENCE, main, mechanisms
from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.mechanisms.privunit import PrivUnitG


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("mechanism", "answers"), REFERENCE)
def test_the_formulas_give_the_known_errors(mechanism: str, answers: int) -> None:
    """To the three digits that are known, but for what the notes say."""
    for epsilon, known in REFERENCE[mechanism, answers].items():
        ratio = mechanisms(1000, answers, epsilon)[mechanism].error(1000) / known
        if mechanism == "sqkr":
            assert 0.79 < ratio < 0.81
            assert "Kashin" in NOTES["sqkr"]
        elif (mechanism, answers) != ("privunit", 100):
            assert ratio == pytest.approx(1, abs=0.008), epsilon


@pytest.mark.parametrize("answers", [10, 100])
def test_an_answer_of_many_costs_what_exact_composition_says(answers: int) -> None:
    """Randomised response dominates every epsilon-DP answer, and its composition is a binomial sum."""

    def excess(each: float) -> float:
        told, told_other = (
            binom.pmf(np.arange(answers + 1), answers, chance)
            for chance in (1 / (1 + math.exp(-each)), 1 / (1 + math.exp(each)))
        )
        return float(np.maximum(told - math.exp(8.0) * told_other, 0).sum()) - DELTA

    each = brentq(excess, 1e-3, 5.0)
    ours = mechanisms(650, answers, 8.0)["privunit"]
    assert isinstance(ours, PrivUnitG)
    assert ours.epsilon == pytest.approx(each, rel=1e-4)
    assert each == pytest.approx({10: 0.80004, 100: 0.16961}[answers], rel=1e-4)


@pytest.mark.exhaustive
def test_it_measures_what_it_predicts_and_writes_a_table_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(tmp_path, messages=60, dimension=[50], epsilon=[2.0, 8.0])
    document = json.loads((tmp_path / "local_errors.json").read_text())
    rows = document["rows"]
    assert [row["mechanism"] for row in rows[: len(LOCAL) + 1]] == [*LOCAL, PER_BIT]
    assert len(rows) == (len(LOCAL) + 1) * 2 + 4 * 4
    for row in rows:
        # 26 rows within 5 standard errors: a false alarm in fewer than one of 10,000 seeds. Sign bits hardly
        # vary in norm, and their formula holds on average over directions: 1 % more.
        gap = abs(row["measured"] - row["predicted"])
        assert gap < 5 * row["standard_error"] + 0.01 * row["predicted"], row
        assert (row["reference"] is None) == (row["ratio"] is None)
    with open(tmp_path / "local_errors.csv", newline="") as stream:
        assert [float(row["measured"]) for row in csv.DictReader(stream)] == [row["measured"] for row in rows]
    picture = (tmp_path / "local_errors.svg").read_text()
    assert all(words in picture for words in ("epsilon, one answer", "d = 50", "known figure", "privunit"))
    assert (tmp_path / "local_errors.png").stat().st_size > 20_000
    said = capsys.readouterr().out
    assert "ratio: measured / known" in said
    assert "* sqkr: another mechanism than the reference" in said.replace("\n", " ")
