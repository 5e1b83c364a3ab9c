"""Sphinx extension: fills in generated parts of pages, and shows narrow pictures on phones."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

MARK = re.compile(r"^<!-- generated: ([a-z_]+) -->$", re.MULTILINE)
NARROW = "-narrow"  # pictures/NAME-narrow.svg is NAME.svg laid out for a phone


def fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    """Replaces each mark of a page with the Markdown of the generator that it names.

    Args:
        app: The build.
        name: The page.
        source: Its text, the only element, which is changed in place.
    """
    source[0] = MARK.sub(
        lambda mark: importlib.import_module(f"generators.{mark[1]}").markdown(), source[0]
    )


class NarrowPictures(SphinxTransform):
    """Adds the narrow layout of a picture beside the wide one; the style sheet shows one of the two."""

    default_priority = 200  # before pictures are collected

    def apply(self, **_: Any) -> None:
        """Adds an image node after each image that has a narrow layout."""
        folder = Path(self.document["source"]).parent
        for image in list(self.document.findall(nodes.image)):
            path = Path(str(image["uri"]))
            narrow = path.with_stem(path.stem + NARROW)
            if path.suffix != ".svg" or not (folder / narrow).exists():
                continue
            second = image.deepcopy()
            second["uri"] = narrow.as_posix()
            image["classes"].append("wide-picture")
            second["classes"].append("narrow-picture")
            image.parent.insert(image.parent.index(image) + 1, second)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers both with Sphinx."""
    app.connect("source-read", fill_in)
    app.add_transform(NarrowPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
