"""A stored run together with its ablations, which are a comparison in a folder below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.documents.kinds import check_fields
from fedprivacy.io.folder import is_below
from fedprivacy.records.run_directory import read_document
from fedprivacy.verification import comparison, run
from fedprivacy.verification.differences import refusal, refuse_difference

AGAIN = run.AGAIN
_LEFT_OUT = ("seeds", "seconds", "runs", "curve", "per_class", "training", "server", "candidates")


def fields_of(document: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The `limits` of a run's document.

    Args:
        document: That of the comparison with the ablations.
        folder: Where it is, below the run.
    """
    privacy = document["scenario"]["privacy"]
    wanted = tuple(privacy.get(key) for key in ("trust", "epsilon", "unit"))
    planned = next((c for c in document["cells"] if (c["trust"], c["epsilon"], c["unit"]) == wanted), None)
    return {
        "folder": folder,
        "limiting": document.get("limiting"),
        "planned": None if planned is None else _shown(planned),
        "variants": [_shown(cell) for cell in document.get("limits", ())],
    }


def _shown(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in cell.items() if key not in _LEFT_OUT}


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a run, as it may be shown; its `limits` are made again of their runs.

    Raises:
        InputError: a part of it does not follow from its scenario, its plan and its rounds, or from the
            runs of its ablations.
    """
    checked = run.check(document, folder, where)
    limits = document.get("limits")
    if limits is None:
        return checked
    if not is_below(limits["folder"]):
        raise refusal(where, "limits.folder", "leads out of the run's folder", AGAIN)
    path = folder / limits["folder"]
    file = str(path / "run.json")
    if not (path / "run.json").is_file():
        what = f"names {limits['folder']}/, which is missing with the runs of the ablations"
        raise refusal(where, "limits.folder", what, "Copy it back, or remove `limits` from run.json.")
    stored = read_document(path / "run.json")
    check_fields(stored, file)
    if stored["kind"] != "compare":
        raise refusal(file, "kind", f"says {stored['kind']}, ablations are a comparison", AGAIN)
    ablations = comparison.check(stored, path, file)
    for section in ("data", "model", "training", "server", "sampling", "privacy"):
        at = f"scenario.{section}"
        source = "the run has"
        refuse_difference(
            ablations["scenario"][section], checked["scenario"][section], at, file, source, AGAIN
        )
    derived = fields_of(ablations, limits["folder"])
    refuse_difference(limits, derived, "limits", where, "its ablations imply", AGAIN, rounded=True)
    return {**checked, "limits": derived}
