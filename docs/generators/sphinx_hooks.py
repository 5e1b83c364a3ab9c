"""Sphinx extension: fills in generated parts of pages, shows narrow pictures on phones, resolves names."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

MARK = re.compile(r"^<!-- generated: ([a-z_]+) -->$", re.MULTILINE)
NARROW = "-narrow"  # pictures/NAME-narrow.svg is NAME.svg laid out for a phone


def fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    """Replaces each mark of a page with the Markdown of the generator that it names.

    Args:
        app: The build.
        name: The page.
        source: Its text, the only element, which is changed in place.
    """
    source[0] = MARK.sub(lambda mark: importlib.import_module(f"generators.{mark[1]}").markdown(), source[0])


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


def keep_property(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Restores the docstring of a property: napoleon takes its words before a colon for a type."""
    if what == "property":
        lines[:] = [*(inspect.getdoc(item) or "").splitlines(), ""]


def resolve_short_name(
    app: Sphinx, environment: BuildEnvironment, reference: pending_xref, text: nodes.Element
) -> nodes.Element | None:
    """Resolves a class of ours by its name alone, as docstrings state what they raise.

    Args:
        app: The build.
        environment: Of the build.
        reference: One that nothing else resolved.
        text: What the page shows.

    Returns:
        The reference; None where no class has that name, or several have it.
    """
    if reference.get("refdomain") != "py":
        return None
    objects = environment.domains.python_domain.objects
    ours = [name for name in objects if name.rpartition(".")[2] == reference["reftarget"]]
    if len(ours) != 1:
        return None
    entry = objects[ours[0]]
    return make_refnode(app.builder, reference["refdoc"], entry.docname, entry.node_id, text, ours[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers all of it with Sphinx."""
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", keep_property, priority=600)  # after napoleon
    app.connect("missing-reference", resolve_short_name)
    app.add_transform(NarrowPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
