"""What dense, pruned, exits, the table and all of them gain and lose, beside ONNX Runtime int8.

    python bench/frontier.py texts FOLDER SHARED/data     the texts of each corpus, divided
    (train and prune CORPUS-dense and CORPUS-pruned in FOLDER, see `texts`)
    python bench/frontier.py prepare FOLDER               exits, int8 files, all answers
    python bench/frontier.py measure FOLDER [OUT]         wants a quiet machine, some six minutes

Nothing is chosen by the texts that are scored and timed: the corpora's test texts. Exits are taught
and tested on texts that the models were not trained on; `texts` keeps a part of train for that.

`prepare` gives each model exits (`exits`: after the middle layers; `static`: the table alone;
`all`: both; each may answer 1 % of texts otherwise, `all-2` 2 %), exports all to int8, and asks
them, and the dense model by ONNX Runtime int8, for the labels of all test texts: answers.json.
`measure` lets them take turns on some of these texts, tokenizing included, and writes
frontier.json (texts a second and times as fast as ONNX Runtime int8 with our scheduling, with
quartiles; macro-F1 and what is lost against dense by torch, with 95 % intervals) and frontier.svg.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from frontier_figure import draw_frontier

from litotes.bench.benchmark import Benchmark, open_benchmark
from litotes.bench.lines import BenchResult, Candidate, time_lines
from litotes.bench.subject import Subject
from litotes.core.errors import UserError
from litotes.core.machine import machine, n_cores
from litotes.core.numbers import confusion, macro_f1
from litotes.core.progress import ignore_progress
from litotes.core.storage import write_bytes, write_json
from litotes.data.sources import load
from litotes.exporting.model_graph import build_onnx, write_export
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.folder import TRAINED_TEXTS, is_model_folder, open_model
from litotes.prediction.predictor import Predictor
from litotes.pruning.exits.add import read_parts, teach_and_test, with_layers
from litotes.pruning.exits.control import n_needed
from litotes.pruning.exits.result import ExitSettings
from litotes.pruning.exits.texts import choose_texts

CORPORA = {"besstie": ("besstie:{}/besstie", 30), "sst2": ("glue/sst2:{}/glue", 40)}
"""The source by the folder of the data, and the percentage of train that is kept for exits."""
SOURCE = "table:{}?label.sentiment=sentiment&split=split"
KINDS = ("dense", "pruned")
VARIANTS = {
    "exits": ExitSettings(),
    "static": ExitSettings(layers=(0,)),
    "all": ExitSettings(static=True),
    "all-2": ExitSettings(static=True, differ=0.02),
}
RUNTIMES = ("torch", "onnx")
RIVAL, REFERENCE = "ort-int8-1-workers", "dense torch"
N_TIMED, N_ROUNDS, N_CALIBRATION, N_RESAMPLES = 200, 5, 128, 1000
TASK = "sentiment"


def write_texts(folder: Path, data: str) -> None:
    """CORPUS-train.csv to train and prune on, CORPUS-exits.csv with all texts to make exits by."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (source, share) in CORPORA.items():
        kept, trained = [], []
        for example in load(source.format(data)):
            if TASK not in example.labels:
                continue
            split = "train" if example.split == "train" else "test"
            row = (example.text, example.labels[TASK], split)
            number = int(hashlib.sha256(example.text.encode()).hexdigest()[:8], 16)
            kept.append(row)
            if split == "test" or number % 100 >= share:
                trained.append(row)
        for part, rows in (("train", trained), ("exits", kept)):
            with (folder / f"{name}-{part}.csv").open("w", newline="") as file:
                csv.writer(file).writerows([("text", TASK, "split"), *rows])
        source = SOURCE.format(folder / f"{name}-train.csv")
        print(f"litotes train RECIPE --set 'data.source={source}' --out {folder}/{name}-dense")
        print(
            f"litotes prune --model {folder}/{name}-dense --data '{source}' --loss 0.5"
            f" --out {folder}/{name}-pruned"
        )


def prepare(folder: Path) -> None:
    for corpus in _present(folder):
        for kind in KINDS:
            _add_exits(folder, corpus, kind)
            for variant in _variants(folder, corpus, kind):
                _export(folder, corpus, variant)
        _ask_all(folder, corpus)


