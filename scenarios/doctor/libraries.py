"""Checks that torch, Flower and Ray work, and that no other package has our names."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from fedprivacy.io.install_hint import ROOT, install
from scenarios.doctor.check import FAILURE, OK, WARNING, Check, ProbeFailed, probe
from scenarios.doctor.packages import Needed, again, requirements, version_check

# `clients`, `server` and `scenarios` are words that others use for packages too.
NAMES = ("fedprivacy", "clients", "server", "scenarios")
_TORCH = """
import torch
numbers = torch.arange(6, dtype=torch.float32).reshape(2, 3)
found = {
    "version": str(torch.__version__), "product": (numbers @ numbers.T).tolist(),
    "cuda": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None, "built": torch.version.cuda,
}
"""
_FLOWER = """
from scenarios.engines.dependency_contract import PROMISES
found = [[one.words, one.broken()] for one in PROMISES if one.broken()]
"""
# As the engine does: its own cluster, ignoring RAY_ADDRESS and any running cluster.
_RAY = """
from scenarios.engines.ray_cluster import cluster
with cluster(1):
    import ray
    from scenarios.engines.dependency_contract import RAY_PROMISES
    found = {
        "answer": ray.get(ray.remote(lambda number: number + 1).remote(41)),
        "broken": [[one.words, one.broken()] for one in RAY_PROMISES if one.broken()],
    }
"""


def _required(name: str) -> Needed:
    return next(
        requirement
        for requirement in requirements()
        if requirement.name == name and requirement.extra is None
    )


def _from(name: str) -> str:
    """The place that a module would be imported from, in words."""
    spec = find_spec(name)
    return f", from {spec.origin}," if spec is not None else ""


def torch() -> Iterator[Check]:
    """torch: its version, a product, and whether it finds a GPU."""
    needed = _required("torch")
    if needed.installed is None:
        yield version_check(needed) or Check("torch", OK, "")
        return
    try:
        result = probe(_TORCH)
    except ProbeFailed as error:
        yield Check(
            "torch", FAILURE, f"{needed.installed}{_from(needed.name)} does not work: {error}", again(needed)
        )
        return
    wrong = version_check(needed)
    if wrong is not None:
        yield wrong
    elif result["product"] != [[5.0, 14.0], [14.0, 50.0]]:
        yield Check(
            "torch", FAILURE, f"{result['version']} multiplies wrongly: {result['product']}", again(needed)
        )
    else:
        yield Check("torch", OK, f"{result['version']}, a matrix product is correct")
        built = f"built for CUDA {result['built']}" if result["built"] else "built for the CPU alone"
        none = f"no CUDA device ({built}): runs use the CPU"
        gpu = f"CUDA: {result['cuda']}" if result["cuda"] else none
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
        yield Check("flwr internals", OK, "the engines find every internal that they use")


def ray() -> Iterator[Check]:
    """Whether Ray starts, which takes seconds."""
    try:
        result = probe(_RAY, patience=120)
    except ProbeFailed as error:
        remedy = "Is the extra installed, and is there room in /dev/shm and the folder for temporary files?"
        yield Check("ray", FAILURE, f"does not start: {error}", remedy)
        return
    yield Check("ray", OK, f"started, and answered {result['answer']}")
    if result["broken"]:
        what = "; ".join(f"{words}: {how}" for words, how in result["broken"])[:600]
        remedy = f"{install('ray')}, or adapt scenarios/engines/ray_cluster.py."
        yield Check("ray internals", FAILURE, f"not what they were: {what}", remedy)


def clashes() -> Iterator[Check]:
    """Other distributions, folders and files of our names, without importing any."""
    owners = metadata.packages_distributions()
    wrong = False
    for name in NAMES:
        for check in _of(name, owners):
            wrong = True
            yield check
    if not wrong:
        yield Check("names", OK, f"no other package is named {', '.join(NAMES)}")


def _of(name: str, owners: Mapping[str, list[str]]) -> Iterator[Check]:
    others = sorted(
        {owner for owner in owners.get(name, []) if owner.lower().replace("_", "-") != "fedprivacy"}
    )
    if others:
        what = f"the package {name} is also that of the distribution {', '.join(others)}"
        remedy = f"pip uninstall {' '.join(others)}, or use an environment of its own for fedprivacy."
        yield Check(f"name {name}", FAILURE, what, remedy)
    ours = (ROOT / name).resolve()
    spec = find_spec(name)
    package_folder = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
    if package_folder != ours:
        where = spec.origin if spec is not None else "nowhere"
        what = f"`import {name}` would take {where}, and not {ours}"
        yield Check(f"name {name}", FAILURE, what, f"Rename or remove it, or {_first()}.")
        return
    for folder in _folders():
        other = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
        origin = Path(other.origin).resolve() if other is not None and other.origin else None
        if origin is not None and origin.parent != ours:
            yield _other(name, origin, folder)


def _other(name: str, origin: Path, folder: Path) -> Check:
    """Other modules of our names: in the current folder they are in the way, elsewhere they may be."""
    remedy = "Rename it, or run elsewhere: `flwr run .` and --allow-code look there first."
    if (folder / "fedprivacy" / "__init__.py").is_file():
        return Check(f"name {name}", WARNING, f"{folder} is another copy of fedprivacy", remedy)
    if folder == Path.cwd():
        what = f"{origin}, in the current folder, has the name of our package"
        return Check(f"name {name}", FAILURE, what, remedy)
    what = f"{origin}, on the import path, has the name of our package, which comes first"
    return Check(f"name {name}", WARNING, what, "Rename it, or see that it stays behind ours.")


def _first() -> str:
    return f"put {ROOT} first: export PYTHONPATH={ROOT}"


def _folders() -> list[Path]:
    """The current folder and the import path, each once."""
    return list(dict.fromkeys(Path(part or ".").resolve() for part in ["", *sys.path]))
