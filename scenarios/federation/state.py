"""Reads federation.json, and selects the federation that a run is for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fedprivacy.errors import InputError, RunError
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.regular_file import read_regular
from fedprivacy.io.validation import Fields
from scenarios.federation.control import Link
from scenarios.federation.keys import ROSTER
from scenarios.federation.processes import Started

SEEDED_WARNING = (
    "SEEDED NOISE, FOR TESTS ONLY: every node draws its noise from the scenario's seed. Who knows the seed "
    "can take all noise away: no epsilon of a run here holds for anybody. Real data do not belong here."
)

FOLDER = Path("federation")
_MAX_BYTES = 2**22


class StoredProcess(Fields):
    """A process in federation.json."""

    name: Annotated[str, Field(max_length=100)]
    pid: Annotated[int, Field(gt=1, lt=2**31)]  # 0, 1 and those below stand for others, or for all
    began: Annotated[int, Field(ge=0)] | None = None  # in the files of earlier versions


class Stored(Fields):
    """The content of federation.json."""

    address: Annotated[str, Field(max_length=300)]
    root_certificates: str | None
    nodes: Annotated[int, Field(ge=1, le=10_000)]
    noise: Literal["system", "seeded"]
    scenario: str | None
    mark: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    processes: Annotated[list[StoredProcess], Field(max_length=10_001)]


@dataclass(frozen=True)
class Federation:
    """A federation that was started here, as federation.json keeps it.

    Args:
        address: Of the SuperLink, host:port.
        root_certificates: The authority's file; None: without TLS.
        nodes: How many nodes there are.
        noise: "system", or "seeded" for tests.
        scenario: The plan that every node holds for itself, a file; None: each follows who submits.
        mark: A value in the environment of each of its processes.
        processes: Those that were started.
    """

    address: str
    root_certificates: str | None
    nodes: int
    noise: str
    scenario: str | None
    mark: str
    processes: tuple[Started, ...] = ()

    @property
    def link(self) -> Link:
        """The connection to the SuperLink."""
        return Link(self.address, None if self.root_certificates is None else Path(self.root_certificates))

    def alive(self) -> bool:
        """Whether every process that was started is there."""
        return bool(self.processes) and all(process.runs(self.mark) for process in self.processes)

    def write(self, folder: Path) -> None:
        """Writes federation.json."""
        text = json.dumps({"schema": 1, **asdict(self)}, indent=2)
        replace_file(folder / "federation.json", text.encode(), mode=0o600)


def read(folder: Path) -> Federation | None:
    """Reads the federation of a folder; None if the folder has none.

    Raises:
        InputError: if its federation.json is damaged.
    """
    path = folder / "federation.json"
    try:
        data = read_regular(path, _MAX_BYTES, follow=False)
        stored = Stored.model_validate(bounded_json.loads(data.decode()))
        return Federation(
            **stored.model_dump(exclude={"processes"}),
            processes=tuple(Started(process.name, process.pid) for process in stored.processes),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}. Remove it, or name the folder of a federation with --dir."
        ) from error
    except ValueError as error:  # a ValidationError is one, too
        raise InputError(
            f"{path}: damaged, so which processes belong to it is not known. End those by hand (`ps -ef | "
            f"grep flower` names them), then remove the file."
        ) from error


@dataclass(frozen=True)
class Target:
    """The federation that a run is for.

    Args:
        link: Its SuperLink.
        noise: "system", or "seeded" where its nodes were started so, for tests.
        pinned: Whether every node holds its plan itself, as is known here or stated by the user.
        on_this_machine: Whether it was started here, and its processes read this machine's files.
        roster: The file of its nodes' public keys, with which the server sums under masks; None without one.
    """

    link: Link
    noise: str = "system"
    pinned: bool = False
    on_this_machine: bool = False
    roster: Path | None = None


def target_of(
    superlink: str | None,
    root_certificates: Path | None,
    folder: Path | None,
    pinned: bool = False,
    roster: Path | None = None,
) -> Target:
    """The federation that a user names.

    Args:
        superlink: `--superlink`, the address of one that runs elsewhere.
        root_certificates: `--root-certificates`, for it.
        folder: `--federation`, the folder of one that was started here; None: the usual one.
        pinned: `--pinned`, the user's statement of nodes elsewhere.
        roster: `--roster`, the public keys of pinned nodes elsewhere.

    Raises:
        InputError: if the options do not go together, or there is no such federation.
        RunError: if its processes have ended.
    """
    if superlink is not None:
        if folder is not None:
            raise InputError("--superlink and --federation: give one of them.")
        if roster is not None and not pinned:
            raise InputError("--roster: only with --pinned: nodes that follow the run do not use masks.")
        return Target(Link.of(superlink, root_certificates), pinned=pinned, roster=roster)
    if root_certificates is not None:
        raise InputError("--root-certificates: only with --superlink ADDRESS; a folder has its own.")
    if pinned:
        raise InputError("--pinned: only with --superlink ADDRESS; of a folder's nodes it is known.")
    if roster is not None:
        raise InputError("--roster: only with --superlink ADDRESS; a folder has its own.")
    where = folder or FOLDER
    federation = read(where)
    if federation is None:
        raise InputError(
            f"--engine superlink: no federation is up in {where}. Start one (fedprivacy federation up "
            "--nodes 3), or name one: --superlink HOST:PORT --root-certificates FILE, or --federation FOLDER"
        )
    if not federation.alive():
        raise RunError(
            f"the federation in {where} has ended, or part of it (see fedprivacy federation status). "
            "End it (fedprivacy federation down), and start it again."
        )
    pins, keys = federation.scenario is not None, where / "keys" / ROSTER
    return Target(
        federation.link,
        federation.noise,
        pins,
        on_this_machine=True,
        roster=keys if pins and keys.exists() else None,
    )
