"""What is no regular file is refused at once, whatever it is, and what has no end is not read to it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fedprivacy.io.regular_file import NotRegular, TooLarge, open_regular, printed_size, read_regular


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100_000)
    assert read_regular(path, 100_000) == b"x" * 100_000
    with pytest.raises(TooLarge, match="it is larger than 97 kB"):
        read_regular(path, 99_999)
    with open_regular(path, 100_000) as opened:
        assert opened.read(3) == b"xxx"


def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(TooLarge, match="larger than 1 MB"):
        read_regular(path, 2**20)
    assert read_regular("/proc/self/stat", 2**16)  # which says that it has no bytes
    with pytest.raises(TooLarge):
        read_regular("/proc/self/stat", 10)


@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_file_is_named_and_nobody_is_waited_for(tmp_path: Path, follow: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(tmp_path / "socket"))
        for path, kind in (
            (tmp_path / "pipe", "a pipe"),
            (tmp_path / "socket", "a socket"),
            (Path("/dev/zero"), "a device"),
            (Path("/dev/null"), "a device"),
        ):
            with pytest.raises(NotRegular) as raised:
                read_regular(path, 100, follow=follow)
            assert raised.value.strerror == f"{kind}, not a file"
    with pytest.raises(IsADirectoryError, match="a folder, not a file"):
        read_regular(tmp_path, 100, follow=follow)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 100, follow=follow)


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    assert read_regular(tmp_path / "link", 3) == b"abc"
    with pytest.raises(NotRegular, match="a link, not a file"):
        read_regular(tmp_path / "link", 3, follow=False)
    with pytest.raises(OSError, match="symbolic links"):
        read_regular(tmp_path / "loop", 3)


def test_what_a_name_leads_to_is_looked_at_once_more_when_it_is_open(tmp_path: Path, monkeypatch) -> None:
    """Between the look and the opening somebody puts a pipe in the place of a file."""
    path, stat = tmp_path / "a", os.stat
    path.write_bytes(b"abc")

    def swapped(name: object, **options: bool) -> os.stat_result:
        found = stat(name, **options)  # type: ignore[call-overload]
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "stat", swapped)
    with pytest.raises(NotRegular, match="a pipe"):
        open_regular(path, 100)


def test_sizes_are_printed_as_people_read_them() -> None:
    assert [printed_size(2**at) for at in (4, 12, 20, 28, 40)] == [
        "16 bytes",
        "4 kB",
        "1 MB",
        "256 MB",
        "1 TB",
    ]
