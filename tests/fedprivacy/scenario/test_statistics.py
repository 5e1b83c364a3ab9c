"""The schema of statistics scenarios: every mistake at once, with its line and what to do."""

from __future__ import annotations

import tomllib

import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import load, loads
from fedprivacy.scenario.statistics import Statistics

CATEGORIES = 'name = "categories"\nclients = 100\nshares = [5, 3, 2]'
NUMBERS = 'name = "numbers"\nclients = 100\nlaw = "uniform"\nlow = 0.0\nhigh = 9.0'
EVERY_KIND = {
    "mean-of-bits": "above = 3.0",
    "count": "equals = 4.0",
    "mean": "low = 0.0\nhigh = 9.0",
    "histogram": "edges = [2.0, 5.5]",
    "most-common": 'first = 0\nlast = 2\nnames = ["a", "b", "c"]',
    "share-by-group": 'by = "answer"\nabove = 3.0\nfirst = 0\nlast = 9',
    "quantile": "low = 0.0\nhigh = 9.0\nsteps = 9\nquantiles = [0.25, 0.5]",
    "best-price": "prices = [1.0, 2.0, 4.0]",
}


def text_of(data: str = "", query: str = "", privacy: str = "", more: str = "") -> str:
    data = data or 'name = "bits"\nclients = 100\nshare = 0.6'
    query = query or 'kind = "mean-of-bits"'
    privacy = privacy or 'trust = "central"\nepsilon = 1.0'
    return f'name = "asked"\n[data]\n{data}\n[queries.seen]\n{query}\n[privacy]\n{privacy}\n{more}'


