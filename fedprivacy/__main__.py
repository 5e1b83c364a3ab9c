"""`python -m fedprivacy` runs the installed command; the library itself does not import it."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution


def main() -> None:
    """Runs the command; exit code 2 where it is not installed."""
    try:
        [command] = distribution("fedprivacy").entry_points.select(group="console_scripts", name="fedprivacy")
    except (PackageNotFoundError, ValueError):
        print(
            "python -m fedprivacy: the command is not installed here. Install it: pip install .",
            file=sys.stderr,
        )
        sys.exit(2)
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, whose modules the command does not know either
    command.load()()


if __name__ == "__main__":  # and not in a process that is spawned
    main()
