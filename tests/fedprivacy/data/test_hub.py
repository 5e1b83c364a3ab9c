"""Data sets that flwr-datasets loads, from small folders; the Hub itself is never asked."""

from __future__ import annotations

import importlib.util
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.data import hub, npz
from fedprivacy.data.source import Source, SourceError
from fedprivacy.errors import ScenarioError
from fedprivacy.io.install_hint import install
from fedprivacy.population.clients import population
from fedprivacy.population.groups import held_out_groups
from fedprivacy.scenario import FlwrDatasets, Scenario
from scenarios.runner import run

pytestmark = [  # datasets leaves the files that it reads to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
REST = """
[model]
name = "logistic"
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1
epsilon = 8.0
delta = 1e-3
"""
ROWS = {"train": 40, "test": 8}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own current folder and cache, a Hub that nobody answers for, and no earlier failures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hub, "_failed", {})
    if importlib.util.find_spec("datasets"):
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    return tmp_path


@pytest.fixture
def extra() -> None:
    """Skips where the extra is not installed."""
    pytest.importorskip("flwr_datasets")


def cells(part: str) -> dict[str, list[object]]:
    """A table of people, four records each, one town unknown."""
    at = list(range(ROWS[part]))
    return {
        "age": [20 + (7 * i) % 50 for i in at],
        "income": [None if i == 5 else 1000.0 * i for i in at],
        "town": ["Rome" if i % 2 else "Oslo" for i in at],
        "married": ["yes" if i % 3 else "no" for i in at],
        "person": [f"p{i // 4:02d}" for i in at],
    }


@pytest.fixture
def people(folder: Path, extra: None) -> str:
    """The table as two files of comma-separated values."""
    for part in ROWS:
        columns = cells(part)
        rows = [
            ",".join("" if one is None else str(one) for one in row)
            for row in zip(*columns.values(), strict=True)
        ]
        (folder / "people").mkdir(exist_ok=True)
        (folder / "people" / f"{part}.csv").write_text("\n".join([",".join(columns), *rows]))
    return "people"


def parquet(folder: Path, columns: dict[str, tuple[object, object]], name: str = "typed") -> str:
    """A folder with two Parquet files; each column is (its type, its values: a function of the row's number)."""
    import datasets

    (folder / name).mkdir()
    features = datasets.Features({column: kind for column, (kind, _) in columns.items()})
    for part, rows in ROWS.items():
        values = {column: [value(i) for i in range(rows)] for column, (_, value) in columns.items()}
        datasets.Dataset.from_dict(values, features=features).to_parquet(folder / name / f"{part}.parquet")
    return name


def text(data: str) -> str:
    return f'name = "x"\n[data]\nname = "flwr-datasets"\n{data}\n{REST}'


