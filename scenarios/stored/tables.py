"""The tables of stored results: rounds, cells, queries, attacks and ROC points, as plain rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fedprivacy.documents.headline import headline
from fedprivacy.documents.redaction import operator_only, select
from fedprivacy.documents.secret_values import secret_paths

Document = Mapping[str, Any]
Rows = list[dict[str, Any]]
MAX_CURVE = 64  # rounds at which the epsilon so far is computed
ROC_COLUMNS = (
    "attack", "seat", "trust", "epsilon", "unit", "adjacency", "delta", "run", "fpr", "tpr",
)  # fmt: skip


def terms(guarantees: Any) -> dict[str, Any]:
    """Returns the unit, adjacency and delta of the epsilons in a row.

    Args:
        guarantees: Those of one result or cell, which have the same terms against each observer.
    """
    with_epsilon = [each for each in guarantees or () if each and each.get("epsilon") is not None]
    stated = with_epsilon or [each for each in guarantees or () if each]
    return {key: stated[0].get(key) if stated else None for key in ("unit", "adjacency", "delta")}


def rounds(document: Document) -> Rows:
    """Returns a row for each round of a run."""
    spent, stands = epsilons_so_far(document), terms(document["privacy"]["guarantees"])
    return [
        {
            "round": event["round"] + 1,
            "accuracy": event["accuracy"],
            **({"score": event["score"]} if "score" in event else {}),
            "balanced_accuracy": event.get("balanced_accuracy"),
            "loss": event["loss"],
        }
        | {f"epsilon_{observer}": values[at] for observer, values in spent.items()}
        | stands
        for at, event in enumerate(document["rounds"])
    ]


def epsilons_so_far(document: Document) -> dict[str, list[float | None]]:
    """Returns the epsilon after each completed round against each observer, None where there is none.

    Where the number of rounds may depend on the data (early stopping, a run that was stopped or failed), each
    round has the claim of the whole plan: `guarantees.charge` explains why.
    """
    from fedprivacy.guarantees.so_far import epsilons_after
    from fedprivacy.plan.privacy_plan import Plan

    plan, rounds = Plan.from_json(document["plan"]), len(document["rounds"])
    claimed = {each["observer"]: each["epsilon"] for each in document["privacy"]["guarantees"]}
    stopping = document["scenario"]["server"].get("patience") is not None
    if stopping or rounds < plan.rounds or all(epsilon is None for epsilon in claimed.values()):
        return {observer: [epsilon] * rounds for observer, epsilon in claimed.items()}
    steps = sorted({-(-rounds * step // MAX_CURVE) for step in range(1, MAX_CURVE + 1)}) if rounds else []
    # The least shares of the whole run: no round before had fewer.
    held, shares = document["ledger"]["held"], document["ledger"].get("least_shares")
    at = {step: epsilons_after(plan, step, held=held, least_shares=shares) for step in steps}
    following = [next(step for step in steps if step >= number) for number in range(1, rounds + 1)]
    return {
        observer: [
            # The first rounds are a part of all, so the claim of the whole run bounds them too.
            None if epsilon is None else _least(at[step][observer], epsilon)
            for step in following
        ]
        for observer, epsilon in claimed.items()
    }


def _least(so_far: float | None, whole: float) -> float:
    return whole if so_far is None else min(so_far, whole)


def cells(document: Document) -> Rows:
    """Returns a row for each cell of a comparison."""
    return [
        {
            "trust": cell["trust"],
            "unit": cell["unit"],
            "mechanism": cell["mechanism"],
            "epsilon": cell["epsilon"],
            "score" if "score" in cell else "accuracy": (headline(cell) or {}).get("mean"),
            "low": (headline(cell) or {}).get("low"),
            "high": (headline(cell) or {}).get("high"),
            "seeds": len(cell.get("scores") or cell.get("accuracies") or ()),
            "rounds": cell["rounds"],
        }
        | {f"epsilon_{each['observer']}": each["epsilon"] for each in cell["guarantees"]}
        | terms(cell["guarantees"])
        | {"unit": cell["unit"]}
        for cell in document["cells"]
    ]


def groups(document: Document) -> Rows:
    """Returns a row for each group of held-out records, of a run or of each cell of a comparison."""
    if document["kind"] == "run":
        return _groups((document["final"] or {}).get("groups"), {})
    rows: Rows = []
    for cell in document["cells"]:
        place = {key: cell[key] for key in ("trust", "unit", "mechanism", "epsilon")}
        rows += _groups(cell.get("groups"), place | terms(cell["guarantees"]) | {"unit": cell["unit"]})
    return rows


def _groups(columns: Any, place: dict[str, Any]) -> Rows:
    rows = []
    for column in columns or ():
        for group in column["groups"]:
            row = {**place, "column": column["column"], "group": group["group"], "records": group["records"]}
            for key in ("accuracy", "balanced_accuracy", "gap"):
                figure = group.get(key)
                row[key] = figure.get("mean") if isinstance(figure, dict) else figure
            ends = group["accuracy"] if isinstance(group.get("accuracy"), dict) else group
            rows.append({**row, "low": ends.get("low"), "high": ends.get("high"), "few": group["few"]})
    return rows


def queries(document: Document) -> Rows:
    """Returns a row for each released statistic."""
    keys = ("name", "kind", "mechanism", "noise", "estimate", "low", "high", "true", "error", "answered")
    return [{key: query.get(key) for key in keys} for query in document["queries"]]


def statistics_cells(document: Document) -> Rows:
    """Returns a row for each cell and query of a comparison."""
    return [
        {
            "trust": cell["trust"],
            "epsilon": cell["epsilon"],
            **terms(cell["guarantees"]),
            "clients": cell["clients"],
            "query": query["name"],
            "mechanism": query["mechanism"],
            "rmse": query["rmse"],
            "covered": query["covered"],
        }
        for cell in document["cells"]
        for query in cell["queries"]
    ]


def estimates(document: Document) -> Rows:
    """Returns a row for each cell of private estimates."""
    keys = ("approach", "trust", "epsilon", "delta", "records", "silos", "bound", "refused")
    rows = []
    for cell in document["cells"]:
        excess = cell.get("excess") or {}
        bounds = {"excess": excess.get("mean"), "low": excess.get("low"), "high": excess.get("high")}
        stands = {**terms(cell.get("guarantees")), "delta": cell.get("delta")}
        rows.append({key: cell.get(key) for key in keys} | stands | bounds)
    return rows


def attacks(document: Document) -> Rows:
    """Returns a row for each attack."""
    rows = []
    for attack in document["attacks"]:
        auc, advantage = attack["auc"] or {}, attack["advantage"] or {}
        bound, proven = attack["bound"] or {}, attack["empirical_epsilon"] or {}
        row = {
            "attack": attack["name"],
            "seat": attack["seat"],
            "trust": attack["trust"],
            "epsilon": attack["epsilon"],
            **terms([attack.get("guarantee")]),
            "auc": auc.get("value"),
            "auc_low": auc.get("low"),
            "auc_high": auc.get("high"),
            "auc_bound": bound.get("auc"),
            "advantage": advantage.get("value"),
            "advantage_bound": bound.get("advantage"),
            "proven_epsilon": proven.get("epsilon"),
            "proven_confidence": proven.get("confidence"),
        }
        for rate, value in (attack["tpr_at_fpr"] or {}).items():
            row[f"tpr_at_{rate}"] = None if value is None else value["value"]
        rows.append(row)
    return rows


def roc_points(document: Document) -> Rows:
    """Returns the points of every ROC curve."""
    return [
        {
            "attack": attack["name"],
            "seat": attack["seat"],
            "trust": attack["trust"],
            "epsilon": attack["epsilon"],
            **terms([attack.get("guarantee")]),
            "run": run,
            "fpr": fpr,
            "tpr": tpr,
        }
        for attack in document["attacks"]
        for run, curve in enumerate(attack["roc"] or [])
        for fpr, tpr in zip(curve["fpr"], curve["tpr"], strict=True)
    ]


def observers(document: Document) -> Rows:
    """Returns a row for each observer of an audit."""
    rows = []
    for each in document["observers"]:
        one_run, gaussian = each.get("one_run") or {}, each.get("if_gaussian") or {}
        rows.append(
            {
                "observer": each["observer"],
                "claimed_epsilon": each["guarantee"]["epsilon"],
                **terms([each["guarantee"]]),
                "proven_epsilon": one_run.get("epsilon"),
                "proven_delta": one_run.get("delta"),
                "proven_confidence": one_run.get("confidence"),
                "ceiling": one_run.get("ceiling"),
                "proven_if_gaussian": gaussian.get("epsilon"),
                "holds": each["verdict"]["holds"],
            }
        )
    return rows


def candidates(document: Document) -> Rows:
    """Returns a row for each candidate of a choice."""
    rows = []
    for candidate in document["candidates"]:
        flat = {key: value for key, value in candidate.items() if not isinstance(value, dict | list)}
        rows.append({**candidate.get("settings", {}), **flat})
    return rows


def plan_points(document: Document) -> Rows:
    """Returns a row for each trust model and each number of clients (or epsilon) of a plan."""
    axis = "epsilon" if document["question"]["unknown"] == "epsilon" else "clients"
    return [
        {"trust": curve["trust"], axis: point["x"], "accuracies": point.get("accuracies")}
        for curve in document["curves"]
        for point in curve.get("points") or ()
    ]


def plan_answers(document: Document) -> Rows:
    """Returns a row for each trust model of a plan: what it answers, with its interval."""
    unknown = document["question"]["unknown"]
    return [
        {"trust": curve["trust"], "unknown": unknown, **(curve.get("answer") or {})}
        for curve in document["curves"]
    ]


# Kind of result -> its tables, the main one first.
TABLES: Mapping[str, Mapping[str, Callable[[Document], Rows]]] = {
    "run": {"rounds": rounds, "groups": groups},
    "compare": {"cells": cells, "groups": groups},
    "statistics": {"queries": queries},
    "compare-statistics": {"cells": statistics_cells},
    "erm": {"cells": estimates},
    "replay": {"attacks": attacks, "roc": roc_points},
    "audit": {"observers": observers},
    "tune": {"candidates": candidates},
    "plan": {"answers": plan_answers, "points": plan_points},
}


OPERATOR_TABLE = "values"  # of what only the operator may see


def operator_values(document: Document) -> Rows:
    """Returns a row for each operator-only value: its path, the place in its list from 0, and it as JSON."""
    paths = dict.fromkeys([*operator_only(document), *secret_paths(document)])
    return [
        {"path": path, "place": place, "value": json.dumps(value, ensure_ascii=False)}
        for path in paths
        for place, value in enumerate(select(document, path))
    ]


def main_table(document: Document) -> Rows:
    """Returns the rows of the first table of a result."""
    return next(iter(TABLES[document["kind"]].values()))(document)
