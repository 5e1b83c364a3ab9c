"""The documentation site: it builds strictly and offline, and its generated pages leave nothing out."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from generators import commands, documents, errors, gallery, mechanisms, pictures, python_names, scenario_keys
from mdit_py_plugins.anchors.index import slugify

import fedprivacy
from fedprivacy.documents.kinds import KINDS as DOCUMENTS
from fedprivacy.errors import UnsupportedEvent
from fedprivacy.mechanisms.registry import REGISTRY
from fedprivacy.scenario.kinds import KINDS
from scenarios.authoring.catalogue import ready
from scenarios.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOADED = {
    "link": "href",
    "script": "src",
    "img": "src",
    "source": "srcset",
    "iframe": "src",
    "object": "data",
}
ELSEWHERE = re.compile(r"(https?:)?//")


class Page(HTMLParser):
    """What a page loads, where it leads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if (attribute := LOADED.get(tag)) and attribute in values:
            self.loaded.append(values[attribute])


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path / "doctrees"), str(DOCS), str(site)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    pages = {path: Page(path) for path in site.glob("**/*.html")}
    assert len(pages) > 40
    assert [
        (path.name, each) for path, page in pages.items() for each in page.loaded if ELSEWHERE.match(each)
    ] == []
    for path in site.glob("**/*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), path
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if ELSEWHERE.match(link) or link.startswith("mailto:"):
                continue
            file = (path.parent / target).resolve() if target else path
            if not file.is_file() or (anchor and file in pages and anchor not in pages[file].anchors):
                broken.append((path.name, link))
    assert broken == []


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    """The options of `make docs` are strict: else the test above would prove little."""
    (tmp_path / "conf.py").write_text('extensions = ["myst_parser"]\nmyst_heading_anchors = 4\n')
    (tmp_path / "index.md").write_text(
        "# Title\n\n[there](index.md#title) [nowhere](index.md#no-such-heading)\n"
    )
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-n",
        "-q",
        str(tmp_path),
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    assert "no-such-heading" in done.stderr
    (makefile,) = re.findall(
        r"(?m)^\t.*-m sphinx (.*) docs docs/_build/html$", (ROOT / "Makefile").read_text()
    )
    assert set(makefile.split()) >= {"-W", "--keep-going", "-n"}


def test_the_gallery_has_each_ready_scenario() -> None:
    entries = dict(re.findall(r"(?ms)^### (\S+)\n(.*?)(?=^##|\Z)", gallery.markdown()))
    assert entries.keys() == ready().keys()
    for name, entry in entries.items():
        assert f"pictures/gallery/{name}.svg" in entry or "No picture yet" in entry


def test_each_picture_of_the_gallery_belongs_to_a_scenario_and_stands_alone() -> None:
    paths = list((DOCS / "pictures").glob("**/*.svg"))
    assert len(paths) > 30
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"'), path
        assert "var(--" not in text, path
        assert not re.findall(r"<(script|image|foreignObject)", text), path
        assert len(text) < 150_000, path
        if path.parent.name == "gallery":
            assert re.search(r"<metadata>[^<]{30,}</metadata>", text), path  # its caption, with the terms
            assert path.stem.removesuffix("-narrow") in ready()


def test_a_chart_is_taken_from_a_page_with_its_colours() -> None:
    page = (
        '<svg class="first-wide" viewBox="0 0 10 20" width="10" height="20" role="group"><desc></desc>'
        '<path style="fill: var(--ink)"/><g class="spot"><title>5 %</title></g></svg>'
        '<svg class="first-narrow" viewBox="0 0 5 6" width="5" height="6"><title>A</title><desc></desc></svg>'
        "<figcaption>Each epsilon: delta 1e-5, against the observers named above.</figcaption>"
        '<svg class="other-wide" viewBox="0 0 7 8" width="7" height="8"></svg>'
    )
    (end, wide), (narrow_end, narrow) = pictures.charts(page)
    assert (end, narrow_end) == ("", "-narrow")
    assert 'style="fill: #1c2329"' in wide  # the ink of a light page
    assert "5 %" not in wide  # hover texts need the style of the page
    assert 'viewBox="-12 -12 34 44" width="34" height="44"' in wide
    assert "<title>A</title><metadata>Each epsilon: delta 1e-5.</metadata>" in narrow
    ((_, other),) = pictures.charts(page, "other")
    assert 'width="31"' in other
    ((_, main),) = pictures.charts(page.replace("other-wide", "options-wide"))
    assert 'width="31"' in main


def test_the_reference_has_every_key_command_document_name_and_mechanism() -> None:
    keys = scenario_keys.markdown()
    for name, kind in KINDS.items():
        assert f"\\[{name}\\]" in keys
        for key in kind.keys(None):
            assert f"`{key}`" in keys or f"`{key} = " in keys, (name, key)
    listed = commands.markdown()
    for command in COMMANDS:
        assert f"## fedprivacy {command.__name__.partition('_')[0]}\n" in listed
    assert "### fedprivacy budget gaussian\n" in listed
    assert "`--set KEY=VALUE`" in listed
    stored = documents.markdown()
    for kind in DOCUMENTS:
        assert f"## {kind}\n" in stored
    names = python_names.markdown()
    for name in fedprivacy.__all__:
        assert f"fedprivacy.{name}\n" in names
    registered = mechanisms.markdown()
    for name in REGISTRY:
        assert f"`{name}`" in registered
    assert f"    - `{UnsupportedEvent.__module__}.UnsupportedEvent`, exit code 2" in errors.markdown()


def test_links_of_a_page_lead_to_a_page_and_a_heading() -> None:
    """Sphinx reports them too, and those of generated parts; this names them in a second."""
    pages = {path: path.read_text() for path in DOCS.glob("**/*.md") if "_build" not in path.parts}
    headings = {
        path: {slugify(heading) for heading in re.findall(r"(?m)^#{1,4} (.*)$", text)}
        for path, text in pages.items()
    }
    broken = []
    for path, text in pages.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", text)):
            target, _, anchor = link.partition("#")
            if ELSEWHERE.match(link) or link.startswith("mailto:"):
                continue
            file = (path.parent / target).resolve() if target else path
            known = file in pages and "<!-- generated:" not in pages[file]
            if not file.exists() or (anchor and known and anchor not in headings[file]):
                broken.append((path.name, link))
    assert broken == []


def test_each_page_is_in_a_menu() -> None:
    """Sphinx reports a page outside all menus too; this names it in a second."""
    menus = [
        (DOCS, (DOCS / "index.md").read_text()),
        (DOCS / "tutorials", (DOCS / "tutorials" / "index.md").read_text()),
    ]
    listed = set()
    for folder, text in menus:
        for menu in re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```$", text):
            lines = [line for line in menu.splitlines() if line and not line.startswith(":")]
            targets = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
            listed |= {folder / f"{target}.md" for target in targets}
    pages = {path for path in DOCS.glob("**/*.md") if "_build" not in path.parts}
    assert pages - listed == {DOCS / "index.md"}
