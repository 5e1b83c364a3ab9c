"""Keys laid over a scenario: by `--set`, and by the cells of a comparison (`cells`).

A change may turn a section into another kind: `sampling.name = "all"` over a Poisson sampler. The
keys that only the old kind has (`rate`) then go, since nobody could remove them from the command
line; a key that no kind has stays, and is an error. Another partition or scaling of the data, kind of
personal models, or schedule or average of the server, takes its keys along in the same way, another unit of
privacy the keys of the old one alone, and another sampler bands of noise.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.errors import KeyPath, Problem
from fedprivacy.mechanisms.central import SERVER_ONLY, mechanisms_by_key
from fedprivacy.mechanisms.combinations import APART, SHARED
from fedprivacy.mechanisms.options import AdaptiveOptions, BandedOptions
from fedprivacy.scenario.bounds import check_text
from fedprivacy.scenario.data import KEYS_OF, foreign_keys
from fedprivacy.scenario.findings import Override
from fedprivacy.scenario.kinds import KINDS
from fedprivacy.scenario.privacy import BUDGET_KEYS
from fedprivacy.scenario.rules.encoding import OPTIONS
from fedprivacy.scenario.rules.examples import OF_CLIENTS, OF_EXAMPLES
from fedprivacy.scenario.rules.steps import OPTIONS as OF_STEPS
from fedprivacy.scenario.training import MODE_OF

Tables = dict[str, Any]
# Keys about updates of clients, their clipping and noise, and not about gradients of records.
OF_UPDATES = (*BandedOptions.model_fields, *AdaptiveOptions.model_fields, "clipping_layers")
# Alternative keys for one quantity: setting one removes the other.
_INSTEAD = {
    ("privacy", "epsilon"): ("privacy", "noise_multiplier"),
    ("privacy", "noise_multiplier"): ("privacy", "epsilon"),
    ("training", "rate"): ("training", "batch_size"),
    ("training", "batch_size"): ("training", "rate"),
}


def lay(tables: Mapping[str, Any], changes: Mapping[KeyPath, Any]) -> Tables:
    """A copy of `tables` with `changes` (path -> value) made.

    Raises:
        KeyError: A path leads through something that is not a section; its argument is the path.
    """
    new: Tables = copy.deepcopy(dict(tables))
    for path, value in changes.items():
        table = new
        for part in path[:-1]:
            table = table.setdefault(str(part), {})
            if not isinstance(table, dict):
                raise KeyError(path)
        table[str(path[-1])] = copy.deepcopy(value)
    for given, instead in _INSTEAD.items():
        if given in changes and instead not in changes:
            _section(new, given[0]).pop(instead[1], None)
    for choice in KEYS_OF:
        if ("data", choice) in changes:
            for key in foreign_keys(choice, changes["data", choice]):
                if ("data", key) not in changes:
                    _section(new, "data").pop(key, None)
    _drop_what_is_of_other_privacy(new, changes)
    drawn = any(path[:2] in (("sampling",), ("sampling", "name")) for path in changes)
    if drawn and _section(new, "sampling").get("name") not in APART and ("privacy", "bands") not in changes:
        _section(new, "privacy").pop("bands", None)  # the noise of clients that come apart alone
    training = _section(new, "training")
    drawn = ("training", "batches") in changes and training.get("batches") != "shuffled"
    if drawn and training.get("batch_size") == "all" and ("training", "batch_size") not in changes:
        training.pop("batch_size")  # the one size that the other kinds do not have
    if ("training", "personal") in changes:
        for key, mode in MODE_OF.items():
            if mode != training.get("personal") and ("training", key) not in changes:
                training.pop(key, None)
    server = _section(new, "server")
    for key, (of, values) in OF_STEPS.items():
        if ("server", of) in changes and server.get(of) not in values and ("server", key) not in changes:
            server.pop(key, None)
    for section, kind in KINDS.items():
        table = _section(new, section)
        if (section, kind.tag) in changes and (name := kind.variant(table)) is not None:
            stale = set(kind.keys()) - set(kind.keys(name))
            for key in stale - {str(path[1]) for path in changes if path[0] == section and len(path) > 1}:
                table.pop(key, None)
    return new


def _drop_what_is_of_other_privacy(tables: Tables, changes: Mapping[KeyPath, Any]) -> None:
    """Removes keys that neither the new trust model nor the new unit of privacy allows."""
    privacy, training = _section(tables, "privacy"), _section(tables, "training")
    trust, unit, mechanism = (("privacy", key) in changes for key in ("trust", "unit", "mechanism"))
    of_records, local = privacy.get("unit") == "example", privacy.get("trust") == "local"
    # Mechanisms of servers, and not of clients; the others randomise single messages.
    of_server = privacy.get("mechanism") in SERVER_ONLY
    stale: set[KeyPath] = set()
    # Noise in shares is of one trust model, which knows no other.
    shared = (privacy.get("mechanism") in SHARED) != (privacy.get("trust") == "distributed")
    if ((trust and (local == of_server or shared)) or (unit and of_records)) and not mechanism:
        privacy.pop("mechanism", None)
    if ("privacy", "encoding") in changes:
        encoding = privacy.get("encoding")
        stale |= {("privacy", key) for key, owner in OPTIONS.items() if owner != encoding}
    if unit and of_records:
        stale |= {("privacy", key) for key in OF_UPDATES}
    if (unit and of_records) or (mechanism and local and privacy.get("mechanism") != "gaussian"):
        stale |= {("privacy", key) for key in ("encoding", *OPTIONS)}
    if trust or unit or mechanism:
        current = {"gaussian", privacy.get("mechanism")}
        stale |= {("privacy", key) for key, names in mechanisms_by_key().items() if current.isdisjoint(names)}
    if (trust or unit or mechanism) and not has_direction(privacy):
        stale.add(("privacy", "direction"))
    if unit and of_records and privacy.get("noise_draw") == "sum":
        stale.add(("privacy", "noise_draw"))
    if unit and not of_records:
        stale |= {("training", key) for key in OF_EXAMPLES}
    if trust:
        _drop_what_is_of_other_groups(privacy, changes)
    if (trust or unit) and of_records and privacy.get("trust") == "central":
        stale |= {("training", key) for key in OF_CLIENTS}
    for section, key in stale - set(changes):
        (privacy if section == "privacy" else training).pop(str(key), None)


def _drop_what_is_of_other_groups(privacy: Tables, changes: Mapping[KeyPath, Any]) -> None:
    """Removes the keys of groups of clients that a new trust model does not have."""
    if (trust := privacy.get("trust")) not in ("none", "local") or ("privacy", "groups") in changes:
        return
    for name, group in _section(privacy, "groups").items():
        for key in BUDGET_KEYS if trust == "none" else ("through",):
            if isinstance(group, dict) and ("privacy", "groups", name, key) not in changes:
                group.pop(key, None)


def has_direction(privacy: Mapping[str, Any]) -> bool:
    """Whether the local mechanism of a privacy section sends a direction."""
    return privacy.get("trust") == "local" and privacy.get("mechanism") in ("privunit", "auto")


def _section(tables: Tables, name: str) -> Tables:
    table = tables.get(name)
    return table if isinstance(table, dict) else {}


def parse_overrides(texts: Sequence[str]) -> tuple[list[Override], list[Problem]]:
    """`--set` options as overrides, and findings about the form of the others.

    A value is read as TOML (`10`, `[200, 100]`, `"text"`), and where it is not TOML, as plain text.
    """
    overrides, problems = [], []
    for text in texts:
        key, equals, value = text.partition("=")
        path = _path(key)
        if equals and path:
            overrides.append(Override(text, path, _value(value.strip())))
        else:
            problems.append(
                Problem(
                    f"--set {text}",
                    "not of the form key=value",
                    "Write, for instance, --set server.rounds=10.",
                )
            )
    return overrides, problems


def _path(key: str) -> KeyPath:
    try:
        check_text(key)
        table: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return ()
    path: KeyPath = ()
    while isinstance(table, dict) and len(table) == 1:
        [(part, table)] = table.items()
        path = (*path, part)
    return path if table == 0 else ()


def _value(text: str) -> Any:
    try:
        check_text(text)
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if list(table) == ["value"] else text
