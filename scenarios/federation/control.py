"""Flower's own command line against one SuperLink: submit, follow, stop, register, list.

Its commands change less between versions than what they call, and each is a process with a time limit, so
that a SuperLink that hangs never holds us up. They get a Flower home of their own, with this one connection.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from fedprivacy.errors import InputError, RunError
from fedprivacy.io.regular_file import read_regular

_LIMIT = 60.0
_NAME = "federation"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Flower's progress lines, which precede its error message.
_DOING = re.compile(r"Using SuperLink:|.*(Listing all|Displaying information|Stopping run|Successfully)")


@dataclass(frozen=True)
class Link:
    """Where a SuperLink is, and how it is known to be it.

    Args:
        address: host:port.
        root_certificates: The file of the authority that signed its certificate; None: without TLS.
    """

    address: str
    root_certificates: Path | None = None

    @classmethod
    def of(cls, address: str, root_certificates: Path | None) -> Link:
        """A SuperLink by what a user typed.

        Raises:
            InputError: if the address is none, the certificate cannot be read, or nothing is encrypted on the
                way to another machine.
        """
        match = re.fullmatch(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})", address)
        if match is None or not 0 < int(match[2]) < 65536:
            raise InputError(f"--superlink {address}: not an address. Give host:port, as in 127.0.0.1:18000.")
        link = cls(address, None if root_certificates is None else root_certificates.absolute())
        if link.root_certificates is not None:
            check_certificate(link.root_certificates)
        elif not link.loopback:
            raise InputError(
                f"--superlink {address}: another machine is spoken to through TLS only. Give the certificate "
                "of the authority that signed the SuperLink's: --root-certificates FILE"
            )
        return link

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine, and reads its files."""
        host = self.address.rpartition(":")[0].strip("[]")
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:  # a name, which may lead anywhere
            return False


def check_certificate(path: Path) -> None:
    """Tries whether a file holds certificates.

    Raises:
        InputError: if it cannot be read, or holds none.
    """
    from cryptography import x509

    try:
        x509.load_pem_x509_certificates(read_regular(path, 2**20))
    except OSError as error:
        raise InputError(
            f"--root-certificates {path}: {error.strerror}. Give the file of the authority (ca.crt) that "
            "signed the SuperLink's certificate."
        ) from error
    except ValueError as error:
        raise InputError(
            f"--root-certificates {path}: holds no certificate in PEM form. Give the authority's (ca.crt)."
        ) from error


def program(name: str) -> str:
    """The path of one of Flower's commands: beside this Python, else as the shell finds it.

    Raises:
        InputError: if there is none.
    """
    beside = Path(sys.executable).parent / name
    executable = str(beside) if beside.exists() else shutil.which(name)
    if executable is None:
        raise InputError(
            f"the command {name} is not here. It comes with flwr: pip install 'flwr>=1.41,<1.43'"
        )
    return executable


def environment(home: Path) -> dict[str, str]:
    """The environment of Flower's commands: their home, nothing installed or reported at run time.

    Args:
        home: Where Flower keeps its configuration and the apps that it unpacks.
    """
    beside = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]),
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "PYTHONUNBUFFERED": "1",  # a log is read line by line
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }


class Control:
    """Flower's commands for one SuperLink.

    Args:
        link: Where it is.
        home: A folder for these commands alone; it is made.
    """

    def __init__(self, link: Link, home: Path) -> None:
        self.link, self.home = link, home
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        how: dict[str, Any] = {"address": link.address}
        if link.root_certificates is None:
            how["insecure"] = True
        else:
            how["root-certificates"] = str(link.root_certificates)
        text = tomli_w.dumps({"superlink": {"default": _NAME, _NAME: how}})
        (home / "config.toml").write_text(text, encoding="utf-8")

    def nodes(self, limit: float = _LIMIT) -> list[dict[str, Any]]:
        """The nodes that the SuperLink knows; `status` is "online" or not.

        Raises:
            RunError: if it does not answer.
        """
        return list(self._ask(["supernode", "list"], limit).get("nodes", []))

    def register(self, public_key: Path) -> int:
        """Makes a node known by its public key and returns its id.

        Raises:
            RunError: if the SuperLink does not answer, or does not take it.
        """
        return _whole(self._ask(["supernode", "register", str(public_key)]), "node-id")

    def submit(self, app: Path, run_config: Path) -> int:
        """Starts a run and returns its id.

        Args:
            app: The folder of the app.
            run_config: A TOML file of scalars.

        Raises:
            RunError: if the SuperLink does not answer, or does not take it.
        """
        try:
            words = ["run", str(app), _NAME, "--run-config", str(run_config)]
            return _whole(self._ask(words, named=True), "run-id")
        except _Silent as error:
            raise RunError(
                f"{error} The run may have begun all the same: `flwr list` names it, `flwr stop` ends it."
            ) from error

    def status(self, run: int) -> tuple[str, str]:
        """A run's status, as in "running" or "finished:failed", and Flower's details.

        Raises:
            RunError: if the SuperLink does not answer, or knows no such run.
        """
        answer = self._ask(["list", "--run-id", str(run)])
        try:
            entry = answer["runs"][0]
            status, details = str(entry["status"]), str(entry.get("status-details", ""))
        except (LookupError, TypeError, AttributeError) as error:
            raise RunError(
                f"the SuperLink {self.link.address} reports no run {run}. Check its number with `flwr list`."
            ) from error
        return status, "" if details == "N/A" else details

    def stop(self, run: int) -> None:
        """Stops a run.

        Raises:
            RunError: if the SuperLink does not answer, or the run has ended already.
        """
        self._ask(["stop", str(run)], 30.0)

    def log(self, run: int) -> subprocess.Popen[bytes]:
        """A process that writes a run's log to its output, from the beginning, until the run has ended."""
        return subprocess.Popen(
            [program("flwr"), "log", str(run), _NAME, "--stream"],
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _ask(self, words: list[str], limit: float = _LIMIT, *, named: bool = False) -> Mapping[str, Any]:
        command = [program("flwr"), *words, *([] if named else [_NAME]), "--format", "json"]
        try:
            # In a session of its own: Ctrl-C in a terminal is ours to answer, not its.
            done = subprocess.run(
                command,
                env=environment(self.home),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise _Silent(
                f"the SuperLink {self.link.address} did not answer within {limit:.0f} s."
            ) from error
        answer = _json(done.stdout)
        if done.returncode == 0 and answer.get("success", True) and answer:
            return answer
        message = str(answer.get("error-message") or done.stderr or done.stdout)
        raise RunError(f"the SuperLink {self.link.address}: {_plain(message)}")


class _Silent(RunError):
    """A command without an answer in time; its effect may happen all the same."""


def _whole(answer: Mapping[str, Any], key: str) -> int:
    try:
        return int(answer[key])
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(f"Flower's command answered without {key}.") from error


def _json(text: str) -> dict[str, Any]:
    """The JSON object in what a command printed, which may have other words before it."""
    start = text.find("{")
    try:
        value = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _plain(text: str) -> str:
    """The output of a command, without colours and frames, in one line."""
    lines = [line for line in _COLOURS.sub("", text).splitlines() if not _DOING.match(line)]
    words = re.sub(r"[^\x20-\x7e]+", " ", "\n".join(lines))
    return re.sub(r"\s+", " ", words).strip()[:500] or "it said nothing."
