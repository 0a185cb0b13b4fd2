"""Times a model with exits against the same model without, and where no text may leave: by torch
and by ONNX Runtime, in turns.

    python bench/exits.py MODEL SOURCE [N_TEXTS] [float32|int8]

MODEL: what `litotes exits` has made. SOURCE: the texts of its test split are asked, in the order of
a stream. Prints one JSON document: for each runtime texts a second of the whole model, how many
times as fast exits are, and how many times as slow the model is where no text leaves; the last must
not be above 1.05. Also whether torch and the file agree on layer and label.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.machine import machine, n_cores
from litotes.core.progress import TimedAction, ignore_progress, time_in_turns
from litotes.data.sources import load_with_test_part
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.model_graph import build_onnx
from litotes.model.checkpoint import Model, load_model
from litotes.model.exits import Outputs
from litotes.model.runtime import compute_outputs, static_tier
from litotes.prediction.onnx_file import check_content
from litotes.prediction.onnx_runtime import OnnxSession, Workers

N_ROUNDS = 7
N_LEARNED = 64


def main(folder: str, source: str, n_texts: int = 400, precision: str = "float32") -> None:
    model, corpus = load_model(folder), load_with_test_part(source)
    test = [one.text for one in corpus.where(split=corpus.test_split())][:n_texts]
    learned = [one.text for one in corpus.where(split="train")][:N_LEARNED]
    texts, calibration = (model.tokenizer.encode(part) for part in (test, learned))
    by_torch = {name: _torch(one, texts) for name, one in variants(model).items()}
    by_file = {
        name: _onnx(one, texts, calibration, precision) for name, one in variants(model).items()
    }
    result = {
        "machine": machine(),
        "n_texts": len(texts),
        "agreement": agreement(model, by_torch["exits"](), by_file["exits"]()),
        "torch": ratios(by_torch, len(texts)),
        precision: ratios(by_file, len(texts)),
    }
    print(json.dumps(result, indent=2))


def variants(model: Model) -> dict[str, Model]:
    assert model.exits is not None, "this model has no exits: make them with `litotes exits`"
    stuck = replace(model.exits, rule=replace(model.exits.rule, threshold=1.0))
    return {
        "whole": replace(model, exits=None),
        "exits": model,
        "nobody leaves": replace(model, exits=stuck),
    }


def _torch(model: Model, texts: Sequence[Pieces]) -> Callable[[], Outputs]:
    return lambda: compute_outputs(model, texts)


def _onnx(
    model: Model, texts: Sequence[Pieces], learned: Sequence[Pieces], precision: str
) -> Callable[[], Outputs]:
    content = build_onnx(model, precision=precision, texts=learned, made_from={})
    session = OnnxSession.from_file(check_content(Path("model.onnx"), content))
    workers, tier = Workers(session, n_cores()), static_tier(model)
    if tier is None:
        return lambda: workers.compute(texts)
    return lambda: tier.answer(texts, workers.compute)  # as a runtime asks the table first


def ratios(actions: dict[str, Callable[[], Outputs]], n_texts: int) -> dict[str, float]:
    timed = {name: TimedAction(lambda _, act=act: act()) for name, act in actions.items()}
    times = time_in_turns(timed, what="", n_rounds=N_ROUNDS, watch=ignore_progress)
    seconds = {name: statistics.median(own) for name, own in times.items()}
    return {
        "whole, texts a second": n_texts / seconds["whole"],
        "times as fast": seconds["whole"] / seconds["exits"],
        "times as slow where nobody leaves": seconds["nobody leaves"] / seconds["whole"],
    }


def agreement(model: Model, torch: Outputs, file: Outputs) -> dict[str, Any]:
    """Shares of texts answered at the same layer, and with the same label of each task."""
    shares: dict[str, Any] = {"layer": float(np.mean(torch.layers == file.layers))}
    for task, logits in torch.logits.items():
        calibration = model.calibration_of(task)
        labels = [calibration.apply(own)[0] for own in (logits, file.logits[task])]
        shares[task] = float(np.mean(labels[0] == labels[1]))
    return shares


if __name__ == "__main__":
    folder, source, *rest = sys.argv[1:]
    main(folder, source, *(int(one) if one.isdigit() else one for one in rest))  # type: ignore[arg-type]