def _present(folder: Path) -> list[str]:
    """The corpora whose two models are there."""
    found = []
    for corpus in CORPORA:
        if all(is_model_folder(folder / f"{corpus}-{kind}") for kind in KINDS):
            found.append(corpus)
        else:
            print(f"{corpus}: no {corpus}-dense and {corpus}-pruned in {folder}; left out.")
    return found


def _add_exits(folder: Path, corpus: str, kind: str) -> None:
    """Every variant of one model; its texts are read once."""
    whole = folder / f"{corpus}-{kind}"
    made = set(_variants(folder, corpus, kind))
    missing = [name for name in VARIANTS if f"{kind}-{name}" not in made]
    if not missing:
        return
    model = load_model(whole)
    settings = {name: with_layers(model, VARIANTS[name]) for name in missing}
    layers = sorted({layer for own in settings.values() for layer in own.layers})
    n_tested = n_needed(allowed=0.01, confidence=0.95)
    texts = choose_texts(open_model(whole), _source(folder, corpus), (), n_tested=n_tested, seed=0)
    lessons = read_parts(model, texts, layers, _say)
    for name, own in settings.items():
        out = folder / f"{corpus}-{kind}-{name}"
        try:
            early = teach_and_test(model, lessons, own, ignore_progress)
        except UserError as error:
            print(f"{out.name}: {error}")
            continue
        out.mkdir(exist_ok=True)
        write_bytes(out / TRAINED_TEXTS, (whole / TRAINED_TEXTS).read_bytes())
        save_model(early, out, card="")
        print(f"{out.name}: made", flush=True)


def _say(what: str, n_done: int, n_total: int, _: str) -> None:
    if n_done == n_total:
        print(f"{what}: {n_total}", flush=True)


def _source(folder: Path, corpus: str) -> str:
    return SOURCE.format(folder / f"{corpus}-exits.csv")


def _variants(folder: Path, corpus: str, kind: str) -> Iterator[str]:
    """Names of the model folders, without the corpus."""
    for name in ("", *(f"-{own}" for own in VARIANTS)):
        if is_model_folder(folder / f"{corpus}-{kind}{name}"):
            yield f"{kind}{name}"


def _export(folder: Path, corpus: str, variant: str) -> None:
    opened = open_model(folder / f"{corpus}-{variant}")
    if (opened.path / "model.onnx").is_file():
        return
    model = load_model(opened)
    train = load(_source(folder, corpus)).where(split="train").examples[:N_CALIBRATION]
    texts = model.tokenizer.encode([example.text for example in train])
    hashes = opened.stated_hashes
    content = build_onnx(model, precision="int8", texts=texts, made_from=hashes)
    write_export(opened, content, "int8", {})


def _ask_all(folder: Path, corpus: str) -> None:
    """The labels of all test texts by every line, and at which layer each was answered."""
    file = folder / f"{corpus}-answers.json"
    texts, gold = _test_texts(folder, corpus)
    known = json.loads(file.read_text()) if file.is_file() else {}
    with _open(folder, corpus, texts) as benchmark:
        for name, predictor in _predictors(folder, corpus).items():
            if name not in known:
                predictions = predictor().predict(texts)
                labels = [str(one.answers[TASK].label) for one in predictions]
                layers = Counter(str(one.answered_at_layer) for one in predictions)
                known[name] = {"labels": labels, "layers": dict(layers)}
        if RIVAL not in known:
            logits = benchmark.onnx_runtime_workers("int8", n_cores())(texts)
            places, _ = benchmark.subject.dense.calibration_of(TASK).apply(logits)
            names = benchmark.subject.dense.classifier.tasks[TASK].labels
            known[RIVAL] = {"labels": [names[place] for place in places], "layers": {}}
    write_json(file, known | {"gold": gold})


def _test_texts(folder: Path, corpus: str) -> tuple[list[str], list[str]]:
    test = load(_source(folder, corpus)).where(split="test")
    return [one.text for one in test], [str(one.labels[TASK]) for one in test]