def complaints(data: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(text(data), "my.toml")
    return str(caught.value).split("\n")


TABLE = 'path = "people"\nlabel = "married"\ninputs = ["age", "income"]\nuser = "person"\nmissing = "zero"'


def test_a_table_becomes_the_arrays_that_an_npz_file_has(people: str) -> None:
    asked = Scenario.from_text(text(f'{TABLE}\npartition = "by-user"'))
    everyone, table = population(asked.data), cells("train")
    data = everyone.dataset
    assert (asked.population, everyone.partition.clients) == (10, 10)
    assert (data.feature_names, data.class_names, data.classes) == (("age", "income"), ("no", "yes"), 2)
    assert data.x[:, 0].tolist() == table["age"]
    assert data.x[:, 1].tolist() == [income or 0.0 for income in table["income"]]
    assert data.y.tolist() == [int(word == "yes") for word in table["married"]]
    assert data.x_test[:, 0].tolist() == cells("test")["age"]
    assert [table["person"][i] for i in everyone.partition.records(1)] == ["p01"] * 4
    assert Scenario.from_text(asked.to_toml()) == asked


def test_a_run_over_it_has_the_same_numbers_as_over_the_npz_file(people: str, folder: Path) -> None:
    """Without noise, which runs that differ do not share."""

    def losses(data: str) -> list[float]:
        options = ['data.partition="by-user"', 'privacy={trust="none"}']
        done = run(Scenario.from_text(data, overrides=options), folder / "runs", report=False)
        assert done["status"] == "finished"
        return [event["loss"] for event in done["rounds"]]

    loaded = text(TABLE)
    file = Scenario.from_text(loaded).data.file
    assert losses(loaded) == losses(
        f'name = "x"\n[data]\nname = "npz"\npath = "{file}"\nmissing = "zero"\n{REST}'
    )


def test_images_become_bytes_and_labels_keep_their_names(folder: Path, extra: None) -> None:
    import datasets
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (40, 6, 6), np.uint8)
    name = parquet(
        folder,
        {
            "image": (datasets.Image(), lambda i: Image.fromarray(pixels[i])),
            "label": (datasets.ClassLabel(names=["cat", "dog", "cow"]), lambda i: i % 3),
            "writer": (datasets.Value("int32"), lambda i: i // 10),
        },
    )
    asked = FlwrDatasets(name="flwr-datasets", path=name, label="label", user="writer", partition="by-user")
    with np.load(asked.file) as made:
        assert (made["x_train"].dtype, made["user_train"].tolist()) == (
            np.uint8,
            [i // 10 for i in range(40)],
        )
    data = population(asked).dataset
    assert np.array_equal(data.x, pixels.astype(np.float32))
    assert (data.class_names, data.y.tolist()) == (("cat", "dog", "cow"), [i % 3 for i in range(40)])


def test_an_image_folder_keeps_its_colours(folder: Path, extra: None) -> None:
    from PIL import Image

    for part in ROWS:
        for place, label in enumerate(("cat", "dog")):
            (folder / "pets" / part / label).mkdir(parents=True)
            for number in range(2):
                colour = (10 * place, 20 * number, 255)
                Image.new("RGB", (5, 5), colour).save(folder / "pets" / part / label / f"{number}.png")
    data = population(
        FlwrDatasets(name="flwr-datasets", path="pets", inputs=("image",), label="label")
    ).dataset
    assert (data.x.shape, data.class_names, data.y.tolist()) == ((4, 5, 5, 3), ("cat", "dog"), [0, 0, 1, 1])
    assert data.x[:, 0, 0].tolist() == [[0, 0, 255], [0, 20, 255], [10, 0, 255], [10, 20, 255]]


def test_lists_of_numbers_stand_beside_numbers_and_arrays_alone(folder: Path, extra: None) -> None:
    import datasets

    name = parquet(
        folder,
        {
            "embedding": (datasets.List(datasets.Value("float32")), lambda i: [i, i / 2]),
            "old": (datasets.Value("bool"), lambda i: i > 3),
            "grid": (datasets.Array2D((2, 3), "int8"), lambda i: np.full((2, 3), i, np.int8)),
            "y": (datasets.Value("int8"), lambda i: i % 2),
        },
    )
    flat = FlwrDatasets(name="flwr-datasets", path=name, label="y", inputs=("embedding", "old"))
    data = population(flat).dataset
    assert data.feature_names == ("embedding[0]", "embedding[1]", "old")
    assert data.x[4].tolist() == [4.0, 2.0, 1.0]
    grid = population(flat.model_copy(update={"inputs": ("grid",)})).dataset
    assert (grid.x.shape, grid.x[7].tolist()) == ((40, 2, 3), [[7] * 3] * 2)


def test_blocks_make_the_same_file(people: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    from fedprivacy.data import hub_arrays

    asked = FlwrDatasets(name="flwr-datasets", path=people, label="married", inputs=("age", "income"))
    whole = Path(asked.file)
    with np.load(whole) as made:
        x = made["x_train"]
    whole.unlink()
    monkeypatch.setattr(hub_arrays, "_BLOCK", 7)
    with np.load(asked.file) as made:
        assert np.array_equal(made["x_train"], x, equal_nan=True)


def test_a_folder_is_loaded_once_and_again_when_it_changes(people: str, folder: Path) -> None:
    asked = FlwrDatasets(name="flwr-datasets", path=people, label="married", inputs=("age",))
    first = asked.file
    written = os.stat(first).st_mtime_ns
    assert (asked.file, os.stat(first).st_mtime_ns) == (first, written)
    cache = folder / "cache" / "fedprivacy"
    assert [path.name for path in cache.iterdir()] == [Path(first).name], "no other copy of the data stays"
    assert (os.stat(first).st_mode & 0o077, cache.stat().st_mode & 0o077) == (0, 0)
    file = folder / people / "train.csv"
    file.write_text(file.read_text().replace("Rome", "Bergen"))
    assert asked.file != first


# The data section without its name, and all that is said.
MISTAKES: dict[str, tuple[str, list[str]]] = {
    "columns": (
        'path = "people"\nlabel = "maried"\nuser = "persn"\ninputs = ["age", "town", "agee", "age", "maried"]',
        [
            'my.toml:5: data.label = "maried": no such column. Did you mean "married"?',
            'my.toml:6: data.user = "persn": no such column. Did you mean "person"?',
            'my.toml:7: data.inputs[2] = "agee": no such column. Did you mean "age"?',
            'my.toml:7: data.inputs[3] = "age": the list names this column twice. Remove it.',
            'my.toml:7: data.inputs[4] = "maried": no such column. Did you mean "married"?',
            'my.toml:7: data.inputs[1]: column "town" holds text, numbers or images are needed. '
            "Name other columns, or make numbers of it first.",
        ],
    ),
    "the label among the inputs": (
        'path = "people"\nlabel = "married"\nuser = "person"\ninputs = ["age", "married", "person"]',
        [
            'my.toml:7: data.inputs[1] = "married": is the label. Remove it.',
            'my.toml:7: data.inputs[2] = "person": says whose the record is. Remove it.',
        ],
    ),
    "all columns, with text": (
        'path = "people"\nlabel = "married"\nuser = "person"',
        [
            'my.toml:2: data.inputs: column "town" holds text, numbers or images are needed. '
            "Name other columns, or make numbers of it first."
        ],
    ),
    "values missing": (
        'path = "people"\nlabel = "married"\ninputs = ["age", "income"]',
        [
            "my.toml:4: data.path: values are missing (NaN, infinite or beyond float32) in column income. "
            'Leave out what lacks values (name the others in inputs), or set missing = "zero": 0 after scaling.'
        ],
    ),
    "no user": (
        'path = "people"\nlabel = "married"\ninputs = ["age"]\npartition = "by-user"',
        ['my.toml:7: data.partition = "by-user": no column names the owner of a record. Name it: user = ...'],
    ),
    "splits": (
        'path = "people"\nlabel = "married"\ntrain = "trian"\ntest = "validation"',
        [
            'my.toml:6: data.train = "trian": no such split. Did you mean "train"?',
            'my.toml:7: data.test = "validation": no such split. Known here: "train", "test".',
        ],
    ),
    "the same split twice": (
        'path = "people"\nlabel = "married"\ntest = "train"',
        ['my.toml:6: data.test = "train": the records of train. Held-out records are needed.'],
    ),
    "labels that are no classes": (
        'path = "people"\nlabel = "income"\ninputs = ["age"]',
        [
            f'my.toml:4: data.path = "people": {part} has the label nan. Labels are whole numbers, counted from 0.'
            for part in ("y_train", "y_test")
        ],
    ),
    "another subset": (
        'path = "people"\nlabel = "married"\nsubset = "old"',
        ["my.toml:6: data.subset = \"old\": no such subset. Known here: ['default']."],
    ),
    "a revision of a folder": (
        'path = "people"\nlabel = "married"\nrevision = "main"',
        ['my.toml:6: data.revision = "main": has no effect with a folder. Remove it.'],
    ),
    "a file": (
        'path = "people/train.csv"\nlabel = "married"',
        ['my.toml:4: data.path = "people/train.csv": a file, not a folder. Name the folder around it.'],
    ),
    "the Hub out of reach": (
        'path = "ylecun/mnist"\nlabel = "label"',
        [
            'my.toml:4: data.path = "ylecun/mnist": the Hugging Face Hub cannot be reached '
            "(Couldn't reach 'ylecun/mnist' on the Hub (OfflineModeIsEnabled)). "
            "Try again with a network, or name a folder here."
        ],
    ),
    "keys alone": (
        'label = ""\ninputs = []',
        [
            'my.toml:2: data.path: missing. Add path = "ylecun/mnist". A data set of the Hugging Face Hub by owner '
            "and name, or a folder, seen from where the command runs.",
        ],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_all_mistakes_are_told_at_their_keys(people: str, case: str) -> None:
    data, said = MISTAKES[case]
    told = complaints(data)
    assert told[: len(said)] == said
    assert len(told) == len(said) or case == "keys alone"


def test_nothing_that_is_loaded_runs_code(folder: Path, extra: None) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str, str]]:
            return open, ("ran", "w")

    for place in (folder, folder / "pickles"):
        place.mkdir(exist_ok=True)
        for part in ROWS:
            (place / f"{part}.pkl").write_bytes(pickle.dumps(Trap()))
    (folder / "script").mkdir()
    (folder / "script" / "script.py").write_text("open('ran', 'w')")
    for path in ("pickles", "script", "pandas", "script/script.py"):
        [told] = complaints(f'path = "{path}"\nlabel = "y"')
        assert told.startswith(f'my.toml:4: data.path = "{path}": '), told
    assert not (folder / "ran").exists()


def test_columns_of_other_kinds_are_refused(folder: Path, extra: None) -> None:
    import datasets
    from PIL import Image

    name = parquet(
        folder,
        {
            "ragged": (datasets.List(datasets.Value("int8")), lambda i: [0] * (1 + i % 2)),
            "day": (datasets.Value("date32"), lambda i: None),
            "image": (datasets.Image(), lambda i: Image.new("L", (2, 2 + i // 39))),
            "deep": (datasets.Image(), lambda i: Image.fromarray(np.zeros((2, 2), np.int32))),
            "y": (datasets.Value("int8"), lambda i: i % 2),
            "who": (datasets.Value("string"), lambda i: None if i == 3 else "me"),
        },
    )

    def told(*inputs: str, **keys: str) -> str:
        with pytest.raises(SourceError) as caught:
            hub.file(
                Source.of(
                    {"path": name, "train": "train", "test": "test", "label": "y", **keys, "inputs": inputs}
                )
            )
        return str(caught.value)

    assert 'shape (2,) in record 1 of split "train", and (1,) in the first' in told("ragged")
    assert "shape (3, 2) in record 39 of split" in told("image")
    assert 'column "day" holds values of type date32' in told("day")
    assert "an image of the mode I, which has no 8 bits" in told("deep")
    assert 'holds images, which cannot stand beside other columns. Set inputs = ["image"]' in told(
        "image", "y", label="who"
    )
    assert "data.user: is missing in some records" in told("image", user="who")
    assert not list((folder / "cache" / "fedprivacy").iterdir()), "nothing half written stays"


def test_the_hub_is_asked_once_however_often_a_scenario_is_checked(
    extra: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import flwr_datasets

    asked = []

    class Counted(flwr_datasets.FederatedDataset):
        def __init__(self, **options: object) -> None:
            asked.append(options["dataset"])
            super().__init__(**options)

    monkeypatch.setattr(flwr_datasets, "FederatedDataset", Counted)
    data = 'path = "a/b"\nlabel = "y"'
    assert complaints(data) == complaints(data)
    assert asked == ["a/b"]
    monkeypatch.setattr(hub, "_failed", {key: (0.0, error) for key, (_, error) in hub._failed.items()})
    complaints(data)
    assert asked[:2] == ["a/b", "a/b"], "after a while it is asked again"


def test_without_the_extra_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    said = f"my.toml:3: data.name: needs the extra: {install('datasets')}."
    assert complaints('path = "people"\nlabel = "y"') == [said]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_folder_with_what_is_no_file_is_refused_unread(people: str, folder: Path, kind: str) -> None:
    place = next(folder.rglob("train.csv"))
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    source = Source.of({"path": str(place.parent), "train": "train", "test": "test", "label": "married"})
    with pytest.raises(SourceError, match=r"train\.csv in it is neither a file nor a folder"):
        hub.file(source)


def test_columns_that_are_no_inputs_come_with_the_test_records_alone(people: str) -> None:
    asked = Scenario.from_text(f'{text(TABLE)}[evaluation]\ngroups = ["town", "person", "age"]\n')
    groups = {each.column: each for each in held_out_groups(asked.data, asked.evaluation)}
    named = [groups["town"].labels[code] for code in groups["town"].codes]
    assert named == cells("test")["town"]
    assert groups["person"].labels == ("p00", "p01")
    assert len(groups["age"].codes) == ROWS["test"]
    with np.load(asked.data.file) as stored:
        assert not [name for name in stored if name not in npz._USED]
