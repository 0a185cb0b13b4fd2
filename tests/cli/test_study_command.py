"""`litotes study` from the file to the report, with the tiny encoder on a corpus of a few words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree

import pytest

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


def arguments(file: Path, corpus: str, tiny_folder: Path, out: Path, *more: str) -> list[str]:
    changes = ["--set", f"sources.few={corpus}", "--set", f"recipe.model.encoder={tiny_folder}"]
    return ["study", str(file), *changes, "--device", "cpu", "--out", str(out), *more]


@pytest.fixture(scope="module")
def finished(corpus: str, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that ran from beginning to end: four runs."""
    folder = tmp_path_factory.mktemp("finished")
    file = study_file(folder, heads=["mean", "linear"])
    assert main(arguments(file, corpus, tiny_folder, folder / "out")) == 0
    copytree(folder / "out", folder / "first")  # as it is before tests add to it
    return folder / "out"


def runs(out: Path) -> dict[str, int]:
    """The runs of a study by key, with the time their last file was written."""
    return {file.parent.name: file.stat().st_mtime_ns for file in out.glob("runs/*/facts.json")}


def test_all_files_are_there(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == {
        *["figures", "report.html", "report.json", "runs", "timing.json"]
    }
    diagrams = {"calibration-heads-sentiment", "risk-heads-sentiment"}
    names = {"heads", "coverage-shared-words", *diagrams}
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
    assert list(report["corpora"]) == ["few"]
    kept = [setting["held_out"] for setting in report["experiments"][0]["recipes"]]
    assert len(kept) == 4
    assert all(len(scores) == 1 and 0 <= scores[0] <= 1 for scores in kept)


def test_a_finished_study_is_found_and_told_again(
    finished: Path, corpus: str, tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, report = runs(finished), (finished / "report.json").read_bytes()
    page = (finished / "report.html").read_bytes()
    assert main(arguments(finished.parent / "few.toml", corpus, tiny_folder, finished)) == 0
    captured = capsys.readouterr()
    assert "4 of 4 runs already complete." in captured.out
    assert "mean, sentiment: macro-F1 (95 % interval)" in captured.out
    assert "majority line" in captured.out
    assert "Significant after Holm's correction: none of 6 between heads." in captured.out
    assert runs(finished) == before
    assert (finished / "report.json").read_bytes() == report
    assert (finished / "report.html").read_bytes() == page


def test_a_changed_cell_reruns_alone(
    finished: Path, corpus: str, tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = runs(finished)
    file = study_file(finished.parent / "changed", heads=["mean", "convolution"])
    assert main(arguments(file, corpus, tiny_folder, finished, "--json")) == 0
    report = json.loads(capsys.readouterr().out)
    after = runs(finished)
    assert {key: after[key] for key in before} == before
    assert len(after) == 6
    assert report == json.loads((finished / "report.json").read_text())
    assert [table["values"]["model.head"] for table in report["experiments"][0]["tables"]] == [
        "mean",
        "convolution",
    ]


@pytest.mark.usefixtures("forked_workers")
def test_stopped_and_started_again_it_ends_in_the_same_bytes(
    finished: Path,
    corpus: str,
    tiny_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
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
        assert main(arguments(file, corpus, tiny_folder, stopped)) == 130
    assert len(runs(stopped)) == 1
    assert not (stopped / "report.json").exists()
    capsys.readouterr()
    assert main(arguments(file, corpus, tiny_folder, stopped, "--workers", "2")) == 0
    # three runs are left for two workers
    assert "1 of 4 runs already complete." in capsys.readouterr().out
    assert (stopped / "report.json").read_bytes() == (whole / "report.json").read_bytes()
    for name in ("heads.svg", "heads.png", "heads.json"):
        assert (stopped / "figures" / name).read_bytes() == (whole / "figures" / name).read_bytes()


def test_what_fails_is_named_and_the_rest_is_reported(
    corpus: str, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = study_file(tmp_path, heads=["mean"], varieties=["en-AU", "en-XX"])
    assert main(arguments(file, corpus, tiny_folder, tmp_path / "out")) == 2
    captured = capsys.readouterr()
    named, told = captured.err.splitlines()[-2:]
    assert named.startswith("failed: Heads, mean, en-XX, seed 0: The training texts of")
    assert told == "litotes: 1 of 2 runs failed; start the command again to try them again."
    assert "failed" in captured.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "failed: The training texts of" in page
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert list(report["failures"]) == ["Heads, mean, en-XX, seed 0"]
    assert report["abstract"][0].startswith("2 runs, of which 1 failed: ")
    assert len(runs(tmp_path / "out")) == 1


def test_when_everything_fails_there_is_still_a_report(
    corpus: str, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = study_file(tmp_path, heads=["mean"], varieties=["en-XX"])
    assert main(arguments(file, corpus, tiny_folder, tmp_path / "out", "--seed", "7")) == 2
    assert "1 of 1 runs failed" in capsys.readouterr().err.splitlines()[-1]
    assert (
        "No run of this experiment has finished." in (tmp_path / "out" / "report.html").read_text()
    )
    (setting,) = json.loads((tmp_path / "out" / "report.json").read_text())["experiments"][0][
        "recipes"
    ]
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
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.toml"
    if text is not None:
        file.write_text(text)
    assert main(["study", str(file), "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
