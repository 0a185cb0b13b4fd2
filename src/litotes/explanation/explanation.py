"""What one answer rests on: the value that `litotes explain`, the page and Python share.

Everything is kept as the model saw it, by pieces; words are what people read, so every method says
how much each word counts. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats
from litotes.core.pages import render
from litotes.core.text import one_line
from litotes.core.values import Answer, label_text
from litotes.encoder.tokenizer import ReadText
from litotes.model.calibration import label_to_explain

if TYPE_CHECKING:
    from torch import Tensor

MOST_WEIGHTS = 10_000_000
"""That a JSON file holds: some 80 MB. A text of 512 pieces has ten times as many."""

MOST_WORDS = 64
"""Between which every weight is given.

For longer texts only what each word receives is given: 4,096 cells cannot be read.
"""

N_SHADES = 8
"""Steps from nothing to the greatest weight; the page's style sheet has a rule for each."""

_MOST_UNREAD = 300
"""Characters shown of what the model did not read."""


@dataclass(frozen=True)
class Curve:
    """The answer as words are taken away: its probability (a regression: its value) at every share
    of words.

    shares: of the words, from 0 to 1. values: of the same length.
    """

    shares: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Faithfulness:
    """The model's need for a method's words (DeYoung et al. 2020, arXiv 1911.03429).

    deletion: the most important words leave first; a good method's curve falls fast. sufficiency:
    the most important words alone are kept, ever more of them; a good method's curve rises fast.
    comprehensiveness, sufficiency_loss: how far the answer falls on average over the shares; high
    and low are good.
    """

    deletion: Curve
    sufficiency: Curve
    comprehensiveness: float
    sufficiency_loss: float


@dataclass(frozen=True)
class Shading:
    """One method's opinion on every word.

    weights: one per word; where the method is signed, above 0 speaks for the answer and below 0
    against it.
    error: what the method knows of its own error, by name (a convergence delta, a dimension of a
    null space); may be empty.
    """

    method: str
    is_signed: bool
    weights: tuple[float, ...]
    error: Mapping[str, float]
    faithfulness: Faithfulness | None = None

    @property
    def steps(self) -> list[int]:
        """From −N_SHADES to N_SHADES, of which the text's greatest weight has one end; 0 near 0."""
        greatest = max(map(abs, self.weights), default=0.0) or 1.0
        return [round(N_SHADES * weight / greatest) for weight in self.weights]

    def as_json(self) -> dict[str, Any]:
        content = asdict(self)
        del content["method"]
        if self.faithfulness is None:
            del content["faithfulness"]
        return content


@dataclass(frozen=True)
class Trace:
    """One text on its way through the layers.

    left_after: for each piece the layer, from 0, after whose attention it left; None for those that
    stayed to the end.
    heads: the attention heads used in each layer, (layer, …); empty where no layer was looked at.
    """

    written: tuple[str, ...]
    left_after: tuple[int | None, ...]
    heads: tuple[tuple[int, ...], ...]

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """True where a layer sees the keys and values of a piece. (layer, piece)"""
        n_layers = len(self.heads)
        last = [n_layers if left is None else left for left in self.left_after]
        return np.array(last) >= np.arange(n_layers)[:, None]

    def there(self, layer: int) -> tuple[str, ...]:
        """The pieces `layer` sees, in writing."""
        return tuple(compress(self.written, self.seen[layer]))


@dataclass(frozen=True)
class LayerMaps:
    """The attention of one layer for one text.

    heads: the attention heads that were there. origin: the places in the text of the pieces that
    were there; -1: stands for those gone.
    standard, effective: (attention_head, query, key). n_null: per attention head the dimension of
    the null space; 0: both are the same.
    """

    heads: tuple[int, ...]
    origin: tuple[int, ...]
    standard: Tensor
    effective: Tensor
    n_null: tuple[int, ...]

    def __repr__(self) -> str:
        return one_line(self, n_heads=len(self.heads), n_pieces=len(self.origin))

    def as_json(self) -> dict[str, Any]:
        """Four digits: enough to draw and to compare by, and a quarter of the size."""
        return {
            "heads": self.heads,
            "origin": self.origin,
            "n_null": self.n_null,
            "standard": _rounded(self.standard.tolist()),
            "effective": _rounded(self.effective.tolist()),
        }


