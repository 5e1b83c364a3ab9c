"""Makes the pictures of the gallery: runs ready scenarios, and takes the main chart of each report.

    python docs/generators/pictures.py digits hospitals          # runs both, then writes their pictures
    python docs/generators/pictures.py --runs FOLDER [NAME ...]  # of results that are in FOLDER/NAME already
    python docs/generators/pictures.py --report PAGE --chart story --as tutorials/story  # a chart of a page

Scenarios on data that you bring read `../shared/data`, seen from the working directory.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from fedprivacy.report import svg
from scenarios.authoring.catalogue import ready, start_command

PICTURES = Path(__file__).parents[1] / "pictures"
MAIN = "options"  # the chart that answers a comparison of options, below that of the trust models
LAYOUTS = {"wide": "", "narrow": "-narrow"}  # layout of the page -> end of the file's name


def charts(page: str, chart: str = "") -> Iterator[tuple[str, str]]:
    """Yields (end of the file's name, SVG) of both layouts of a chart of a report.

    Args:
        page: The report page.
        chart: The name of the chart; if it is empty `MAIN`, or else the first of the page.
    """
    if not chart and f'class="{MAIN}-wide"' in page:
        chart = MAIN
    for layout, end in LAYOUTS.items():
        name = re.escape(chart) if chart else r"[\w-]+"
        found = re.search(rf'<svg class="{name}-{layout}".*?</svg>', page, re.DOTALL)
        if found:
            below = re.search(r"<figcaption>(.*?)</figcaption>", page[found.end() :], re.DOTALL)
            # "Above" is the page that the picture leaves.
            caption = re.sub(r",? against the observers named (above|here)", "", below[1] if below else "")
            yield end, svg.alone(found[0], caption) + "\n"


def write(page: Path, target: str, chart: str = "") -> list[Path]:
    """Writes a chart of a report page to pictures/`target`.svg, and its narrow layout beside it.

    Args:
        page: The report.
        target: The path below docs/pictures, without its ending.
        chart: As of `charts`.

    Returns:
        The paths, none if the page has no chart.
    """
    paths = []
    for end, drawing in charts(page.read_text(encoding="utf-8"), chart):
        path = PICTURES / f"{target}{end}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawing, encoding="utf-8")
        paths.append(path)
    return paths


def run(name: str, folder: Path) -> None:
    """Runs a ready scenario by its own command, with its result in `folder`."""
    command = start_command(tomllib.loads(ready()[name].read_text(encoding="utf-8")))
    subprocess.run([sys.executable, "-m", "fedprivacy", command, name, "--out", str(folder)], check=True)


def main() -> None:
    """Runs the command line at the head of this module."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("names", nargs="*", choices=[*ready(), []], metavar="NAME")
    parser.add_argument("--runs", type=Path, help="results that are there already, in FOLDER/NAME")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--chart", default="")
    parser.add_argument("--as", dest="target")
    options = parser.parse_args()
    if bool(options.report) != bool(options.target):
        parser.error("--report PAGE and --as TARGET belong together: give both")
    if options.report:
        print(*write(options.report, options.target, options.chart), sep="\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.runs or Path(scratch)
        for name in options.names or [name for name in ready() if (folder / name).is_dir()]:
            if not options.runs:
                run(name, folder / name)
            # The data of these scenarios are published: where accuracy is operator-only, the picture has it.
            pages = sorted((folder / name).glob("*/report.html"))[-1:]
            for page in (p if list(charts(p.read_text())) else p.with_name("operator.html") for p in pages):
                paths = write(page, f"gallery/{name}")
                print("\n".join(map(str, paths)) or f"{name}: its report has no chart")


if __name__ == "__main__":
    main()
