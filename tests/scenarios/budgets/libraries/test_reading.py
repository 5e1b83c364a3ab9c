"""Files of settings: each format with the line of each mistake, and arguments that replace keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from scenarios.budgets.libraries import reading
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


def test_a_setting_typed_twice_is_refused_under_any_spelling(tmp_path: Path) -> None:
    assert refusal("flower", "rounds=1", "num-server-rounds=2", "epsilon=1", "epsilon=2") == [
        "num-server-rounds=2: given twice: rounds=1 too. Leave out one.",
        "epsilon=2: given twice: epsilon=1 too. Leave out one.",
    ]
    file = written(tmp_path, "pyproject.toml", FLOWER)
    typed = BY_NAME["flower"].load().document([file, "epsilon=8", "clipping-norm=1", "rounds=2"])
    assert typed["settings"]["rounds"] == 2


def test_published_forms_of_numbers_are_read_and_leading_zeros_are_not(tmp_path: Path) -> None:
    text = (
        "central_epsilon: '2.0'\ncohort_size: 1_000\ncentral_num_iterations: \"1e2\"\nweight_by_samples: no\n"
    )
    read = BY_NAME["pfl"].load().document([written(tmp_path, "a.yaml", text)])["settings"]
    stated = (read["central_epsilon"], read["cohort_size"], read["central_num_iterations"])
    assert stated == (2.0, 1000, 100)
    assert read["weight_by_samples"] is False
    assert (
        BY_NAME["nvflare"].load().document(["weights=7e6", "rounds=1e2"])["settings"]["weights"] == 7_000_000
    )
    assert refusal("nvflare", "weights=7.5") == [
        "weights=7.5: 7.5 is a number with a decimal point, a whole number is needed. "
        "Numbers in the model: no default."
    ]
    file = written(tmp_path, "b.yaml", "cohort_size: 0100\n")
    assert refusal("pfl", file)[0].startswith(
        f'{file}:1: cohort_size: "0100" is text, a whole number is needed'
    )
    assert refusal("pfl", "cohort_size=0100")[0].startswith('cohort_size=0100: "0100" is text')


def test_lists_and_blocks_of_other_keys_are_left_unread(tmp_path: Path) -> None:
    text = "layers: [1, 2]  # two\nnotes: |\n  central_epsilon: 9\ntags:\n- a\n- b\nnested:\n  cohort_size: 7\nx: &a 1\ncentral_epsilon: 2\n"
    read = BY_NAME["pfl"].load().document([written(tmp_path, "a.yaml", text)])
    assert read["unread"] == ["layers", "nested", "notes", "tags", "x"]
    assert (read["settings"]["central_epsilon"], read["settings"]["cohort_size"]) == (2.0, 1000)


def test_a_key_without_a_value_says_so(tmp_path: Path) -> None:
    file = written(tmp_path, "a.yaml", "central_epsilon:\ncohort_size: 5\n")
    assert refusal("pfl", file) == [f"{file}:1: central_epsilon: has no value. Give it one, or remove it."]
    assert refusal("pfl", "central_epsilon=") == [
        "central_epsilon=: has no value. Give it one, or remove it."
    ]
    file = written(tmp_path, "a.json", '{"weights": 1000, "epsilon_query": null}')
    assert BY_NAME["nvflare"].load().document([file])["settings"]["epsilon_query"] is None


def test_flat_yaml_is_read_as_yaml_reads_it(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")  # flwr brings it; the command does not use it
    text = (
        "---\n# a comment\na: 1\nb: -2.5   # why\nc: 'x # y'\nd: \"z\"\ne: true\nf:\ng: ./data/cifar10\n"
        "h: 1.0e-6\ni: two words\nj-k: .5\n"
    )
    document, lines = reading._parse_yaml(text, "a.yaml")
    assert document == yaml.safe_load(text)
    assert lines["j-k",] == 12


def test_lines_of_json_are_those_of_its_keys() -> None:
    text = '{"a": [1, {"b": "\\"{,"},\n [2, {"c": {\n"d": []}}]],\n"e": {"f": 1,\n"g": 2}}'
    assert reading._lines_of_json(text) == {
        ("a",): 1, ("a", 1, "b"): 1, ("a", 2, 1, "c"): 2, ("a", 2, 1, "c", "d"): 3,
        ("e",): 4, ("e", "f"): 4, ("e", "g"): 5,
    }  # fmt: skip


def test_json_of_nvflare_finds_the_filter_and_its_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "config_fed_client.json", NVFLARE)
    assert refusal("nvflare", file) == [
        f"{file}: weights: missing. Add weights = 7033282. Numbers in the model: no default.",
        f"{file}:7: fraction = 1.5: must be above 0 and at most 1.",
    ]
    read = BY_NAME["nvflare"].load().document([file, "fraction=0.9", "weights=4700000"])
    assert (read["settings"]["epsilon"], read["settings"]["noise_var"]) == (0.001, 0.1)
    assert read["settings"]["data_kinds"] == ["WEIGHT_DIFF"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.toml", "epsilon = \n", ":1: not TOML: "),
        ("a.json", '{\n"epsilon": }', ":2: cannot be parsed: "),
        ("a.json", "[1]", ": has no keys."),
        ("a.yaml", "b: 2\nepsilon: [1, 2]\n", ":2: epsilon: a list, a table or more than one line,"),
        ("a.yaml", "epsilon: &x 1\n", ":1: epsilon: a list, a table or more than one line,"),
        ("a.yaml", "epsilon: 1\n  2\n", ":1: epsilon: a list, a table or more than one line,"),
        ("a.yaml", "epsilon:\n- 1\n", ":1: epsilon: a list, a table or more than one line,"),
        ("a.yaml", 'a: "open\nb: 1"\n', ':1: not of the form `key: value`: a: "open'),
        ("a.yaml", "a: [1,\n", ":1: not of the form `key: value`: a: [1,."),
        ("a.yaml", "<<: *x\n", ":1: not of the form `key: value`"),
        ("a.yaml", "a: 1\n---\n", ":2: not of the form `key: value`"),
        ("a.yaml", "!!python/object/apply:os.system ['true']\n", ":1: not of the form"),
        (
            "a.yaml",
            "cohort_size: 1\ncohort_size: 2\n",
            ":2: cohort_size: given twice: line 1 too. Remove one.",
        ),
        (
            "a.yaml",
            "epsilon: 1\nclipping-norm: 1\nclipping_norm: 2\n",
            ":3: clipping_norm: given twice: clipping-norm in line 2 too.",
        ),
        (
            "a.toml",
            "rounds = 1\nnum-server-rounds = 9\n",
            ":2: num-server-rounds: given twice: rounds in line 1 too.",
        ),
        ("a.json", '{"epsilon": 1,\n"epsilon": 8}', ":2: epsilon: given twice: line 1 too."),
        ("a.json", '{"epsilon": 1, "epsilon": 8}', ":1: epsilon: given twice: line 1 too."),
        ("a.json", '{"a": [{"b": 1,\n"b": 8}]}', "given twice: line 1 too."),
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
