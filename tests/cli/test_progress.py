"""Progress in a log: how far, how good, how long still."""

from __future__ import annotations

import pytest

from litotes.cli import display
from litotes.cli.display import progress
from litotes.core.progress import Milestone


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    return now


def test_a_log_says_how_long_it_will_take(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress() as watch:
        for seconds, done in ((0, 1), (1, 2), (6, 11), (7, 21), (14, 61)):
            clock[0] = seconds
            watch("training", done, 600, "loss 0.4")
        clock[0] = 15
        watch("testing", 5, 5, "")
    assert capsys.readouterr().err.splitlines() == [
        "training: 1 of 600, loss 0.4",
        "training: 11 of 600, loss 0.4, about 6 min left",
        "training: 61 of 600, loss 0.4, about 2 min left",
        "testing: 5 of 5",
    ]


def test_every_milestone_is_a_line_of_the_log(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress() as watch:
        watch("training", 1, 4, "epoch 1")
        clock[0] = 2
        watch("training", 2, 4, Milestone("epoch 1 of 2: loss 0.5"))
        watch("training", 3, 4, "epoch 2")
        watch("training", 4, 4, Milestone("epoch 2 of 2: loss 0.4"))
    assert capsys.readouterr().err.splitlines() == [
        "training: 1 of 4, epoch 1",
        "training: epoch 1 of 2: loss 0.5, about 4 s left",
        "training: epoch 2 of 2: loss 0.4",
    ]


def test_an_estimate_of_the_work_itself_is_the_only_one(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs in several processes know better: two estimates stood side by side."""
    with progress() as watch:
        watch("parts", 0, 12, "")
        clock[0] = 10
        watch("parts", 2, 12, "running part-00002.csv, about 46 s left")
    assert capsys.readouterr().err.splitlines()[-1] == (
        "parts: 2 of 12, running part-00002.csv, about 46 s left"
    )
