"""The rate of torch's matrix products on all cores or on a GPU: the ceiling of training."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from types import TracebackType

import torch

ROWS, INNER, COLUMNS = 1280, 784, 200  # records and layer of an MLP 784-200-10


LARGE = 8192  # rows and columns of a GPU's matrices


class GpuMultiplier:
    """Multiplies float32 matrices on a GPU, as a context like `Multipliers`."""

    def __enter__(self) -> GpuMultiplier:
        torch.set_float32_matmul_precision("highest")
        self._left, self._right = (torch.randn(LARGE, LARGE, device="cuda") for _ in range(2))
        self.rate(0.0)  # the first product starts cuBLAS
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._left, self._right

    def rate(self, seconds: float) -> float:
        """Floating-point operations per second, a multiplication and an addition being two."""
        count, start, now = 0, time.perf_counter(), 0.0
        while now < seconds or not count:
            torch.mm(self._left, self._right)
            torch.cuda.synchronize()
            count += 1
            now = time.perf_counter() - start
        return 2.0 * LARGE**3 * count / now


class Multipliers:
    """Processes that multiply matrices on demand, to be used as a context.

    Args:
        workers: How many.
    """

    def __init__(self, workers: int) -> None:
        # Started afresh: training forks processes of its own, and those should not share anything with these.
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(workers)]
        self._pipes = [ends for ends, _ in pairs]
        self._processes = [context.Process(target=_serve, args=(other,), daemon=True) for _, other in pairs]

    def __enter__(self) -> Multipliers:
        for process in self._processes:
            process.start()
        self.rate(0.0)  # they have imported torch when they answer
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.terminate()
            process.join()

    def rate(self, seconds: float) -> float:
        """Floating-point operations per second (a multiplication and an addition are two), of all at once."""
        for pipe in self._pipes:
            pipe.send(seconds)
        return float(sum(pipe.recv() for pipe in self._pipes))


def multipliers_on(device: str, workers: int) -> Multipliers | GpuMultiplier:
    """Returns what multiplies on a device: the given number of processes, or a GPU."""
    return Multipliers(workers) if device == "cpu" else GpuMultiplier()


def _serve(pipe: Connection) -> None:
    torch.set_num_threads(1)
    left, right = torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)
    product = torch.empty(ROWS, COLUMNS)
    while True:
        seconds = pipe.recv()
        count, start, now = 0, time.perf_counter(), 0.0
        while now < seconds or not count:
            torch.mm(left, right, out=product)
            count += 1
            now = time.perf_counter() - start
        pipe.send(2.0 * ROWS * INNER * COLUMNS * count / now)
