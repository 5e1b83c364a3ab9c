"""`fedprivacy doctor`: is this machine able, and if not, what to do.

Nothing heavy is imported here, since the checked packages may be missing or broken: each check imports what
it needs, in a process of its own where that may end the process.
"""

from __future__ import annotations

from scenarios.doctor.examination import Examination, examine

__all__ = ["Examination", "examine"]
