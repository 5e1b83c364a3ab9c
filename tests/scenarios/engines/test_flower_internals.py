"""What the engines rely on in Flower's internals: if Flower moves it, these fail and say what to adapt."""

from __future__ import annotations

import flwr
import pytest

from scenarios.engines.dependency_contract import IDENTITY, PROMISES, Promise, identity

ADAPT = f"Flower {flwr.__version__} has changed an internal: adapt scenarios/engines/flower_internals.py."


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.words)
def test_flower_keeps_the_promise(promise: Promise) -> None:
    with identity(None, None, None):  # as in a new process, whatever other tests have done
        broken = promise.broken()
    assert broken is None, f"{ADAPT} {promise.words}: {broken}"


def test_checks_leave_the_identity_as_it_was() -> None:
    with identity(8, 9, 10) as process:
        for promise in PROMISES:
            promise.check()
        assert [getattr(process, name) for name in IDENTITY] == [8, 9, 10]


def test_a_broken_promise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.supercore.run import Run

    monkeypatch.setattr(Run, "create_empty", staticmethod(lambda number: Run.__new__(Run)))
    broken = {promise.words: promise.broken() for promise in PROMISES}
    assert {words for words, what in broken.items() if what} >= {"an empty run has its id and no overrides"}


def test_what_has_moved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import flwr.common.constant

    monkeypatch.delattr(flwr.common.constant, "ErrorCode")
    assert any("ErrorCode" in (promise.broken() or "") for promise in PROMISES)
