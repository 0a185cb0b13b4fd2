"""Exits in the file: texts that an exit is sure of leave the group, and if none stays the rest is
not computed (model/exits.py).

    layers  →  exit: answers of the texts still there, written over earlier ones
            →  If none stays: done
               else: the texts that stay  →  layers  →  …  →  the model's own heads

Each exit has a branch inside the branch of the one before. How sure an exit is, is computed in
float64, so that a threshold decides as `Exits.log_odds` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from litotes.exporting.encoder_graph import EncoderWalk
from litotes.exporting.graph import Graph, Value
from litotes.exporting.head_graph import apply_linear, column, mean_piece, write_heads
from litotes.exporting.products import Products
from litotes.exporting.removal_graph import GraphState
from litotes.exporting.texts_graph import Texts
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.model.early_answers import EarlyExits
from litotes.model.exits import Sureness


@dataclass(frozen=True)
class Answered:
    """Answers to all texts so far, by name. logits: {task: (text, class, 1)}.

    layers: after how many layers each was given, (text,); None: of a model without exits.
    """

    logits: Mapping[str, str]
    layers: str | None = None


def write_answers(products: Products, texts: Texts, model: Model) -> Answered:
    """From pieces to logits."""
    classifier = model.classifier
    walk = EncoderWalk(products, classifier.encoder, texts, firsts_only=classifier.firsts_only)
    state = walk.write_start()
    if model.exits is not None and model.exits.rule.inner_layers:
        return _ExitWriter(walk, model, model.exits).write(state)
    return Answered(_write_last(walk, model, state, 0))


def _write_last(walk: EncoderWalk, model: Model, state: GraphState, first: int) -> dict[str, str]:
    """The layers from `first` on, and the logits of the model's own heads, (text, class, 1)."""
    hidden = walk.write_end(state, first)
    with walk.graph.part("head"):
        return write_heads(walk.products, walk.texts, model.classifier.heads, hidden)


