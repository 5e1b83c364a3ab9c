"""The charts of a report as files, for papers and slides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.folder import make_inner
from fedprivacy.report import page_of
from fedprivacy.report.blocks import Block, Details, Finding, Picture

FORMATS = ("svg", "png", "pdf")
CAPTIONS = "captions.txt"
_TERMS = ("delta", "unit", "adjacency")
_ABOVE = ", against the observers named above"  # on the page


def write_figures(
    document: Mapping[str, Any], folder: Path, kind: str, *, operator: bool = False
) -> list[Path]:
    """Writes each chart of a report to `folder`, and their captions to captions.txt.

    Captions state the observer, unit, adjacency and delta of the epsilons in a chart: a figure needs its own.

    Args:
        document: A checked result document.
        folder: The folder, made in its own if it is not there. A link in its place, or in that of a file, is
            not followed.
        kind: One of `FORMATS`.
        operator: Whether charts of accuracy on records of clients are written too.

    Returns:
        The paths of the charts, in the order of the page.

    Raises:
        InputError: if the format is unknown, or the folder cannot be written.
    """
    if kind not in FORMATS:
        raise InputError(f"--figures {kind}: no such format. Choose from {', '.join(FORMATS)}.")
    page = page_of(document, operator=operator)
    blocks = [*page.lead, *(block for section in page.sections for block in section.blocks)]
    pictures = list(_pictures(blocks))
    findings = [each for each in blocks if isinstance(each, Finding)]
    terms = " ".join(each.terms for each in findings if each.terms)
    paths = [folder / f"{picture.drawing.name}.{kind}" for picture in pictures]
    captions = [f"{each.text} {each.terms}".strip() for each in findings]
    captions += [f"{path.name}: {caption(each, terms)}" for path, each in zip(paths, pictures, strict=True)]
    contents = [picture.drawing.saved(kind) for picture in pictures]
    try:
        make_inner(folder)
        for path, content in zip(paths, contents, strict=True):
            replace_file(path, content)
        if pictures:
            replace_file(folder / CAPTIONS, ("\n\n".join(captions) + "\n").encode(errors="replace"))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}. Choose a folder that you may write to.") from error
    return paths


def caption(picture: Picture, terms: str) -> str:
    """Returns the caption of a chart that stands by itself: with the terms of the epsilons in it.

    Args:
        picture: The chart.
        terms: Those of the finding of the page, which stand above the chart there.
    """
    tables = [str((table.head, table.rows)) for table in picture.tables]
    texts = [picture.caption, picture.drawing.alt, *tables]
    whole = all(word in picture.caption for word in _TERMS) and "named above" not in picture.caption
    if whole or not any("epsilon" in text.lower() for text in texts):
        return picture.caption
    return f"{picture.caption.replace(_ABOVE, '')} {terms}".strip()


def _pictures(blocks: Iterable[Block | Details]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Details):
            yield from _pictures(block.blocks)