@dataclass(frozen=True)
class Explanation:
    """All that is known about one answer.

    task: the one explained, of all in `answers`. probabilities: {label: probability}; empty for a
    regression.
    method: the one to show first. shadings: {method: its opinion}.
    layers: empty where the model was only asked, without torch; then no word is known to leave.
    answered_at_layer: after how many layers a model with exits answers the text. What is explained
    is the answer of the whole model.
    """

    read: ReadText
    task: str
    answers: Mapping[str, Answer]
    probabilities: Mapping[str, float]
    method: str
    shadings: Mapping[str, Shading]
    trace: Trace
    layers: tuple[LayerMaps, ...]
    model: str
    answered_at_layer: int | None = None

    def __repr__(self) -> str:
        answer = answer_in_words(self.answer)
        return one_line(
            self, text=self.read.text, task=self.task, answer=answer, method=self.method
        )

    @property
    def answer(self) -> Answer:
        """The answer that is explained; where a text may have several labels, one of them."""
        answer = self.answers[self.task]
        if not isinstance(answer.label, tuple):
            return answer
        label = label_to_explain(answer)
        return Answer(label, answer.probabilities[label], answer.probabilities)

    @cached_property
    def left_at_layer(self) -> tuple[int | None, ...]:
        """Per word the layer, from 0, after which its last piece left; None where one stayed to the
        end.
        """
        after = self.trace.left_after
        by_word = [[after[piece] for piece in word.pieces] for word in self.read.words]
        return tuple(None if None in left else max(cast(list[int], left)) for left in by_word)

    @cached_property
    def share_seen(self) -> Floats:
        """The share of a word's pieces that a layer sees. (layer, word)"""
        words = [self.trace.seen[:, list(word.pieces)].mean(1) for word in self.read.words]
        return np.stack(words, axis=1)

    @property
    def n_layers_with_words(self) -> int:
        """The first so many layers see a word; behind them there is no map worth a look."""
        return int((self.share_seen > 0).any(1).sum())

    @property
    def layer_to_show(self) -> int:
        """The layer, from 0, to show first: the last that still sees half of the words."""
        return int(((self.share_seen > 0).mean(1) >= 0.5).sum()) - 1

    @property
    def sides(self) -> list[Side]:
        return sides(self.read)

    @property
    def n_weights(self) -> int:
        """The number of weights in all maps, standard and effective."""
        return sum(2 * layer.standard.numel() for layer in self.layers)

    def as_json(self, *, maps: bool = True) -> dict[str, Any]:
        """Numbers and words; maps: with every layer's attention, which is most of it."""
        pieces = zip(self.read.written, self.trace.left_after, strict=True)
        content: dict[str, Any] = {
            "text": self.read.text,
            "pair": self.read.pair,
            "truncated": self.read.pieces.truncated,
            "model": self.model,
            "task": self.task,
            "answers": {name: answer.as_json() for name, answer in self.answers.items()},
            "probabilities": dict(self.probabilities),
            "method": self.method,
            "words": self._words_as_json(),
            "shadings": {name: shading.as_json() for name, shading in self.shadings.items()},
            "pieces": [{"piece": piece, "left_at_layer": left} for piece, left in pieces],
            "attention_heads": [list(heads) for heads in self.trace.heads],
        }
        if isinstance(self.answers[self.task].label, tuple):
            content["explained_label"] = self.answer.label
        if self.answered_at_layer is not None:
            content["answered_at_layer"] = self.answered_at_layer
        if self.layers and not maps:
            return content
        return content | self._layers_as_json()

    def _words_as_json(self) -> list[dict[str, Any]]:
        words = []
        for word, left in zip(self.read.words, self.left_at_layer, strict=True):
            place = {"start": word.start, "end": word.end, "is_pair": word.is_pair}
            words.append({"word": word.written, **place, "left_at_layer": left})
        return words

    def _layers_as_json(self) -> dict[str, Any]:
        """The maps, or why they are left out."""
        if not self.layers:
            looking = "Looking at layers needs torch: `pip install 'litotes[train]'`."
            return {"layers_left_out": looking}
        if self.n_weights <= MOST_WEIGHTS:
            return {"layers": [layer.as_json() for layer in self.layers]}
        left_out = (
            f"{self.n_weights:,} weights are too many for JSON; why.html holds them,"
            " Predictor.explain gives them."
        )
        return {"layers_left_out": left_out}

    def exit_in_words(self) -> str:
        """After which layer the text is answered; nothing for a model without exits."""
        n_layers, layer = len(self.layers), self.answered_at_layer
        if layer is None:
            return ""
        place = f"after layer {layer}" + (f" of {n_layers}" if n_layers else "")
        if layer == 0:
            place = "by a table of pieces, before the first layer"
        early = f"Texts may leave early in this model: it answers this one {place}."
        if not self.layers:  # the model was only asked, with its exits
            return early
        if layer == n_layers:
            return f"No exit is sure of this text: it goes through all {n_layers} layers."
        return f"{early} What is explained is the answer of all {n_layers} layers."

    def _repr_html_(self) -> str:
        """Shows in a notebook the answer, and the text shaded by the method to show first."""
        return render(
            "explanation/notebook.html",
            explained=self,
            shading=self.shadings[self.method],
            answer=answer_in_words(self.answer),
            n_shades=N_SHADES,
        )


