"""What one answer rests on: the value that `litotes explain`, the page and Python share.

Everything is kept as the model saw it, by pieces; words are what people read, so every method says
how much each word counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litotes.core.text import one_line
from litotes.core.values import Answer
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.shaded_text import answer_in_words, notebook_html
from litotes.explanation.trace import Trace
from litotes.model.calibration import label_to_explain

if TYPE_CHECKING:
    from torch import Tensor

MOST_WEIGHTS = 10_000_000
"""That a JSON file holds: some 80 MB. A text of 512 pieces has ten times as many."""


@dataclass(frozen=True)
class Curve:
    """What happens to the answer as words are taken away: its probability (a regression: its value)
    at every share of words.

    shares: of the words, from 0 to 1. values: of the same length.
    """

    shares: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Faithfulness:
    """Whether a method's words are those the model needs (DeYoung et al. 2020, arXiv 1911.03429).

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
        """What is explained; where a text may have several labels, one of them."""
        answer = self.answers[self.task]
        if not isinstance(answer.label, tuple):
            return answer
        label = label_to_explain(answer)
        return Answer(label, answer.probabilities[label], answer.probabilities)

    @property
    def left_at_layer(self) -> tuple[int | None, ...]:
        """Per word the layer, from 0, after which its last piece left; None where one stayed to the
        end.
        """
        by_word: list[int | None] = []
        for word in self.read.words:
            by_piece = [self.trace.left_after[piece] for piece in word.pieces]
            left = [layer for layer in by_piece if layer is not None]
            by_word.append(max(left) if len(left) == len(by_piece) else None)
        return tuple(by_word)

    @property
    def n_words_seen(self) -> tuple[int, ...]:
        """Of how many words each layer still sees a piece. (layer,)"""
        n_layers, lefts = len(self.layers), self.left_at_layer
        last_seen = [n_layers if left is None else left for left in lefts]
        return tuple(sum(last >= layer for last in last_seen) for layer in range(n_layers))

    @property
    def n_layers_with_words(self) -> int:
        """The first so many layers see a word; behind them there is no map worth a look."""
        return sum(n > 0 for n in self.n_words_seen)

    @property
    def layer_to_show(self) -> int:
        """The layer, from 0, to show first: the last that still sees half of the words."""
        n_words = len(self.read.words)
        return sum(2 * n >= n_words for n in self.n_words_seen) - 1

    def as_json(self, *, maps: bool = True) -> dict[str, Any]:
        """Numbers and words; maps: with every layer's attention, which is most of it."""
        content: dict[str, Any] = {
            "text": self.read.text,
            "pair": self.read.pair,
            "truncated": self.read.pieces.truncated,
            "model": self.model,
            "task": self.task,
            "answers": {name: answer.as_json() for name, answer in self.answers.items()},
            "probabilities": dict(self.probabilities),
            "method": self.method,
            "words": self._words_json(),
            "shadings": {name: _shading_json(shading) for name, shading in self.shadings.items()},
            "pieces": self._pieces_json(),
            "attention_heads": [list(heads) for heads in self.trace.heads],
        }
        if isinstance(self.answers[self.task].label, tuple):
            content["explained_label"] = self.answer.label
        if self.answered_at_layer is not None:
            content["answered_at_layer"] = self.answered_at_layer
        return content | self._layers_json() if maps or not self.layers else content

    def exit_in_words(self) -> str:
        """After which layer the text is answered; nothing for a model without exits."""
        n_layers, layer = len(self.layers), self.answered_at_layer
        if layer is None:
            return ""
        place = "by a table of pieces, before the first layer" if layer == 0 else ""
        if not self.layers:  # the model was only asked, with its exits
            place = place or f"after layer {layer}"
            return f"Texts may leave early in this model: it answers this one {place}."
        if layer == n_layers:
            return f"No exit is sure of this text: it goes through all {n_layers} layers."
        place = place or f"after layer {layer} of {n_layers}"
        return (
            f"Texts may leave early in this model: it answers this one {place}. What is explained"
            f" is the answer of all {n_layers} layers."
        )

    def _layers_json(self) -> dict[str, Any]:
        if not self.layers:
            looking = "Looking at layers needs torch: `pip install 'litotes[train]'`."
            return {"layers_left_out": looking}
        if self.n_weights <= MOST_WEIGHTS:
            return {"layers": [_maps_json(layer) for layer in self.layers]}
        left_out = (
            f"{self.n_weights:,} weights are too many for JSON; why.html holds them,"
            " Predictor.explain gives them."
        )
        return {"layers_left_out": left_out}

    def _words_json(self) -> list[dict[str, Any]]:
        content = []
        for word, left in zip(self.read.words, self.left_at_layer, strict=True):
            place = {"start": word.start, "end": word.end, "is_pair": word.is_pair}
            content.append({"word": word.written, **place, "left_at_layer": left})
        return content

    def _pieces_json(self) -> list[dict[str, Any]]:
        content = []
        for piece, left in zip(self.read.written, self.trace.left_after, strict=True):
            content.append({"piece": piece, "left_at_layer": left})
        return content

    def _repr_html_(self) -> str:
        """In a notebook: the answer, and the text shaded by the method to show first."""
        shading = self.shadings[self.method]
        note = f"{self.model}; shaded by {self.method.replace('_', ' ')}"
        if shading.is_signed:
            note += " (blue: for the answer; orange, dotted: against it)"
        title = f"{self.task}: {answer_in_words(self.answer)}"
        return notebook_html(self.read, shading.weights, title=title, note=note)

    @property
    def n_weights(self) -> int:
        """Of all maps, standard and effective."""
        return sum(2 * layer.standard.numel() for layer in self.layers)


def _shading_json(shading: Shading) -> dict[str, Any]:
    content: dict[str, Any] = {
        "is_signed": shading.is_signed,
        "weights": list(shading.weights),
        "error": dict(shading.error),
    }
    if shading.faithfulness is not None:
        content["faithfulness"] = _faithfulness_json(shading.faithfulness)
    return content


def _faithfulness_json(faithfulness: Faithfulness) -> dict[str, Any]:
    return {
        "comprehensiveness": faithfulness.comprehensiveness,
        "sufficiency_loss": faithfulness.sufficiency_loss,
        "deletion": _curve_json(faithfulness.deletion),
        "sufficiency": _curve_json(faithfulness.sufficiency),
    }


def _curve_json(curve: Curve) -> dict[str, Any]:
    return {"shares": curve.shares, "values": curve.values}


def _maps_json(layer: LayerMaps) -> dict[str, Any]:
    return {
        "heads": layer.heads,
        "origin": layer.origin,
        "n_null": layer.n_null,
        "standard": _rounded(layer.standard),
        "effective": _rounded(layer.effective),
    }


def _rounded(maps: Tensor) -> Any:
    """Four digits: enough to draw and to compare by, and a quarter of the size."""
    return [[[round(weight, 4) for weight in row] for row in head] for head in maps.tolist()]
