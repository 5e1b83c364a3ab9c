"""Values that no public copy reveals, by the names of their fields and in texts."""

from __future__ import annotations

import pytest

from fedprivacy.documents.secret_values import cleaned, cleaner, is_secret, secret_paths


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("seed", 7, True),
        ("data.seed", 7, True),  # of a candidate's settings
        ("seeds", [1, 2], True),
        ("seeds", 2, False),  # how many
        ("seconds", 0.5, True),
        ("seed", {"kind": "bits"}, False),  # somebody's name of a query
        ("seedling", 7, False),
    ],
)
def test_fields_are_secret_by_name_and_value(name: str, value: object, secret: bool) -> None:
    assert is_secret(name, value) == secret


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/me/my data/x.npz", "x.npz"),
        ("~/x.npz", "x.npz"),
        ("C:\\Users\\me\\x.npz", "x.npz"),
        ("data/x.npz, 3/4 and https://example.org/a/b", "data/x.npz, 3/4 and https://example.org/a/b"),
        ("of /home/me/x.npz: gone", "of x.npz: gone"),
        ("run digits --seed 7", "run digits --seed (operator-only)"),
        ("run digits --set seed=7 --set compare.seeds=[1,2]",
         "run digits --set seed=(operator-only) --set compare.seeds=(operator-only)"),
        ("over 3 seeds, with other seeds than this", "over 3 seeds, with other seeds than this"),
        ("key 0123456789abcdef.", "key (operator-only)."),
    ],
)  # fmt: skip
def test_texts_lose_paths_seeds_and_quoted_values(text: str, clean: str) -> None:
    assert cleaner(["0123456789abcdef", 12, 0.5])(text) == clean


def test_tables_at_any_depth_are_cleaned() -> None:
    table = {"a": [{"seed": 7, "path": "/a/b.npz"}], "seconds": 1.0}
    assert cleaned(table, cleaner([])) == {"a": [{"path": "b.npz"}]}
    assert cleaned(table, cleaner([]), blank=True) == {
        "a": [{"seed": None, "path": "b.npz"}],
        "seconds": None,
    }
    assert secret_paths(table) == ("a[].seed", "a[].path", "seconds")
