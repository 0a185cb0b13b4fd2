"""Studies in an order that keeps a GPU busy, none begun twice, none lost with another."""

from __future__ import annotations

from pathlib import Path

import pytest

from litotes.cli.main import make_parser
from reproduction import everything
from reproduction.everything import STUDIES, Runner, Study, main


def shows(name: str, slots: int, **about: object) -> Study:
    """A command that ends well at once."""
    return Study(name, "this", slots, **about)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everything, "PAUSE", 0.02)


def order_of(shown: str, what: str) -> list[str]:
    return [line.split()[1].rstrip(",") for line in shown.splitlines() if line.startswith(what)]


def test_large_ones_first_and_never_beside_small_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    studies = [shows("small", 1), shows("large", 9, is_large=True), shows("last", 1)]
    needs = shows("needs", 1, is_large=True, after=("large",))
    assert Runner([*studies, needs], tmp_path, tmp_path, n_slots=2).run() == {}
    lines = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines[:4] == ["begun: large", "done: large", "begun: needs", "done: needs"]
    assert sorted(lines[4:]) == ["begun: last", "begun: small", "done: last", "done: small"]


def test_what_is_done_is_not_begun_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert Runner([shows("one", 1)], tmp_path, tmp_path, n_slots=1).run() == {}
    assert order_of(capsys.readouterr().out, "begun") == ["one"]


def test_a_failure_ends_only_what_needs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Study("wrong", "no_such_module", 1)
    studies = [wrong, shows("needs", 1, after=("wrong",)), shows("other", 1)]
    assert list(Runner(studies, tmp_path, tmp_path, n_slots=1).run()) == ["wrong", "needs"]
    assert order_of(capsys.readouterr().out, "done") == ["other"]
    assert "no_such_module" in (tmp_path / "logs" / "wrong.log").read_text()


def test_the_commands_of_the_package_are_understood(tmp_path: Path) -> None:
    names = {study.name for study in STUDIES}
    assert all(names.issuperset(study.after) for study in STUDIES)
    for study in STUDIES:
        _, _, module, *words = study.command(tmp_path, tmp_path)
        if module == "litotes":
            make_parser().parse_args(words)
        else:
            assert Path(*module.split(".")).with_suffix(".py").is_file()


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path), str(tmp_path), "--only", "nothing"])
    assert "No study is called nothing" in capsys.readouterr().err