def _open(folder: Path, corpus: str, texts: Sequence[str]) -> Any:
    models: list[Model] = [load_model(folder / f"{corpus}-{kind}") for kind in KINDS]
    return open_benchmark(Subject(*models), texts)


def _predictors(folder: Path, corpus: str) -> dict[str, Any]:
    """What opens each of our lines, by name."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for variant in _variants(folder, corpus, kind):
            path = folder / f"{corpus}-{variant}"
            for runtime in RUNTIMES:
                found[f"{variant} {runtime}"] = _opener(path, runtime)
    return found


def _opener(path: Path, runtime: str) -> Any:
    return lambda: Predictor.load(path, runtime=runtime, device="cpu")


def measure(folder: Path, out: Path) -> None:
    result: dict[str, Any] = {"machine": machine(), "corpora": {}}
    for corpus in _present(folder):
        texts, _ = _test_texts(folder, corpus)
        drawn = np.random.default_rng(0).permutation(len(texts))[:N_TIMED]
        with _open(folder, corpus, [texts[place] for place in drawn]) as benchmark:
            timed = _time(folder, corpus, benchmark)
            pieces = {"texts": len(drawn), "mean_pieces": float(np.mean(benchmark.lengths))}
        answers = json.loads((folder / f"{corpus}-answers.json").read_text())
        result["corpora"][corpus] = pieces | {"lines": _rows(timed, answers)}
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "frontier.json", result)
        write_bytes(out / "frontier.svg", draw_frontier(result))


def _time(folder: Path, corpus: str, benchmark: Benchmark) -> BenchResult:
    rival = benchmark.onnx_runtime_workers("int8", benchmark.n_cores)
    candidates = {RIVAL: Candidate(lambda _: rival(benchmark.texts), against=())}
    for name, predictor in _predictors(folder, corpus).items():
        (runtime,) = predictor().runtimes
        candidates[name] = Candidate(
            lambda _, own=runtime: own.compute(own.tokenizer.encode(benchmark.texts)),
            against=(RIVAL,),
        )
    lines = time_lines(
        corpus,
        candidates,
        n_texts=len(benchmark.texts),
        n_rounds=N_ROUNDS,
        watch=ignore_progress,
    )
    return BenchResult(RIVAL, lines, {})


def _rows(timed: BenchResult, answers: dict[str, Any]) -> list[dict[str, Any]]:
    gold = np.array(answers["gold"])
    dense = np.array(answers[REFERENCE]["labels"])
    rows = []
    for line in timed.lines:
        labels, layers = np.array(answers[line.name]["labels"]), answers[line.name]["layers"]
        ratio = timed.ratios(line).get(RIVAL)
        rows.append(
            {
                "name": line.name,
                "texts_per_second": line.per_second,
                "ms": asdict(line.spread),
                "ratio": None if ratio is None else asdict(ratio),
                "macro_f1": _score(gold, labels),
                "loss": _loss(gold, labels, dense),
                "differ": float(np.mean(labels != dense)),
                "layers": {layer: n / len(gold) for layer, n in layers.items() if layer != "None"},
            }
        )
    return rows


def _score(gold: Any, labels: Any) -> float:
    """Macro-F1 in points."""
    names = sorted(set(gold))
    places = [np.searchsorted(names, own) for own in (gold, labels)]
    return 100 * float(macro_f1(confusion(*places, len(names))))


def _loss(gold: Any, labels: Any, dense: Any) -> dict[str, Any]:
    """Points lost against dense by torch, with a 95 % interval over the same texts resampled."""
    drawn = np.random.default_rng(0)
    found = []
    for _ in range(N_RESAMPLES):
        places = drawn.integers(0, len(gold), len(gold))
        found.append(_score(gold[places], dense[places]) - _score(gold[places], labels[places]))
    interval = np.quantile(found, [0.025, 0.975]).tolist()
    return {"points": _score(gold, dense) - _score(gold, labels), "interval": interval}


if __name__ == "__main__":
    action, folder, *rest = sys.argv[1:]
    if action == "texts":
        write_texts(Path(folder), *rest)
    elif action == "prepare":
        prepare(Path(folder))
    else:
        measure(Path(folder), Path(rest[0] if rest else folder))
