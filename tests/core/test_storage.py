"""Only a missing path or a plain file is ever replaced, in one step; what is half-written is
private, and a folder that is written for hours is locked meanwhile.
"""

from __future__ import annotations

import os
import re
import select
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from litotes.core import json_text, storage
from litotes.core.errors import UserError
from litotes.core.json_text import read_json_table
from litotes.core.storage import (
    LOCK,
    MANIFEST,
    clear_staged,
    find_foreign_file,
    is_complete,
    locked,
    make_own_folder,
    remove_folder,
    write_bytes,
    write_folder,
    write_json,
)

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes and links")


def fill(folder: Path) -> None:
    (folder / "a.txt").write_text("a" * 1000)
    (folder / "b.txt").write_text("b")


WRITES: tuple[Callable[[Path], Any], ...] = (
    lambda folder: write_bytes(folder / "file", b"after"),
    lambda folder: write_folder(folder / "folder", fill),
    lambda folder: locked(folder).__enter__(),
)


def test_a_folder_is_whole_when_it_appears_and_damage_is_noticed(tmp_path: Path) -> None:
    damages: dict[str, Callable[[Path], object]] = {
        "cut": lambda file: file.write_text("a" * 10),
        "change": lambda file: file.write_text("a" * 999 + "b"),
        "remove": lambda file: file.unlink(),
        "manifest": lambda file: file.with_name(MANIFEST).write_text("[]"),
        "empty manifest": lambda file: file.with_name(MANIFEST).write_text("{}"),
    }
    for name, damage in damages.items():
        write_folder(tmp_path / name, fill)
        assert is_complete(tmp_path / name)
        damage(tmp_path / name / "a.txt")
        assert not is_complete(tmp_path / name), name
        remove_folder(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../secret", "a/b", "{folder}/../secret"])
def test_a_manifest_names_no_file_elsewhere(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    for file in (tmp_path / "secret", folder / "a" / "b"):
        file.write_text("secret")
    digest = storage.sha256_of(tmp_path / "secret")
    write_json(folder / MANIFEST, {name.format(folder=folder): digest})
    assert not is_complete(folder)


def test_a_crash_while_filling_leaves_nothing(tmp_path: Path) -> None:
    def crash(folder: Path) -> None:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "x", crash)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int, int]]:
    """Every staged file or folder as it is renamed: its path, its folder's mode, its own mode
    while it was written.
    """
    seen: list[tuple[Path, int, int]] = []
    flush = os.fsync

    def look(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.parent.name.startswith(".staged-"):
            modes = [stat.S_IMODE(one.stat().st_mode) for one in (path.parent, path)]
            seen.append((path, modes[0], modes[1]))
        flush(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not show open files as links")
    monkeypatch.setattr(os, "fsync", look)
    return seen


def test_staged_files_are_private_and_have_random_names(
    tmp_path: Path, staged: list[tuple[Path, int, int]]
) -> None:
    before = os.umask(0o027)
    try:
        for content in (b"one", b"two"):
            write_bytes(tmp_path / "file", content)
        write_folder(tmp_path / "folder", lambda folder: None)
    finally:
        os.umask(before)
    (first, *modes), (second, *_), (folder, folder_mode, _) = staged
    assert first.parent.name != second.parent.name
    assert modes == [0o700, 0o600]
    assert (folder.name, folder_mode) == ("folder", 0o700)
    assert (tmp_path / "file").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640  # the usual one
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("name", [".staged-file", ".staged-folder"])
def test_a_link_under_the_name_of_a_staged_file_is_not_followed(tmp_path: Path, name: str) -> None:
    """Somebody who may write into the folder, too, foresees what we call a half-written file."""
    letter = tmp_path / "theirs" / "letter"
    letter.parent.mkdir()
    letter.write_bytes(b"keep")
    (tmp_path / name).symlink_to(letter if name == ".staged-file" else letter.parent)
    write_bytes(tmp_path / "file", b"ours")
    clear_staged(tmp_path)
    assert letter.read_bytes() == b"keep"
    assert not os.path.lexists(tmp_path / name)


def test_locking_clears_what_a_crash_left(tmp_path: Path) -> None:
    (tmp_path / ".staged-abcdefgh").mkdir()
    (tmp_path / ".staged-abcdefgh" / "half").write_bytes(b"a ha")
    (tmp_path / "deep" / ".staged-ijklmnop").mkdir(parents=True)
    with locked(tmp_path):
        assert sorted(os.listdir(tmp_path)) == [LOCK, "deep"]
    assert os.listdir(tmp_path / "deep")  # perhaps of a run in a folder of its own
    clear_staged(tmp_path, below=True)
    assert not os.listdir(tmp_path / "deep")


@posix
def test_a_folder_that_may_not_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    for name in ("mkdir", "open"):  # the root is stopped by no mode
        monkeypatch.setattr(os, name, refuse)
    for write in WRITES:
        with pytest.raises(UserError, match=r"cannot be written \(Permission denied\). Choose an"):
            write(tmp_path)


@pytest.mark.parametrize(
    ("number", "failing", "sentence"),
    [
        (28, "fsync", r"file cannot be written \(No space left on device\)\. Make room"),
        (30, "replace", r"file cannot be written \(Read-only file system\)\. Choose an --out"),
        (5, "fsync", r"file cannot be written \(Input/output error\)\. Check that disk"),
    ],
)
def test_a_failed_write_is_a_sentence_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, failing: str, sentence: str
) -> None:
    write_bytes(tmp_path / "file", b"before")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (Path, "replace")), fail)
    with pytest.raises(UserError, match=sentence):
        write_bytes(tmp_path / "file", b"after")
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


