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
    model = f"--model a={tmp_path}"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for line, said in {
            f"--model ../x={tmp_path}": "is not a name for a model",
            "--model /": "is not a name for a model",
            f"{model} {model}": "Two models",
            f"{model} --token-file {tmp_path}/none": "cannot be read",
            f"{model} --host 203.0.113.1": "not an address of this machine",
            f"{model} --host no.such.host.invalid": "no such name",
            f"{model} --port 0": "is not a model folder",
            f"{model} --port {port}": f"Port {port} is in use",
        }.items():
            assert said in error_of(capsys, *line.split())


def test_a_free_port_and_its_address() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        assert listener_url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_tokens_are_asked_for_and_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"--model a={tmp_path} --port 0 --host 0.0.0.0".split()
    monkeypatch.delenv("LITOTES_TOKEN", raising=False)
    assert "who can reach 0.0.0.0" in error_of(capsys, *line)
    monkeypatch.setenv("LITOTES_TOKEN", "s3cret")
    shown = error_of(capsys, *line)
    assert "who can reach" not in shown
    assert "s3cret" not in shown
    monkeypatch.setenv("LITOTES_TOKEN", "")
    assert "A token is made of" in error_of(capsys, *line)


def test_names_of_models(tmp_path: Path) -> None:
    assert list(model_folders([str(tmp_path / "mine"), f"other={tmp_path}"])) == ["mine", "other"]
    assert model_folders(None) == {"builtin": resolve_model("builtin")}
    assert model_folders(["first=builtin"]) == {"first": resolve_model("builtin")}
    assert model_folders(["builtin@5"]) == {"builtin@5": resolve_model("builtin@5")}
    with pytest.raises(UserError, match="no built-in model builtin@7"):
        model_folders(["builtin@7"])
    with pytest.raises(UserError):
        model_folders([str(tmp_path / "no name")])


def test_options_become_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITOTES_TOKEN", raising=False)
    (tmp_path / "token").write_text("abc\n")
    line = f"serve --model m --token-file {tmp_path}/token --texts 5 --seconds 3 --queue 7"
    line += " --allow-host a.example --allow-host b.example --batch 2 --characters 9"
    options = parse(line.split())
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


def test_what_the_user_should_know_of_a_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As `predict` tells it; each note once."""
    old: Any = SimpleNamespace(notes=("It was written by an earlier litotes.",))
    models = {"a": old, "b": old, "c": SimpleNamespace(notes=())}
    assert tell_notes(models) is models
    assert capsys.readouterr().err == "It was written by an earlier litotes.\n"
