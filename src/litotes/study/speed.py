"""How fast one model answers on this machine, side by side in one run.

All lines take turns, round after round, tokenizing included; a ratio is the median of the rounds'
ratios against the first line, so that a busy moment of the machine hits both sides.

    transformers   the same weights, padded batches of 32        where it is installed
    dense          our packed encoder, nothing pruned             torch
    pruned         the model as it is, where it prunes            torch
    onnx, int8     its exported files                             ONNX Runtime
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from litotes.core.errors import UserError, reason_of
from litotes.core.figures import BAR, hide_frame, new_figure
from litotes.core.machine import machine_now
from litotes.core.progress import TimedAction, Watch, ignore_progress, time_in_turns
from litotes.data.sources import load_with_test_part
from litotes.encoder import pretrained
from litotes.encoder.reshaping import rebuild_encoder
from litotes.evaluation.scores import Result
from litotes.exporting.export import export_models
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import Classifier
from litotes.prediction.predictor import Predictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PADDED_BATCH = 32
MOST_CALLS = 40
"""Single texts in a round whose wait is measured."""

Answer = Callable[[Sequence[str]], list[str]]
"""Texts to the label of the model's first task."""


@dataclass(frozen=True)
class SpeedLine:
    """One way of answering. Spreads are the quartiles of the rounds.

    texts_per_second: all texts in one call. ms, ms_p99: what a single text waits, median and 99th
    percentile. ratio: times as fast as the baseline. same_labels: share of texts that get the label
    of the model in torch.
    """

    name: str
    texts_per_second: float
    texts_per_second_low: float
    texts_per_second_high: float
    ms: float
    ms_p99: float
    ratio: float
    same_labels: float


@dataclass(frozen=True, repr=False)
class Speed(Result):
    """baseline: the line that ratios are against. left_out: lines that could not be measured, and
    why.
    """

    shown = ("model", "baseline", "n_texts")
    model: str
    baseline: str
    n_texts: int
    mean_pieces: float
    machine: Mapping[str, Any]
    lines: tuple[SpeedLine, ...]
    left_out: Mapping[str, str]


