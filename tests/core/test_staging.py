"""Half-written files: names nobody can foresee, a folder nobody else enters, no link followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.storage import LOCK, clear_staged, locked, write_bytes, write_folder

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes and links")


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
        write_bytes(tmp_path / "file", b"one")
        write_bytes(tmp_path / "file", b"two")
        write_folder(tmp_path / "folder", lambda folder: None)
    finally:
        os.umask(before)
    (first, *modes), (second, *_), (folder, folder_mode, _) = staged
    assert first.parent.name != second.parent.name
    assert modes == [0o700, 0o600]
    assert (folder.name, folder_mode) == ("folder", 0o700)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640  # the usual one
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("name", [".staged-file", ".staged-folder"])
def test_a_link_under_the_old_name_is_not_followed(tmp_path: Path, name: str) -> None:
    """Somebody who may write into the folder, too, foresees what we call a half-written file."""
    (tmp_path / "theirs").mkdir()
    letter = tmp_path / "theirs" / "letter"
    letter.write_bytes(b"keep")
    (tmp_path / name).symlink_to(letter if name == ".staged-file" else letter.parent)
    write_bytes(tmp_path / "file", b"ours")
    write_folder(tmp_path / "folder", lambda folder: None)
    assert letter.read_bytes() == b"keep"
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
    (tmp_path / "file").write_bytes(b"before")
    tmp_path.chmod(0o500)
    if os.geteuid() == 0:  # whom no mode stops
        monkeypatch.setattr(os, "mkdir", _refuse)
        monkeypatch.setattr(os, "open", _refuse)
    for write in (
        lambda: write_bytes(tmp_path / "file", b"after"),
        lambda: write_folder(tmp_path / "folder", lambda folder: None),
        lambda: locked(tmp_path).__enter__(),
    ):
        with pytest.raises(UserError, match=r"cannot be written \(Permission denied\). Choose an"):
            write()  # type: ignore[no-untyped-call]
    monkeypatch.undo()
    tmp_path.chmod(0o700)
    assert (tmp_path / "file").read_bytes() == b"before"


def _refuse(path: str, *_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied", path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (28, r"file cannot be written \(No space left on device\)\. Make room"),
        (30, r"file cannot be written \(Read-only file system\)\. Choose an --out"),
        (5, r"file cannot be written \(Input/output error\)\. Check that disk"),
    ],
)
def test_a_failed_write_is_a_sentence_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, number: int, sentence: str
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
