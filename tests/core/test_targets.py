"""Only a missing path or a plain file is ever replaced."""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.storage import locked, write_bytes, write_folder

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


class Reader(threading.Thread):
    """Reads a pipe to its end, as a program on the other side does."""

    def __init__(self, pipe: Path) -> None:
        super().__init__(daemon=True)
        self.pipe, self.content = pipe, b""
        self.start()

    def run(self) -> None:
        self.content = self.pipe.read_bytes()

    def result(self) -> bytes:
        self.join(20)
        return self.content


@posix
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = Reader(pipe)
    write_bytes(pipe, b"answers" * 50_000)  # more than a pipe holds
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert reader.result() == b"answers" * 50_000
    assert os.listdir(tmp_path) == ["pipe"]


@posix
def test_a_link_to_a_pipe_is_written_to_as_well(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader = Reader(tmp_path / "pipe")
    write_bytes(tmp_path / "link", b"answers")
    assert (tmp_path / "link").is_symlink()
    assert reader.result() == b"answers"


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
@pytest.mark.parametrize("kind", ["null", "block"])
def test_devices_stay_devices(tmp_path: Path, kind: str) -> None:
    """The null device and, never opened, a block device whose driver does not exist."""
    device = tmp_path / "device"
    mode, number = (stat.S_IFCHR, (1, 3)) if kind == "null" else (stat.S_IFBLK, (240, 99))
    try:
        os.mknod(device, mode | 0o600, os.makedev(*number))
        if kind == "null":
            os.close(os.open(device, os.O_WRONLY))
    except OSError:
        pytest.skip("only root makes devices, and not everywhere")
    if kind == "null":
        write_bytes(device, b"answers")
    else:
        with pytest.raises(UserError, match=r"device is a block device.*Choose another --out"):
            write_bytes(device, b"answers")
    assert stat.S_IFMT(device.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["device"]


@posix
def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(UserError, match=r"socket is a socket.*Choose another --out"):
            write_bytes(Path("socket"), b"answers")
    assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)
    assert os.listdir(tmp_path) == ["socket"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_and_stays_a_link(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    if exists:
        (tmp_path / "far" / "file").write_bytes(b"before")
    (tmp_path / "near" / "link").symlink_to(tmp_path / "far" / "file")
    write_bytes(tmp_path / "near" / "link", b"after")
    assert (tmp_path / "near" / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"after"
    assert os.listdir(tmp_path / "far") == ["file"]
    assert os.listdir(tmp_path / "near") == ["link"]


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


@posix
def test_a_pipe_is_no_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for write in (
        lambda: write_bytes(tmp_path / "pipe" / "audit.json", b"{}"),
        lambda: write_folder(tmp_path / "pipe" / "x", lambda folder: None),
        lambda: locked(tmp_path / "pipe").__enter__(),
    ):
        with pytest.raises(UserError, match="pipe is not a folder"):
            write()  # type: ignore[no-untyped-call]