def measure_speed(
    model: str | Path,
    source: str = "sampler",
    *,
    n_texts: int = 256,
    n_rounds: int = 5,
    seed: int = 0,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> Speed:
    """Times every way of running the model of a folder on texts drawn from a source."""
    loaded = load_model(model)
    corpus = load_with_test_part(source)
    found = [example.text for example in corpus.where(split=corpus.test_split())]
    texts = random.Random(seed).sample(found, min(n_texts, len(found)))
    with tempfile.TemporaryDirectory(prefix="litotes-bench-", ignore_cleanup_errors=True) as folder:
        answers, left_out = _ways(loaded, source, Path(folder), device, watch)
        own_labels = answers["pruned" if "pruned" in answers else "dense"](texts)
        together, alone, agreement = {}, {}, {}
        for name, answer in answers.items():
            agreement[name] = float(np.mean(np.equal(answer(texts), own_labels)))
            together[name] = TimedAction(answer, partial(list, texts))
            alone[name] = TimedAction(answer, partial(_next_alone, cycle(texts)))
        many = time_in_turns(together, what="all texts", n_rounds=n_rounds, watch=watch)
        n_calls = min(MOST_CALLS, 4 * len(texts))
        single = time_in_turns(
            alone, what="one text", n_rounds=n_rounds, n_runs=n_calls, watch=watch
        )
    baseline = next(iter(answers))
    lines = []
    for name, seconds in many.items():
        per_second = np.quantile(len(texts) / np.array(seconds), [0.5, 0.25, 0.75])
        waits = 1000 * np.quantile(single[name], [0.5, 0.99])
        ratio = float(np.median(np.array(many[baseline]) / np.array(seconds)))
        numbers = (*per_second.tolist(), *waits.tolist(), ratio, agreement[name])
        lines.append(SpeedLine(name, *numbers))
    lengths = [len(one.ids) for one in loaded.tokenizer.encode(texts)]
    return Speed(
        model=str(model),
        baseline=baseline,
        n_texts=len(texts),
        mean_pieces=round(float(np.mean(lengths)), 1),
        machine=machine_now(),
        lines=tuple(lines),
        left_out=left_out,
    )


def _next_alone(texts: Iterator[str]) -> list[str]:
    return [next(texts)]


def _ways(
    model: Model, source: str, folder: Path, device: str | None, watch: Watch
) -> tuple[dict[str, Answer], dict[str, str]]:
    """Finds every way that can be run, and why the others cannot."""
    ways: dict[str, Answer] = {}
    left_out: dict[str, str] = {}
    spec = model.classifier.encoder.spec
    dense = model if spec.pruning == "none" else _without_pruning(model)
    if find_spec("transformers") is None:
        left_out["transformers"] = "`pip install transformers` measures it as well"
    else:
        try:
            ways["transformers"] = _by_transformers(dense, device)
        except UserError as error:
            left_out["transformers"] = str(error)
    ways["dense"] = _by_predictor(Predictor(dense, device=device))
    if dense is not model:
        ways["pruned"] = _by_predictor(Predictor(model, device=device))
    for name, precision in (("onnx", "float32"), ("int8", "int8")):
        try:
            save_model(model, folder / name, card="")
            export_models(
                folder / name, precision=precision, source=source, allowed=1.0, watch=watch
            )
        except UserError as error:
            left_out[name] = reason_of(error)
        else:
            ways[name] = _by_predictor(Predictor.load(folder / name, runtime="onnx"))
    return ways, left_out


def _by_predictor(predictor: Predictor) -> Answer:
    task = next(iter(predictor.tasks))

    def answer(texts: Sequence[str]) -> list[str]:
        return [str(one.answers[task].label) for one in predictor.predict(list(texts))]

    return answer


def _without_pruning(model: Model) -> Model:
    """A copy that keeps every piece; attention heads that are gone stay gone."""
    ours = model.classifier
    encoder = rebuild_encoder(ours.encoder, pruning="none", pruning_options={})
    tasks = list(ours.tasks.values())
    classifier = Classifier(encoder, tasks, head=ours.head_name, dropout=0.0).eval()
    classifier.heads.load_state_dict(ours.heads.state_dict())
    return replace(model, classifier=classifier)


def _by_transformers(model: Model, device: str | None) -> Answer:
    """The encoder as `transformers` runs it, padded, attention fused (sdpa); our head reads it."""
    from transformers import AutoModel
    from transformers.utils import logging

    classifier, tokenizer = model.classifier, model.tokenizer
    if classifier.head_name not in ("linear", "mean"):
        raise UserError(
            f"the head {classifier.head_name} has no counterpart there (linear and mean have one)"
        )
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        whole = pretrained.Pretrained(classifier.encoder, tokenizer, model.base, None)
        pretrained.save(whole, Path(folder))
        encoder = AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    encoder.pooler = None  # its output is not read; it would only cost time
    task = next(iter(classifier.tasks))
    head: Any = classifier.heads.get_submodule(task)
    labels = classifier.tasks[task].labels
    calibration = model.calibration.get(task, Calibration())
    padding = classifier.encoder.spec.padding_piece
    encoder = encoder.to(device or "cpu")

    @torch.inference_mode()
    def answer(texts: Sequence[str]) -> list[str]:
        found: list[str] = []
        for start in range(0, len(texts), PADDED_BATCH):
            encoded = tokenizer.encode(texts[start : start + PADDED_BATCH])
            pieces = [torch.tensor(one.ids, device=encoder.device) for one in encoded]
            # (text, piece)
            ids = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=padding)
            lengths = torch.tensor([len(one) for one in pieces], device=ids.device)
            live = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
            hidden = encoder(input_ids=ids, attention_mask=live.long()).last_hidden_state
            if classifier.head_name == "linear":
                read = hidden[:, 0]  # (text, width)
            else:
                counted = live[:, :, None].to(hidden.dtype)
                read = (hidden * counted).sum(1) / counted.sum(1)
            logits = head.output.to(hidden.device)(read)  # (text, class)
            # by the model's own threshold, as the other lines decide
            decided, _ = calibration.apply(logits.float().cpu().numpy())
            found += [labels[place] for place in decided.tolist()]
        return found

    return answer


def draw_speed(speed: Speed) -> Figure:
    """Draws texts a second, and what one text waits, a bar a line."""
    names = [line.name for line in speed.lines]
    picture = new_figure(8.5, 0.9 + 0.45 * len(names))
    axes = picture.subplots(1, 2, sharey=True)
    colours = ["#999999" if name == "transformers" else BAR for name in names]
    for ax, field, what, form in (
        (axes[0], "texts_per_second", "texts a second", "{:,.0f}"),
        (axes[1], "ms", "milliseconds for one text", "{:.3g}"),
    ):
        values = [getattr(line, field) for line in speed.lines]
        bars = ax.barh(range(len(names)), values, color=colours)
        ax.bar_label(bars, [form.format(value) for value in values], padding=3, fontsize=9)
        ax.set(xlabel=what, xlim=(0, 1.2 * max(values)))
        hide_frame(ax)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    return picture
