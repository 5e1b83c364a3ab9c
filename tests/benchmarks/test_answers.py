"""The benchmark of answers, at a small size: what it measures and what it says. No times are judged here."""

from __future__ import annotations

import pytest
import typer

from benchmarks import answers
from benchmarks.answers import LIMIT, MEMORY, Row, main, rows, show


def test_it_measures_every_mechanism_beside_the_draws_that_it_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = rows(5000, 50, 20, repeats=1)
    show(found, 5000)
    said = capsys.readouterr().out
    assert "5,000 clients" in said
    assert all(row.what in said and row.seconds > 0 for row in found)
    compared = {row.what: row.beside for row in found if row.ratio is not None}
    assert compared["randomised response, bits"] == "random and a comparison"
    assert compared["k-ary, 50 items"] == "random and integers"
    base = {row.what: row.seconds for row in found}
    assert all(
        row.ratio == pytest.approx(row.seconds / base[row.beside]) for row in found if row.ratio is not None
    )
    peaks = [row.peak for row in found if row.peak is not None]
    assert len(peaks) == 2
    assert all(1e7 < peak < MEMORY for peak in peaks)


def test_a_broken_limit_ends_with_exit_code_1_and_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, large = Row("slow", 1.0, "random", LIMIT * 1.1), Row("large", 1.0, peak=2 * MEMORY)
    fine = Row("fine", 1.0, "random", LIMIT)
    monkeypatch.setattr(answers, "rows", lambda *_: [slow, fine, large])
    with pytest.raises(typer.Exit):
        main(1000, 2, 2)
    assert "slow, large." in capsys.readouterr().out
    monkeypatch.setattr(answers, "rows", lambda *_: [fine])
    main(1000, 2, 2)
