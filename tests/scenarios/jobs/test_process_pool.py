"""Jobs over processes: all are done once, whatever breaks off ends them."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest

from scenarios.jobs.process_pool import spread


def test_one_worker_is_this_process_and_keeps_the_order() -> None:
    assert list(spread(pow, [(n, 2) for n in range(7)], 1)) == [(n, n * n) for n in range(7)]
    assert multiprocessing.active_children() == []


def test_more_workers_do_the_same(capfd) -> None:
    assert sorted(spread(pow, [(n, 2) for n in range(7)], 2)) == [(n, n * n) for n in range(7)]


def test_a_single_process_takes_a_job_when_its_result_is_asked_for() -> None:
    begun = []
    results = spread(begun.append, [(n,) for n in range(3)], 1)
    next(results)
    assert begun == [0]
    results.close()
    assert begun == [0]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_job_raises_comes_out_and_ends_the_rest(workers: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(spread(divmod, [(1, 1), (1, 0), *[(1, 1)] * 50], workers))
    assert multiprocessing.active_children() == []


def test_breaking_off_ends_the_processes() -> None:
    results = spread(time.sleep, [(0.0,), *[(60.0,)] * 4], 2)
    began = time.monotonic()
    next(results)
    results.close()
    assert time.monotonic() - began < 30
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_is_told() -> None:
    from concurrent.futures.process import BrokenProcessPool

    with pytest.raises(BrokenProcessPool):
        list(spread(os._exit, [(3,), (3,)], 2))
