"""The model that comes with the package."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from litotes.cli.main import main
from litotes.core.storage import sha256_of
from litotes.model.builtin import BUILTIN, EDITIONS, edition_folder, resolve_model
from litotes.model.folder import MANIFEST, read_manifest
from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow

TEXT = "Oh great, another delayed train."
RESULTS = Path(__file__).parents[2] / "docs" / "reference" / "builtin"


def results_of(edition: int) -> dict[str, list[dict[str, Any]]]:
    content = json.loads((RESULTS / f"edition-{edition}.json").read_text("utf-8"))
    return dict(content)


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor.load(BUILTIN, device="cpu")


def test_it_answers_both_tasks_as_a_person_would(predictor: Predictor) -> None:
    texts = [TEXT, "What a lovely evening that was.", "The worst meal of my life."]
    found = [one.answers.values() for one in predictor.predict(texts)]
    labels = [[answer.label for answer in answers] for answers in found]
    assert labels == [["negative", "sarcastic"], ["positive", "literal"], ["negative", "literal"]]


def test_the_figures_can_be_measured_again(predictor: Predictor, shared_data: Path) -> None:
    from litotes.data.sources import load
    from litotes.evaluation.evaluate import evaluate

    corpus = load(f"irony:{shared_data / 'tweeteval-irony'}").where(split="test")
    (measured,) = [row for row in evaluate(predictor, corpus, seed=0) if row.cell == "all"]
    written = results_of(EDITIONS[-1])["TweetEval irony, test split"][0]
    assert measured.scores.macro_f1 == pytest.approx(written["macro_f1"], abs=0.002)


def test_a_lean_torch_answers_alike_and_is_whole_when_asked(predictor: Predictor) -> None:
    text = "Cheers for the rail replacement bus, I do love a tour of every car park in Kent."
    program = (
        "import sys; from litotes.cli.start import lean_torch\nwith lean_torch():\n    from"
        " litotes.prediction.predictor import Predictor; p = Predictor.load('builtin',"
        " device='cpu')\nprint([a.probability for a in"
        f" p.predict([{text!r}])[0].answers.values()])\nimport torch;"
        " print('torch._meta_registrations' in sys.modules)\nimport torch._meta_registrations as"
        " real; print(hasattr(real, 'meta_bmm'))\nprint(torch.empty(2, 3,"
        " device='meta').add(1).shape)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    probabilities, was_there, is_complete, shape = done.stdout.splitlines()
    answers = predictor.predict([text])[0].answers.values()
    assert json.loads(probabilities) == pytest.approx([answer.probability for answer in answers])
    assert (was_there, is_complete, shape) == ("False", "True", "torch.Size([2, 3])")


@pytest.mark.parametrize("edition", EDITIONS)
def test_an_edition_is_small_and_whole_and_says_what_it_is(edition: int) -> None:
    folder = edition_folder(edition)
    assert (folder / "model.safetensors").stat().st_size <= 10_000_000
    found = {path.name: sha256_of(path) for path in folder.iterdir() if path.name != MANIFEST}
    assert read_manifest(folder).files == found
    (runtime,) = Predictor.load(f"{BUILTIN}@{edition}", device="cpu", runtime="torch").runtimes
    is_pruned = runtime.model().classifier.encoder.spec.pruning != "none"
    card = (folder / "README.md").read_text("utf-8")
    assert ("- Pruned by" if is_pruned else "- Not pruned") in card
    assert "## Where it fails" in card
    sources = "vader:data/vader + isarcasm:data/isarcasmeval2022 + sampler"
    assert sources in runtime.facts["recipe"]["data"]["source"]
    assert ":/" not in json.dumps(dict(runtime.facts)).replace("://", "")
    for row in (row for rows in results_of(edition).values() for row in rows):
        figures = f"{row['cell']} | {row['n']:,} | {row['macro_f1']:.3f}"
        assert f"| {row['task']} | {figures} |" in card


def test_the_command_needs_no_model_and_no_network(tmp_path: Path) -> None:
    cut_off = "import socket, sys; socket.socket.connect = None; from litotes.cli.main import main;"
    command = [sys.executable, "-c", f"{cut_off} sys.exit(main(sys.argv[1:]))", "predict", TEXT]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = subprocess.check_output([*command, "--json"], cwd=tmp_path, text=True, env=environment)
    (answer,) = json.loads(found)
    assert (answer["sentiment"]["label"], answer["sarcasm"]["label"]) == ("negative", "sarcastic")


def test_it_is_exported_as_a_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    mine = tmp_path / "mine"
    command, out = ["export", "--model", BUILTIN, "--texts", "20"], ["--out", str(mine)]
    assert main(command) == 2
    assert "copy it by --out FOLDER" in capsys.readouterr().err
    assert main([*command, *out, "--data", "samplr"]) == 2
    assert not mine.exists()
    assert main([*command, *out]) == 0
    assert not (resolve_model(BUILTIN) / "model.onnx").exists()
    ours = Predictor.load(mine, runtime="onnx").predict(TEXT)
    theirs = Predictor.load(BUILTIN, runtime="torch").predict(TEXT)
    for task, answer in theirs.answers.items():
        assert ours.answers[task].label == answer.label
        assert ours.answers[task].probability == pytest.approx(answer.probability, abs=1e-4)
    assert main([*command, *out]) == 2
    assert "is not empty" in capsys.readouterr().err
