"""The file of an account: each changed byte is refused, a torn line is cut, and no process loses an entry."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import resource
import signal
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.account import account_file
from fedprivacy.errors import HeldError, InputError, RunError

FORK = multiprocessing.get_context("fork")
KILLS = 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "clients.account"
    account_file.create(target, {"kind": "account"})
    return target


def add(path: Path, **body: object) -> str:
    with account_file.opened(path) as file:
        return file.append(body)


def test_lines_come_back_in_their_order(path: Path) -> None:
    digests = [add(path, number=number) for number in range(3)]
    lines = account_file.read(path)
    assert [body.get("number") for body in lines.bodies] == [None, 0, 1, 2]
    assert list(lines.digests[1:]) == digests
    assert path.stat().st_mode & 0o077 == 0


def test_a_byte_that_changed_anywhere_is_refused_with_its_line(path: Path) -> None:
    for number in range(2):
        add(path, number=number)
    data = path.read_bytes()
    for at in range(len(data)):
        line = data[:at].count(b"\n") + 1
        for flip in (0x01, 0x20, 0x80, data[at] ^ ord("\n"), data[at] ^ ord('"')):
            if not flip:
                continue
            changed = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
            with pytest.raises(InputError, match=f"clients.account:{line}: .*changed.*Restore the file"):
                account_file.Lines.parse(changed, path)


def test_lines_that_were_exchanged_or_taken_out_are_refused(path: Path) -> None:
    for number in range(3):
        add(path, number=number)
    head, first, second, third = path.read_bytes().splitlines(keepends=True)
    for lines in ([head, second, first, third], [head, first, third], [first, second], [head, head]):
        with pytest.raises(InputError, match="changed"):
            account_file.Lines.parse(b"".join(lines), path)


def test_a_torn_last_line_is_cut_wherever_it_broke(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_file, "_WAITS", ())
    add(path, number=0)
    whole = path.read_bytes()
    add(path, number=1)
    more = path.read_bytes()
    beside = path.with_name("clients.account.next")
    for size in range(len(whole), len(more) - 1):
        path.write_bytes(more[:size])
        if size > len(whole):  # cut off after it was written: its work may have run
            with pytest.raises(InputError, match=r"clients\.account:3: the line is cut off"):
                account_file.read(path)
            with pytest.raises(InputError, match="cut off"):
                add(path, number=2)
        beside.write_bytes(more[len(whole) : -1])
        assert len(account_file.read(path).bodies) == 2
        assert account_file.read(path).torn == size - len(whole)
        add(path, number=2)
        lines = account_file.read(path)
        assert [body.get("number") for body in lines.bodies] == [None, 0, 2]
        assert lines.torn == 0
        assert not beside.exists()
    path.write_bytes(whole + b"\0" * 300)  # as some file systems leave it after a power cut
    beside.write_bytes(more[len(whole) : -1])
    add(path, number=2)
    assert len(account_file.read(path).bodies) == 3
    assert account_file.read(path).torn == 0


def test_a_second_kill_wherever_it_comes_leaves_an_account_that_enters(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_file, "_WAITS", ())
    add(path, number=0)
    whole = path.read_bytes()
    add(path, number=1)
    more = path.read_bytes()
    beside = path.with_name("clients.account.next")
    left, kills, killed = 0, 0, True

    def counted(call: Any) -> Any:
        def counting(*words: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            return call(*words, **options)

        return counting

    while killed:  # before each call to the system in its turn
        path.write_bytes(more[: len(whole) + 60])
        beside.write_bytes(more[len(whole) : -1])
        left, killed = kills, False
        with monkeypatch.context() as patched:
            for name in ("ftruncate", "fsync", "open", "pwrite"):
                patched.setattr(os, name, counted(getattr(os, name)))
            try:
                add(path, number=2)
            except KeyboardInterrupt:
                kills, killed = kills + 1, True
        count = len(account_file.read(path).bodies)
        add(path, number=3)
        assert len(account_file.read(path).bodies) == count + 1
    assert kills > 6


def test_a_line_that_lacks_its_end_alone_counts(path: Path) -> None:
    add(path, number=0)
    path.write_bytes(path.read_bytes()[:-1])
    assert len(account_file.read(path).bodies) == 2
    add(path, number=1)
    assert [body.get("number") for body in account_file.read(path).bodies] == [None, 0, 1]


def test_other_files_are_no_accounts(tmp_path: Path, path: Path) -> None:
    for content in (b"", b"\n", b"{}\n", b'{"kind": "account"', b"\xff\xfe" * 100):
        other = tmp_path / "other"
        other.write_bytes(content)
        with pytest.raises(InputError, match="other"):
            account_file.read(other)
        with pytest.raises(InputError, match="other"), account_file.opened(other):
            pass
        assert other.read_bytes() == content
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "pipe", ""):
        with pytest.raises(InputError), account_file.opened(tmp_path / name):
            pass
    with pytest.raises(InputError, match="there already"):
        account_file.create(path, {})


def test_a_full_disk_leaves_the_file_as_it_was(path: Path) -> None:
    add(path, number=0)
    before = path.read_bytes()

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, resource.RLIM_INFINITY))
        try:
            add(path, number=1)
        except RunError as error:
            os._exit(7 if "Nothing was entered" in str(error) else 8)
        os._exit(0)

    process = FORK.Process(target=work)
    process.start()
    process.join(30)
    assert process.exitcode == 7
    assert path.read_bytes() == before
    with account_file.opened(path) as file:
        file.append({"number": 1})
    assert len(account_file.read(path).bodies) == 3


def _add_many(path: Path, name: int, count: int, barrier: Any) -> None:
    barrier.wait(30)
    for number in range(count):
        with account_file.opened(path) as file:
            time.sleep(0.002)  # between reading and writing, where another process would read too
            file.append({"name": name, "number": number})


def test_processes_at_once_all_enter(path: Path) -> None:
    barrier = FORK.Barrier(4)
    processes = [FORK.Process(target=_add_many, args=(path, name, 8, barrier)) for name in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    bodies = account_file.read(path).bodies[1:]
    assert sorted((body["name"], body["number"]) for body in bodies) == [
        (name, number) for name in range(4) for number in range(8)
    ]


def _add_and_confirm(path: Path, confirmed: Path) -> None:
    with open(confirmed, "ab", buffering=0) as stream:
        while True:
            digest = add(path, filler="x" * 2000)
            os.write(stream.fileno(), f"{digest}\n".encode())


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_time_loses_nothing_that_it_confirmed(
    path: Path, tmp_path: Path
) -> None:
    confirmed, drawn = tmp_path / "confirmed", random.Random(1)
    for _ in range(KILLS):
        process = FORK.Process(target=_add_and_confirm, args=(path, confirmed))
        process.start()
        time.sleep(drawn.uniform(0.005, 0.15))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    digests = account_file.read(path).digests
    known = confirmed.read_text().split()
    assert len(known) > 3
    assert set(known) <= set(digests)
    assert len(digests) <= len(known) + KILLS + 1


def test_what_is_not_on_disk_has_not_entered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(path, number=0)
    before = path.read_bytes()

    def failing(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(RunError, match="Nothing was entered"):
        add(path, number=1)
    assert path.read_bytes() == before


def test_a_line_is_synchronised_before_it_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    add(path, number=0)
    assert path.stat().st_size in sizes


def test_a_file_does_not_outgrow_what_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    monkeypatch.setattr(account_file, "MAX_BYTES", len(before) + 100)
    with pytest.raises(InputError, match=r"Nothing was entered\. Create another account"):
        add(path, number=0)
    assert path.read_bytes() == before
    assert len(account_file.read(path).bodies) == 1


def test_a_file_that_is_removed_while_a_process_waits_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_file, "locked", lambda *_: (path.unlink(), nullcontext())[1])
    with pytest.raises(HeldError, match="was replaced or removed meanwhile"):
        add(path, number=0)
