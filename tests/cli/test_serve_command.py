"""`litotes serve`: its errors and warnings before it starts."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litotes.cli.main import main, parse
from litotes.cli.serve import model_folders, read_settings, tell_notes
from litotes.core.errors import UserError
from litotes.model.builtin import resolve_model
from litotes.service.server import bind_socket, listener_url


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets for its own process does not outlive the test."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """In a thread of its own: in this one the browser of other tests may have an event loop that
    runs.
    """
    capsys.readouterr()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main, ["serve", *arguments]).result() == 2
    return capsys.readouterr().err


def test_mistakes_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path)
    assert "is not a name for a model" in error_of(capsys, "--model", f"../x={folder}")
    assert "is not a name for a model" in error_of(capsys, "--model", "/")
    assert "Two models" in error_of(capsys, "--model", f"a={folder}", "--model", f"a={folder}")
    assert "cannot be read" in error_of(
        capsys, "--model", f"a={folder}", "--token-file", str(tmp_path / "none")
    )
    assert "not an address of this machine" in error_of(
        capsys, "--model", f"a={folder}", "--host", "203.0.113.1"
    )
    assert "no such name" in error_of(
        capsys, "--model", f"a={folder}", "--host", "no.such.host.invalid"
    )


def test_a_folder_that_holds_no_model_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not a model folder" in error_of(capsys, "--model", f"a={tmp_path}", "--port", "0")


def test_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"Port {port} is in use" in error_of(
            capsys, "--model", f"a={tmp_path}", "--port", str(port)
        )


def test_a_free_port_and_its_address() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        assert listener_url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_public_service_without_a_token_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LITOTES_TOKEN", raising=False)
    assert "who can reach 0.0.0.0" in error_of(
        capsys, "--model", f"a={tmp_path}", "--host", "0.0.0.0", "--port", "0"
    )
    monkeypatch.setenv("LITOTES_TOKEN", "s3cret")
    shown = error_of(capsys, "--model", f"a={tmp_path}", "--host", "0.0.0.0", "--port", "0")
    assert "who can reach" not in shown
    assert "s3cret" not in shown


def test_names_of_models(tmp_path: Path) -> None:
    assert list(model_folders([str(tmp_path / "mine"), f"other={tmp_path}"])) == ["mine", "other"]
    assert (
        model_folders(None) == model_folders(["builtin"]) == {"builtin": resolve_model("builtin")}
    )
    assert model_folders(["first=builtin"]) == {"first": resolve_model("builtin")}
    assert model_folders(["builtin@5"]) == {"builtin@5": resolve_model("builtin@5")}
    with pytest.raises(UserError, match="no built-in model builtin@7"):
        model_folders(["builtin@7"])
    with pytest.raises(UserError):
        model_folders([str(tmp_path / "no name")])


def test_options_become_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITOTES_TOKEN", raising=False)
    (tmp_path / "token").write_text("abc\n")
    given = [
        *["serve", "--model", "m", "--token-file"],
        str(tmp_path / "token"),
        *["--allow-host", "a.example", "--allow-host", "b.example"],
    ]
    options = parse(
        [
            *given,
            *[
                "--texts",
                "5",
                "--seconds",
                "3",
                "--queue",
                "7",
                "--batch",
                "2",
                "--characters",
                "9",
            ],
        ]
    )
    settings = read_settings(options)
    assert settings.token == "abc"
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert (settings.max_texts, settings.seconds, settings.body_seconds) == (5, 3, 3)
    assert (settings.queue_texts, settings.batch_texts, settings.max_characters) == (7, 2, 9)
    assert not settings.is_public


def test_a_link_has_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "2026-11-01").mkdir()
    (tmp_path / "current").symlink_to("2026-11-01")
    assert model_folders([str(tmp_path / "current"), str(tmp_path / "x" / "..")]) == {
        "current": tmp_path / "current",
        tmp_path.name: tmp_path / "x" / "..",
    }


def test_an_empty_token_is_no_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITOTES_TOKEN", "")
    assert "A token is made of" in error_of(capsys, "--model", f"a={tmp_path}", "--port", "0")


def test_what_the_user_should_know_of_a_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As `predict` tells it; each note once."""
    old: Any = SimpleNamespace(notes=("It was written by an earlier litotes.",))
    models = {"a": old, "b": old, "c": SimpleNamespace(notes=())}
    assert tell_notes(models) is models
    assert capsys.readouterr().err == "It was written by an earlier litotes.\n"
