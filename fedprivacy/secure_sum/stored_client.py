"""A client of secure sums whose process may end after each message: its rounds and its state on disk.

    secure-sum/client-ID.rounds    the rounds that it has entered, for ever
    secure-sum/client-ID.round     the state of its round, and the replies in it; mode 0600

A step is claimed on disk before it runs: the claim takes the secrets out of the file, so that nobody runs the
step again, whatever happens then. Its result is on disk before the reply leaves. A request with the same
bytes gets the same reply; any other one ends the round.

    lock      reply there already: send it again.  Else take the state out of the file, note the request
    no lock   run the step, which may train for hours
    lock      still this claim: write the next state and the reply

A process that ends between the two locks leaves a claim without a reply: this client has dropped out. Of two
processes with one request, the second finds the claim. A full disk before the claim changes nothing, and
after it the round has ended. A damaged file of a round ends that round; a damaged file of rounds ends all.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedprivacy.errors import InputError, Refusal
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import keep_names, replace_file, sweep_parts
from fedprivacy.io.folder import make_inner
from fedprivacy.io.regular_file import read_regular
from fedprivacy.secure_sum.client import Client
from fedprivacy.secure_sum.client_state import ClientState
from fedprivacy.secure_sum.encoding import decoded, encoded
from fedprivacy.secure_sum.messages import Checked
from fedprivacy.secure_sum.rounds import Rounds, refusal
from fedprivacy.secure_sum.transcript import Phase

FOLDER = "secure-sum"
MOST_BYTES = 2**36  # of a round's file: an input of 2^32 coordinates has 16 GB
SCHEMA = 1
MOST_ROUNDS = 10**6  # that a client enters
Lock = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class _Round(Checked):
    """The file of a round.

    Args:
        schema: Of the file.
        round_id: The round.
        claim: Names the process that runs a step, or ran the last one.
        state: The bytes of a `ClientState`; empty during a step, and after the last one or a refusal.
        requests: Digests of the requests so far, by phase.
        replies: The bytes of the replies to them.
    """

    schema: int
    round_id: str
    claim: bytes
    state: bytes = field(repr=False)
    requests: Mapping[int, bytes]
    replies: Mapping[int, bytes] = field(repr=False)


class StoredRounds(Rounds):
    """The rounds that a client has entered, in a file.

    Args:
        path: The file; before the first round there is none.
        lock: Held while it is read and written.
        most: The most rounds that the client enters. A server that begins rounds and never ends them costs
            the client's machine no more.
    """

    def __init__(self, path: Path, lock: Lock, most: int) -> None:
        super().__init__()
        self._path, self._file_lock, self._most = path, lock, most

    def enter(self, round_id: str) -> None:
        """As `Rounds.enter`, with the round on disk before this returns."""
        with self._file_lock():
            self._entered = set(self._read())
            if len(self._entered) >= self._most:
                raise refusal(
                    round_id, f"this client has entered {self._most:,} rounds, the most that its plan allows."
                )
            super().enter(round_id)
            content = {"schema": SCHEMA, "rounds": sorted(self._entered)}
            data = json.dumps({**content, "digest": _digest(content)}).encode()
            replace_file(self._path, data, 0o600, strict=True)

    def _read(self) -> list[str]:
        try:
            content = bounded_json.loads(bounded_json.read_bytes(self._path, follow=False))
            digest = content.pop("digest")
            if digest != _digest(content) or content["schema"] != SCHEMA:
                raise ValueError("its digest is another one")
            return [str(round_id) for round_id in content["rounds"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refusal(
                f"{self._path}: damaged or unreadable ({error}), so that the rounds of this client are not "
                "known. It enters none until you restore the newest copy, or choose another home.",
                "home",
            ) from error


class StoredClient:
    """A client's side of its secure sums, one round after the other.

    Args:
        home: The folder of its node.
        identity: The client's.
        lock: Held while files are read and written; one for all processes with this home.
        most: The most rounds that the client enters, whether they end or not.

    Raises:
        OSError: The folder cannot be made.
    """

    def __init__(self, home: Path, identity: int, lock: Lock, most: int = MOST_ROUNDS) -> None:
        self._folder, self._lock = home / FOLDER, lock
        make_inner(self._folder)
        self._folder.chmod(0o700)
        self._path = self._folder / f"client-{identity}.round"
        self.rounds: Rounds = StoredRounds(self._folder / f"client-{identity}.rounds", lock, most)

    def answer(
        self,
        phase: Phase,
        round_id: str,
        request: bytes,
        client_of: Callable[[ClientState | None], Client],
        run: Callable[[Client], Checked],
    ) -> bytes:
        """The bytes of the reply to a request: made once, and sent again for the same bytes.

        Args:
            phase: The step; `Phase.KEYS` begins a round, and ends an earlier one.
            round_id: The round.
            request: All that the server requested.
            client_of: Makes the client of a new round (None: with `rounds`), or restores one.
            run: Takes the step; it may last long.

        Raises:
            Refusal: The step was taken before, is not next, or is being taken; or the client refuses it.
            OSError: A file cannot be written.
        """
        digest = hashlib.sha256(request).digest()
        with self._lock():
            stored = self._read()
            if stored is None or stored.round_id != round_id:
                if phase is not Phase.KEYS:
                    raise refusal(round_id, "this client is not in it. Start a new round.")
                stored = _Round(SCHEMA, round_id, b"", b"", {}, {})
            elif stored.requests.get(phase) == digest:
                if phase in stored.replies:
                    return stored.replies[phase]
                raise refusal(round_id, "this step is being taken, or was interrupted.")
            state = self._next_state(stored, phase)
            claimed = replace(
                stored,
                claim=secrets.token_bytes(16),
                state=b"",
                requests={**stored.requests, phase: digest},
            )
            self._write(claimed)
        try:
            client = client_of(state)
            reply = encoded(run(client))
        except Exception:
            self._remove(lambda current: current.claim == claimed.claim)
            raise
        following = client.hand_over()
        with self._lock():
            current = self._read()
            if current is None or current.claim != claimed.claim:
                raise refusal(round_id, "it ended while this client took a step.")
            self._write(
                replace(
                    claimed,
                    state=b"" if following.phase == Phase.ENDED else encoded(following),
                    replies={**claimed.replies, phase: reply},
                )
            )
        return reply

    def has(self, round_id: str) -> bool:
        """Whether the stored round is this one."""
        with self._lock():
            stored = self._read()
        return stored is not None and stored.round_id == round_id

    def end(self, round_id: str) -> None:
        """Removes all that is stored of a round, but that it was entered.

        Raises:
            OSError: The file cannot be removed.
        """
        self._remove(lambda current: current.round_id == round_id)

    def _next_state(self, stored: _Round, phase: Phase) -> ClientState | None:
        """The state from which a step of a round continues; None for its first step.

        Raises:
            Refusal: The step is not next; it ends the round.
        """
        if phase is Phase.KEYS and not stored.requests:
            return None
        state = decoded(ClientState, stored.state) if stored.state else ClientState(Phase.ENDED)
        if state.phase != phase or state.phase == Phase.ENDED:
            self._delete()
            raise refusal(stored.round_id, "this step was taken before, or is not next. Start a new round.")
        return state

    def _read(self) -> _Round | None:
        """The round's file; None where there is none, or a damaged one."""
        try:
            data = read_regular(self._path, MOST_BYTES, follow=False)
            if hashlib.sha256(data[32:]).digest() != data[:32]:
                return None
            stored = decoded(_Round, data[32:])
        except (FileNotFoundError, InputError):
            return None
        return stored if stored.schema == SCHEMA else None

    def _write(self, stored: _Round) -> None:
        sweep_parts(self._folder)  # of a process that was killed: they may have secrets in them
        data = encoded(stored)
        replace_file(self._path, hashlib.sha256(data).digest() + data, 0o600, strict=True)

    def _remove(self, condition: Callable[[_Round], bool]) -> None:
        with self._lock():
            current = self._read()
            if current is not None and condition(current):
                self._delete()

    def _delete(self) -> None:
        sweep_parts(self._folder)
        self._path.unlink(missing_ok=True)
        keep_names(self._folder)


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
