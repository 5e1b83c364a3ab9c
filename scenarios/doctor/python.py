"""Python, our own installation, and the packages that we need."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlparse

from fedprivacy import __version__
from fedprivacy.io.install_hint import ROOT, install
from scenarios.doctor.check import ABSENT, FAILURE, OK, WARNING, Check
from scenarios.doctor.probe import ProbeFailed, probe
from scenarios.doctor.requirements import Requirement, in_range, requirements

LEAST_PYTHON = ">=3.11"
# Distribution -> the module that it brings. torch and flwr have checks of their own.
_MODULES = {
    "dp-accounting": "dp_accounting", "numpy": "numpy", "scipy": "scipy.stats", "scikit-learn": "sklearn",
    "pydantic": "pydantic", "safetensors": "safetensors.numpy", "matplotlib": "matplotlib",
    "jinja2": "jinja2", "typer": "typer", "rich": "rich", "tomli-w": "tomli_w",
}  # fmt: skip
_EXTRAS = {
    "ray": ("ray", "runs on many processes or machines by Ray, and `flwr run .`"),
    "datasets": ("flwr_datasets", 'data.name = "flwr-datasets"'),
    "opacus": ("opacus", 'training.trainer = "opacus"'),
}


def python() -> Iterator[Check]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    found = f"Python {version}, {sys.executable}"
    if not in_range(version, LEAST_PYTHON):
        yield Check("python", FAILURE, found, "Install Python 3.11 or later, and fedprivacy into it.")
    elif sys.maxsize < 2**32:
        yield Check("python", FAILURE, f"{found}, of 32 bits", "Install a Python of 64 bits: torch needs it.")
    else:
        yield Check("python", OK, found)


def installation() -> Iterator[Check]:
    """Whether what runs is what is installed."""
    name = "fedprivacy"
    try:
        own = metadata.distribution("fedprivacy")
    except metadata.PackageNotFoundError:
        what = f"version {__version__} runs from {ROOT} and is not installed"
        yield Check(name, WARNING, what, f"For the command and its requirements: {install()}")
        return
    where = _editable(own) or Path(str(own.locate_file("")))
    if own.version != __version__:
        what = f"the code is version {__version__}, its metadata says {own.version}: a stale installation"
        yield Check(name, FAILURE, what, f"Install it again: {install()}")
    elif where.resolve() != ROOT.resolve():
        what = f"the code runs from {ROOT}, what is installed is {where}"
        yield Check(name, WARNING, what, f"If that is not meant: unset PYTHONPATH, or {install()}")
    else:
        yield Check(name, OK, f"version {__version__}, {where}")


def _editable(own: metadata.Distribution) -> Path | None:
    """The folder of an editable installation, or None if it is none."""
    about = json.loads(own.read_text("direct_url.json") or "{}")
    if not about.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(about["url"]).path))


def packages() -> Iterator[Check]:
    """The packages that are always needed, but for torch and Flower."""
    needed = [one for one in requirements() if one.extra is None and one.name in _MODULES]
    wrong = {one.name: check for one in needed if (check := version_check(one)) is not None}
    there = [one for one in needed if one.installed is not None]
    broken = imports([_MODULES[one.name] for one in there])
    for one in needed:
        error = broken.get(_MODULES[one.name])
        if one.name in wrong:
            yield wrong[one.name]
        elif error is not None:
            yield Check(one.name, FAILURE, f"{one.installed} cannot be imported: {error}", again(one))
        else:
            yield Check(one.name, OK, str(one.installed))


def version_check(one: Requirement) -> Check | None:
    """What is wrong with the version of a package that is needed; None where nothing is."""
    version = one.installed
    if version is None:
        return Check(one.name, FAILURE, "not installed", f"Install what fedprivacy needs: {install()}")
    if not one.fits(version):
        what = f"{version}, and fedprivacy is made for {one.range}"
        return Check(one.name, FAILURE, what, f"pip install '{one.name}{one.range}'")
    return None


def again(one: Requirement) -> str:
    """How to mend a package that is there and broken."""
    return (
        f"pip install --force-reinstall '{one.name}{one.range}'; if it is taken from a folder or file of "
        "that name beside what you run, rename that."
    )


def imports(modules: list[str]) -> dict[str, str]:
    """Why modules cannot be imported, of those that cannot."""
    code = (
        "import importlib\nfound = {}\n"
        f"for name in {modules!r}:\n"
        "    try:\n        importlib.import_module(name)\n"
        "    except BaseException as error:\n"
        "        found[name] = f'{type(error).__name__}: {error}'[:300]\n"
    )
    try:
        found: dict[str, str] = probe(code)
    except ProbeFailed as error:
        if len(modules) == 1:
            return {modules[0]: str(error)}
        return {name: why for one in modules for name, why in imports([one]).items()}
    return found


def extras() -> Iterator[Check]:
    """The extras: there, not there, or half there."""
    for extra, (module, purpose) in _EXTRAS.items():
        yield _extra(extra, module, purpose, _parts(extra))


def _parts(extra: str) -> list[Requirement]:
    """The distributions that an extra brings; of one with extras itself (`flwr[simulation]`) those too."""
    needed = requirements()
    always = {one.name for one in needed if one.extra is None}
    parts: dict[str, Requirement] = {}
    for one in needed:
        if one.extra == extra:
            parts.setdefault(one.name, one)
            listed = metadata.requires(one.name) or [] if one.installed else []
            inner = [Requirement.of(line) for line in listed]
            parts |= {part.name: part for part in inner if part.extra in one.extras and part.extra}
    return [one for one in parts.values() if one.name not in always]


def _extra(extra: str, module: str, purpose: str, parts: list[Requirement]) -> Check:
    name, there = f"extra {extra}", [one for one in parts if one.installed is not None]
    if not there:
        return Check(name, ABSENT, f"not installed; for {purpose}", f"If you want it: {install(extra)}")
    missing = [one.name for one in parts if one.installed is None]
    versions = ", ".join(f"{one.name} {one.installed}" for one in there)
    if missing:
        what = f"half installed: {versions}, without {', '.join(missing)}"
        return Check(name, FAILURE, what, f"Install the rest: {install(extra)}")
    others = [f"{one.name}{one.range}" for one in there if not one.fits(str(one.installed))]
    if others:
        return Check(name, FAILURE, f"{versions}, made for {', '.join(others)}", install(extra))
    # Ray alone is imported: with the others come torch or pandas once more, which takes seconds.
    error = imports([module]).get(module) if extra == "ray" else None
    if error is not None or find_spec(module) is None:
        what = f"{versions} cannot be imported: {error or 'its module is not there'}"
        return Check(name, FAILURE, what, install(extra))
    return Check(name, OK, versions)
