"""Ctrl-C around what must not be half done."""

from __future__ import annotations

import os
import signal

import pytest

from scenarios.jobs.interrupts import deferred, undisturbed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_block_is_done(number: signal.Signals) -> None:
    before, done = signal.getsignal(number), []

    def work() -> None:
        with deferred():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(number) is before


def test_a_signal_does_not_end_what_ends_something() -> None:
    before = signal.getsignal(signal.SIGINT)
    with undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_goes_its_way() -> None:
    with pytest.raises(ValueError, match="wrong"), deferred():
        raise ValueError("wrong")
