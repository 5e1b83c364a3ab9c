"""A deferred package: its modules are imported without its own code, which runs when a name of it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
sys.path.insert(0, {folder!r})
from fedprivacy.io.deferred import defer
defer("slow")
from slow import part
assert part.VALUE == 1 and "slow.other" not in sys.modules and not hasattr(sys, "slow_ran")
import slow
assert slow.part is part and not hasattr(sys, "slow_ran")
assert slow.NAME == 2 and sys.slow_ran == 1 and "slow.other" in sys.modules
from slow import NAME, other
assert sys.slow_ran == 1 and other.VALUE == 3
try:
    slow.missing
except AttributeError as error:
    assert "missing" in str(error)
else:
    raise AssertionError
defer("slow")
defer("no_such_package")
"""


def test_modules_are_imported_without_the_package(tmp_path: Path) -> None:
    package = tmp_path / "slow"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import sys\nsys.slow_ran = getattr(sys, 'slow_ran', 0) + 1\nfrom slow import other\nNAME = 2\n"
    )
    (package / "part.py").write_text("VALUE = 1\n")
    (package / "other.py").write_text("VALUE = 3\n")
    code = CODE.format(folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_accountants_of_dp_accounting_are_as_ever() -> None:
    code = (
        "import sys, fedprivacy\nfrom dp_accounting import dp_event\nassert 'scipy' not in sys.modules\n"
        "import dp_accounting\naccountant = dp_accounting.pld.PLDAccountant()\n"
        "accountant.compose(dp_accounting.GaussianDpEvent(1.0))\nprint(round(accountant.get_epsilon(1e-5), 2))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "4.38\n"
