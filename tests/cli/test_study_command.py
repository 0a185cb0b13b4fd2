"""`litotes study` from the file to the report, with the tiny encoder on a corpus of a few words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree

import pytest
from command_lines import Run

from litotes.cli import study
from litotes.cli.main import main
from litotes.core.progress import Watch

pytestmark = pytest.mark.slow

STUDY = """
name = "Few words"
[recipe.data]
source = "few"
[recipe.model]
encoder = "tiny"
[recipe.training]
epochs = 1
batch_texts = 8
held_out = 0.3
[[experiment]]
name = "Heads"
grid = {{ "model.head" = {heads}, "data.where.variety" = {varieties} }}
compare = "model.head"
[[coverage]]
name = "Shared words"
data = ["few"]
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two varieties to learn from, and one that only has a single label."""
    rows = ["text,mood,variety,split"]
    for number in range(24):
        split, mood = ("test" if number % 3 == 0 else "train"), ("positive", "negative")[number % 2]
        rows += [
            f"{mood[0]} tea {number} {variety},{mood},{variety},{split}"
            for variety in ("en-AU", "en-UK")
        ]
        rows.append(f"tea {number} and tea,positive,en-XX,{split}")
    file = tmp_path_factory.mktemp("corpus") / "few.csv"
    file.write_text("\n".join(rows))
    return f"table:{file}?label.sentiment=mood&variety=variety&split=split"


def study_file(
    folder: Path, *, heads: list[str], varieties: Sequence[str] = ("en-AU", "en-UK")
) -> Path:
    file = folder / "few.toml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(STUDY.format(heads=json.dumps(heads), varieties=json.dumps(varieties)))
    return file


@pytest.fixture(scope="module")
def settings(corpus: str, tiny_folder: Path) -> list[str]:
    changes = [f"sources.few={corpus}", f"recipe.model.encoder={tiny_folder}"]
    return [*(word for change in changes for word in ("--set", change)), "--device", "cpu"]


@pytest.fixture(scope="module")
def finished(settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that ran from beginning to end: four runs."""
    folder = tmp_path_factory.mktemp("finished")
    file = study_file(folder, heads=["mean", "linear"])
    assert main(["study", str(file), *settings, "--out", str(folder / "out")]) == 0
    copytree(folder / "out", folder / "first")  # as it is before tests add to it
    return folder / "out"


def runs(out: Path) -> dict[str, int]:
    """The runs of a study by key, with the time their last file was written."""
    return {file.parent.name: file.stat().st_mtime_ns for file in out.glob("runs/*/facts.json")}


def test_all_files_are_there(finished: Path) -> None:
    written = {path.name for path in finished.iterdir()}
    assert written == {"figures", "report.html", "report.json", "runs", "timing.json"}
    names = {
        "heads",
        "coverage-shared-words",
        "calibration-heads-sentiment",
        "risk-heads-sentiment",
    }
    assert {path.name for path in (finished / "figures").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("svg", "png", "json")
    }
    assert len(runs(finished)) == 4
    assert not list(finished.glob("runs/*/model"))  # tested, then deleted: 90 MB each add up
    report = json.loads((finished / "report.json").read_text())
    assert (report["n_runs"], report["failures"], len(report["experiments"])) == (4, {}, 1)
    times = json.loads((finished / "timing.json").read_text())
    assert [row["setting"] for row in times["rows"]] == ["mean, all tasks", "linear, all tasks"]
    assert times["machines"][0]["device"] == "cpu"
    assert str(finished) not in (finished / "report.json").read_text()
    kept = [setting["held_out"] for setting in report["experiments"][0]["recipes"]]
    assert len(kept) == 4
    assert all(len(scores) == 1 and 0 <= scores[0] <= 1 for scores in kept)


