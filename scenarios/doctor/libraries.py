"""torch and Flower, which may be there and still not work; and Ray, if asked."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from fedprivacy.io.install_hint import install
from scenarios.doctor.check import FAILURE, OK, Check
from scenarios.doctor.probe import ProbeFailed, probe
from scenarios.doctor.python import again, version_check
from scenarios.doctor.requirements import Requirement, requirements

_TORCH = """
import torch
numbers = torch.arange(6, dtype=torch.float32).reshape(2, 3)
found = {
    "version": str(torch.__version__), "product": (numbers @ numbers.T).tolist(),
    "cuda": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None, "built": torch.version.cuda,
}
"""
_FLOWER = """
from scenarios.engines.contract import PROMISES
found = [[one.words, one.broken()] for one in PROMISES if one.broken()]
"""
# As the engine does: a cluster of its own, whatever RAY_ADDRESS says, and no other that is up.
_RAY = """
from scenarios.engines.ray_cluster import cluster
with cluster(1):
    import ray
    from scenarios.engines.contract import RAY_PROMISES
    found = {
        "answer": ray.get(ray.remote(lambda number: number + 1).remote(41)),
        "broken": [[one.words, one.broken()] for one in RAY_PROMISES if one.broken()],
    }
"""


def _required(name: str) -> Requirement:
    return next(one for one in requirements() if one.name == name and one.extra is None)


def _from(name: str) -> str:
    """Where a module would be taken from, in words."""
    spec = find_spec(name)
    return f", from {spec.origin}," if spec is not None else ""


def torch() -> Iterator[Check]:
    """torch: its version, a product, and whether it finds a GPU."""
    needed = _required("torch")
    if needed.installed is None:
        yield version_check(needed) or Check("torch", OK, "")
        return
    try:
        found = probe(_TORCH)
    except ProbeFailed as error:
        yield Check(
            "torch", FAILURE, f"{needed.installed}{_from(needed.name)} does not work: {error}", again(needed)
        )
        return
    wrong = version_check(needed)
    if wrong is not None:
        yield wrong
    elif found["product"] != [[5.0, 14.0], [14.0, 50.0]]:
        yield Check(
            "torch", FAILURE, f"{found['version']} multiplies wrongly: {found['product']}", again(needed)
        )
    else:
        yield Check("torch", OK, f"{found['version']}, a product is right")
        built = f"built for CUDA {found['built']}" if found["built"] else "built for the CPU alone"
        gpu = f"CUDA: {found['cuda']}" if found["cuda"] else f"no CUDA device ({built}): runs use the CPU"
        yield Check("gpu", OK, gpu)


def flower() -> Iterator[Check]:
    """Flower: its version, and whether the internals that the engines use are what they were."""
    needed = _required("flwr")
    wrong = version_check(needed)
    if wrong is not None:
        yield wrong
        if needed.installed is None:
            return
    try:
        broken = probe(_FLOWER)
    except ProbeFailed as error:
        yield Check(
            "flwr", FAILURE, f"{needed.installed}{_from(needed.name)} does not work: {error}", again(needed)
        )
        return
    if wrong is None:
        yield Check("flwr", OK, str(needed.installed))
    if broken:
        what = "; ".join(f"{words}: {how}" for words, how in broken)[:600]
        remedy = f"pip install 'flwr{needed.range}', or adapt scenarios/engines/flower_internals.py."
        yield Check("flwr internals", FAILURE, f"not what they were: {what}", remedy)
    else:
        yield Check("flwr internals", OK, "all that the engines use is as it was")


def ray() -> Iterator[Check]:
    """Whether Ray starts, which takes seconds."""
    try:
        found = probe(_RAY, patience=120)
    except ProbeFailed as error:
        remedy = "Is the extra installed, and is there room in /dev/shm and the folder for temporary files?"
        yield Check("ray", FAILURE, f"does not start: {error}", remedy)
        return
    yield Check("ray", OK, f"started, and answered {found['answer']}")
    if found["broken"]:
        what = "; ".join(f"{words}: {how}" for words, how in found["broken"])[:600]
        remedy = f"{install('ray')}, or adapt scenarios/engines/ray_cluster.py."
        yield Check("ray internals", FAILURE, f"not what they were: {what}", remedy)