def answer_in_words(answer: Answer) -> str:
    """`sarcastic, 87 % sure`; a regression's number as it is."""
    if answer.probability is None:
        is_number = isinstance(answer.label, float)
        return f"{answer.label:.3g}" if is_number else label_text(answer.label, digits=3)
    # no model is certain, whatever floating point says
    sure = "over 99 %" if answer.probability >= 0.995 else f"{answer.probability * 100:.0f} %"
    return f"{answer.label}, {sure} sure"


# The text in words and what stands between them, for the page, the figure, the terminal and a
# notebook.


@dataclass(frozen=True)
class Side:
    """parts: the text as far as it was read: words with their numbers, and what stands between them
    with None. unread: what follows the last word that was read, where a text had to be cut.
    """

    parts: tuple[tuple[str, int | None], ...]
    unread: str

    @property
    def unread_shown(self) -> str:
        """The beginning of it; a book need not follow."""
        n_more = len(self.unread) - _MOST_UNREAD
        shown = f"{self.unread[:_MOST_UNREAD]}… and {n_more:,} more characters"
        return shown if n_more > 0 else self.unread


def sides(read: ReadText) -> list[Side]:
    """The text and, of two, the second."""
    found = []
    for is_pair, text in enumerate((read.text,) if read.pair is None else (read.text, read.pair)):
        parts: list[tuple[str, int | None]] = []
        end = 0
        for number, word in enumerate(read.words):
            if word.is_pair == is_pair and word.end > end:
                start = max(word.start, end)  # a tokenizer may let words share a letter
                parts += [(text[end:start], None), (text[start : word.end], number)]
                end = word.end
        is_cut = read.pieces.truncated and text[end:].strip()
        parts.append(("" if is_cut else text[end:], None))
        found.append(Side(tuple(part for part in parts if part[0]), text[end:] if is_cut else ""))
    return found


# Attention between words, layer by layer: small enough to send and to draw, where the maps by piece
# and attention head are not.


def word_maps(explanation: Explanation) -> list[dict[str, Any]]:
    """For every layer {"attention_heads": n, "received": {kind: (word)}, "between": {kind: (word,
    word)} or None}.

    kind: standard, effective. With A the mean over the attention heads that were there, word w
    gives word v

        B[w, v] = mean over pieces p of w of  sum over pieces q of v of  A[p, q],

    and v receives the mean of B[·, v] over the words and special pieces still there. Special pieces
    ([CLS]) and a fused piece are no words, so the rows of B need not add up to 1. A word that has
    left has 0 everywhere.
    """
    # (piece,)
    word_of = np.array([-1 if word is None else word for word in explanation.read.word_of()])
    n_words = len(explanation.read.words)
    return [_word_map(layer, word_of, n_words) for layer in explanation.layers]


def _word_map(layer: LayerMaps, word_of: Any, n_words: int) -> dict[str, Any]:
    origin = np.array(layer.origin)  # (place,): which piece is where in this layer
    is_piece = origin >= 0
    owner = np.where(is_piece, word_of[origin.clip(min=0)], -1)  # (place,)
    holds = (owner == np.arange(n_words)[:, None]).astype(np.float32)  # (word, place)
    # a word's mean over its pieces; 0 for one that has left
    rows = holds / holds.sum(1, keepdims=True).clip(min=1)
    is_special = is_piece & (owner < 0)
    n_queries = max(int(holds.any(1).sum() + is_special.sum()), 1)
    received, between = {}, {}
    for kind, maps in (("standard", layer.standard), ("effective", layer.effective)):
        mean = maps.float().numpy().sum(0) / max(len(layer.heads), 1)  # (query, key)
        onto = mean @ holds.T  # (query, word)
        received[kind] = _rounded((rows.sum(0) + is_special) @ onto / n_queries)
        between[kind] = _rounded(rows @ onto)
    shown = between if n_words <= MOST_WORDS else None
    return {"attention_heads": len(layer.heads), "received": received, "between": shown}


def _rounded(weights: Any) -> Any:
    """Nested lists of four digits."""
    return np.asarray(weights, np.float64).round(4).tolist()
