"""A corpus of texts through a model, every analysis looking on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litotes.core.device import choose_device
from litotes.core.errors import UserError
from litotes.core.memory import give_back
from litotes.core.progress import Watch, unwatched
from litotes.core.values import Example
from litotes.core.version import __version__
from litotes.data.corpus import Corpus
from litotes.encoders.encoder import Encoder
from litotes.explain.observation import in_batches, observe
from litotes.inside.analysis import Analysis, Result
from litotes.model.checkpoint import Model

_READ_AHEAD = 256
"""Texts tokenized at once."""


@dataclass(frozen=True)
class Analysed:
    """What was found. results: {analysis: its result}; left_out: {analysis: why}; n_truncated:
    texts longer than the model reads.
    """

    model: str
    data: str
    n_texts: int
    n_truncated: int
    results: Mapping[str, Result]
    left_out: Mapping[str, str]
    facts: Mapping[str, Any]
    seed: int

    def as_json(self) -> dict[str, Any]:
        return {
            "litotes": __version__,
            "model": self.model,
            "data": self.data,
            "n_texts": self.n_texts,
            "n_truncated": self.n_truncated,
            "seed": self.seed,
            "facts": dict(self.facts),
            "left_out": dict(self.left_out),
            "findings": {name: list(result.findings()) for name, result in self.results.items()},
            "results": {name: result.as_json() for name, result in self.results.items()},
        }


@dataclass(frozen=True)
class Subject:
    """What is looked at: a model by the name it is shown under, and the encoder it was tuned from,
    where that is known.
    """

    name: str
    model: Model
    base: Encoder | None = None


def analyze(
    subject: Subject,
    corpus: Corpus,
    analyses: Mapping[str, type[Analysis]],
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    n_texts: int | None = None,
    seed: int = 0,
    device: str | None = None,
    watch: Watch = unwatched,
) -> Analysed:
    """Shows the texts of a corpus, or `n_texts` of them drawn at random, to the analyses; memory
    does not grow with the texts.

    options: {analysis: {option: value}} for those that are not to be made with their defaults.
    """
    model, base = subject.model, subject.base
    _check_base(model, base)
    if not len(corpus):
        raise UserError(f"{corpus.name} has no texts here: nothing to analyse.")
    where = choose_device(device)
    model.classifier.to(where).eval()
    if base is not None:
        base.to(where).eval()
    left_out = {name: why for name, kind in analyses.items() if (why := _lacks(kind, base))}
    if len(left_out) == len(analyses):
        raise UserError(
            "Nothing can be analysed: "
            + "; ".join(f"{name} {why}" for name, why in left_out.items())
            + "."
        )
    at_work = {
        name: kind(model, **(options or {}).get(name, {}))
        for name, kind in analyses.items()
        if name not in left_out
    }
    examples = _drawn(corpus, n_texts, seed)
    n_truncated = n_done = 0
    for start in range(0, len(examples), _READ_AHEAD):
        chunk = examples[start : start + _READ_AHEAD]
        texts = model.tokenizer.read(
            [example.text for example in chunk], [example.pair for example in chunk]
        )
        n_truncated += sum(text.pieces.truncated for text in texts)
        for batch in in_batches(texts):
            for observation in observe(model, batch, base=base, device=where):
                for analysis in at_work.values():
                    analysis.add(observation)
                n_done += 1
                watch("looking", n_done, len(examples), "")
            give_back()
    results = {name: analysis.result() for name, analysis in at_work.items()}
    return Analysed(
        subject.name,
        corpus.name,
        len(examples),
        n_truncated,
        results,
        left_out,
        _facts(model),
        seed,
    )


def _lacks(kind: type[Analysis], base: Encoder | None) -> str | None:
    return "needs --tuned-from" if kind.needs_base and base is None else kind.lacks()


def _drawn(corpus: Corpus, n_texts: int | None, seed: int) -> Sequence[Example]:
    """Shuffled, so that an analysis which looks at the first few sees all cells."""
    examples = list(corpus)
    random.Random(seed).shuffle(examples)
    return examples[:n_texts]


def _facts(model: Model) -> dict[str, Any]:
    spec = model.classifier.encoder.spec
    return {
        "tasks": {name: list(task.labels) for name, task in model.classifier.tasks.items()},
        "head": model.classifier.head_name,
        "base": model.base,
        "family": spec.family,
        "n_layers": len(spec.walk),
        "n_attention_heads": spec.n_attention_heads,
        "head_width": spec.head_width,
        "weighting": spec.weighting,
        "pruning": spec.pruning,
    }


def _check_base(model: Model, base: Encoder | None) -> None:
    """Before and after can be compared layer by layer and head by head, or not at all."""
    if base is None:
        return
    spec, other = model.classifier.encoder.spec, base.spec
    for what in ("n_layers", "n_attention_heads", "n_vocabulary"):
        if getattr(spec, what) != getattr(other, what):
            raise UserError(
                f"--tuned-from: the encoder given has {what} = {getattr(other, what)}, the model"
                f" {getattr(spec, what)}; it cannot be what the model was tuned from."
            )
