"""The one rich console of the command: others' texts in it are neither markup nor do they act."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fedprivacy.io.escape import printable
from fedprivacy.io.terminal import for_styles


class Terminal(Console):
    """A console for tables, sentences and progress; styles are given beside a text, never in it.

    Args:
        stderr: Whether it writes to standard error.
        soft_wrap: Whether the terminal wraps long lines, so that they can be copied whole.
    """

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False) -> None:
        stream = for_styles(sys.stderr if stderr else sys.stdout)
        super().__init__(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders with every text escaped; only what rich itself writes to steer a terminal is not."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
