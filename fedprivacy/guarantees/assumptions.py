"""The assumptions that guarantees rest on, each with a stable id.

The name of a member is its id, and its value is the text that documents state. Code compares ids
(`Assumption.of`, `Assumption.among`). Verification compares the texts of a record with those of today, so
older records have to be made again where a text was reworded. Two kinds of text have no id: those that
contain numbers of a run (sizes, a slope), and those of randomness outside a simulation, which are put
together from parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum, unique
from typing import Self


class Assumption(StrEnum):
    """Base class of assumptions: a string, its text, with an id, its name."""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Returns the assumption that a text states, or None."""
        return {member.value: member for member in cls}.get(text)

    def among(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts states this assumption."""
        return any(type(self).of(text) is self for text in texts)


@unique
class TrainingAssumption(Assumption):
    """The conditions under which guarantees of training hold, and the reasons for giving none."""

    NO_NOISE = "nobody adds noise"
    NOISE_IS_ZERO = "the noise is zero"
    CLIPPED_ALONE = "clipping alone is a heuristic: nobody adds noise"
    SERVER_SEES_UPDATES = "the server is trusted: it sees the updates without noise"
    SERVER_READS = "the server's process has read the records itself, out of the file that holds all of them"
    SERVER_TRUSTED = "the server is honest: it sees every update, adds the noise and releases nothing else"
    OTHERS_HONEST = (
        "neither the server nor another client colludes with the observer: it sees only the final model"
    )
    ENFORCED = (
        "each client clips, draws its own noise and counts its own answers, whatever the server requests"
    )
    STEPS_ENFORCED = (
        "each client clips the gradient of each record, draws its own batches and noise and counts its "
        "own answers, whatever the server requests"
    )
    HANDED = (
        "the submitter of the run is honest about the plan: each client clips, draws its own noise and "
        "counts its own answers, by the plan that came with the run"
    )
    STEPS_HANDED = (
        "the submitter of the run is honest about the plan: each client clips the gradient of each "
        "record, draws its own batches and noise and counts its own participations, by the plan that "
        "came with the run"
    )
    PINNED = (
        "each client holds this plan itself, pinned on its own node (stated by the submitter of the run; "
        "no message shows it): by it the client clips, draws its own noise and counts its own "
        "participations, whatever the server requests; and the code that came with the run to its node "
        "is this code, unchanged"
    )
    STEPS_PINNED = (
        "each client holds this plan itself, pinned on its own node (stated by the submitter of the run; "
        "no message shows it): by it the client clips the gradient of each record, draws its own batches "
        "and noise and counts its own participations, whatever the server requests; and the code that "
        "came with the run to its node is this code, unchanged"
    )
    ANSWERS_PINNED = (
        "each client holds this plan itself, pinned on its own node (stated by the submitter of the run; "
        "no message shows it): by it the client randomises its own answers, answers each query once and "
        "counts its own answers, whatever the server requests; and the code that came with the run to "
        "its node is this code, unchanged"
    )
    SHARES_ENFORCED = (
        "each client clips, rounds, draws its own share of the noise and counts its own participations, "
        "whatever the server requests"
    )
    SHARES_HANDED = (
        "the submitter of the run is honest about the plan: each client clips, rounds, draws its own share "
        "of the noise and counts its own participations, by the plan that came with the run"
    )
    SHARES_PINNED = (
        "each client holds this plan itself, pinned on its own node (stated by the submitter of the run; "
        "no message shows it): by it the client clips, rounds, draws its own share of the noise, masks its "
        "message and counts its own participations, whatever the server requests; and the code that came "
        "with the run to its node is this code, unchanged"
    )
    MASKED_SUM = (
        "masks, honest-but-curious server, at least n_min survivors of whom at most t collude; "
        "computational; and each node's owner has the right keys of the others, from them and not from the "
        "server"
    )
    IDEAL_SUM = (
        "ideal secure sum (simulated): a process of the run adds up the clients' messages and shows their "
        "modular sum and the number of clients in it, and nothing else; no mask hides a message from it"
    )
    SUM_AT_SERVER = (
        "the server's own process adds up the messages, and no mask hides one from it: pin the plan on nodes "
        "that mask their messages"
    )
    DROPOUTS_BLIND = (
        "who drops out of a round, and when, does not depend on the records of the client that is protected"
    )
    SHARE_KNOWN = (
        "a sum may have one client besides its colluders, so that a participant may know all of the noise"
    )
    SECRET_COHORT = "the cohort of each round stays secret"
    SEPARATED = (
        "the server requests no client again before its separation has passed; the schedule may be "
        "known, and depends on no records"
    )
    GROUPS_DEALT = (
        "each client's group depends on no records and may be known; the server samples a client in the "
        "rounds of its group alone, by a secret coin of its own"
    )
    NOISE_SECRET = (
        "the server keeps the noise of past rounds secret, since the exact sums could be computed with it"
    )
    NOT_SHOWN = (
        "the fields marked operator-only (who failed and why, counts of zeroed updates) are not shown to "
        "the observer"
    )
    HIDDEN = (
        "the fields marked operator-only, which the operator of the run sees, are not shown to the observer"
    )
    TESTED_CLIENTS = (
        "accuracy and loss are not shown to the observer: held-out records belong to clients, or may, "
        "and no noise protects them there"
    )
    BROKEN_OFF = (
        "the observer does not learn that the run broke off, nor in which round: a fault may depend on "
        "the data"
    )
    NODES_ANSWER = (
        "no client's records make its training hang or kill its process, which the server would see "
        "(federation.client_timeout in the node's own scenario keeps that from it)"
    )
    FILE_READ = (
        "the records are in one file, and the processes of the run that read it, the server's among "
        "them, use it for this plan alone"
    )
    SIZES_PUBLIC = (
        "each client's record count is public, and quantities derived from it (rates, denominators of "
        "means) do not change when one record is added or removed"
    )
    RECORDS_TRAIN = (
        "no record makes its client's training fail (raise an error, hang, kill its process): what a "
        "failure takes out of an answer is more than one record's part"
    )
    FROZEN_WEIGHTS = (
        "no record of a client was used to make the initial or frozen weights: whatever they were trained on "
        "is not covered"
    )
    PERSONAL = (
        "each client's personal model goes to that client alone: the guarantee covers the shared model, and "
        "what other clients' records do to a personal one; it covers no personal model that is published"
    )
    PUBLIC_SHAPE = (
        "the number of clients, the columns, and the classes with their names are public knowledge, even "
        "where they were read off the data"
    )
    GROUPS_PUBLIC = (
        "groups are public: the plan fixes the group of each client by its id or by a public draw, with the "
        "rate, weight and noise of each group and the denominator of means; none of them depends on records, "
        "and all are the same in neighbouring data (under replace-one the replaced client stays in its group)"
    )
    GROUPS_BY_LABEL = (
        "groups are public: the plan fixes the group of each client by its id or by a public draw, with the "
        "rate, weight and noise of each group and the denominator of means; clients were dealt by label, so "
        "the labels that membership of a group shows are public too, and no epsilon covers them: ids and "
        "groups are the same in neighbouring data (under replace-one the replaced client stays in its group)"
    )
    SHARES_SIMULATED = (
        "simulation-grade randomness: rounding and integer noise come from a seeded stream that the "
        "observer does not know; the observer sees this run alone, and each round once (a round that is "
        "repeated after a break, from the start or by another version has the same noise); and it does not "
        "measure when messages arrive"
    )
    SIMULATED = (
        "simulation-grade randomness: floating-point noise and sampling come from a seeded stream that "
        "the observer does not know; the observer sees this run alone, and each round once (a round that "
        "is repeated after a break, from the start or by another version has the same noise); and it "
        "does not measure when messages arrive"
    )
    STOPPED_BLINDLY = (
        "the decision when to stop looked at nothing that depends on the data (no model, accuracy or "
        "count of failures); otherwise only the planned charge holds"
    )
    FAILED_BLINDLY = (
        "the fault that ended the run, and its round, depend on nobody's data; otherwise only the "
        "planned charge holds"
    )
