"""The charts of a report as files, for papers and slides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.report.blocks import Block, Details, Finding, Picture
from fedprivacy.report.printing import page_of

FORMATS = ("svg", "png", "pdf")
CAPTIONS = "captions.txt"


def write_figures(document: Mapping[str, Any], folder: Path, kind: str) -> list[Path]:
    """Writes each chart of a report to `folder`, and their captions to captions.txt.

    Captions state the observer, unit, adjacency and delta of the epsilons in a chart: a figure needs its own.

    Args:
        document: A checked result document; operator-only values are in no chart.
        folder: The folder, made if it is not there.
        kind: One of `FORMATS`.

    Returns:
        The paths of the charts, in the order of the page.

    Raises:
        InputError: if the format is unknown, or the folder cannot be written.
    """
    if kind not in FORMATS:
        raise InputError(f"--figures {kind}: no such format. Choose from {', '.join(FORMATS)}.")
    page = page_of(document)
    blocks = [*page.lead, *(block for section in page.sections for block in section.blocks)]
    pictures = list(_pictures(blocks))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{picture.drawing.name}.{kind}" for picture in pictures]
        for picture, path in zip(pictures, paths, strict=True):
            picture.drawing.save(path)
        # The finding has the terms of every epsilon; a chart below it repeats only some.
        captions = [f"{each.text} {each.terms}".strip() for each in blocks if isinstance(each, Finding)]
        captions += [f"{path.name}: {each.caption}" for path, each in zip(paths, pictures, strict=True)]
        if pictures:
            (folder / CAPTIONS).write_text("\n\n".join(captions) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}. Choose a folder that you may write to.") from error
    return paths


def _pictures(blocks: Iterable[Block | Details]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Details):
            yield from _pictures(block.blocks)
