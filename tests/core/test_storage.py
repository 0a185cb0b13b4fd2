from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from litotes.core import json_text, storage
from litotes.core.errors import UserError
from litotes.core.json_text import read_json, read_json_table
from litotes.core.storage import (
    LOCK,
    clear_staged,
    find_foreign_file,
    is_complete,
    locked,
    make_own_folder,
    remove_folder,
    write_folder,
    write_json,
    write_text,
)

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes and links")


def fill(folder: Path) -> None:
    (folder / "a.txt").write_text("a" * 1000)
    (folder / "b.txt").write_text("b")


def test_a_folder_is_whole_when_it_appears(tmp_path: Path) -> None:
    write_folder(tmp_path / "x", fill)
    assert is_complete(tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]


@pytest.mark.parametrize("damage", ["cut", "change", "remove", "manifest"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    write_folder(tmp_path / "x", fill)
    file = tmp_path / "x" / "a.txt"
    match damage:
        case "cut":
            file.write_text("a" * 10)
        case "change":
            file.write_text("a" * 999 + "b")
        case "remove":
            file.unlink()
        case "manifest":
            (tmp_path / "x" / "manifest.json").write_text("[]")
    assert not is_complete(tmp_path / "x")


def test_a_crash_while_filling_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    def crash(folder: Path) -> None:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "x", crash)
    assert not (tmp_path / "x").exists()
    clear_staged(tmp_path)
    assert not list(tmp_path.iterdir())


def test_text_is_replaced_in_one_step(tmp_path: Path) -> None:
    write_text(tmp_path / "deep" / "file", "one")
    write_text(tmp_path / "deep" / "file", "two")
    assert (tmp_path / "deep" / "file").read_text() == "two"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_removed_folders_are_gone(tmp_path: Path) -> None:
    write_folder(tmp_path / "x", fill)
    remove_folder(tmp_path / "x")
    assert not list(tmp_path.iterdir())


HOLDER = """
import sys
from pathlib import Path
from litotes.core.storage import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def holder_of(folder: Path) -> subprocess.Popen[str]:
    """A process that holds the lock until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_locked_folder_says_who_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "x"
    with holder_of(folder) as process:
        with (
            pytest.raises(
                UserError,
                match=(
                    rf"being written by another process \(PID {process.pid} on .*choose another"
                    r" --out"
                ),
            ),
            locked(folder),
        ):
            raise AssertionError
        process.communicate("")
    # nothing was written: the folder is gone again, and all that was made for it
    assert not (tmp_path / "deep").exists()
    with locked(folder):
        assert (folder / LOCK).is_file()
        (folder / "written").touch()
    assert [path.name for path in folder.iterdir()] == ["written"]


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    with holder_of(tmp_path) as process:
        process.kill()
    assert (tmp_path / LOCK).is_file()  # nobody was left to remove it
    with locked(tmp_path), pytest.raises(UserError, match="being written"), locked(tmp_path):
        raise AssertionError
    assert not (tmp_path / LOCK).exists()


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder removes the file between a newcomer's opening it and locking it: the newcomer's
    lock would be on nothing.
    """
    from litotes.core import storage

    original, seen = storage._acquire_lock, []

    def after_a_removal(descriptor: int, folder: Path) -> None:
        if not seen:
            (folder / LOCK).unlink()
        seen.append(descriptor)
        original(descriptor, folder)

    monkeypatch.setattr(storage, "_acquire_lock", after_a_removal)
    with locked(tmp_path):
        monkeypatch.undo()
        with pytest.raises(UserError, match="being written"), locked(tmp_path):
            raise AssertionError
    assert len(seen) == 2


def test_a_file_cannot_be_locked_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(UserError, match="is a file; --out needs a folder"), locked(tmp_path / "x"):
        raise AssertionError


@posix
@pytest.mark.parametrize("kind", ["link", "two names", "pipe", "folder"])
def test_a_lock_is_a_plain_file_of_ours(tmp_path: Path, kind: str) -> None:
    letter = tmp_path / "letter"
    letter.write_bytes(b"keep")
    folder = tmp_path / "out"
    folder.mkdir()
    match kind:
        case "link":
            (folder / LOCK).symlink_to(letter)
        case "two names":
            (folder / LOCK).hardlink_to(letter)
        case "pipe":
            os.mkfifo(folder / LOCK)
        case "folder":
            (folder / LOCK).mkdir()
    with pytest.raises(UserError, match=r"\.lock .*choose another --out|\.lock cannot be written"):
        locked(folder).__enter__()
    assert letter.read_bytes() == b"keep"
    assert os.listdir(folder) == [LOCK]


@posix
def test_a_lock_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LOCK).touch()
    with locked(tmp_path):  # a leftover of our own
        pass
    (tmp_path / LOCK).touch()
    if os.geteuid() == 0:
        os.chown(tmp_path / LOCK, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        monkeypatch.setattr(Path, "stat", _of_another_user)
    with pytest.raises(UserError, match=r"\.lock belongs to another user"):
        locked(tmp_path).__enter__()


@posix
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    make_own_folder(tmp_path / "ours")
    make_own_folder(tmp_path / "ours")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o700
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, -1)
    with pytest.raises(UserError, match="theirs belongs to another user"):
        make_own_folder(tmp_path / "theirs")


def _of_another_user(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
    found = list(os.stat(path, follow_symlinks=follow_symlinks))
    found[stat.ST_UID] = 12345
    return os.stat_result(found)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"a":' * 100_000])
def test_json_that_cannot_be_read_is_an_error_with_advice(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "damaged.json"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"damaged\.json: not readable \(.+\)\. Copy it again\."):
        read_json(file, advice="Copy it again.")


def test_json_of_any_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "large.json"
    write_json(file, list(range(100)))
    monkeypatch.setattr(json_text, "MOST_JSON_BYTES", 100)
    with pytest.raises(UserError, match=r"not readable \(\d+ bytes\)"):
        read_json(file, advice="")


def test_a_table_is_expected(tmp_path: Path) -> None:
    write_json(tmp_path / "list.json", [1])
    with pytest.raises(UserError, match="not a table"):
        read_json_table(tmp_path / "list.json", advice="")
    with pytest.raises(UserError, match="No such file"):
        read_json_table(tmp_path / "none.json", advice="")


def test_foreign_files_are_found(tmp_path: Path) -> None:
    parts = re.compile(r"part-\d+")
    assert find_foreign_file(tmp_path / "none", ()) is None
    for name in ("plan", "part-1", ".staged-plan"):
        (tmp_path / name).write_text("ours")
    assert find_foreign_file(tmp_path, ("plan",), parts) is None
    assert find_foreign_file(tmp_path, ("plan",)) == "part-1"
    (tmp_path / "mine.txt").write_text("mine")
    assert find_foreign_file(tmp_path, ("plan",), parts) == "mine.txt"


@pytest.mark.parametrize("name", ["../secret", "a/b", "{folder}/../secret"])
def test_a_manifest_names_no_file_elsewhere(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    for file in (tmp_path / "secret", folder / "a" / "b"):
        file.write_text("secret")
    content = {name.format(folder=folder): storage.sha256_of(tmp_path / "secret")}
    write_json(folder / "manifest.json", content)
    assert not is_complete(folder)
