"""A corpus of texts goes through a model, every analysis measures what happens inside, and a report
says what was found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.figures import save_figure
from litotes.core.machine import choose_device, trim_malloc
from litotes.core.pages import render, render_paragraphs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import write_json, write_text
from litotes.core.values import Example
from litotes.core.version import __version__
from litotes.data.corpus import Corpus
from litotes.encoder.encoder import Encoder
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analysis import Analysis, Result, interval, percent
from litotes.explanation.observation import Observation, in_batches, observe
from litotes.model.checkpoint import Model

_READ_AHEAD = 256
"""Texts tokenized at once."""


@dataclass(frozen=True)
class CorpusAnalysis:
    """The results over a corpus.

    results: {analysis: its result}. left_out: {analysis: why}. n_truncated: how many texts are
    longer than the model reads; n_unreadable: of how many it knows no piece.
    """

    model: str
    data: str
    n_texts: int
    n_truncated: int
    n_unreadable: int
    results: Mapping[str, Result]
    left_out: Mapping[str, str]
    facts: Mapping[str, Any]
    seed: int

    def notes(self) -> tuple[str, ...]:
        """Says what a reader should know of the texts, and which analyses were left out."""
        return render_paragraphs("explanation/analyses/notes.txt", "notes", analysed=self)

    def as_json(self) -> dict[str, Any]:
        return {
            "litotes": __version__,
            "model": self.model,
            "data": self.data,
            "n_texts": self.n_texts,
            "n_truncated": self.n_truncated,
            "n_unreadable": self.n_unreadable,
            "seed": self.seed,
            "facts": dict(self.facts),
            "left_out": dict(self.left_out),
            "findings": {name: list(result.findings()) for name, result in self.results.items()},
            "results": {name: result.as_json() for name, result in self.results.items()},
        }


@dataclass(frozen=True)
class Subject:
    """The model to look into.

    name: as the report shows it. base: the encoder it was tuned from, where that is known.
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
    watch: Watch = ignore_progress,
) -> CorpusAnalysis:
    """Measures the texts of a corpus, or `n_texts` of them drawn at random, in constant memory.

    options: {analysis: {option: value}} for those that are not to be made with their defaults.
    """
    model, base = subject.model, subject.base
    if not len(corpus):
        raise UserError(f"{corpus.name} has no texts here: nothing to analyse.")
    if base is not None:
        _check_base(model, base)
    left_out = _unmet_needs(analyses, base)
    for module in (model.classifier, base):
        if module is not None:
            module.to(choose_device(device)).eval()
    made = {
        name: analysis(model, **(options or {}).get(name, {}))
        for name, analysis in analyses.items()
        if name not in left_out
    }
    examples = list(corpus)
    # shuffled, so that an analysis of the first few texts sees all cells
    random.Random(seed).shuffle(examples)
    examples = examples[:n_texts]
    n_truncated = n_unreadable = 0
    for n_done, observation in enumerate(_observations(subject, examples), start=1):
        n_truncated += observation.read.pieces.truncated
        n_unreadable += observation.read.pieces.unreadable
        for analysis in made.values():
            analysis.add(observation)
        watch("looking", n_done, len(examples), "")
    results = {name: analysis.result() for name, analysis in made.items()}
    for name, result in results.items():
        if nothing := result.nothing_to_say():
            left_out[name] = nothing
    return CorpusAnalysis(
        model=subject.name,
        data=corpus.name,
        n_texts=len(examples),
        n_truncated=n_truncated,
        n_unreadable=n_unreadable,
        results={name: result for name, result in results.items() if name not in left_out},
        left_out=left_out,
        facts=_facts(model),
        seed=seed,
    )


def _observations(subject: Subject, examples: Sequence[Example]) -> Iterator[Observation]:
    """Yields what the model does with every text, in order."""
    model = subject.model
    for start in range(0, len(examples), _READ_AHEAD):
        chunk = examples[start : start + _READ_AHEAD]
        pairs = [example.pair for example in chunk]
        for batch in in_batches(model.tokenizer.read([one.text for one in chunk], pairs)):
            yield from observe(model, batch, base=subject.base, device=model.classifier.device)
            trim_malloc()  # the maps of a batch take far more memory than what is kept of them


def write_analysis(analysed: CorpusAnalysis, folder: Path) -> None:
    """Writes analysis.json, each figure as SVG and as numbers, and the report that shows them."""
    pictures = {}
    for name, result in analysed.results.items():
        svg = save_figure(folder / name, result.figure(), result.as_json(), with_png=False)
        pictures[name] = svg.decode("utf-8")
    write_text(folder / "report.html", report_html(analysed, pictures))
    write_json(folder / "analysis.json", analysed.as_json())


def report_html(analysed: CorpusAnalysis, pictures: Mapping[str, str]) -> str:
    """The whole page. pictures: the SVG of each analysis that has one, as a file would hold it."""
    return render(
        "explanation/analyses/report.html",
        analysed=analysed,
        results=[analysed.results[name] for name in ANALYSES if name in analysed.results],
        pictures=pictures,
        interval=interval,
        percent=percent,
    )


def _unmet_needs(analyses: Mapping[str, type[Analysis]], base: Encoder | None) -> dict[str, str]:
    """{analysis: what it needs} for those that cannot be made; an error if that is all of them."""
    needs: dict[str, str] = {}
    for name, analysis in analyses.items():
        if analysis.needs_base and base is None:
            needs[name] = "needs --tuned-from"
        elif missing := analysis.missing_package():
            needs[name] = missing
    if len(needs) == len(analyses):
        reasons = "; ".join(f"{name} {need}" for name, need in needs.items())
        raise UserError(f"Nothing can be analysed: {reasons}.")
    return needs


_SIZES = ("n_layers", "n_attention_heads", "n_vocabulary")


def _facts(model: Model) -> dict[str, Any]:
    classifier = model.classifier
    spec = classifier.encoder.spec
    names = ("family", "n_attention_heads", "head_width", "weighting", "pruning")
    return {
        "tasks": {name: list(task.labels) for name, task in classifier.tasks.items()},
        "head": classifier.head_name,
        "base": model.base,
        "n_layers": len(spec.walk),
        **{name: getattr(spec, name) for name in names},
    }


def _check_base(model: Model, base: Encoder) -> None:
    """Before and after can be compared layer by layer and head by head, or not at all."""
    for size in _SIZES:
        expected, found = getattr(model.classifier.encoder.spec, size), getattr(base.spec, size)
        if expected != found:
            raise UserError(
                f"--tuned-from: the encoder given has {size} = {found}, the model {expected}; it"
                " cannot be what the model was tuned from."
            )
