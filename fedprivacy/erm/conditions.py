"""Checks the conditions that the theorems place on records; never enforces them silently."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.assumptions import CROWD
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.ranges import check_adjacency

Matrix = NDArray[np.float64]
ROUNDING = 1e-12  # of a norm: rows that are longer by this part are not meant to be


def checked_rows(
    x: ArrayLike, y: ArrayLike, dimension: int, *, signs: bool, clip: bool = False
) -> tuple[Matrix, Matrix]:
    """Records as float64 that keep the conditions: ||x|| <= 1, and y in {-1, 1} or in [-1, 1].

    Args:
        x: Features, shape (n, dimension).
        y: Targets, shape (n,).
        dimension: d.
        signs: Whether targets must be -1 or 1.
        clip: Scales longer rows to norm 1 and cuts targets that are numbers to [-1, 1] instead of refusing.
            Each record is changed by itself, so that a guarantee holds as before; the estimate is that of
            other records, and guarantees state `ErmAssumption.CLIPPED`.

    Returns:
        The features (n, d) and the targets (n,).

    Raises:
        InputError: A condition does not hold. The message reveals data: for their owner only.
    """
    features, targets = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] != dimension:
        raise InputError(f"x: has shape {features.shape}, and must be (records, {dimension}).")
    if targets.shape != (len(features),):
        raise InputError(
            f"y: has shape {targets.shape}, and must be ({len(features)},), one for each row of x."
        )
    for name, numbers in (("x", features), ("y", targets)):
        if not np.isfinite(numbers).all():
            raise InputError(f"{name}: holds NaN or infinity: leave those records out, or fill them in.")
    if signs and not (np.abs(targets) == 1).all():
        raise InputError("y: must be -1 or 1 for this loss: map the two classes to them.")
    # Squares of the largest floats overflow, so large values are scaled down first.
    peaks = np.maximum(np.abs(features).max(axis=1, initial=1.0), 1.0)[:, None]
    scaled = features / peaks
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    # Divided once more by what rounding may have added, so that no row is longer than 1 by the least.
    short = scaled / np.maximum(lengths * (1 + ROUNDING / 4 + dimension * 2.0**-53), 1.0)[:, None]
    if clip:
        return short, np.clip(targets, -1.0, 1.0)
    with np.errstate(over="ignore"):
        norms = lengths * peaks[:, 0]
    if len(norms) and norms.max() > 1 + ROUNDING:
        raise InputError(
            f"x: the condition ||x|| <= 1 does not hold for {int((norms > 1 + ROUNDING).sum())} of "
            f"{len(norms)} "
            f"rows (the largest norm is {norms.max():.4g}). Divide x by a public bound, or clip=True scales "
            f"each "
            "such row to norm 1."
        )
    if not signs and len(targets) and np.abs(targets).max() > 1:
        raise InputError(
            f"y: the condition |y| <= 1 does not hold (the largest is {np.abs(targets).max():.4g}). Divide y "
            f"by a "
            "public bound, or clip=True cuts it."
        )
    return short, targets


def check_records(count: int, records: int, adjacency: str) -> None:
    """Whether the public number of records goes with the data.

    Args:
        count: The number of records.
        records: The public number by which sums are divided.
        adjacency: Under replace-one and zero-out the number of records is public, and must be just that;
            under add-remove it is private, and `records` a public guess.

    Raises:
        InputError: They differ where they must not.
    """
    check_adjacency(adjacency)
    if adjacency != "add-remove" and count != records:
        raise InputError(
            f"{count} records, and the objective is for {records}: under {adjacency} their number is public, "
            f"and "
            "must be the same."
        )


def check_crowd(count: int, records: int) -> None:
    """Checks that records are few enough for the solver to find the minimum for any data.

    Args:
        count: The number of records.
        records: The public number by which sums are divided.

    Raises:
        InputError: There are more than `CROWD` times as many, which the guarantee assumes there are not
            (`ErmAssumption.CROWDED`). The message reveals data: for their owner only.
    """
    if count > CROWD * records:
        raise InputError(
            f"{count} records, and the objective is for {records}: the minimum is certain to be found for up "
            f"to {CROWD} times as many. Choose records nearer to what is known of their number."
        )


def size_is_public(adjacency: str, records: int) -> str:
    """The assumption of a guarantee about the number of records, in words."""
    if adjacency == "add-remove":
        return f"the {records:,} by which sums are divided is a public guess, not a count of these records"
    return f"the number of records, {records:,}, is public"