def test_a_finished_study_is_told_again_and_a_changed_cell_reruns_alone(
    finished: Path, settings: list[str], run: Run
) -> None:
    before = runs(finished)
    files = [(finished / f"report.{ending}").read_bytes() for ending in ("json", "html")]
    out = run("study", finished.parent / "few.toml", *settings, "--out", finished).out
    assert "4 of 4 runs already complete." in out
    assert "mean, sentiment: macro-F1 (95 % interval)" in out
    assert "majority line" in out
    assert "Significant after Holm's correction: none of 6 between heads." in out
    assert runs(finished) == before
    assert files == [(finished / f"report.{ending}").read_bytes() for ending in ("json", "html")]
    file = study_file(finished.parent / "changed", heads=["mean", "convolution"])
    report = json.loads(run("study", file, *settings, "--out", finished, "--json").out)
    after = runs(finished)
    assert {key: after[key] for key in before} == before
    assert len(after) == 6
    assert report == json.loads((finished / "report.json").read_text())
    heads = [table["values"]["model.head"] for table in report["experiments"][0]["tables"]]
    assert heads == ["mean", "convolution"]


@pytest.mark.usefixtures("forked_workers")
def test_stopped_and_started_again_it_ends_in_the_same_bytes(
    finished: Path, settings: list[str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = study_file(tmp_path, heads=["mean", "linear"])
    stopped, whole = tmp_path / "stopped", finished.parent / "first"
    n_trained = 0

    @contextmanager
    def impatient() -> Iterator[Watch]:
        def watch(what: str, done: int, total: int, note: str) -> None:
            nonlocal n_trained
            n_trained += what.endswith("training") and done == 1
            if n_trained == 2:
                raise KeyboardInterrupt

        yield watch

    with monkeypatch.context() as patched:
        patched.setattr(study, "progress", impatient)
        run("study", file, *settings, "--out", stopped, code=130)
    assert len(runs(stopped)) == 1
    assert not (stopped / "report.json").exists()
    # three runs are left for two workers
    told = run("study", file, *settings, "--out", stopped, "--workers", "2")
    assert "1 of 4 runs already complete." in told.out
    for name in ("report.json", "figures/heads.svg", "figures/heads.png", "figures/heads.json"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes()


def test_what_fails_is_named_and_the_rest_is_reported(
    settings: list[str], tmp_path: Path, run: Run
) -> None:
    file, out = study_file(tmp_path, heads=["mean"], varieties=["en-AU", "en-XX"]), tmp_path / "out"
    captured = run("study", file, *settings, "--out", out, code=2)
    named, told = captured.err.splitlines()[-2:]
    assert "Heads, mean, en-XX, seed 0: The training texts of" in named
    assert told.startswith("litotes: 1 of 2 runs failed")
    assert "failed" in captured.out
    assert "failed: The training texts of" in (out / "report.html").read_text()
    report = json.loads((out / "report.json").read_text())
    assert list(report["failures"]) == ["Heads, mean, en-XX, seed 0"]
    assert report["abstract"][0].startswith("2 runs, of which 1 failed: ")
    assert len(runs(out)) == 1


def test_when_everything_fails_there_is_still_a_report(
    settings: list[str], tmp_path: Path, run: Run
) -> None:
    file, out = study_file(tmp_path, heads=["mean"], varieties=["en-XX"]), tmp_path / "out"
    told = run("study", file, *settings, "--out", out, "--seed", "7", code=2).err
    assert "1 of 1 runs failed" in told.splitlines()[-1]
    assert "No run of this experiment has finished." in (out / "report.html").read_text()
    report = json.loads((out / "report.json").read_text())
    (setting,) = report["experiments"][0]["recipes"]
    assert setting["recipe"]["seed"] == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such study"),
        ('name = "x"', "nothing to do"),
        ('name = "x"\n[[experiment]]\nname = "y"\ngrd = {}', "Did you mean 'grid'"),
        ('name = "x"\n[[coverage]]\nname = "y"\ndata = ["samplr"]', "Did you mean 'sampler'"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_starts(
    text: str | None, message: str, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "bad.toml"
    if text is not None:
        file.write_text(text)
    told = run("study", file, "--out", tmp_path / "out", code=2).err
    assert message in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()
