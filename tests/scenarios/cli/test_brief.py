"""Short lines about guarantees."""

from __future__ import annotations

from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.statement import Guarantee
from scenarios.cli.brief import observer_lines, terms_line


def guarantee(observer: str, epsilon: float | None, delta: float = 1e-5) -> Guarantee:
    return Guarantee.new(
        observer=observer, trust="central", epsilon=epsilon, delta=delta, unit="client",
        adjacency="replace-one", assumptions=(TrainingAssumption.SERVER_SEES_UPDATES,),
    )  # fmt: skip


def test_shared_terms_are_stated_once() -> None:
    both = [guarantee("server", None), guarantee("outsider", 2.00001)]
    assert observer_lines(both) == [
        "server: no guarantee (trusted: sees updates without noise)",
        "outsider: epsilon = 2.001 (by the server's noise)",
    ]
    assert terms_line(both).startswith("Each epsilon: delta = 1e-05, unit client, replace-one. ")


def test_terms_that_differ_stand_beside_each_epsilon() -> None:
    both = [guarantee("participant", 1.0), guarantee("outsider", 2.0, 1e-6)]
    for line, delta in zip(observer_lines(both), ("1e-05", "1e-06"), strict=True):
        assert f"delta = {delta}, unit client, replace-one" in line
    assert "delta" not in terms_line(both)