@dataclass(frozen=True)
class _ExitWriter:
    walk: EncoderWalk
    model: Model
    exits: EarlyExits

    @property
    def graph(self) -> Graph:
        return self.walk.graph

    def write(self, state: GraphState) -> Answered:
        with self.graph.part("embeddings"):
            # 0, 1, 2, …: the texts still there
            n = self.graph.add("Squeeze", self.walk.texts.n)
            zero, one = (self.graph.constant(np.int64(value)) for value in (0, 1))
            there = self.graph.add("Range", zero, n, one)
        return self._write_from(0, state, there, None)

    def _write_from(
        self, place: int, state: GraphState, there: str, answered: Answered | None
    ) -> Answered:
        """From the exit at `place` in the list of exits on. there: (text still there,)"""
        layers = self.exits.rule.inner_layers
        first = layers[place - 1] if place else 0
        if place == len(layers):
            logits = _write_last(self.walk, self.model, state, first)
            with self.graph.part("head"):
                return self._overwrite(answered, there, logits, self.walk.n_layers)
        layer = layers[place]
        state = self.walk.write_layers(state, range(first, layer))
        with self.graph.part(f"exit.{layer}"):
            logits = self._write_exit(layer, state)
            answered = self._overwrite(answered, there, logits, layer)
            stay = self._write_stay(layer, logits)  # (text that stays,): places among those there
            n_stay = self.graph.add("Shape", stay)
            nobody = self.graph.add(
                "Squeeze", self.graph.add("Greater", self.graph.ints(1), n_stay)
            )
        with self.graph.branch() as rest:
            with self.graph.part(f"exit.{layer}"):
                state = self._keep(state, stay)
                self.walk.texts.keep(n_stay)
                there = self.graph.gather(there, stay)
            later = self._write_from(place + 1, state, there, answered)
            rest.outputs = self._values(later)
        with self.graph.branch() as done, self.graph.part(f"exit.{layer}"):
            done.outputs = self._values(self._repeat(answered))
        with self.graph.part(f"exit.{layer}"):
            return self._write_if(nobody, done, rest)

    def _write_exit(self, layer: int, state: GraphState) -> dict[str, str]:
        """{task: (text, class, 1)} of the texts still there."""
        graph, texts, products = self.graph, self.walk.texts, self.walk.products
        pieces = products.to_texts(state.hidden, self.walk.spec.width)  # (text, piece, width)
        first, mean = texts.first_piece(pieces), mean_piece(texts, pieces)
        read = graph.concat(column(texts, first), column(texts, mean), axis=1)
        outputs = self.exits.heads.outputs(layer)
        return {task: apply_linear(graph, output, read) for task, output in outputs.items()}

    def _overwrite(
        self, before: Answered | None, there: str, logits: Mapping[str, str], layer: int
    ) -> Answered:
        """Answers to the texts still there in place of earlier ones."""
        graph = self.graph
        number = graph.constant(np.int64(layer))
        layers = graph.add("Expand", number, graph.add("Shape", there))
        if before is None or before.layers is None:
            return Answered(logits, layers)
        places = graph.unsqueeze(there, 1)
        written = {}
        for task, own in logits.items():
            written[task] = graph.add("ScatterND", before.logits[task], places, own)
        return Answered(written, graph.add("ScatterND", before.layers, places, layers))

    def _write_stay(self, layer: int, logits: Mapping[str, str]) -> str:
        """The places of the texts that the exit is not sure of. (text that stays,)"""
        graph, rule = self.graph, self.exits.rule
        sure = ""
        for task, sureness in rule.sureness[layer].items():
            own = _write_log_odds(graph, logits[task], self.model.calibration_of(task), sureness)
            sure = graph.add("Min", sure, own) if sure else own
        stays = graph.add("Greater", graph.constant(np.float64(rule.cut)), sure)  # (text, 1)
        places = graph.add("NonZero", graph.add("Squeeze", stays, graph.ints(1)))
        return graph.add("Squeeze", places, graph.ints(0))

    def _keep(self, state: GraphState, stay: str) -> GraphState:
        """The state of the texts that stay."""
        graph, products, width = self.graph, self.walk.products, self.walk.spec.width

        def keep(values: str | None) -> str | None:
            return None if values is None else graph.gather(values, stay)

        pieces = products.to_texts(state.hidden, width)
        hidden = products.to_rows(graph.gather(pieces, stay), width)
        removed = []
        for states, origins in state.removed:
            removed.append((graph.gather(states, stay), graph.gather(origins, stay)))
        return replace(
            state,
            hidden=hidden,
            origin=keep(state.origin) if self.walk.has_origin_by_text else state.origin,
            importance=keep(state.importance),
            heads=keep(state.heads),
            head_importance=keep(state.head_importance),
            removed=tuple(removed),
        )

    def _repeat(self, answered: Answered) -> Answered:
        """The same under other names: a branch gives only what is computed inside it."""
        graph = self.graph
        logits = {task: graph.add("Identity", own) for task, own in answered.logits.items()}
        assert answered.layers is not None
        return Answered(logits, graph.add("Identity", answered.layers))

    def _values(self, answered: Answered) -> list[Value]:
        values = []
        for task, own in answered.logits.items():
            n_outputs = self.model.classifier.tasks[task].n_outputs
            values.append(Value(own, np.float32, ("text", n_outputs, 1)))
        assert answered.layers is not None
        return [*values, Value(answered.layers, np.int64, ("text",))]

    def _write_if(self, nobody: str, done: Graph, rest: Graph) -> Answered:
        tasks = list(self.model.classifier.tasks)
        *logits, layers = self.graph.add_several(
            "If", nobody, n_outputs=len(tasks) + 1, then_branch=done, else_branch=rest
        )
        return Answered(dict(zip(tasks, logits, strict=True)), layers)


def _write_log_odds(graph: Graph, logits: str, calibration: Calibration, sureness: Sureness) -> str:
    """A + b · margin. (text, class, 1) → (text, 1)"""
    precise = graph.cast(logits, np.float64)

    def entry(values: str, place: int) -> str:
        return graph.gather(values, graph.constant(np.int64(place)), axis=1)  # (text, 1)

    if calibration.threshold is None:
        best, _ = graph.add_several("TopK", precise, graph.ints(2), n_outputs=2, axis=1)
        margins = graph.minus(entry(best, 0), entry(best, 1))
    else:
        odds = calibration.threshold / (1 - calibration.threshold)
        shift = graph.constant(np.float64(calibration.temperature * np.log(odds)))
        lead = graph.minus(entry(precise, 1), entry(precise, 0))
        margins = graph.add("Abs", graph.minus(lead, shift))
    scaled = graph.times(margins, graph.constant(np.float64(sureness.slope)))
    return graph.plus(scaled, graph.constant(np.float64(sureness.offset)))
