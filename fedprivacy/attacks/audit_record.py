"""The record of an audit: what was audited, in words, and whether what it states follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.attacks.assessment import assess
from fedprivacy.attacks.auditing import ERROR, SHARES
from fedprivacy.attacks.empirical import Guesses
from fedprivacy.attacks.gaussian_scores import CONFIDENCE, ScoreMoments
from fedprivacy.attacks.neighbours import Neighbours


def audit_description(scenario: Mapping[str, Any], audited: Mapping[str, Any]) -> str:
    """What was audited, in plain sentences.

    Args:
        scenario: As `Scenario.tables` gives it.
        audited: The record's facts of the same name.
    """
    privacy = scenario["privacy"]
    runs = "one run" if audited["trials"] == 1 else f"{audited['trials']:,} runs"
    norm = "norm 1, since nothing is clipped" if privacy.get("clipping_norm") is None else "the clipping norm"
    other = "the opposite of it" if privacy["adjacency"] == "replace-one" else "zero"
    text = (
        f"Audited was the scenario with {audited['canaries']:,} canary clients beside its "
        f"{audited['clients']:,}, in {runs} of its {audited['rounds']} rounds; noise, clipping and sampling "
        f"are the scenario's own. By a fair coin a canary answers with a random direction of {norm}, or with "
        f"{other}; it has records too, more or fewer by the same coin, and trains on them. "
    )
    if audited["neighbours"] is not None:
        found = Neighbours.of_json(audited["neighbours"])
        text += f"Without noise, neighbouring data sets were compared: {found.words}. "
    if audited["method"] != "canary-clients":
        text += (
            f"True claims are refuted with a probability of {100 * ERROR:g} % at most, all together, and all "
            f"lower bounds hold with {100 * (1 - ERROR):g} % confidence. A ceiling is the largest bound that "
            'so many canaries could have given. The bound under "if Gaussian" takes what is seen of a canary '
            f"for its answer plus Gaussian noise, holds with {100 * CONFIDENCE:g} % confidence by itself, "
            "and is given where the ledger charges such noise, without sampling, and nothing else is seen. "
        )
    if audited["method"] != "one-run":
        text += (
            "An estimate is no bound; it is given only for Gaussian noise or none, and where everybody is "
            "asked: it takes what is seen of a canary for normal. "
        )
    if privacy["trust"] == "local":
        text += (
            "The noise of the canaries covers each of them too: what is claimed here of an outsider, or a "
            "participant, may be that of more clients, and the scenario's own claim larger. "
        )
    if scenario["sampling"]["name"] == "fixed":
        text += "A cohort of fixed size is drawn from canaries too: the claim here is that of more clients. "
    return text.strip()


def assessed_again(document: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What an audit's record has to state of an observer, computed from its ledger, guesses and scores alone.

    Args:
        document: The record.
        number: The observer's place in it.

    Raises:
        ValueError: there are more or fewer sets of guesses than an audit makes, or the numbers of canaries,
            clients, rounds and runs contradict each other.
    """
    _check_counts(document, number)
    stored, audited = document["observers"][number], document["audited"]
    guesses, run = None, stored["one_run"]
    if audited["method"] != "canary-clients":
        guesses = tuple(Guesses(run["canaries"], one["made"], one["right"]) for one in run["guesses"])
        if len(guesses) != len(SHARES):
            raise ValueError(f"guesses: an audit makes {len(SHARES)} sets of them")
    found = audited["neighbours"]
    return assess(
        stored["observer"],
        document["ledgers"][stored["ledger"]],
        document["scenario"],
        audited["method"],
        guesses,
        ScoreMoments.of_json(stored["scores"]),
        None if found is None else Neighbours.of_json(found),
    )


def _check_counts(document: Mapping[str, Any], number: int) -> None:
    audited, stored, scenario = document["audited"], document["observers"][number], document["scenario"]
    ledgers, canaries = document["ledgers"], audited["canaries"] * audited["trials"]
    scored = stored["scores"]["present"]["count"] + stored["scores"]["absent"]["count"]
    guessed = scored if stored["one_run"] is None else stored["one_run"]["canaries"]
    facts = {
        "words": (audited["words"], audit_description(scenario, audited)),
        "canaries": ({scored, guessed}, {canaries}),
        "trials": (audited["trials"], len(ledgers)),
        "clients": ({ledger["population"] for ledger in ledgers}, {audited["clients"] + audited["canaries"]}),
        "rounds": (audited["rounds"], scenario["server"]["rounds"]),
        "clipping_norm": (audited["clipping_norm"], scenario["privacy"].get("clipping_norm")),
        "false_alarm": (audited["false_alarm"], ERROR),
    }
    for key, (stated, implied) in facts.items():
        if stated != implied:
            raise ValueError(f"audited.{key} contradicts the rest of the record")