@posix
@pytest.mark.parametrize("name", ["pipe", "link"])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with ThreadPoolExecutor() as reader:
        read = reader.submit((tmp_path / "pipe").read_bytes)
        write_bytes(tmp_path / name, b"answers" * 50_000)  # more than a pipe holds
        assert read.result(20) == b"answers" * 50_000
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]
    for write in WRITES:
        with pytest.raises(UserError, match=r"(pipe|link) is not a folder"):
            write(tmp_path / name)


@posix
def test_a_terminal_is_written_to(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        (tmp_path / "terminal").symlink_to(os.ttyname(theirs))
        write_bytes(tmp_path / "terminal", b"answers\n")
        readable, _, _ = select.select([ours], [], [], 10)
        assert readable
        assert os.read(ours, 100) == b"answers\r\n"
        assert (tmp_path / "terminal").is_char_device()
    finally:
        os.close(ours)
        os.close(theirs)


@posix
@pytest.mark.parametrize("kind", ["block", "socket"])
def test_block_devices_and_sockets_are_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the block device no driver exists."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "socket":
            listener.bind("odd")
        else:
            try:
                os.mknod("odd", stat.S_IFBLK | 0o600, os.makedev(240, 99))
            except OSError:
                pytest.skip("only root makes devices, and not everywhere")
        with pytest.raises(UserError, match=rf"odd is a {kind}.*Choose another --out"):
            write_bytes(Path("odd"), b"answers")
    assert not stat.S_ISREG(os.stat("odd").st_mode)
    assert os.listdir() == ["odd"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_and_stays_a_link(tmp_path: Path, exists: bool) -> None:
    for name in ("far", "near"):
        (tmp_path / name).mkdir()
    if exists:
        (tmp_path / "far" / "file").write_bytes(b"before")
    (tmp_path / "near" / "link").symlink_to(tmp_path / "far" / "file")
    write_bytes(tmp_path / "near" / "link", b"after")
    assert (tmp_path / "near" / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"after"
    assert os.listdir(tmp_path / "far") + os.listdir(tmp_path / "near") == ["file", "link"]


@pytest.mark.parametrize(
    ("leads_to", "sentence"),
    [
        ("nowhere/file", r"link is a link into a folder that is not there \(.*nowhere\)"),
        ("link", "link is a link that leads back to itself"),
        (".", "link is a folder"),
    ],
)
def test_links_that_lead_nowhere_are_refused(tmp_path: Path, leads_to: str, sentence: str) -> None:
    (tmp_path / "link").symlink_to(leads_to)
    with pytest.raises(UserError, match=sentence):
        write_bytes(tmp_path / "link", b"answers")
    assert os.readlink(tmp_path / "link") == leads_to
    assert os.listdir(tmp_path) == ["link"]


@posix
def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    """What /dev/stdout leads to when the file that a shell had opened is gone."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("this system does not show open files as links")
    with (tmp_path / "gone").open("wb") as stream:
        (tmp_path / "gone").unlink()
        with pytest.raises(UserError, match="Choose another --out"):
            write_bytes(descriptors / str(stream.fileno()), b"answers")
    assert not os.listdir(tmp_path)


HOLDER = """
import sys
from pathlib import Path
from litotes.core.storage import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_locked_folder_says_who_holds_it(tmp_path: Path, is_killed: bool) -> None:
    folder = tmp_path / "deep" / "x"
    command, pipe = [sys.executable, "-c", HOLDER, str(folder)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        told = rf"another process \(PID {process.pid} on .*choose another --out"
        with pytest.raises(UserError, match=told), locked(folder):
            raise AssertionError
        if is_killed:
            process.kill()
        process.communicate("")
    # a lock dies with its holder, which nobody is left to remove; else what was made is gone
    assert (folder / LOCK).is_file() is (tmp_path / "deep").exists() is is_killed
    with locked(folder):
        assert (folder / LOCK).is_file()
        (folder / "written").touch()
        with pytest.raises(UserError, match="being written"), locked(folder):
            raise AssertionError
    assert [path.name for path in folder.iterdir()] == ["written"]


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder removes the file between a newcomer's opening it and locking it: the newcomer's
    lock would be on nothing.
    """
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


@posix
@pytest.mark.parametrize("kind", ["link", "two names", "pipe", "folder"])
def test_a_lock_is_a_plain_file_of_ours(tmp_path: Path, kind: str) -> None:
    letter, lock = tmp_path / "letter", tmp_path / "out" / LOCK
    letter.write_bytes(b"keep")
    lock.parent.mkdir()
    makes: dict[str, Callable[[], object]] = {
        "link": lambda: lock.symlink_to(letter),
        "two names": lambda: lock.hardlink_to(letter),
        "pipe": lambda: os.mkfifo(lock),
        "folder": lock.mkdir,
    }
    makes[kind]()
    with pytest.raises(UserError, match=r"\.lock .*choose another --out|\.lock cannot be written"):
        locked(lock.parent).__enter__()
    assert letter.read_bytes() == b"keep"
    assert os.listdir(lock.parent) == [LOCK]


@posix
def test_what_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    for _ in range(2):
        make_own_folder(tmp_path / "ours")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o700
    (tmp_path / "theirs").mkdir()
    (tmp_path / LOCK).touch()
    for path in (tmp_path / "theirs", tmp_path / LOCK):
        os.chown(path, 12345, -1)
    with pytest.raises(UserError, match="theirs belongs to another user"):
        make_own_folder(tmp_path / "theirs")
    with pytest.raises(UserError, match=r"\.lock belongs to another user"):
        locked(tmp_path).__enter__()


def test_json_that_cannot_be_read_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    monkeypatch.setattr(json_text, "MOST_JSON_BYTES", 1000)
    for content in (None, b"", b"{", b"\xff\xfe", b"[1]", b'{"a":' * 100, b"[" + b"1" * 1000):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(UserError, match=r"a\.json: not readable \(.+\)\. Copy it again\."):
            read_json_table(file, advice="Copy it again.")
    write_json(file, {"a": [1] * 100})
    assert read_json_table(file, advice="") == {"a": [1] * 100}


def test_foreign_files_are_found(tmp_path: Path) -> None:
    parts = re.compile(r"part-\d+")
    assert find_foreign_file(tmp_path / "none", ()) is None
    for name in ("plan", "part-1", ".staged-plan"):
        (tmp_path / name).write_text("ours")
    assert find_foreign_file(tmp_path, ("plan",), parts) is None
    assert find_foreign_file(tmp_path, ("plan",)) == "part-1"
    (tmp_path / "mine.txt").write_text("mine")
    assert find_foreign_file(tmp_path, ("plan",), parts) == "mine.txt"
    with pytest.raises(UserError, match=r"mine\.txt is a file; --out needs a folder"):
        locked(tmp_path / "mine.txt").__enter__()
