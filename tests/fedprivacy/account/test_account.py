"""An account: what enters, what is refused and why, and that nothing is charged twice or forgotten."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dp_accounting import dp_event as dp

from fedprivacy.account import account_file, entering
from fedprivacy.account.account import Account
from fedprivacy.account.assumptions import AccountAssumption
from fedprivacy.account.entering import check_receipt, create, enter, note_end
from fedprivacy.account.entry import PlannedWork
from fedprivacy.account.policy import Policy
from fedprivacy.account.populations import PopulationIds
from fedprivacy.account.statement import statement, would_fit
from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.accounting.events import to_json
from fedprivacy.accounting.integer_sums import SkellamDpEvent
from fedprivacy.accounting.renyi import ORDERS, renyi_divergence
from fedprivacy.accounting.shuffled_event import ShuffledDpEvent
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume

CLIENTS = PopulationIds("data", "ids")


def ledger(event: dp.DpEvent | None, rounds: int = 1, **terms: Any) -> dict[str, Any]:
    """A ledger with one event against participants and outsiders, and none against the server."""
    stored = None if event is None else to_json(event)
    claims = [
        {"observer": "server", "event": None, "assumptions": [str(Assume.SERVER_SEES_UPDATES)]},
        {"observer": "participant", "event": stored, "assumptions": [str(Assume.SIMULATED)]},
        {"observer": "outsider", "event": stored, "assumptions": [str(Assume.SIMULATED)]},
    ]
    plain = {"trust": "central", "unit": "client", "adjacency": "add-remove", "sampling": "all clients"}
    return {**plain, "rounds": rounds, "claims": claims, **terms}


def work(noise: float, rounds: int = 1, *, name: str = "run", **fields: Any) -> PlannedWork:
    """A plan of Gaussian rounds."""

    def first(count: int) -> tuple[dict[str, Any], ...]:
        return (ledger(dp.SelfComposedDpEvent(dp.GaussianDpEvent(noise), count), count),)

    plain = {"population": CLIENTS, "seed": 1, "noise_key": f"{name}/{noise}/{rounds}"}
    return PlannedWork(name, "training", first(rounds), size=rounds, first=first, **{**plain, **fields})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "clients.account"
    create(target, Policy.of_options(2.0, 1e-5, "client", "add-remove"))
    return target


def put(path: Path, *works: PlannedWork, **options: Any) -> Any:
    return enter(path, works, command="run", **options)


def spent(path: Path) -> float:
    return Account.read(path).spent("outsider")


def test_plans_enter_until_the_next_one_would_exceed_the_policy(path: Path) -> None:
    budget = Account.read(path).policy.filters["outsider"].budget
    refusals: list[str] = []
    for number in range(100):
        try:
            put(path, work(12.0, 10, name=f"run {number}"))
        except InputError as error:
            refusals.append(str(error))
            break
    entered = len(Account.read(path).entries)
    assert "it would exceed epsilon = 2 at delta = 1e-05 against the participant" in refusals[0]
    assert entered > 2
    assert entered * (cost := spent(path) / entered) <= budget < (entered + 1) * cost
    before = path.read_bytes()
    with pytest.raises(InputError, match="Nothing was entered"):
        put(path, work(12.0, 10))
    assert path.read_bytes() == before


def test_the_largest_plan_that_fits_is_that(path: Path) -> None:
    put(path, work(12.0, 10, name="before"))
    big = work(12.0, 1000)
    with pytest.raises(InputError) as refused:
        put(path, big)
    fit = int(str(refused.value).split("the first ")[1].split(" of")[0])
    with pytest.raises(InputError):
        put(path, work(12.0, fit + 1))
    put(path, work(12.0, fit))
    with pytest.raises(InputError, match="Not one of its 1,000 rounds fits"):
        put(path, work(1.0, 1000))


def test_of_several_plans_those_that_fit_together_are_named(path: Path) -> None:
    plans = [work(12.0, 10, name="a"), work(1.0, name="b"), work(11.0, 10, name="c"), work(0.9, name="d")]
    with pytest.raises(InputError, match=r"in their order, these fit together: 1 \(a\), 3 \(c\)\."):
        put(path, *plans)
    put(path, plans[0], plans[2])
    with pytest.raises(InputError, match="Not one of them fits by itself"):
        put(path, plans[1], plans[3])
    server = replace(work(12.0, name="none"), ledgers=(ledger(None),))
    with pytest.raises(InputError, match=r"no guarantee against .* these fit together: 2 \(e\)\."):
        put(path, server, work(50.0, name="e"))


def test_plans_that_enter_together_cost_what_one_run_of_all_of_them_costs(path: Path) -> None:
    sampled = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2.0))
    parts = [
        replace(work(2.0, name=str(count)), ledgers=(ledger(dp.SelfComposedDpEvent(sampled, count)),))
        for count in (30, 70)
    ]
    account = Account.read(path)
    claims = [each.part(account.policy, account.key)["claims"]["outsider"] for each in parts]
    together = account._union(claims, 1e-5)
    alone = epsilon(dp.SelfComposedDpEvent(sampled, 100), 1e-5, "add-remove").epsilon
    assert together == pytest.approx(alone, abs=1e-6)


def test_a_first_entry_may_take_all_of_the_policy_and_nothing_follows(path: Path) -> None:
    noise = noise_multiplier(
        lambda z: dp.SelfComposedDpEvent(dp.GaussianDpEvent(z), 20), 2.0, 1e-5, "add-remove"
    )
    put(path, work(noise, 12, name="first"), work(noise, 8, name="second"))
    account = Account.read(path)
    assert account.spent("outsider") > account.policy.filters["outsider"].budget
    assert account.remaining("outsider") == 0
    with pytest.raises(InputError, match="the account is full"):
        put(path, work(1e4, name="tiny"))
    claim = statement(account)["claims"][0]
    assert claim["full"]
    assert str(AccountAssumption.TOGETHER) in claim["assumptions"]
    assert not {str(AccountAssumption.ADAPTIVE), str(AccountAssumption.LATER)} & set(claim["assumptions"])


def test_what_follows_another_entry_is_not_accounted_by_composition(path: Path) -> None:
    put(path, work(1e3, name="tiny"))
    noise = noise_multiplier(dp.GaussianDpEvent, 1.95, 1e-5, "add-remove")
    with pytest.raises(InputError, match="it would exceed"):
        put(path, work(noise))


def test_the_claim_is_the_policys_with_every_assumption(path: Path) -> None:
    for name in ("first", "second"):
        put(path, work(9.0, name=name))
    claims = statement(Account.read(path))["claims"]
    assert [claim["observer"] for claim in claims] == ["participant", "outsider"]
    for claim in claims:
        assert (claim["epsilon"], claim["delta"]) == (2.0, 1e-5)
        assert "at most epsilon = 2 at delta = 1e-05" in claim["words"]
        assert {str(AccountAssumption.COMPLETE), str(AccountAssumption.ADAPTIVE)} < set(claim["assumptions"])
        assert any(
            "the observer sees the runs of this account alone" in text for text in claim["assumptions"]
        )
        assert not any("sees this run alone" in text for text in claim["assumptions"])


def test_the_claim_of_an_open_account_lists_what_later_entries_rest_on(path: Path) -> None:
    for entries in range(2):
        claim = statement(Account.read(path))["claims"][0]
        assert {str(AccountAssumption.ADAPTIVE), str(AccountAssumption.BROKE_OFF)} < set(claim["assumptions"])
        assert claim["assumptions"][-1] == str(AccountAssumption.LATER)
        put(path, work(9.0 + entries))


def test_a_plan_that_the_policy_does_not_cover_is_refused(path: Path, tmp_path: Path) -> None:
    event = dp.GaussianDpEvent(9.0)
    for term, value in (("unit", "example"), ("adjacency", "replace-one")):
        other = replace(work(9.0), ledgers=(ledger(event, **{term: value}),))
        with pytest.raises(InputError, match=f"its {term} is {value}, .* nothing is converted"):
            put(path, other)
    with pytest.raises(InputError, match="no guarantee against the participant"):
        put(path, replace(work(9.0), ledgers=(ledger(None),)))
    for_server = tmp_path / "server.account"
    create(for_server, Policy.of_options(2.0, 1e-5, "client", "add-remove", ["server", "outsider=1"]))
    assert Account.read(for_server).policy.filters["outsider"].epsilon == 1.0
    with pytest.raises(InputError, match="no guarantee against the server, whom the policy covers"):
        put(for_server, work(9.0))
    assert len(account_file.read(path).bodies) == 1


def test_another_population_is_refused_unless_it_is_stated_to_be_the_same(path: Path) -> None:
    with pytest.raises(InputError, match="another of these plans are about other data"):
        put(path, work(9.0), work(9.0, population=PopulationIds("third")))
    put(path, work(9.0, name="first"))
    put(path, work(9.0, name="same ids", population=PopulationIds("newer data", "ids")))
    put(path, work(9.0, name="same data", population=PopulationIds("data")))
    with pytest.raises(
        InputError, match="earlier entries are about other data, and the clients have other ids"
    ):
        put(path, work(9.0, population=PopulationIds("other", "other ids")))
    with pytest.raises(InputError, match="the clients have no ids to compare"):
        put(path, work(9.0, population=PopulationIds("other")))
    put(path, work(9.0, population=PopulationIds("other")), same_population=True)
    put(path, work(9.0, name="known now", population=PopulationIds("other")))
    assert str(AccountAssumption.SAME_CLIENTS) in statement(Account.read(path))["claims"][0]["assumptions"]
    with pytest.raises(InputError, match="another of these plans are about other data"):
        put(path, work(9.0), work(9.0, population=PopulationIds("third")))


def test_the_same_records_of_other_owners_are_refused_whatever_is_stated(path: Path) -> None:
    each = PopulationIds("each", None, "labels", "one-per-example")
    dealt = PopulationIds("dealt", None, "labels", "iid/10")
    scaled = PopulationIds("scaled", None, "labels", "one-per-example")
    with pytest.raises(InputError, match="the same records have other owners than in another of these plans"):
        put(path, work(9.0, population=each), work(9.0, population=dealt), same_population=True)
    put(path, work(9.0, population=each))
    for stated in (False, True):
        with pytest.raises(InputError, match="the same records have other owners than in earlier entries"):
            put(path, work(9.0, population=dealt), same_population=stated)
    put(path, work(9.0, population=scaled), same_population=True)


def test_equal_ids_make_clients_equal_and_not_records(path: Path, tmp_path: Path) -> None:
    of_records = tmp_path / "records.account"
    create(of_records, Policy.of_options(2.0, 1e-5, "example", "add-remove"))
    plan = replace(work(9.0), ledgers=(ledger(dp.GaussianDpEvent(9.0), unit="example"),))
    other = replace(plan, population=PopulationIds("each record eight times", "ids"))
    put(of_records, plan)
    with pytest.raises(InputError, match=r"which ids of clients do not identify. .* each example of one is"):
        put(of_records, other)
    put(of_records, other, same_population=True)
    shown = statement(Account.read(of_records))["claims"][0]["assumptions"]
    assert str(AccountAssumption.SAME_RECORDS) in shown
    put(path, work(9.0))
    put(path, work(9.0, population=other.population))
    assert (
        str(AccountAssumption.SAME_CLIENTS) not in statement(Account.read(path))["claims"][0]["assumptions"]
    )


def secret(noise: float, seed: int, **fields: Any) -> PlannedWork:
    """A plan whose guarantee rests on secret cohorts."""
    event = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(noise))
    stored = ledger(event)
    for claim in stored["claims"][1:]:
        claim["assumptions"].append(str(Assume.SECRET_COHORT))
    return replace(work(noise, seed=seed, draws_cohorts=True, **fields), ledgers=(stored,))


def test_secret_cohorts_are_drawn_by_a_seed_of_their_own(path: Path) -> None:
    public = work(9.0, name="public", seed=5, draws_cohorts=True)
    put(path, public)
    put(path, replace(public, name="public again", noise_key="again"))
    with pytest.raises(InputError, match="same seed as public"):
        put(path, secret(4.0, 5))
    with pytest.raises(InputError, match="same seed"):
        put(path, secret(4.0, 6, name="first"), secret(5.0, 6, name="second"))
    put(path, secret(4.0, 6), secret(5.0, 7))
    with pytest.raises(InputError, match="same seed"):
        put(path, work(9.0, seed=7, draws_cohorts=True))
    put(path, work(9.0, name="everybody", seed=7))


def test_of_plans_with_shared_cohorts_the_part_that_fits_is_named(path: Path) -> None:
    first, second = secret(4.0, 6, name="first"), secret(5.0, 6, name="second")
    with pytest.raises(
        InputError, match=r"independent cohorts\. Of the plans .* fit together: 1 \(first\)\.$"
    ):
        put(path, first, second)
    put(path, first)
    with pytest.raises(InputError, match=r"1 \(third\)\. Their seeds are in the account too: give others"):
        put(path, secret(4.5, 6, name="third"), secret(5.0, 6, name="fourth"))


def test_a_plan_that_needs_another_seed_and_is_too_dear_names_what_fits(path: Path) -> None:
    put(path, secret(4.0, 6, name="first"))
    again = work(6.0, 1000, seed=6, draws_cohorts=True)
    with pytest.raises(
        InputError, match=r"same seed as first.* With other seeds: the largest plan that fits: "
    ):
        put(path, again)


def test_of_plans_that_are_all_too_dear_the_cheapest_is_shortened(path: Path) -> None:
    dear = replace(work(5.0, 1000), settings=lambda count: " at 5")
    cheap = replace(work(7.5, 1000), settings=lambda count: " at 7.5")
    with pytest.raises(InputError, match=r"Not one of them fits by itself\. The largest plan .* 7\.5\.$"):
        put(path, dear, cheap)


def test_where_nothing_of_the_cheapest_plan_fits_a_part_of_another_is_named(path: Path) -> None:
    whole, long = work(0.5, name="whole"), replace(work(15.0, 1000, name="long"), settings=lambda count: "")
    account = Account.read(path)
    costs = [each.part(account.policy, account.key)["claims"]["outsider"]["cost"] for each in (whole, long)]
    assert account.policy.filters["outsider"].budget < costs[0] < costs[1]
    with pytest.raises(
        InputError, match=r"by itself\. long: The largest plan that fits: the first \d+ of its 1,"
    ):
        put(path, whole, long)
    unknown = replace(whole, ledgers_of_settings=lambda count: (), size=5)
    with pytest.raises(InputError, match=r"long: The largest plan that fits: "):
        put(path, unknown, long)


def test_no_part_below_the_least_that_runs_is_named(path: Path) -> None:
    plan = replace(work(2.24, 50), least=2, noun="repeats", remedy="Leave out epsilons.")
    account = Account.read(path)
    assert account.refusal([plan.part(account.policy, account.key, plan.first(1))]) is None  # type: ignore[misc]
    with pytest.raises(InputError, match=r"Not even 2 of its 50 repeats fit\. Leave out epsilons\."):
        put(path, plan)


def test_a_plan_that_was_entered_before_is_charged_once(path: Path) -> None:
    both = work(9.0, name="first"), work(8.0, name="second")
    put(path, *both, started=False)
    before = spent(path)
    receipt = put(path, both[1])
    assert spent(path) == before
    check_receipt(path, receipt, [both[1]])
    assert [plan["state"] for plan in statement(Account.read(path))["entries"][0]["plans"]] == [
        "entered",
        "started",
    ]
    put(path, both[1])  # a second time
    assert spent(path) > before


def test_a_receipt_of_another_account_plan_or_lost_line_is_refused(path: Path, tmp_path: Path) -> None:
    plan = work(9.0)
    old = path.read_bytes()
    receipt = put(path, plan)
    check_receipt(path, receipt, [plan])
    with pytest.raises(InputError, match="charged as another plan"):
        check_receipt(path, receipt, [work(8.0)])
    other = tmp_path / "other.account"
    create(other, Policy.of_options(2.0, 1e-5, "client", "add-remove"))
    with pytest.raises(InputError, match="charged in another account"):
        check_receipt(other, receipt, [plan])
    path.write_bytes(old)
    with pytest.raises(InputError, match="lines were lost at the end"):
        check_receipt(path, receipt, [plan])


def test_a_run_whose_start_is_missing_is_not_resumed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = work(9.0)
    put(path, plan, work(8.0), started=False)
    old = path.read_bytes()
    receipt = put(path, plan)
    check_receipt(path, receipt, [plan])
    path.write_bytes(old)
    with pytest.raises(InputError, match="the start of this run is missing"):
        check_receipt(path, receipt, [plan])
    monkeypatch.setattr(entering, "_now", lambda: "2026-01-01T00:00:00+00:00")
    another = put(path, plan)  # takes the place of the first
    check_receipt(path, another, [plan])
    with pytest.raises(InputError, match="the start of this run is missing"):
        note_end(path, receipt, "finished", "a run")


def test_the_end_of_a_run_is_noted_and_changes_no_charge(path: Path) -> None:
    both = work(9.0, name="first"), work(8.0, name="second")
    put(path, *both, started=False)
    receipt, before = put(path, both[1]), spent(path)
    note_end(path, receipt, "interrupted", "a run")
    note_end(path, receipt, "finished", "a run")
    lines = len(account_file.read(path).bodies)
    note_end(path, receipt, "finished", "a run")
    assert len(account_file.read(path).bodies) == lines
    assert spent(path) == before
    account = Account.read(path)
    assert {key: end["outcome"] for key, end in account.ended.items()} == {(1, 1): "finished"}
    plans = statement(account)["entries"][0]["plans"]
    assert [(plan["outcome"], plan["run"]) for plan in plans] == [(None, None), ("finished", "a run")]
    check_receipt(path, receipt, [both[1]])
    together = put(path, work(9.5, name="third"), work(8.5, name="fourth"))
    note_end(path, together, "finished", "a comparison")
    assert [end["run"] for end in Account.read(path).ended.values()] == ["a run", *["a comparison"] * 2]
    with pytest.raises(InputError, match="lines were lost"):
        note_end(path, replace(receipt, part=2), "finished", "")


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "start", "time": "", "entry": 1, "part": 1},
        {"kind": "start", "time": "", "entry": 2, "part": 0},
        {"kind": "end", "time": "", "entry": 1, "parts": [0, 1], "outcome": "finished", "run": ""},
        {"kind": "end", "time": "", "entry": 1, "parts": [0], "outcome": "lost", "run": ""},
    ],
)
def test_a_line_about_no_charged_plan_is_damage(path: Path, body: dict[str, Any]) -> None:
    put(path, work(9.0))
    with account_file.opened(path) as file:
        file.append(body)
    with pytest.raises(InputError, match=":3"):
        Account.read(path)


def test_what_no_accountant_knows_may_only_come_first_or_not_at_all(path: Path) -> None:
    unknown = replace(work(9.0), ledgers=(ledger(dp.UnsupportedDpEvent()),))
    with pytest.raises(InputError, match="no accountant answers"):
        put(path, unknown)
    without = replace(work(9.0), ledgers=(ledger(dp.NonPrivateDpEvent()),))
    with pytest.raises(InputError, match="epsilon = inf"):
        put(path, without)
    put(path, work(9.0))
    with pytest.raises(InputError, match="no bound of order"):
        put(path, without)
    with pytest.raises(InputError, match="no bound of order"):
        put(path, unknown)


def test_beside_other_plans_a_shuffler_is_not_counted_and_the_refusal_states_it(tmp_path: Path) -> None:
    target = tmp_path / "survey.account"
    create(target, Policy.of_options(2.0, 1e-6, "client", "replace-one"))
    event = ShuffledDpEvent(4.797, 10_000)
    survey = replace(work(9.0), ledgers=(ledger(event, adjacency="replace-one"),), first=None)
    again = replace(survey, name="again", noise_key="again")
    with pytest.raises(InputError, match=r"would exceed .* at the epsilon of each message"):
        put(target, survey, again)
    put(target, survey)  # alone, at the epsilon of the shuffled answers
    with pytest.raises(InputError, match=r"account is full.* at the epsilon of each message"):
        put(target, again)


def test_a_policy_may_cover_the_analyst_behind_a_shuffler(tmp_path: Path) -> None:
    target = tmp_path / "analyst.account"
    create(target, Policy.of_options(2.0, 1e-6, "client", "replace-one", ["analyst"]))
    central = replace(work(9.0), ledgers=(ledger(dp.GaussianDpEvent(9.0), adjacency="replace-one"),))
    with pytest.raises(InputError, match="against the analyst as the server, since nothing is shuffled"):
        put(target, central)
    stated = ledger(dp.NonPrivateDpEvent(), adjacency="replace-one", trust="shuffled")
    behind = {"observer": "analyst", "event": to_json(ShuffledDpEvent(4.797, 10_000)), "assumptions": []}
    put(target, replace(work(9.0), ledgers=({**stated, "claims": [*stated["claims"], behind]},), first=None))
    (claim,) = statement(Account.read(target))["claims"]
    assert claim["observer"] == "analyst"
    assert "the analyst behind a shuffler" in claim["words"]


def test_the_dearest_of_several_possible_ledgers_counts(path: Path) -> None:
    several = replace(work(9.0), ledgers=(*work(9.0).ledgers, *work(5.0).ledgers))
    put(path, several)
    filter_ = Account.read(path).policy.filters["outsider"]
    assert spent(path) == filter_.cost([dp.SelfComposedDpEvent(dp.GaussianDpEvent(5.0), 1)], "add-remove")


def test_a_plan_is_tried_without_entering(path: Path) -> None:
    before = path.read_bytes()
    account = Account.read(path)
    assert would_fit(account, [work(9.0)], False)["fits"]
    refused = would_fit(account, [work(9.0, 500)], False)
    assert not refused["fits"]
    assert refused["largest"].startswith("The largest plan that fits: the first ")
    assert path.read_bytes() == before


def test_documents_hold_no_key_and_no_digest_of_seeds_or_data(path: Path) -> None:
    from fedprivacy.documents.redaction import public

    put(path, secret(9.0, 5))
    account = Account.read(path)
    shown = str(public(statement(account)))
    (part,) = [part for _, _, part in account.parts]
    (entry,) = account.entries.values()
    for text in (account.key, part["digest"], part["cohorts"], entry["populations"][0]["data"], str(path)):
        assert text not in shown


def _race(path: Path, name: int, results: Any) -> None:
    try:
        put(path, work(10.0, 10, name=str(name)))
        results.put("entered")
    except InputError:
        results.put("refused")


def test_of_plans_that_enter_at_once_only_those_that_fit_together_enter(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_race, args=(path, name, results)) for name in range(6)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    account = Account.read(path)
    assert 0 < outcomes.count("entered") < 6
    assert outcomes.count("entered") == len(account.entries)
    assert account.spent("outsider") <= account.policy.filters["outsider"].budget


def restate(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Writes an account again whose last plan states something else, as another version would have."""
    head, *bodies = account_file.read(path).bodies
    change(bodies[-1]["parts"][-1])
    path.unlink()
    account_file.create(path, {key: head[key] for key in head if key not in ("previous", "digest")})
    for body in bodies:
        with account_file.opened(path) as file:
            file.append({key: body[key] for key in body if key not in ("previous", "digest")})


