"""Inside a folder of somebody else nothing is written or removed through a link."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.io import atomic
from fedprivacy.io.atomic import replace_file, replacing
from fedprivacy.io.folder import check_tree, is_below, is_inner, make_inner, open_append


def test_a_tree_of_files_and_folders_passes_also_through_a_link_to_its_top(tmp_path: Path) -> None:
    (tmp_path / "top" / "a" / "b").mkdir(parents=True)
    (tmp_path / "top" / "a" / "b" / "file").touch()
    check_tree(tmp_path / "top")
    (tmp_path / "latest").symlink_to("top")
    check_tree(tmp_path / "latest")


@pytest.mark.parametrize("kind", ["link", "folder", "dangling", "pipe"])
@pytest.mark.parametrize("depth", [0, 3])
def test_what_is_no_file_is_refused_at_any_depth(tmp_path: Path, kind: str, depth: int) -> None:
    folder = tmp_path.joinpath("top", *"abc"[:depth])
    folder.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    target = {"link": "mine/file", "folder": "mine", "dangling": "nowhere"}.get(kind)
    if target is None:
        os.mkfifo(folder / "bad")
    else:
        (folder / "bad").symlink_to(tmp_path / target)
    with pytest.raises(InputError, match=f"{folder}/bad: a {'pipe' if kind == 'pipe' else 'link'} inside"):
        check_tree(tmp_path / "top")
    if depth:
        check_tree(tmp_path / "top", depth=depth)


def test_folders_are_made_and_links_to_folders_are_none(tmp_path: Path) -> None:
    assert make_inner(tmp_path / "new")
    assert not make_inner(tmp_path / "new")
    (tmp_path / "link").symlink_to("new")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        assert not is_inner(tmp_path / name)
        with pytest.raises(NotADirectoryError, match="not a folder of its own"):
            make_inner(tmp_path / name)


def test_files_are_written_through_no_link(tmp_path: Path, monkeypatch) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    (tmp_path / "run").mkdir()
    target = tmp_path / "run" / "run.json"
    target.symlink_to(mine)
    with monkeypatch.context() as patched:
        patched.setattr(atomic.secrets, "token_hex", lambda size: "guessed")
        part = target.with_name(f"run.json.{os.getpid()}-guessed.part")
        part.symlink_to(mine)
        with pytest.raises(FileExistsError):
            replace_file(target, b"new")
    assert (mine.read_bytes(), target.is_symlink()) == (b"mine", True)
    replace_file(target, b"new")
    assert (mine.read_bytes(), target.read_bytes(), target.is_symlink()) == (b"mine", b"new", False)
    (tmp_path / "events").symlink_to(mine)
    os.mkfifo(tmp_path / "pipe")
    for name in ("events", "pipe"):
        with pytest.raises(OSError, match=r"symbolic links|a pipe|No such device"):
            open_append(tmp_path / name)
    assert mine.read_bytes() == b"mine"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = replace_file(tmp_path / "run.json", b"old", 0o600)

    def write() -> None:
        with replacing(target) as stream:
            stream.write(b"half of the new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert ([path.name for path in tmp_path.iterdir()], target.read_bytes()) == (["run.json"], b"old")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_synchronised_is_an_error_only_where_that_matters(
    tmp_path: Path, monkeypatch
) -> None:
    synchronise = os.fsync

    def refuse_folders(handle: int) -> None:
        if os.path.isdir(f"/dev/fd/{handle}"):
            raise OSError(errno.EINVAL, "no folders")
        synchronise(handle)

    monkeypatch.setattr(atomic.os, "fsync", refuse_folders)
    replace_file(tmp_path / "file", b"new")
    with pytest.raises(OSError, match="no folders"):
        replace_file(tmp_path / "file", b"new", strict=True)


@pytest.mark.parametrize("name", ["/etc", "..", "a/../../b", "", ".", "a\0b"])
def test_what_leads_out_of_a_folder_is_not_below_it(name: str) -> None:
    assert not is_below(name)
    assert is_below(f"x{name.replace('..', '').replace(chr(0), '')}/a")
