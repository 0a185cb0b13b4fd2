"""What models of words, and a classifier with words left out, answer to texts of words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from litotes.data.words import WordExample
from litotes.data.words.sarcasm_sign import CHANGED, KEPT
from litotes.model.checkpoint import SavedWordModel
from litotes.prediction.predictor import Predictor
from litotes.pruning.cost import flops
from litotes.training.tagging.answers import TextAnswers, answer_texts
from litotes.training.tagging.evaluate import tags_of
from litotes.training.tagging.word_set import make_windows

N_TIMED = 5

Tags = list[list[str]]


def word_answers(model: SavedWordModel, examples: Sequence[WordExample]) -> list[TextAnswers]:
    words = [one.words for one in examples]
    windows = make_windows(words, model.tokenizer, model.network.kind)
    return answer_texts(model.network, windows)


def tags_from(answers: Sequence[TextAnswers], model: SavedWordModel) -> Tags:
    return [tags_of(one, model.network.task) for one in answers]


def tag_texts(model: SavedWordModel, examples: Sequence[WordExample]) -> Tags:
    return tags_from(word_answers(model, examples), model)


def held_out_score(model: SavedWordModel) -> float:
    """What the model scored on the texts it held out, after its best epoch."""
    return max(float(line["held_out"]) for line in model.facts["history"])


def changed_shares(answers: Sequence[TextAnswers]) -> list[list[float]]:
    """The probability that each word was changed."""
    found = []
    for one in answers:
        assert one.probabilities is not None
        found.append(one.probabilities[:, 1].tolist())
    return found


def occlusion(classifier: Predictor, examples: Sequence[WordExample]) -> list[list[float]]:
    """What the probability of sarcasm loses without each word; a text of one word loses all."""
    texts: list[str] = []
    for one in examples:
        texts.append(one.text)
        for place in range(len(one.words)):
            rest = " ".join((*one.words[:place], *one.words[place + 1 :]))
            texts.append(rest or ".")
    shares = [
        found.answers["sarcasm"].probabilities["sarcastic"] for found in classifier.predict(texts)
    ]
    weights, place = [], 0
    for one in examples:
        own = shares[place : place + 1 + len(one.words)]
        weights.append([own[0] - without for without in own[1:]])
        place += len(own)
    return weights


def best_threshold(examples: Sequence[WordExample], weights: Sequence[Sequence[float]]) -> float:
    """The weight from which words are marked so that F1 on these texts is highest."""
    values = np.array([weight for own in weights for weight in own])
    meant = np.array([tag == CHANGED for one in examples for tag in one.tags or ()])
    order = np.argsort(-values, kind="stable")
    hits = meant[order].cumsum()
    n_marked = np.arange(1, len(order) + 1)
    scores = 2 * hits / (n_marked + meant.sum())
    return float(values[order][int(scores.argmax())])


def changed_share(examples: Sequence[WordExample]) -> float:
    """Of all words."""
    return float(np.mean([tag == CHANGED for one in examples for tag in one.tags or ()]))


def mark_from(weights: Sequence[Sequence[float]], threshold: float) -> Tags:
    """The words whose weight reaches the threshold."""
    return [[CHANGED if weight >= threshold else KEPT for weight in own] for own in weights]


def mark_strongest(weights: Sequence[Sequence[float]], share: float) -> Tags:
    """Of each text this share of its words, at least one: those with the greatest weights."""
    found = []
    for own in weights:
        n_marked = max(1, round(share * len(own)))
        marked = set(np.argsort(-np.array(own), kind="stable")[:n_marked].tolist())
        found.append([CHANGED if place in marked else KEPT for place in range(len(own))])
    return found


def cost_of(
    dense: SavedWordModel, pruned: SavedWordModel, examples: Sequence[WordExample]
) -> dict[str, Any]:
    """Operations of the encoders, and seconds to answer all texts, taking turns."""
    windows = make_windows([one.words for one in examples], dense.tokenizer, "tagging")
    lengths = [len(window.pieces.ids) for own in windows for window in own]
    operations = [flops(model.network.encoder, lengths).total for model in (dense, pruned)]
    seconds: list[list[float]] = [[], []]
    for _ in range(N_TIMED):
        for place, model in enumerate((dense, pruned)):
            began = time.perf_counter()
            answer_texts(model.network, windows)  # ends with logits on the host
            seconds[place].append(time.perf_counter() - began)
    medians = [median(own) for own in seconds]
    return {
        "operations": operations,
        "fewer_operations": operations[0] / operations[1],
        "seconds": medians,
        "faster": medians[0] / medians[1],
    }