def test_events_that_cost_more_by_this_version_are_charged_as_such(path: Path) -> None:
    put(path, work(30.0, 30))
    before = spent(path)

    def cheaper(part: dict[str, Any]) -> None:
        part["claims"]["outsider"]["cost"] /= 2

    restate(path, cheaper)
    assert spent(path) == before
    Account.read(path).check_claim()
    put(path, work(40.0, 30, name="second"))

    def dearer(part: dict[str, Any]) -> None:
        for claim in part["claims"].values():
            claim |= {"events": [to_json(dp.GaussianDpEvent(0.7))], "cost": 0.01}

    restate(path, dearer)
    with pytest.raises(InputError, match=r"its entries cost more than the policy admits .* does not hold"):
        Account.read(path).check_claim()
    with pytest.raises(InputError, match="by the accounting of this version its entries cost more"):
        put(path, work(1e4, name="tiny"))


def test_a_plan_is_recognised_whatever_its_cost_is_rounded_to(path: Path) -> None:
    plan = work(30.0, 10)
    put(path, plan, started=False)

    def rounded(part: dict[str, Any]) -> None:
        for claim in part["claims"].values():
            claim["cost"] *= 1 + 1e-15
            claim["assumptions"] = ["as an earlier version words it"]
            claim["events"][0]["event"]["noise_multiplier"] *= 1 + 1e-15

    restate(path, rounded)
    before = spent(path)
    shown = would_fit(Account.read(path), [plan], False)
    assert shown["fits"]
    assert shown["entered"]
    receipt = put(path, plan)
    assert spent(path) == before
    check_receipt(path, receipt, [plan])
    put(path, replace(work(29.9, 10), noise_key=plan.noise_key))
    assert spent(path) > before