def mistakes(text: str, *overrides: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        Statistics.from_text(text, "mine.toml", overrides)
    return str(caught.value)


def every_kind(trust: str = "central", more: str = "") -> str:
    queries = "".join(f'[queries.{kind}]\nkind = "{kind}"\n{keys}\n' for kind, keys in EVERY_KIND.items())
    epsilon = "" if trust == "none" else "epsilon = 2.0"
    return f'name = "all"\n[data]\n{NUMBERS}\n{queries}[privacy]\ntrust = "{trust}"\n{epsilon}\n{more}'


# ------------------------------------------------------------------ what is valid


@pytest.mark.parametrize("trust", ["none", "central", "local"])
def test_what_is_written_out_reads_as_the_same_scenario(trust: str) -> None:
    scenario = Statistics.from_text(every_kind(trust, "[compare]\nclients = [10, 20]\nrepeats = 2"))
    assert Statistics.from_text(scenario.to_toml()) == scenario
    short = scenario.to_toml(compare=False)
    assert "compare" not in tomllib.loads(short)
    assert Statistics.from_text(short).queries == scenario.queries


def test_defaults() -> None:
    scenario = Statistics.from_text(text_of())
    assert (scenario.seed, scenario.population) == (0, 100)
    assert (scenario.privacy.adjacency, scenario.privacy.unit, scenario.privacy.delta) == (
        "replace-one", "client", 0.0
    )  # fmt: skip
    assert scenario.compare.trusts == ("none", "central", "local")
    assert (scenario.compare.epsilons, scenario.compare.clients, scenario.compare.repeats) == ((1.0,), (), 3)
    query = scenario.queries["seen"]
    assert (query.column, query.weight, query.local, query.central) == ("answer", 1.0, "auto", "auto")


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
@pytest.mark.parametrize("compare", ["", "[compare]\nrepeats = 5"])
def test_where_the_server_sees_who_answers_local_trust_is_not_compared(adjacency: str, compare: str) -> None:
    privacy = f'trust = "central"\nepsilon = 1.0\nadjacency = "{adjacency}"'
    scenario = Statistics.from_text(text_of(privacy=privacy, more=compare))
    assert scenario.compare.trusts == ("none", "central")
    assert scenario.compare.repeats == (5 if compare else 3)


def test_a_file_with_queries_is_one_of_statistics(tmp_path, base_text: str) -> None:
    assert isinstance(loads(text_of()), Statistics)
    assert isinstance(loads(base_text), Scenario)
    file = tmp_path / "mine.toml"
    file.write_text(text_of())
    assert load(file, ["privacy.epsilon=2.0"]).privacy.epsilon == 2.0
    with pytest.raises(ScenarioError, match="not TOML"):
        loads("= not TOML")


def test_overrides_are_laid_over_the_file() -> None:
    scenario = Statistics.from_text(
        text_of(), overrides=["data.clients=7", "queries.seen.weight=2.0", "privacy.trust=local", "seed=3"]
    )
    assert (scenario.population, scenario.seed, scenario.privacy.trust) == (7, 3, "local")
    assert scenario.queries["seen"].weight == 2.0
    added = Statistics.from_text(text_of(), overrides=["queries.more={kind='count'}"])
    assert list(added.queries) == ["seen", "more"]
    assert Statistics.from_text(text_of(), overrides=["privacy.trust=none"]).privacy.epsilon is None


# ------------------------------------------------------------------ what is wrong


MISTAKES = {
    # what is written -> what is said, with its line
    "privacy.delta too large": (
        {'privacy': 'trust = "central"\nepsilon = 1.0\ndelta = 0.01'},
        ["mine.toml:11: privacy.delta = 0.01: must be below 1/clients = 0.01"],
    ),
    "local with add-remove": (
        {'privacy': 'trust = "local"\nepsilon = 1.0\nadjacency = "add-remove"'},
        ["mine.toml:11: privacy.adjacency", 'Set adjacency = "replace-one"'],
    ),
    "trust none with epsilon": (
        {'privacy': 'trust = "none"\nepsilon = 1.0'},
        ["mine.toml:10: privacy.epsilon: has no effect with trust"],
    ),
    "no epsilon": ({'privacy': 'trust = "local"'}, ["privacy.epsilon: missing. Add epsilon = 1.0"]),
    "unknown trust": ({'privacy': 'trust = "centrl"'}, ['Did you mean "central"?']),
    "unknown kind": ({'query': 'kind = "mean-of-bit"'}, ["queries.seen.kind", 'Did you mean "mean-of-bits"?']),
    "no kind": ({'query': "weight = 1.0"}, ["queries.seen.kind: missing"]),
    "key of another kind": (
        {'query': 'kind = "count"\nlow = 0.0'},
        ['mine.toml:8: queries.seen.low: has no effect with kind = "count"'],
    ),
    "misspelt key": (
        {'query': 'kind = "count"\nabov = 0.0'},
        ["mine.toml:8: queries.seen.abov: unknown key. Did you mean above?"],
    ),
    "missing bounds": ({'query': 'kind = "mean"'}, ["queries.seen.low: missing", "queries.seen.high: missing"]),
    "bounds the wrong way": (
        {'query': 'kind = "mean"\nlow = 2.0\nhigh = 1.0'},
        ["mine.toml:8: queries.seen.low: must be below high = 1"],
    ),
    "equals and above": (
        {'query': 'kind = "count"\nequals = 1.0\nabove = 0.0'},
        ["queries.seen.above: one way to say yes is enough"],
    ),
    "wrong column": (
        {'query': 'kind = "count"\ncolumn = "anser"'},
        ["mine.toml:8: queries.seen.column = \"anser\": the data have no such column", '"answer"'],
    ),
    "wrong group column": (
        {'query': 'kind = "share-by-group"\nby = "age"\nfirst = 0\nlast = 1'},
        ["queries.seen.by = \"age\": the data have no such column"],
    ),
    "no categories": ({'query': 'kind = "histogram"'}, ["queries.seen.last: missing. Add first and last"]),
    "one category": (
        {'query': 'kind = "histogram"\nfirst = 3\nlast = 3'},
        ["queries.seen.last: must be from first + 1"],
    ),
    "edges and first": (
        {'query': 'kind = "histogram"\nedges = [1.0, 2.0]\nfirst = 0'},
        ["mine.toml:9: queries.seen.first: has no effect beside edges"],
    ),
    "edges that fall": (
        {'query': 'kind = "histogram"\nedges = [2.0, 1.0]'},
        ["queries.seen.edges: must rise"],
    ),
    "too few names": (
        {'query': 'kind = "histogram"\nfirst = 0\nlast = 2\nnames = ["a", "b"]'},
        ["queries.seen.names: 2 names for 3 categories"],
    ),
    "names twice": (
        {'query': 'kind = "most-common"\nfirst = 0\nlast = 1\nnames = ["a", "a"]'},
        ["queries.seen.names", "twice"],
    ),
    "a quantile twice": (
        {'query': 'kind = "quantile"\nlow = 0.0\nhigh = 1.0\nquantiles = [0.5, 0.5]'},
        ["queries.seen.quantiles", "twice"],
    ),
    "a quantile of 1": (
        {'query': 'kind = "quantile"\nlow = 0.0\nhigh = 1.0\nquantiles = [1.0]'},
        ["queries.seen.quantiles[0] = 1.0: must be below 1"],
    ),
    "prices that fall": (
        {'query': 'kind = "best-price"\nprices = [2.0, 1.0]'},
        ["queries.seen.prices: must rise"],
    ),
    "unknown mechanism": (
        {'query': 'kind = "count"\nlocal = "oue"'},
        ["queries.seen.local", "randomized-response"],
    ),
    "no weight": ({'query': 'kind = "count"\nweight = 0.0'}, ["queries.seen.weight = 0.0: must be above 0"]),
    "two laws": (
        {'data': 'name = "categories"\nclients = 9\nshares = [1.0, 1.0]\nexponent = 1.0', 'query': ""},
        ["data.shares: one law is needed"],
    ),
    "half a law": (
        {'data': 'name = "categories"\nclients = 9\nexponent = 1.0'},
        ["data.categories: missing. Add categories = 100."],
    ),
    "shares of 0": (
        {'data': 'name = "categories"\nclients = 9\nshares = [0.0, 0.0]'},
        ["data.shares: all shares are 0"],
    ),
    "keys of the other law": (
        {'data': 'name = "numbers"\nclients = 9\nmedian = 3.0\nspread = 1.0\nlow = 0.0'},
        ['data.low: has no effect with law = "lognormal"'],
    ),
    "no law's keys": (
        {'data': 'name = "numbers"\nclients = 9\nlaw = "uniform"'},
        ["data.low: missing", "data.high: missing"],
    ),
    "an empty range": (
        {'data': 'name = "numbers"\nclients = 9\nlaw = "uniform"\nlow = 1.0\nhigh = 1.0'},
        ["data.low = 1.0: must be below high = 1"],
    ),
    "a range beyond floats": (
        {'data': 'name = "numbers"\nclients = 9\nlaw = "uniform"\nlow = -1e308\nhigh = 1e308'},
        ["data.low", "data.high"],
    ),
    "nobody": ({'data': 'name = "bits"\nclients = 0\nshare = 0.5'}, ["data.clients = 0: must be at least 1"]),
    "no file": ({'data': 'name = "npz"\npath = "nowhere.npz"'}, ["data.path: no such file"]),
    "a key of the file": (
        {'data': 'name = "bits"\nclients = 9\nshare = 0.5\npath = "x.npz"'},
        ["data.path: has no effect with name"],
    ),
    "a training section": ({'more': "[training]\nlearning_rate = 0.1"}, ["mine.toml:11: training: unknown key"]),
    "compare.local of no such mechanism": (
        {'more': '[compare]\nlocal = ["oue"]'},
        ["mine.toml:12: compare.local", "query seen (mean-of-bits) has no such local mechanism"],
    ),
    "mechanisms of a trust that is not compared": (
        {'more': '[compare]\ntrusts = ["central"]\nlocal = ["laplace"]'},
        ['compare.local: has no effect: trust "local" is not compared'],
    ),
    "compare with local under add-remove": (
        {
            'privacy': 'trust = "central"\nepsilon = 1.0\nadjacency = "add-remove"',
            'more': '[compare]\ntrusts = ["central", "local"]',
        },
        ["compare.trusts", 'Leave out "local"'],
    ),
    "too many clients for delta in a cell": (
        {
            'privacy': 'trust = "central"\nepsilon = 1.0\ndelta = 1e-3', 'more': "[compare]\nclients = [10, 10000]"
        },
        ["compare.clients: 10000 clients are too many for delta"],
    ),
    "compare keys": (
        {'more': "[compare]\nepsilons = [0.0]\nrepeats = 0\nclients = [5, 5]\nseeds = [1]"},
        ["compare.epsilons[0] = 0.0", "compare.repeats = 0", "compare.clients", "compare.seeds: unknown key"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_what_to_do(name: str) -> None:
    given, said = MISTAKES[name]
    message = mistakes(text_of(**given))
    for words in said:
        assert words in message
    assert all(line.startswith("mine.toml") for line in message.splitlines())


@pytest.mark.parametrize("key", ["privacy.trust=distributed", "compare.trusts=['local', 'distributed']"])
def test_noise_in_shares_is_refused_with_the_models_that_answers_have(key: str) -> None:
    text = mistakes(text_of(), key)
    assert 'only training has noise in shares for a secure sum. Use "local", where clients add their' in text


def test_all_mistakes_are_told_at_once() -> None:
    text = text_of(
        data='name = "bits"\nclients = 100', query='kind = "mean"\nlow = 2.0\nhigh = 1.0', privacy="trust = 3"
    )
    message = mistakes(text + "[queries.a_b]\nkind = 'count'\n[queries.c]\nkind = 'x'\n", "privacy.delta=2")
    for place in (
        "data.share",
        "queries.seen.low",
        "privacy.trust",
        "queries.a_b",
        "queries.c.kind",
        "delta",
    ):
        assert place in message


def test_of_broken_data_nothing_else_is_said() -> None:
    message = mistakes(text_of(data='name = "categories"\nclients = -1', query='kind = "histogram"'))
    assert message.count("\n") == 0
    assert "data.clients = -1" in message


def test_without_a_query_there_is_nothing_to_ask() -> None:
    head = 'name = "asked"\n[data]\nname = "bits"\nclients = 9\nshare = 0.5\n'
    privacy = '[privacy]\ntrust = "none"\n'
    assert "queries: no query. Add [queries.NAME] with kind" in mistakes(head + privacy)
    assert "queries.seen: 3 is a whole number" in mistakes("queries.seen = 3\n" + head + privacy)
    assert "privacy: the section is missing" in mistakes(head + "[queries.seen]\nkind = 'count'")


def test_an_override_is_named_where_it_is_wrong() -> None:
    assert mistakes(text_of(), "privacy.delta=0.5").startswith("--set privacy.delta=0.5: ")
    assert mistakes(text_of(), "queries.seen.kind=mode").startswith("--set queries.seen.kind=mode: ")


# ------------------------------------------------------------------ data from a file


def test_a_table_tells_its_columns_and_clients(make_table) -> None:
    path = make_table(users=[3, 3, 7], age=[1.0, 2.0, 3.0], income=[4.0, 5.0, 6.0])
    query = 'kind = "mean"\ncolumn = "{}"\nlow = 0.0\nhigh = 9.0'
    of_records = f'name = "npz"\npath = "{path}"'
    of_users = of_records + '\nowner = "user"'
    assert Statistics.from_text(text_of(of_records, query.format("age"))).population == 3
    assert Statistics.from_text(text_of(of_users, query.format("label"))).population == 2
    assert 'Did you mean "income"?' in mistakes(text_of(of_users, query.format("incme")))
    renamed = of_users + '\nlabel = "married"'
    assert Statistics.from_text(text_of(renamed, query.format("married"))).population == 2
    more = "[compare]\nclients = [1, 2]"
    assert "compare.clients: the data have the clients that they have" in mistakes(
        text_of(of_records, query.format("age"), more=more)
    )


def test_users_must_be_in_the_file(make_table) -> None:
    data = f'name = "npz"\npath = "{make_table(age=[1.0, 2.0])}"\nowner = "user"'
    assert "the file has no user_train" in mistakes(text_of(data, 'kind = "count"\ncolumn = "age"'))


def test_shares_of_records_cannot_have_whole_noise(make_table) -> None:
    data = f'name = "npz"\npath = "{make_table(users=[1, 1, 2], age=[1.0, 2.0, 3.0])}"\nowner = "user"'
    query = 'kind = "count"\ncolumn = "age"\n'
    message = mistakes(text_of(data, query + 'central = "discrete-laplace"'))
    assert 'mine.toml:9: queries.seen.central = "discrete-laplace": needs whole totals' in message
    scenario = Statistics.from_text(text_of(data, query, more='[compare]\ncentral = ["discrete-laplace"]'))
    with pytest.raises(ScenarioError, match="needs whole totals"):
        scenario.cell("central", 1.0, 1, mechanism="discrete-laplace")


# ------------------------------------------------------------------ the cells of a comparison


@pytest.mark.parametrize("own", ["none", "central", "local"])
@pytest.mark.parametrize("trust", ["none", "central", "local"])
@pytest.mark.parametrize("clients", [None, 50])
def test_a_cell_differs_in_what_it_is_asked_for_alone(own: str, trust: str, clients: int | None) -> None:
    scenario = Statistics.from_text(every_kind(own, "[compare]\nrepeats = 7"))
    cell = scenario.cell(trust, None if trust == "none" else 0.5, 9, clients)
    assert (cell.privacy.trust, cell.privacy.epsilon) == (trust, None if trust == "none" else 0.5)
    assert (cell.seed, cell.population, cell.queries) == (9, clients or 100, scenario.queries)
    assert cell.compare.repeats == 3
    assert Statistics.from_text(cell.to_toml()) == cell


def test_a_cell_sets_one_mechanism_for_all_queries() -> None:
    scenario = Statistics.from_text(text_of())
    assert scenario.cell("local", 1.0, 1, mechanism="laplace").queries["seen"].local == "laplace"
    assert scenario.cell("central", 1.0, 1, mechanism="laplace").queries["seen"].central == "laplace"
    with pytest.raises(ScenarioError, match=r"queries.seen.local"):
        scenario.cell("local", 1.0, 1, mechanism="oue")


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_a_cell_keeps_delta_and_adjacency(adjacency: str) -> None:
    privacy = f'trust = "central"\nepsilon = 1.0\ndelta = 1e-4\nadjacency = "{adjacency}"'
    scenario = Statistics.from_text(text_of(privacy=privacy))
    cell = scenario.cell("central", 2.0, 1)
    assert (cell.privacy.delta, cell.privacy.adjacency) == (1e-4, adjacency)
    assert (cell.cell("none", None, 1).privacy.delta, cell.cell("none", None, 1).privacy.adjacency) == (
        0.0, adjacency
    )  # fmt: skip
    with pytest.raises(ScenarioError, match="delta"):
        scenario.cell("central", 2.0, 1, clients=10_000)
    if adjacency != "replace-one":
        with pytest.raises(ScenarioError, match="adjacency"):
            scenario.cell("local", 1.0, 1)


def test_a_cell_has_an_epsilon_unless_nobody_adds_noise() -> None:
    scenario = Statistics.from_text(text_of())
    for trust, epsilon in (("none", 1.0), ("central", None)):
        with pytest.raises(ValueError, match="epsilon"):
            scenario.cell(trust, epsilon, 1)
