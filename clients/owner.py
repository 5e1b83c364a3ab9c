"""The settings of a node's data owner: the node config that its SuperNode was started with.

partition-id    which of the nodes this is, from 0
num-partitions  how many nodes there are
scenario        a scenario of its own, as a path or as TOML text: the node is pinned, and serves no other plan
data            the path of its own records, where the scenario has data on nodes
home            a folder for its account of participations, which outlives every run; pinned nodes need one
account         the file of an account of its own, which every plan that it pins enters (`fedprivacy account`)
noise           "system" (the operating system's entropy) or "seeded" (a simulation that repeats)
allow-code      whether its own scenario may run code
node-key        the file of its private key, and
roster          the file of all nodes' public keys, where the scenario has noise in shares under masks
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.errors import InputError, Refusal
from fedprivacy.randomness.system import SEEDED, SYSTEM, check_noise
from fedprivacy.scenario.reading import read_text

_PATHS = ("data", "home", "account", "node-key", "roster")  # of pinned nodes alone
KEYS = ("partition-id", "num-partitions", "scenario", "noise", "allow-code", *_PATHS)


def is_pinned(node_config: Mapping[str, object]) -> bool:
    """Whether a node was started with a scenario of its own."""
    return "scenario" in node_config


@dataclass(frozen=True)
class Owner:
    """The settings of an owner.

    Args:
        scenario: The text of its own scenario; None: the node follows the run.
        named: The name of that text in messages.
        data: The path of its own records.
        home: Where its account is kept; None: on a node that follows the run.
        account: The file of its account; None without one.
        noise: Where its noise comes from; None: not set, on a node that follows the run.
        allow_code: Whether its own scenario may run code.
        node_key: The file of its private key; None without one.
        roster: The file of all nodes' public keys; None without one.
    """

    scenario: str | None = None
    named: str = ""
    data: str | None = None
    home: Path | None = None
    account: Path | None = None
    noise: str | None = None
    allow_code: bool = False
    node_key: Path | None = None
    roster: Path | None = None

    @classmethod
    def of(cls, node_config: Mapping[str, object]) -> Owner:
        """Reads a node config.

        Raises:
            Refusal: if it contradicts itself, or its scenario cannot be read.
        """
        _check_keys(node_config)
        pinned = is_pinned(node_config)
        given = {key: str(node_config[key]) for key in _PATHS if key in node_config}
        if given and not pinned:
            # The submitter of a run could otherwise decide how the records are used, and reset the account.
            raise Refusal(
                f"node config: {' and '.join(given)} without a scenario of its own: the node would follow "
                "the submitter of a run. Add scenario = PATH.",
                "node-config",
            )
        if pinned and "home" not in given:
            # Flower's own state ends with a run or a restart, and loses counts where messages overlap.
            raise Refusal(
                "node config: a scenario without a home: nothing would count what was answered. Make a "
                "folder and add home = PATH.",
                "node-config",
            )
        text, named = _scenario(str(node_config["scenario"])) if pinned else (None, "")
        noise = node_config.get("noise", SYSTEM if pinned else None)
        try:
            chosen = None if noise is None else check_noise(noise, "node config")
        except InputError as error:
            raise Refusal(str(error), "node-config") from error
        return cls(
            scenario=text,
            named=named,
            data=given.get("data"),
            home=_path(given, "home"),
            account=_path(given, "account"),
            noise=chosen,
            allow_code=pinned and node_config.get("allow-code", False) is True,
            node_key=_path(given, "node-key"),
            roster=_path(given, "roster"),
        )

    @property
    def pinned(self) -> bool:
        """Whether the node holds its plan itself."""
        return self.scenario is not None

    def warnings(self, hosts: list[int]) -> Iterator[str]:
        """The notice to its owner when a run begins."""
        if not self.pinned:
            return
        yield f"serves hosts {hosts} by its own scenario {self.named}, regardless of the run's"
        if self.noise == SEEDED:
            yield (
                'WARNING: noise = "seeded": noise comes from the seed in the scenario. Whoever knows that '
                'can take it away again, so that nothing is protected. Set noise = "system".'
            )


def _path(given: Mapping[str, str], key: str) -> Path | None:
    return Path(given[key]).expanduser() if key in given else None


def _check_keys(node_config: Mapping[str, object]) -> None:
    """Refuses what would be overlooked: a key that is misspelt, or has no value."""
    for key, value in node_config.items():
        if key not in KEYS:
            raise Refusal(
                f"node config: {key}: there is no such key. There are {', '.join(KEYS)}.", "node-config"
            )
        if value in ("", None):
            raise Refusal(f"node config: {key} is empty. Give it a value, or leave it out.", "node-config")


def _scenario(value: str) -> tuple[str, str]:
    """The text of a pinned scenario, and what it is called.

    A path is seen from the folder where the SuperNode was started, never from the bundle of a run, which is
    not the owner's.
    """
    if "=" in value or "\n" in value:
        return value, "node config: scenario"
    path = Path(value).expanduser()
    try:
        return read_text(path), str(path)
    except InputError as error:
        raise Refusal(str(error), "scenario") from error