def test_the_dearest_group_of_clients_counts(path: Path) -> None:
    grouped = ledger(dp.GaussianDpEvent(9.0))
    grouped["groups"] = [{"claims": ledger(dp.GaussianDpEvent(noise))["claims"]} for noise in (12.0, 4.0)]
    put(path, replace(work(9.0), ledgers=(grouped,)))
    assert spent(path) == Account.read(path).policy.filters["outsider"].cost(
        [dp.GaussianDpEvent(4.0)], "add-remove"
    )


def test_integer_noise_has_a_cost_at_an_order_between_integers(tmp_path: Path) -> None:
    path, sums = tmp_path / "sums.account", SkellamDpEvent(1e8, 10**6, 100)
    create(path, Policy.of_options(4.0, 1e-5, "client", "replace-one"))
    order = Account.read(path).policy.filters["outsider"].order
    assert order % 1
    put(path, replace(work(9.0), ledgers=(ledger(dp.GaussianDpEvent(90.0), adjacency="replace-one"),)))
    before = spent(path)
    put(path, replace(work(9.0, name="sum"), ledgers=(ledger(sums, adjacency="replace-one"),)))
    above = min(each for each in ORDERS if each > order and not each % 1)
    assert spent(path) - before == pytest.approx(renyi_divergence(sums, above, "replace-one"))
