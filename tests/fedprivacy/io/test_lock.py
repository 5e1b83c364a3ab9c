"""One process at a time works on a run directory."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedprivacy.errors import HeldError, InputError
from fedprivacy.io import lock
from fedprivacy.io.lock import FILE, alone, locked

HOLD = """
import os, sys, time
from pathlib import Path
from fedprivacy.io.lock import alone
with alone(Path(sys.argv[1])):
    if len(sys.argv) > 2 and os.fork() == 0:
        time.sleep(float(sys.argv[2]))
        os._exit(0)
    print("held", flush=True)
    time.sleep(0 if len(sys.argv) > 3 else 60)
print("left", flush=True)
time.sleep(60)
"""


def holder(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A process that holds a folder."""
    words = [sys.executable, "-c", HOLD, str(folder), *more]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_second_one_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with alone(tmp_path):
        assert (tmp_path / FILE).read_text().split()[0] == str(os.getpid())
        with pytest.raises(InputError, match=f"process {os.getpid()} is at work on it"), alone(tmp_path):
            pass
        assert (tmp_path / FILE).exists()
    assert not list(tmp_path.iterdir())
    with alone(tmp_path):
        pass


def test_another_process_is_refused_until_it_is_killed(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(InputError, match=f"process {process.pid} is at work on it"), alone(tmp_path):
            pass
    finally:
        end(process)
    assert (tmp_path / FILE).exists()  # nobody was left to remove it
    with alone(tmp_path):
        pass


def test_workers_of_a_killed_process_hold_it_until_they_have_ended(tmp_path: Path, monkeypatch) -> None:
    process = holder(tmp_path, "4")
    end(process)
    with monkeypatch.context() as patched:
        patched.setattr(lock, "PATIENCE", 0.1)
        with pytest.raises(InputError, match=f"process {process.pid}"), alone(tmp_path):
            pass
    began = time.monotonic()
    with alone(tmp_path):
        assert time.monotonic() - began > 0.3


def test_one_that_has_ended_lets_go_for_its_workers_too(tmp_path: Path) -> None:
    process = holder(tmp_path, "60", "then leave")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "left\n"
        with alone(tmp_path):
            pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        end(process)


def test_one_on_another_machine_is_named(tmp_path: Path) -> None:
    with alone(tmp_path):
        (tmp_path / FILE).write_text("7 elsewhere\n")
        with pytest.raises(InputError, match="process 7 on elsewhere is at work"), alone(tmp_path):
            pass


def test_where_there_are_no_locks_a_warning_says_so(tmp_path: Path, monkeypatch, capsys) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "lock_descriptor", none)
    with alone(tmp_path):
        assert "has no locks: see to it yourself" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"), alone(tmp_path / "none"):
        pass


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_followed_and_what_it_leads_to_stays(tmp_path: Path, there: bool) -> None:
    mine, folder = tmp_path / "mine.txt", tmp_path / "run"
    folder.mkdir()
    if there:
        mine.write_text("years of work")
    (folder / FILE).symlink_to(mine)
    with pytest.raises(HeldError, match="a link, and no lock of ours"), alone(folder):
        pass
    assert (mine.read_text() if there else mine.exists()) == ("years of work" if there else False)
    assert (folder / FILE).is_symlink()


def test_a_pipe_is_no_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(HeldError, match="a pipe, not a file"), alone(tmp_path):
        pass


def test_a_second_name_of_a_file_is_no_lock(tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine.txt", tmp_path / "run"
    folder.mkdir()
    mine.write_text("years of work")
    (folder / FILE).hardlink_to(mine)
    with pytest.raises(HeldError, match="a file with a second name"), alone(folder):
        pass
    assert mine.read_text() == "years of work"


def test_a_number_that_no_process_has_names_no_holder(tmp_path: Path, monkeypatch) -> None:
    process = holder(tmp_path)
    (tmp_path / FILE).write_text(f"{2**70} {socket.gethostname()}\n")
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    try:
        with pytest.raises(HeldError, match="at work on it"), alone(tmp_path):
            pass
    finally:
        end(process)


def test_a_lock_is_waited_for_as_long_as_requested(tmp_path: Path) -> None:
    handles = [os.open(tmp_path, os.O_RDONLY) for _ in range(2)]
    try:
        with locked(handles[0]), pytest.raises(TimeoutError), locked(handles[1], 0.1):
            pass
        with locked(handles[1], 0.1):
            pass
    finally:
        for handle in handles:
            os.close(handle)
