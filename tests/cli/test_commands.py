"""The command line as a user meets it: in a process of its own where start-up counts, in this one
elsewhere.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from litotes.cli.list import CATEGORIES
from litotes.cli.main import main


@pytest.fixture(scope="module")
def run_folder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    assert (
        main(
            [
                "train",
                str(root / "recipes" / "quick.toml"),
                "--set",
                f"model.encoder={tiny_folder}",
                *[
                    "--set",
                    "training.freeze_below=0",
                    "--set",
                    "training.epochs=1",
                    "--device",
                    "cpu",
                    "--out",
                ],
                str(out),
                "--seed",
                "5",
            ]
        )
        == 0
    )
    return out


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main(arguments) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_help_answers_at_once() -> None:
    command = [sys.executable, "-m", "litotes", "--help"]
    seconds = []
    for _ in range(3):
        before = os.times()
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        after = os.times()  # what it computed: a busy machine may let it wait
        seconds.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    assert min(seconds) < 0.4
    for name in ("predict", "train", "evaluate", "matrix", "audit", "bench", "list"):
        assert name in shown


HEAVY = {
    *["fastapi", "matplotlib", "numpy", "pydantic", "rich", "tokenizers", "torch", "transformers"]
}


def modules_after(code: str) -> set[str]:
    """What is imported once a fresh interpreter has run the code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(shown.splitlines()[-1].split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = modules_after("import litotes")
    assert not HEAVY & loaded
    # the public names are in a table: what defines them is imported when one is used
    assert {name for name in loaded if name.startswith("litotes")} == {
        *["litotes", "litotes.core", "litotes.core.version"]
    }


HELP = """
from contextlib import suppress
from litotes.cli.main import COMMANDS, main
for arguments in {arguments}:
    with suppress(SystemExit):
        main(arguments)
"""


def test_help_imports_nothing_heavy_and_no_command() -> None:
    asked = "[['--help'], *([*name.split(), '--help'] for name in COMMANDS)]"
    loaded = modules_after(HELP.format(arguments=asked))
    assert not HEAVY & loaded
    light = {
        "litotes.cli",
        *(f"litotes.cli.{name}" for name in ("display", "main", "options", "start")),
    }
    assert {name for name in loaded if name.startswith("litotes.cli")} == light


def test_train_writes_a_model(run_folder: Path) -> None:
    assert json.loads((run_folder / "recipe.json").read_text())["seed"] == 5
    assert (run_folder / "litotes.json").is_file()


def test_predict_as_jsonl(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = output_of(
        capsys,
        "predict",
        "Great tea",
        "Lovely queue",
        "--model",
        str(run_folder),
        "--format",
        "jsonl",
    ).splitlines()
    first = json.loads(lines[0])
    assert len(lines) == 2
    assert list(first) == ["text", "sentiment", "sarcasm", "truncated", "unreadable", "problem"]
    assert first["text"] == "Great tea"
    assert first["sentiment"]["label"] in ("negative", "positive")
    assert 0.5 <= first["sarcasm"]["probability"] <= 1
    assert sum(first["sarcasm"]["probabilities"].values()) == pytest.approx(1)
    assert first["truncated"] is False
    assert first["unreadable"] is False


def test_predict_gives_the_same_from_every_input(
    run_folder: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["Great tea, mate", 'She said "fine", twice', "naïve café"]
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["n", "body"], *([n, text] for n, text in enumerate(texts))])
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"body": texts}), tmp_path / "in.parquet")
    common = ("--model", str(run_folder), "--json", "--device", "cpu")
    expected = output_of(capsys, "predict", *texts, *common)
    for name in ("in.csv", "in.jsonl", "in.parquet"):
        file = ("--file", str(tmp_path / name), "--column", "body", "--columns", "body")
        found = output_of(capsys, "predict", *file, *common)
        assert found.replace('"body":', '"text":') == expected
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(texts) + "\n"))
    assert output_of(capsys, "predict", *common) == expected


