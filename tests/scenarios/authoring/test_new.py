"""`fedprivacy new`: a copy under another name that explains every key."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.scenario.loading import loads
from scenarios.authoring.catalogue import describe, ready
from scenarios.authoring.new import draft, new

OPTION = re.compile(r"# (\w+) = (?!\.\.\.)[^#]+# (?!Not set)")


@cache
def drafted(text: str, name: str = "mine") -> str:
    return draft(text, name, "theirs", Path(f"{name}.toml"))


@pytest.fixture(params=sorted(ready()))
def text(request: pytest.FixtureRequest) -> str:
    if not describe(request.param, ready()[request.param])["data_is_here"]:
        pytest.skip("its data are not here")
    return ready()[request.param].read_text()


@pytest.mark.exhaustive(every=5)
def test_the_copy_is_the_same_scenario_apart_from_its_name(text: str) -> None:
    copied = loads(drafted(text))
    assert copied == loads(text).model_copy(update={"name": "mine"})
    assert tomllib.loads(drafted(text)) == tomllib.loads(text) | {"name": "mine"}


@pytest.mark.exhaustive(every=5)
def test_every_comment_is_kept(text: str) -> None:
    """But for the commands, which now name the new file."""
    new_text = drafted(text)
    for comment in re.findall(r"#.*", text):
        assert comment in new_text or "fedprivacy" in comment
    own_name = loads(text).name
    assert not re.search(rf"fedprivacy (run|compare|replay|tune) {own_name}\b", new_text)
    assert re.search(r"#     fedprivacy (run|compare|replay|tune) mine\.toml", new_text)


@pytest.mark.exhaustive(every=5)
def test_a_default_that_is_uncommented_changes_nothing(text: str) -> None:
    rows = drafted(text).splitlines()
    scenario = loads("\n".join(rows))
    options = [number for number, row in enumerate(rows) if OPTION.match(row)]
    assert len(options) > 7
    if _same(_opened(rows, options), scenario):
        return
    for number in options:  # where they exclude each other
        assert loads(_opened(rows, [number])) == scenario, rows[number]


def _opened(rows: list[str], options: list[int]) -> str:
    """The text with these rows uncommented, and the sections that they are in."""
    open_ = list(rows)
    for number in options:
        open_[number] = rows[number][2:]
        above = next((at for at in range(number - 1, -1, -1) if re.match(r"(# )?\[", rows[at])), None)
        if above is not None and rows[above].startswith("# ["):
            open_[above] = rows[above][2:]
    return "\n".join(open_)


def _same(text: str, scenario: object) -> bool:
    try:
        return loads(text) == scenario
    except InputError:
        return False


@pytest.mark.exhaustive(every=5)
def test_every_key_of_every_kind_is_shown_and_given_keys_are_explained(text: str) -> None:
    new_text = drafted(text)
    blocks = {
        found[1]: found[0]
        for found in re.finditer(r"(?ms)^(?:# )?\[([\w.-]+)\].*?(?=^(?:# )?\[[\w.-]+\]|\Z)", new_text)
    }
    for path, kind in loads(text).sections.items():
        section = ".".join(path)
        for key in kind.keys() if path else ():
            shown = rf"(?m)^(# |#    with |# Or )?{key}(\.\w+)? = "
            where = blocks[section] if section != "compare" else new_text
            table = (
                rf"(?m)^(# )?\[{re.escape(section)}\.{key}[\].]"  # what is laid over has tables of its own
            )
            assert re.search(shown, where) or re.search(table, new_text), (section, key)
    for row in new_text.splitlines():
        if re.match(r"\w+ = [^\[\"]+$", row):
            assert "#" in row, row


def test_a_key_with_a_comment_keeps_it_and_one_without_gets_the_schemas() -> None:
    rows = drafted(ready()["digits"].read_text()).splitlines()
    (rate,) = [row for row in rows if row.startswith("rate")]
    assert rate == "rate = 0.5                      # The probability that a client joins a round."
    (partition,) = [row for row in rows if row.startswith("partition")]
    assert partition.endswith("# each of the other 1437 images is a client of its own")


@pytest.mark.exhaustive(every=5)
def test_a_copy_of_a_copy_says_nothing_twice(text: str) -> None:
    once = drafted(text)
    twice = draft(once, "other", "mine.toml", Path("other.toml"))
    assert len(twice.splitlines()) == len(once.splitlines())
    changed = {row for row in twice.splitlines() if row not in once.splitlines()}
    assert all("other" in row for row in changed)


@pytest.mark.parametrize(
    "layout",
    [
        'data = {name = "synthetic", records = 60, partition = "iid", clients = 12}  # all in a row\n',
        'data.name = "synthetic"\ndata.records = 60 # sixty\ndata.partition = "iid"\ndata.clients = 12\n',
        '[ data ]  # spaced\nname = """synthetic"""\nrecords = 60\n"partition" = "iid"\nclients = 12\n\n\n',
    ],
)
def test_any_layout_of_a_file_is_copied(layout: str) -> None:
    text = (
        'name = "lay-out" # "quoted # sign"\n' + layout + '[model]\nname = "logistic"\n[server]\nrounds = 3\n'
        '[sampling]\nname = "all"\n[privacy]\ntrust = "none"\n[compare]\ntrusts = ["none"]\nseeds = [\n  1, # one\n  2,\n]'
    )
    for given in (text, text.replace("\n", "\r\n")):
        copied = drafted(given)
        assert loads(copied) == loads(text).model_copy(update={"name": "mine"})
        assert '# "quoted # sign"' in copied


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 65, "é", "a\n"])
def test_what_is_not_a_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a valid name"):
        new(name, ready()["digits"], "digits", tmp_path / "out.toml")
    assert not list(tmp_path.iterdir())


def test_the_name_of_a_ready_scenario_is_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name of a ready scenario"):
        new("digits", ready()["digits"], "digits", tmp_path / "digits.toml")


def test_an_existing_file_is_left_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    out.write_text("precious")
    with pytest.raises(InputError, match="already exists"):
        new("mine", ready()["digits"], "digits", out)
    assert out.read_text() == "precious"


def test_the_command_that_starts_it(tmp_path: Path) -> None:
    out = tmp_path / "two words.toml"
    assert new("a", ready()["digits"], "digits", out) == f"fedprivacy run '{out}'"
    assert new("b", ready()["local-vs-central"], "x", tmp_path / "b.toml").startswith("fedprivacy compare")


def test_a_source_that_is_no_scenario_is_refused_with_its_mistakes(tmp_path: Path) -> None:
    source = tmp_path / "broken.toml"
    source.write_text("seed = true\n")
    with pytest.raises(InputError, match=r"theirs:1: seed"):
        new("mine", source, "theirs", tmp_path / "mine.toml")
    assert not (tmp_path / "mine.toml").exists()
