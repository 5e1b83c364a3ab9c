"""Python, the installation of fedprivacy, and the packages that it needs."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from fedprivacy import __version__
from fedprivacy.io.install_hint import ROOT, install
from scenarios.doctor.check import ABSENT, FAILURE, OK, WARNING, Check, ProbeFailed, probe

if TYPE_CHECKING:
    from packaging.requirements import Requirement

LEAST_PYTHON = (3, 11)
# Distribution -> the module that it brings. torch and flwr have checks of their own.
_MODULES = {
    "dp-accounting": "dp_accounting", "numpy": "numpy", "scipy": "scipy.stats", "scikit-learn": "sklearn",
    "pydantic": "pydantic", "safetensors": "safetensors.numpy", "matplotlib": "matplotlib",
    "jinja2": "jinja2", "typer": "typer", "rich": "rich", "tomli-w": "tomli_w",
    "filelock": "filelock", "packaging": "packaging.requirements", "psutil": "psutil", "trustme": "trustme",
}  # fmt: skip
_EXTRAS = {
    "ray": ("ray", "runs on many processes or machines by Ray, and `flwr run .`"),
    "datasets": ("flwr_datasets", 'data.name = "flwr-datasets"'),
    "opacus": ("opacus", 'training.trainer = "opacus"'),
}
_EXTRA = re.compile(r"extra == ['\"]([^'\"]+)['\"]")


@dataclass(frozen=True)
class Needed:
    """A package that fedprivacy needs.

    Args:
        requirement: Its name, range of versions and extras.
        extra: The extra of ours that needs it, or None for required packages.
    """

    requirement: Requirement
    extra: str | None = None

    @classmethod
    def of(cls, line: str) -> Needed:
        """Reads a line of a package's metadata."""
        from packaging.requirements import Requirement  # here: a check-up reports what is missing

        requirement = Requirement(line)
        extra = _EXTRA.search(str(requirement.marker or ""))
        return cls(requirement, extra[1] if extra else None)

    @property
    def name(self) -> str:
        """The distribution."""
        return self.requirement.name

    @property
    def range(self) -> str:
        """Its versions, as in `<3,>=2.6`; empty for any."""
        return str(self.requirement.specifier)

    @property
    def installed(self) -> str | None:
        """The version that is installed, or None."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    def fits(self, version: str) -> bool:
        """Returns whether a version is in range; a pre-release or a local build of one counts."""
        return self.requirement.specifier.contains(version, prereleases=True)


def requirements() -> list[Needed]:
    """The requirements, extras included: from the installed metadata, else from pyproject.toml."""
    try:
        lines: Sequence[str] = metadata.requires("fedprivacy") or []
    except metadata.PackageNotFoundError:
        lines = []
    if lines:
        return [Needed.of(line) for line in lines]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    listed = [f'{line}; extra == "{extra}"' for extra, lines in extras.items() for line in lines]
    return [Needed.of(line) for line in [*project["dependencies"], *listed]]


def python() -> Iterator[Check]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    text = f"Python {version}, {sys.executable}"
    if sys.version_info < LEAST_PYTHON:
        yield Check("python", FAILURE, text, "Install Python 3.11 or later, and fedprivacy into it.")
    elif sys.maxsize < 2**32:
        yield Check("python", FAILURE, f"{text}, of 32 bits", "Install a Python of 64 bits: torch needs it.")
    else:
        yield Check("python", OK, text)


def installation() -> Iterator[Check]:
    """Whether the running code is the installed one."""
    name = "fedprivacy"
    try:
        distribution = metadata.distribution("fedprivacy")
    except metadata.PackageNotFoundError:
        what = f"version {__version__} runs from {ROOT} and is not installed"
        yield Check(name, WARNING, what, f"For the command and its requirements: {install()}")
        return
    where = _editable(distribution) or Path(str(distribution.locate_file("")))
    if distribution.version != __version__:
        what = (
            f"the code is version {__version__}, its metadata says {distribution.version}: "
            "a stale installation"
        )
        yield Check(name, FAILURE, what, f"Install it again: {install()}")
    elif where.resolve() != ROOT.resolve():
        what = f"the code runs from {ROOT}, but {where} is installed"
        yield Check(name, WARNING, what, f"If that is not meant: unset PYTHONPATH, or {install()}")
    else:
        yield Check(name, OK, f"version {__version__}, {where}")


def _editable(distribution: metadata.Distribution) -> Path | None:
    """The folder of an editable installation, or None if it is none."""
    about = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not about.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(about["url"]).path))


def packages() -> Iterator[Check]:
    """The packages that are always needed, but for torch and Flower."""
    needed = [
        requirement
        for requirement in requirements()
        if requirement.extra is None and requirement.name in _MODULES
    ]
    wrong = {
        requirement.name: check for requirement in needed if (check := version_check(requirement)) is not None
    }
    there = [requirement for requirement in needed if requirement.installed is not None]
    broken = imports([_MODULES[requirement.name] for requirement in there])
    for requirement in needed:
        error = broken.get(_MODULES[requirement.name])
        if requirement.name in wrong:
            yield wrong[requirement.name]
        elif error is not None:
            yield Check(
                requirement.name,
                FAILURE,
                f"{requirement.installed} cannot be imported: {error}",
                again(requirement),
            )
        else:
            yield Check(requirement.name, OK, str(requirement.installed))


def version_check(requirement: Needed) -> Check | None:
    """The problem with the version of a required package; None for a valid version."""
    version = requirement.installed
    if version is None:
        return Check(
            requirement.name, FAILURE, "not installed", f"Install what fedprivacy needs: {install()}"
        )
    if not requirement.fits(version):
        what = f"{version}, and fedprivacy is made for {requirement.range}"
        return Check(requirement.name, FAILURE, what, f"pip install '{requirement.name}{requirement.range}'")
    return None


def again(requirement: Needed) -> str:
    """The remedy for a package that is installed and broken."""
    return (
        f"pip install --force-reinstall '{requirement.name}{requirement.range}'; if it is taken from a "
        "folder or file of "
        "that name beside what you run, rename that."
    )


def imports(modules: list[str]) -> dict[str, str]:
    """The import errors of modules, for those that have one."""
    code = (
        "import importlib\nfound = {}\n"
        f"for name in {modules!r}:\n"
        "    try:\n        importlib.import_module(name)\n"
        "    except BaseException as error:\n"
        "        found[name] = f'{type(error).__name__}: {error}'[:300]\n"
    )
    try:
        failures: dict[str, str] = probe(code)
    except ProbeFailed as error:
        if len(modules) == 1:
            return {modules[0]: str(error)}
        return {name: why for module in modules for name, why in imports([module]).items()}
    return failures


def extras() -> Iterator[Check]:
    """The extras: there, not there, or half there."""
    for extra, (module, purpose) in _EXTRAS.items():
        yield _extra(extra, module, purpose, _parts(extra))


def _parts(extra: str) -> list[Needed]:
    """The distributions that an extra brings; of one with extras itself (`flwr[simulation]`) those too."""
    needed = requirements()
    always = {requirement.name for requirement in needed if requirement.extra is None}
    parts: dict[str, Needed] = {}
    for requirement in needed:
        if requirement.extra == extra:
            parts.setdefault(requirement.name, requirement)
            listed = metadata.requires(requirement.name) or [] if requirement.installed else []
            inner = [Needed.of(line) for line in listed]
            wanted = requirement.requirement.extras
            parts |= {part.name: part for part in inner if part.extra in wanted}
    return [requirement for requirement in parts.values() if requirement.name not in always]


def _extra(extra: str, module: str, purpose: str, parts: list[Needed]) -> Check:
    name, there = (
        f"extra {extra}",
        [requirement for requirement in parts if requirement.installed is not None],
    )
    if not there:
        return Check(name, ABSENT, f"not installed; for {purpose}", f"If you want it: {install(extra)}")
    missing = [requirement.name for requirement in parts if requirement.installed is None]
    versions = ", ".join(f"{requirement.name} {requirement.installed}" for requirement in there)
    if missing:
        what = f"half installed: {versions}, without {', '.join(missing)}"
        return Check(name, FAILURE, what, f"Install the rest: {install(extra)}")
    others = [
        f"{requirement.name}{requirement.range}"
        for requirement in there
        if not requirement.fits(str(requirement.installed))
    ]
    if others:
        return Check(name, FAILURE, f"{versions}, made for {', '.join(others)}", install(extra))
    # Ray alone is imported: with the others come torch or pandas once more, which takes seconds.
    error = imports([module]).get(module) if extra == "ray" else None
    if error is not None or find_spec(module) is None:
        what = f"{versions} cannot be imported: {error or 'its module is not there'}"
        return Check(name, FAILURE, what, install(extra))
    return Check(name, OK, versions)
