"""The reinstall command of fedprivacy, which is on no package index."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]  # the folder of our packages: of a checkout, or of an environment


def install(extra: str = "") -> str:
    """The command that installs fedprivacy again, with an extra."""
    wanted = f"[{extra}]" if extra else ""
    if not (ROOT / "pyproject.toml").is_file():
        return f"pip install 'fedprivacy{wanted} @ file:///PATH/TO/fedprivacy.whl'"
    constraints = "-c constraints.txt " if (ROOT / "constraints.txt").is_file() else ""
    return f"cd {ROOT} && pip install {constraints}-e '.{wanted}'"