def test_predict_as_csv_and_table(
    run_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "labels.csv"
    output_of(
        capsys,
        "predict",
        "a, b\nc",
        "--model",
        str(run_folder),
        *["--format", "csv", "--out"],
        str(out),
    )
    (row,) = csv.DictReader(io.StringIO(out.read_text()))
    assert row["text"] == "a, b\nc"
    assert row["sentiment"] in ("negative", "positive")
    shown = output_of(capsys, "predict", "x " * 200, "--model", str(run_folder))
    assert "sarcasm" in shown
    assert "its end was not seen" in shown
    assert "unreadable" not in shown


def test_a_file_in_place_of_a_source_is_answered_with_what_to_write(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["audit", "--data", "reviews.csv"]) == 2
    assert "write table:reviews.csv" in capsys.readouterr().err


def test_the_ending_of_out_says_the_format(
    run_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("id;text\n1;Great tea\n", "utf-8-sig")
    common = ("predict", "--model", str(run_folder), "--file", str(tmp_path / "in.csv"))
    for name, start in (("out.csv", "id,text,senti"), ("out.jsonl", '{"id"'), ("out", "Great")):
        output_of(capsys, *common, "--out", str(tmp_path / name))
        assert (tmp_path / name).read_text().startswith(start)
    assert main([*common, "--out", str(tmp_path / "x.csv"), "--format", "jsonl"]) == 2
    assert "--out x.csv is to be csv, --format jsonl is not" in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


def test_a_byte_order_mark_on_stdin_is_no_text(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffGreat tea\nLovely queue\n"))
    told = output_of(capsys, "predict", "--model", str(run_folder), "--json")
    assert [one["text"] for one in json.loads(told)] == ["Great tea", "Lovely queue"]


def test_predict_says_what_is_unreadable(
    run_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    common = ("predict", "--model", str(run_folder))
    for text in ("\u200b", "😀"):
        *_, last = output_of(capsys, *common, text).splitlines()
        assert last == "  (unreadable: the model knows no part of it)"
    (tmp_path / "in.csv").write_text("text\n😀\ntea\n")
    options = ("--file", str(tmp_path / "in.csv"), "--format", "csv")
    assert main([*common, *options, "--out", str(tmp_path / "out.csv")]) == 0
    told = capsys.readouterr().err
    assert "Unreadable texts: 1 (the model knows no part of them)." in told


def test_a_text_does_not_steer_the_terminal(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = output_of(
        capsys, "predict", "red \x1b[31m\x1b]0;title\x07 \u202eturned", "--model", str(run_folder)
    )
    assert shown.startswith("red ·[31m·]0;title· ·turned\n")


def test_evaluate_with_a_selection(
    run_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = (
        "evaluate",
        "--model",
        str(run_folder),
        *["--data", "sampler", "--where", "variety=en-IN,en-UK", "--where", "task=sarcasm"],
    )
    rows = json.loads(output_of(capsys, *arguments, "--json", "--out", str(tmp_path)))
    assert rows == json.loads((tmp_path / "scores.json").read_text())
    assert [row["cell"] for row in rows] == [
        "all",
        "en-IN forum",
        "en-IN review",
        "en-UK forum",
        "en-UK review",
    ]
    assert all(row["interval"][0] <= row["macro_f1"] <= row["interval"][1] for row in rows)
    assert "majority" in output_of(capsys, *arguments)


@pytest.mark.slow
def test_evaluate_against_another_model(
    run_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = (
        "evaluate",
        "--model",
        str(run_folder),
        *["--data", "sampler", "--where", "task=sarcasm", "--against"],
        str(run_folder),
    )
    content = json.loads(output_of(capsys, *arguments, "--json", "--out", str(tmp_path)))
    assert content == json.loads((tmp_path / "scores.json").read_text())
    assert [row["cell"] for row in content["against"]] == [row["cell"] for row in content["scores"]]
    assert {(row["difference"], row["p"], row["significant"]) for row in content["against"]} == {
        (0, 1, False)
    }
    assert all(0 <= row["calibration_error"] <= 1 for row in content["scores"])
    assert (
        json.loads((tmp_path / "reliability.json").read_text())["sarcasm"]["ece"]
        == content["scores"][0]["calibration_error"]
    )
    assert "sarcasm: ECE" in (tmp_path / "reliability.svg").read_text()
    shown = output_of(capsys, *arguments)
    assert "not significant" in shown
    assert "calibration error" in shown


def test_audit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    content = json.loads(
        output_of(capsys, "audit", "--data", "sampler", "--json", "--out", str(tmp_path))
    )
    assert content == json.loads((tmp_path / "audit.json").read_text())
    assert not [finding for finding in content["findings"] if finding["severity"] == "error"]
    assert "words: median" in output_of(capsys, "audit", "--data", "sampler")


@pytest.mark.slow
def test_matrix_writes_report_and_pictures(
    tiny_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, root: Path
) -> None:
    changes = [
        "--set",
        f"model.encoder={tiny_folder}",
        *[
            "--set",
            "model.max_pieces=16",
            "--set",
            "training.freeze_below=1",
            "--set",
            "training.epochs=1",
        ],
    ]
    shown = output_of(
        capsys,
        "matrix",
        str(root / "recipes" / "quick.toml"),
        *changes,
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
    )
    assert {"matrix.json", "matrix.svg", "matrix.png", "report.html"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert "majority line" in shown
    assert "report.html" in shown


@pytest.mark.parametrize("name", CATEGORIES)
def test_list_has_a_line_for_everything(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(output_of(capsys, "list", name, "--json"))[name]
    assert content
    assert all(content.values())
    assert next(iter(content)) in output_of(capsys, "list", name)


def test_list_counts_the_entries_of_each_category(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(output_of(capsys, "list", "--json"))
    assert set(content) == set(CATEGORIES)
    lines = output_of(capsys, "list").splitlines()
    for name, entries in content.items():
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.split()[1] == str(len(entries))
    assert "Did you mean 'heads'" in output_of(capsys, "list", "haeds", code=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "x", "--model", "nowhere"], "not a model folder"),
        (["train", "nowhere.toml"], "no such recipe"),
        (["audit", "--data", "samplr"], "Did you mean 'sampler'"),
        (["audit", "--data", "besstie:nowhere"], "nowhere"),
        (["audit", "--data", "besstie"], "needs a path"),
        (["evaluate", "--model", "m", "--data", "sampler", "--where", "variety"], "key=word"),
        (
            ["evaluate", "--model", "m", "--data", "sampler", "--where", "varity=x"],
            "Did you mean 'variety'",
        ),
        (["bench", "--data", "table:x.csv"], "x.csv"),
    ],
)
def test_a_users_mistake_is_one_line_and_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("litotes: ")
    assert captured.out == ""


def test_an_out_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["audit", "--data", "sampler", "--out", str(tmp_path / "file" / "deeper")]) == 2
    assert "--out" in capsys.readouterr().err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [("", "stdin is empty"), ("a\n\nb\n", "line 2 is empty"), ("caf\udce9\n", "UTF-8")],
)
def test_odd_stdin(
    run_folder: Path,
    lines: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    command = ["predict", "--model", str(run_folder), "--format", "jsonl"]
    assert main([*command, "--bad-rows", "stop"]) == 2
    assert message in capsys.readouterr().err


def test_a_bad_line_on_stdin_stops_no_other(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["predict", "--model", str(run_folder), "--format", "jsonl"]
    for bad_rows, n_lines in (("empty", 4), ("skip", 2)):
        monkeypatch.setattr("sys.stdin", io.StringIO("tea\n\ncaf\udce9\nqueue\n"))
        assert main([*command, "--bad-rows", bad_rows]) == 0
        told = capsys.readouterr()
        lines = [json.loads(line) for line in told.out.splitlines()]
        assert len(lines) == n_lines
        assert [line["sarcasm"] is None for line in lines].count(True) == n_lines - 2
        assert (lines[0]["text"], lines[-1]["text"]) == ("tea", "queue")
        assert "2 rows" in told.err
        assert "stdin, line 2 is empty" in told.err


def test_a_table_without_splits_can_be_evaluated(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plain.csv"
    file.write_text("text,mood\n" + "".join(f"tea {n},{n % 2}\n" for n in range(8)))
    source = f"table:{file}?label.sentiment=mood"
    (row,) = json.loads(
        output_of(
            capsys,
            "evaluate",
            "--model",
            str(run_folder),
            "--data",
            source,
            *["--where", "split=train", "--json"],
        )
    )
    assert row["n"] == 8


def test_nothing_is_half_written_when_the_data_is_bad(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("text,label\nfine,positive\n,negative\n")
    out = tmp_path / "run"
    recipe = str(root / "recipes" / "quick.toml")
    assert (
        main(
            [
                "train",
                recipe,
                "--set",
                f"data.source=table:{bad}?label.sentiment=label",
                "--set",
                'data.tasks=["sentiment"]',
                "--out",
                str(out),
            ]
        )
        == 2
    )
    assert "bad.csv" in capsys.readouterr().err
    assert not out.exists()


def test_predicting_a_bad_file_writes_nothing(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("text\nfine\n\xff\n", "latin-1")
    assert (
        main(
            [
                "predict",
                "--file",
                str(bad),
                "--model",
                str(run_folder),
                *["--format", "jsonl", "--bad-rows", "stop", "--out"],
                str(tmp_path / "out.jsonl"),
            ]
        )
        == 2
    )
    assert "UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_wrong_device(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("warp", "meta", "mps"):
        assert main(["predict", "x", "--model", str(run_folder), "--device", name]) == 2
        assert "cpu or cuda" in capsys.readouterr().err
