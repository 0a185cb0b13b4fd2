"""The command line as a user meets it: in a process of its own where start-up counts, in this one
elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from command_lines import Run

from litotes.cli.list import CATEGORIES
from litotes.core.values import Task
from litotes.data.rewrites import REWRITES
from litotes.encoder.pretrained import Pretrained
from litotes.explanation.analyses import ANALYSES
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier
from litotes.prediction.predictor import Predictor

HEAVY = {
    *["fastapi", "matplotlib", "numpy", "pydantic", "rich", "tokenizers", "torch", "transformers"]
}


def test_help_answers_at_once() -> None:
    command, seconds = [sys.executable, "-m", "litotes", "--help"], []
    for _ in range(3):
        before = os.times()
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        after = os.times()  # what it computed: a busy machine may let it wait
        seconds.append(sum(after[2:4]) - sum(before[2:4]))
    assert min(seconds) < 0.4
    assert "predict" in shown


def modules_after(code: str) -> set[str]:
    """What is imported once a fresh interpreter has run the code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(shown.splitlines()[-1].split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    # the public names are in a table: what defines them is imported when one is used
    loaded = {name for name in modules_after("import litotes") if name in HEAVY | {"litotes.cli"}}
    assert not loaded


HELP = """
from contextlib import suppress
from litotes.cli.main import COMMANDS, main
for arguments in [['--help'], *([*name.split(), '--help'] for name in COMMANDS)]:
    with suppress(SystemExit):
        main(arguments)
"""


def test_help_imports_nothing_heavy_and_no_command() -> None:
    loaded = modules_after(HELP)
    assert not HEAVY & loaded
    light = {f"litotes.cli.{name}" for name in ("display", "main", "options", "start")}
    assert {name for name in loaded if name.startswith("litotes.cli.")} == light


@pytest.mark.parametrize("name", CATEGORIES)
def test_list_has_a_line_for_everything(name: str, run: Run) -> None:
    content = json.loads(run(f"list {name} --json").out)[name]
    assert content
    assert all(content.values())
    assert next(iter(content)) in run(f"list {name}").out


def test_list_counts_the_entries_of_each_category(run: Run) -> None:
    content = json.loads(run("list --json").out)
    assert set(content) == set(CATEGORIES)
    lines = run("list").out.splitlines()
    for name, entries in content.items():
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.split()[1] == str(len(entries))
    assert set(content["rewrites"]) == set(REWRITES)
    assert content["rewrites"]["isnt-it"].startswith("eWAVE 165: ")


def test_audit(run: Run, tmp_path: Path) -> None:
    content = json.loads(run("audit --data sampler --json --out", tmp_path).out)
    assert content == json.loads((tmp_path / "audit.json").read_text())
    assert not [finding for finding in content["findings"] if finding["severity"] == "error"]
    assert "words: median" in run("audit --data sampler").out


def test_evaluate_with_a_selection(run: Run, trained_folder: Path, tmp_path: Path) -> None:
    line = f"evaluate --model {trained_folder} --data sampler --where task=sarcasm"
    line += " --where variety=en-IN,en-UK --where split=test"
    rows = json.loads(run(line, "--json", "--out", tmp_path).out)
    assert rows == json.loads((tmp_path / "scores.json").read_text())
    cells = ["all", "en-IN forum", "en-IN review", "en-UK forum", "en-UK review"]
    assert [row["cell"] for row in rows] == cells
    assert all(row["interval"][0] <= row["macro_f1"] <= row["interval"][1] for row in rows)
    assert "majority" in run(line).out


@pytest.mark.slow
def test_evaluate_against_another_model(run: Run, trained_folder: Path, tmp_path: Path) -> None:
    line = f"evaluate --model {trained_folder} --data sampler --where task=sarcasm"
    line += f" --where split=test --against {trained_folder}"
    content = json.loads(run(line, "--json", "--out", tmp_path).out)
    assert content == json.loads((tmp_path / "scores.json").read_text())
    assert [row["cell"] for row in content["against"]] == [row["cell"] for row in content["scores"]]
    found = {(row["difference"], row["p"], row["significant"]) for row in content["against"]}
    assert found == {(0, 1, False)}
    reliability = json.loads((tmp_path / "reliability.json").read_text())["sarcasm"]
    assert reliability["ece"] == content["scores"][0]["calibration_error"]
    assert "sarcasm: ECE" in (tmp_path / "reliability.svg").read_text()
    assert "not significant" in run(line).out


def test_a_table_without_splits_can_be_evaluated(
    run: Run, trained_folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "plain.csv"
    file.write_text("text,mood\n" + "".join(f"tea {n},{n % 2}\n" for n in range(8)))
    line = f"evaluate --model {trained_folder} --data table:{file}?label.sarcasm=mood --json"
    (row,) = json.loads(run(line, "--where", "split=train").out)
    assert row["n"] == 8


def test_coverage_writes_and_counts_train_unless_told_otherwise(run: Run, tmp_path: Path) -> None:
    line = "coverage --data sampler --top 100 --where task=sarcasm --json --out"
    content = json.loads(run(line, tmp_path).out)
    assert content == json.loads((tmp_path / "coverage.json").read_text())
    assert (content["by"], content["top"]) == ("pieces", 100)
    assert content["names"][0] == "en-AU forum sarcasm"
    assert all(row[place] == 1 for place, row in enumerate(content["matrix"]))
    assert len(list(tmp_path.iterdir())) == 3  # a picture of either kind too
    sizes = [
        json.loads(run(f"coverage --data sampler --by words --json {where}").out)["n_texts"]
        for where in ("", "--where split=train", "--where split=train,test")
    ]
    assert sizes[0] == sizes[1]
    assert sum(sizes[2]) == 2 * 780
    (tmp_path / "few.csv").write_text("text\nthree little words\n")
    told = run("coverage --by words --data sampler", f"table:{tmp_path / 'few.csv'}")
    assert "few.csv (3)" in told.err
    assert "different words" in told.out


def test_stress_prints_and_writes_its_numbers(
    run: Run, trained_folder: Path, tmp_path: Path
) -> None:
    line = f"stress --model {trained_folder} --data sampler --texts 4 --json --only"
    printed = json.loads(run(line, "would-will, upper-case", "--out", tmp_path / "out").out)
    assert {row["rewrite"] for row in printed["rows"]} == {"would-will", "upper-case"}
    assert json.loads((tmp_path / "out" / "stress.json").read_text("utf-8")) == printed
    assert (tmp_path / "out" / "stress.html").is_file()


@pytest.mark.slow
def test_bench_times_every_way_of_answering(run: Run, trained_folder: Path, tmp_path: Path) -> None:
    line = f"bench --model {trained_folder} --texts 4 --rounds 2 --json --out {tmp_path}"
    content = json.loads(run(line).out)
    lines = {line["name"]: line for line in content["lines"]}
    assert {"transformers", "dense", "onnx"} <= lines.keys()
    assert lines["dense"]["same_labels"] == 1.0
    assert lines[content["baseline"]]["ratio"] == pytest.approx(1.0)
    for one in lines.values():
        low, high = one["texts_per_second_low"], one["texts_per_second_high"]
        assert low <= one["texts_per_second"] <= high
        assert one["ms"] <= one["ms_p99"]
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == content
    assert (tmp_path / "bench.svg").is_file()


def test_bench_says_what_is_not_installed(
    run: Run, trained_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    told = run(f"bench --model {trained_folder} --texts 2 --rounds 1")
    assert "dense" in told.out
    assert "transformers: left out" in told.err


@pytest.fixture
def random_model(tiny: Pretrained, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """For the task that a test names, with the tiny encoder."""
    task = Task("sentiment", ("negative", "positive"))
    if getattr(request, "param", None) == "pairs":
        task = Task("similarity", ())
    classifier = Classifier(tiny.encoder, [task], head="linear", dropout=0.0).eval()
    save_model(Model(classifier, tiny.tokenizer, "tiny", None), tmp_path / "model", card="")
    return tmp_path / "model"


@pytest.mark.slow
def test_analyze_writes_everything(
    run: Run, random_model: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "inside"
    line = f"analyze --model {random_model} --data sampler --texts 5 --tuned-from {tiny_folder}"
    shown = run(line, "--device", "cpu", "--out", out).out
    content = json.loads((out / "analysis.json").read_text())
    assert content["n_texts"] == 5
    assert set(content["results"]) == set(ANALYSES)
    for name in ANALYSES:
        assert name in shown
        assert json.loads((out / f"{name}.json").read_text()) == content["results"][name]
        assert (out / f"{name}.svg").read_bytes().startswith(b"<?xml")
    report = unescape((out / "report.html").read_text())
    assert all(findings[0] in report for findings in content["findings"].values())


def test_analyses_are_chosen_and_have_options(run: Run, random_model: Path) -> None:
    line = f"analyze --model {random_model} --data sampler --device cpu --json"
    told = run(f"{line} --texts 2 --only trace,change")
    assert list(json.loads(told.out)["results"]) == ["trace"]
    assert "change was left out: it needs --tuned-from." in told.err
    line += " --texts 6 --only faithfulness --set faithfulness.n_texts=2 --set"
    found = json.loads(run(line, 'faithfulness.methods=["rollout"]').out)
    result = found["results"]["faithfulness"]
    assert (result["n_texts"], result["n_seen"]) == (2, 6)
    assert {method["method"] for method in result["methods"]} == {"rollout", "random"}
    for change, word in (
        ("faithfulness.n=2", "n_texts"),
        ("faithfulness=2", "NAME.OPTION=VALUE"),
        ("faith.n_texts=2", "faithfulness"),
    ):
        assert word in run(line, change, code=2).err


@pytest.mark.parametrize("random_model", ["pairs"], indirect=True)
def test_a_pair_is_read_from_its_column(run: Run, random_model: Path, tmp_path: Path) -> None:
    texts, others = ["great tea", "bad queue", "not bad"], ["the tea", "a lovely walk", "not great"]
    lines = [",".join(both) for both in zip(texts, others, strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["text,other", *lines, ""]))
    line = f"predict --file {tmp_path}/pairs.csv --model {random_model} --json --device cpu"
    answers = [
        one.answers["similarity"]
        for one in Predictor.load(random_model).predict(texts, pairs=others)
    ]
    found, alone = (
        [row["similarity"]["label"] for row in json.loads(run(f"{line}{pair}").out)]
        for pair in (" --pair other", "")
    )
    assert found == pytest.approx([answer.label for answer in answers], abs=1e-5)
    assert alone != pytest.approx(found, abs=1e-5)  # without the pair it is another question


@pytest.mark.slow
def test_matrix_writes_report_and_pictures(
    run: Run, tiny_folder: Path, tmp_path: Path, root: Path
) -> None:
    line = f"matrix {root}/recipes/quick.toml --set model.encoder={tiny_folder} --device cpu"
    line += " --set model.max_pieces=16 --set training.freeze_below=1 --set training.epochs=1"
    shown = run(line, "--out", tmp_path).out
    written = {path.name for path in tmp_path.iterdir()}
    assert {"matrix.json", "matrix.svg", "matrix.png", "report.html"} <= written
    assert "majority line" in shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("predict x --model nowhere", "not a model folder"),
        ("predict a b --pair c --model nowhere", "give one TEXT"),
        ("predict x --keep-formulas", "--format csv"),
        ("predict x --file y", "TEXT and --file"),
        ("predict x --columns id", "--columns needs --file"),
        ("predict --file x --workers 3", "--workers needs --on"),
        ("predict --file x --on here --out y --address z", "--address needs --on ray"),
        ("export --model m --int8 --int16", "--int8 and --int16"),
        ("export --model m --to transformers --out x --allow 3", "transformers and --allow"),
        ("score answers.csv", "PREDICTIONS needs GOLD"),
        ("score", "--submit FILE"),
        ("train nowhere.toml", "no such recipe"),
        ("list haeds", "Did you mean 'heads'"),
        ("audit --data reviews.csv", "write table:reviews.csv"),
        ("audit --data samplr", "Did you mean 'sampler'"),
        ("audit --data besstie:nowhere", "nowhere"),
        ("audit --data besstie", "needs a path"),
        ("evaluate --model builtin --data sampler --where variety", "key=word"),
        ("evaluate --model builtin --data sampler --where varity=x", "Did you mean 'variety'"),
        ("analyze --data sampler --only tracks", "Did you mean 'trace'?"),
        ("stress --data sampler --only init", "Did you mean 'innit'"),
        ("coverage --data sampler sampler", "Two parts are called"),
        ("coverage --data sampler --where split=valid", "There is no split 'valid'"),
        ("coverage --data sampler --encoder minilmm", "Did you mean 'minilm'"),
        ("bench --data table:x.csv", "x.csv"),
    ],
)
def test_a_users_mistake_is_one_line_and_code_2(line: str, message: str, run: Run) -> None:
    told = run(line, code=2)
    assert message in told.err
    assert told.err.count("\n") == 1
    assert told.err.startswith("litotes: ")
    assert told.out == ""


def test_nothing_is_half_written_when_the_data_is_bad(run: Run, tmp_path: Path, root: Path) -> None:
    (tmp_path / "bad.csv").write_text("text,label\nfine,positive\n,negative\n")
    line = f"train {root}/recipes/quick.toml --out {tmp_path}/run --set"
    source = f"data.source=table:{tmp_path}/bad.csv?label.sentiment=label"
    assert "bad.csv" in run(line, source, "--set", 'data.tasks=["sentiment"]', code=2).err
    assert not (tmp_path / "run").exists()


def test_wrong_device(run: Run, trained_folder: Path) -> None:
    for name in ("warp", "meta", "mps"):
        line = f"predict x --model {trained_folder} --device {name}"
        assert "cpu or cuda" in run(line, code=2).err
