"""How long classifiers take to answer, measured side by side."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial

import torch

from litotes.core.progress import TimedAction, Watch, time_in_turns
from litotes.encoder.batch import Batch
from litotes.encoder.packing import TextSet, batches_by_budget
from litotes.model.classifier import Classifier


def seconds_in_turns(
    classifiers: Mapping[str, tuple[Classifier, TextSet]],
    *,
    what: str,
    n_rounds: int,
    watch: Watch,
) -> dict[str, float]:
    """The median seconds that each classifier takes for its texts, from pieces to logits, by name.

    what: names the rounds in the progress bar.
    """
    actions = {}
    for name, (classifier, texts) in classifiers.items():
        places = batches_by_budget(texts.lengths, max_texts=32)
        batches = [texts.batch(some, classifier.device) for some in places]
        actions[name] = TimedAction(partial(_answer_all, batches), prepare=classifier.eval)
    with torch.inference_mode():
        seconds = time_in_turns(actions, what=what, n_rounds=n_rounds, watch=watch)
    return {name: statistics.median(times) for name, times in seconds.items()}


def _answer_all(batches: Sequence[Batch], classifier: Classifier) -> None:
    for batch in batches:
        for logits in classifier(batch).values():
            logits.sum().item()  # waits for a device
