"""Files of settings: each format with the line of each mistake, and arguments that replace keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from scenarios.budgets.libraries.registry import BY_NAME

FLOWER = """\
[project]
name = "hospitals"

[tool.flwr.app.config]
num-server-rounds = 100
epsilon = -8
delta = 1e-5
clipping-norm = "1"
sensitivity = 1.0
learning-rate = 0.1
"""
YAML = """\
# pfl's own baseline
central_privacy_mechanism: gaussian
central_epsilon: 2.0
central_delta: 1e-6
cohort_size: many
central_num_iterations: 0
"""
NVFLARE = """\
{
\t"format_version": 2,
\t"task_result_filters": [
\t\t{"tasks": ["train"], "filters": [
\t\t\t{"path": "nvflare.app_common.filters.exclude_vars.ExcludeVars", "args": {}},
\t\t\t{"path": "nvflare.app_common.filters.svt_privacy.SVTPrivacy", "args": {
\t\t\t\t"fraction": 1.5,
\t\t\t\t"epsilon": 0.001,
\t\t\t\t"data_kinds": ["WEIGHT_DIFF"]
\t\t\t}}
\t\t]}
\t]
}
"""


def refusal(name: str, *words: str) -> list[str]:
    with pytest.raises(InputError) as refused:
        BY_NAME[name].load().document(words)
    assert refused.value.exit_code == 2
    return str(refused.value).splitlines()


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_a_pyproject_names_all_mistakes_with_their_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "pyproject.toml", FLOWER)
    assert refusal("flower", file) == [
        f"{file}:6: epsilon = -8: must be above 0. Of one message, by Flower.",
        f'{file}:8: clipping_norm: "1" is text, a number is needed.',
    ]
    fixed = BY_NAME["flower"].load().document([file, "epsilon=8", "clipping-norm=1"])
    assert fixed["settings"]["rounds"] == 100
    assert fixed["unread"] == ["learning_rate"]


def test_arguments_replace_keys_of_the_file_and_are_named_where_they_are_wrong(tmp_path: Path) -> None:
    file = written(tmp_path, "pyproject.toml", FLOWER)
    assert refusal("flower", file, "epsilon=8", "rounds=0", "clipping-norm=1") == [
        "rounds=0: must be at least 1. Rounds in which a client takes part."
    ]


def test_yaml_reads_numbers_without_a_point(tmp_path: Path) -> None:
    file = written(tmp_path, "baseline.yaml", YAML)
    assert refusal("pfl", file) == [
        f'{file}:5: cohort_size: "many" is text, a whole number is needed. Users in each round.',
        f"{file}:6: central_num_iterations = 0: must be at least 1.",
    ]
    read = BY_NAME["pfl"].load().document([file, "cohort_size=50", "central_num_iterations=10"])
    assert read["settings"]["central_delta"] == 1e-6


def test_json_of_nvflare_finds_the_filter_and_its_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "config_fed_client.json", NVFLARE)
    assert refusal("nvflare", file) == [
        f"{file}: weights: missing. Add weights = 7033282. Numbers in the model: no default.",
        f"{file}:7: fraction = 1.5: must be above 0 and at most 1.",
    ]
    read = BY_NAME["nvflare"].load().document([file, "fraction=0.9", "weights=4700000"])
    assert (read["settings"]["epsilon"], read["settings"]["noise_var"]) == (0.001, 0.1)
    assert read["unread"] == ["data_kinds"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.toml", "epsilon = \n", ":1: not TOML: "),
        ("a.json", '{\n"epsilon": }', ":2: cannot be parsed: "),
        ("a.json", "[1]", ": has no keys."),
        ("a.yaml", "a: [1\nb: 2\n", "not YAML: "),
        ("a.yaml", "a: &x [*x]\n", "nested too deep"),
        ("a.yaml", "!!python/object/apply:os.system ['true']\n", "not YAML: "),
        ("a.ini", "epsilon = 1", ": an unknown kind of file."),
        ("pyproject.toml", "[tool.black]\nx = 1\n", ": has no [tool.flwr.app.config]."),
        ("a.json", '{"x": NaN}', "cannot be parsed: "),
    ],
)
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, name: str, text: str, problem: str) -> None:
    file = written(tmp_path, name, text)
    (line,) = refusal("flower", file)
    assert line.startswith(file)
    assert problem in line


def test_nothing_two_files_and_a_missing_one(tmp_path: Path) -> None:
    (none,), (two,), (missing,) = (
        refusal("flower"),
        refusal("flower", "a.toml", "b.toml"),
        refusal("flower", str(tmp_path / "none.toml")),
    )
    assert "no settings. Name a .toml, .json or .yaml file of settings, or give KEY=VALUE." in none
    assert two.startswith("b.toml: a second file.")
    assert "none.toml: cannot be read: No such file or directory." in missing


def test_a_config_without_a_privacy_filter_has_no_guarantee_to_state(tmp_path: Path) -> None:
    file = written(tmp_path, "c.json", '{"task_result_filters": []}')
    (line,) = refusal("nvflare", file)
    assert "has no SVTPrivacy or PercentilePrivacy" in line
