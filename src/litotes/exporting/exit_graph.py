"""Exits in the file: texts that an exit is sure of leave the group, and if none stays the rest is
not computed (model/exits.py).

    layers  →  exit: answers of the texts still there, written over earlier ones
            →  If none stays: done
               else: the texts that stay  →  layers  →  …  →  the model's own heads

Each exit has a branch inside the branch of the one before. How sure an exit is, is computed in
float64, so that a threshold decides as `Exits.log_odds` does.

Where no text leaves, an exit costs its operators, not its numbers. So all tasks are one product,
and one more output, without weights and with the layer as its offset, says where a text was
answered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from litotes.exporting.encoder_graph import EncoderWalk
from litotes.exporting.graph import Graph, Value
from litotes.exporting.head_graph import apply_linear, write_heads
from litotes.exporting.products import Products
from litotes.exporting.removal_graph import GraphState
from litotes.exporting.texts_graph import Texts
from litotes.model.checkpoint import Model
from litotes.model.classifier import EarlyExits


@dataclass(frozen=True)
class Answered:
    """Answers to all texts, by name. logits: {task: (text, class, 1)}.

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
    """Answers are kept together: (text, class of all tasks and then the layer, 1)."""

    walk: EncoderWalk
    model: Model
    exits: EarlyExits

    @property
    def graph(self) -> Graph:
        return self.walk.graph

    @property
    def _ends(self) -> dict[str, tuple[int, int]]:
        """Where the classes of each task begin and end."""
        found, end = {}, 0
        for task, own in self.model.classifier.tasks.items():
            found[task] = (end, end + own.n_outputs)
            end += own.n_outputs
        return found

    @property
    def _n_together(self) -> int:
        return 1 + sum(task.n_outputs for task in self.model.classifier.tasks.values())

    def write(self, state: GraphState) -> Answered:
        graph = self.graph
        with graph.part("embeddings"):
            # 0, 1, 2, …: the texts still there
            n = graph.add("Squeeze", self.walk.texts.n)
            zero, one = (graph.constant(np.int64(value)) for value in (0, 1))
            there = graph.add("Range", zero, n, one)
        together = self._write_from(0, state, there, None, [])
        with graph.part("head"):
            logits = {}
            for task, (start, end) in self._ends.items():
                logits[task] = graph.slice(together, graph.ints(start), graph.ints(end), axis=1)
            last = graph.constant(np.int64(self._n_together - 1))
            layers = graph.gather(together, last, axis=1)  # (text, 1)
            layers = graph.cast(graph.add("Squeeze", layers, graph.ints(1)), np.int64)
        return Answered(logits, layers)

    def _write_from(
        self,
        place: int,
        state: GraphState,
        there: str,
        answered: str | None,
        owners: list[str],
    ) -> str:
        """From the exit at `place` in the list of exits on. there: (text still there,)

        owners: for each group of pieces that had left before an exit, where the texts still there
        stand among those that group is of; the states themselves are gathered once, at the end.
        """
        layers = self.exits.rule.inner_layers
        first = layers[place - 1] if place else 0
        if place == len(layers):
            logits = _write_last(self.walk, self.model, self._gather_removed(state, owners), first)
            with self.graph.part("head"):
                return self._overwrite(answered, there, self._join(logits))
        layer = layers[place]
        state = self.walk.write_layers(state, range(first, layer))
        with self.graph.part(f"exit.{layer}"):
            found = self._write_exit(layer, state)
            answered = self._overwrite(answered, there, found)
            stay = self._write_stay(layer, found)  # (text that stays,): places among those there
            n_stay = self.graph.add("Shape", stay)
            nobody = self.graph.add(
                "Squeeze", self.graph.add("Greater", self.graph.ints(1), n_stay)
            )
        with self.graph.branch() as rest:
            with self.graph.part(f"exit.{layer}"):
                known = {owner: self.graph.gather(owner, stay) for owner in dict.fromkeys(owners)}
                new = [stay] * (len(state.removed) - len(owners))
                owners = [*(known[owner] for owner in owners), *new]
                state = self._keep(state, stay)
                self.walk.texts.keep(n_stay)
                there = self.graph.gather(there, stay)
            later = self._write_from(place + 1, state, there, answered, owners)
            rest.outputs = [self._value(later)]
        with self.graph.branch() as done, self.graph.part(f"exit.{layer}"):
            # a branch gives only what is computed inside it
            done.outputs = [self._value(self.graph.add("Identity", answered))]
        with self.graph.part(f"exit.{layer}"):
            return self.graph.add("If", nobody, then_branch=done, else_branch=rest)

    def _write_exit(self, layer: int, state: GraphState) -> str:
        """(text still there, class of all tasks and then the layer, 1)"""
        graph, texts, width = self.graph, self.walk.texts, self.walk.spec.width
        pieces = self.walk.products.to_texts(state.hidden, width)  # (text, piece, width)
        n = graph.add("Shape", pieces, start=1, end=2)
        # the first piece, and the sum of all, which becomes the mean: (text, 2, width)
        most = texts.most_pieces
        read = graph.constant(np.stack([np.eye(1, most)[0], np.ones(most)]).astype(np.float32))
        sums = graph.matmul(graph.first(read, n, axis=1), pieces)
        lengths = np.stack([np.ones(most + 1), np.arange(most + 1)], axis=1).astype(np.float32)
        means = graph.over(sums, graph.gather(graph.constant(lengths[:, :, None]), n))
        vectors = texts.reshape(means, 2 * width, 1)
        return apply_linear(graph, self._join_heads(layer), vectors)

    def _join_heads(self, layer: int) -> nn.Linear:
        """The heads of one exit as one, with one more output: the layer."""
        outputs = self.exits.heads.outputs(layer).values()
        joined = nn.Linear(2 * self.walk.spec.width, self._n_together)
        with torch.no_grad():
            joined.weight.zero_()
            joined.bias.fill_(layer)
            joined.weight[:-1] = torch.cat([own.weight for own in outputs])
            joined.bias[:-1] = torch.cat([own.bias for own in outputs])
        return joined

    def _join(self, logits: Mapping[str, str]) -> str:
        """Those of the model's own heads, and the number of its layers."""
        graph = self.graph
        shape = graph.concat(self.walk.texts.n, graph.ints(1, 1), axis=0)
        layers = graph.add("Expand", graph.number(self.walk.n_layers), shape)
        tasks = self.model.classifier.tasks
        return graph.concat(*(logits[task] for task in tasks), layers, axis=1)

    def _overwrite(self, before: str | None, there: str, found: str) -> str:
        """Answers to the texts still there in place of earlier ones."""
        if before is None:
            return found
        return self.graph.add("ScatterND", before, self.graph.unsqueeze(there, 1), found)

    def _write_stay(self, layer: int, found: str) -> str:
        """The places of the texts that the exit is not sure of. (text that stays,)

        With all signs turned: the largest of the tasks is the one it is least sure of.
        """
        graph, sureness = self.graph, self.exits.rule.sureness[layer]
        order, leads = self._write_leads(found)  # (text, task, 1)

        def column(values: list[float]) -> str:
            return graph.constant(np.array(values, dtype=np.float64)[:, None])

        slopes = column([-sureness[task].slope for task in order])
        offsets = column([-sureness[task].offset for task in order])
        unsure = graph.plus(graph.times(graph.add("Abs", leads), slopes), offsets)
        worst = graph.add("ReduceMax", unsure, graph.ints(1, 2), keepdims=0)  # (text,)
        stays = graph.add("Greater", worst, graph.constant(np.float64(-self.exits.rule.cut)))
        return graph.add("Squeeze", graph.add("NonZero", stays), graph.ints(0))

    def _write_leads(self, found: str) -> tuple[list[str], str]:
        """By how much a label leads the next one, or the second of two the first, less what decides
        between them (`label_margins`); and the tasks in that order. (text, task, 1)
        """
        graph, precise = self.graph, self.graph.cast(found, np.float64)
        pairs = {task: place for task, place in self._ends.items() if place[1] - place[0] == 2}
        leads = []
        if pairs:
            signs = np.zeros((len(pairs), self._n_together))
            for row, (start, _) in enumerate(pairs.values()):
                signs[row, [start, start + 1]] = -1, 1
            bounds = np.array([self._bound(task) for task in pairs])[:, None]
            lead = graph.matmul(graph.constant(signs), precise)
            leads.append(graph.minus(lead, graph.constant(bounds)) if bounds.any() else lead)
        others = [task for task in self._ends if task not in pairs]
        for task in others:
            first, last = (graph.ints(value) for value in self._ends[task])
            own = graph.slice(precise, first, last, axis=1)
            best, _ = graph.add_several("TopK", own, graph.ints(2), n_outputs=2, axis=1)
            leads.append(graph.matmul(graph.constant(np.array([[1.0, -1.0]])), best))
        joined = leads[0] if len(leads) == 1 else graph.concat(*leads, axis=1)
        return [*pairs, *others], joined

    def _bound(self, task: str) -> float:
        """What the second of two labels must lead by: 0 where no threshold was fitted."""
        calibration = self.model.calibration_of(task)
        if calibration.threshold is None:
            return 0.0
        odds = calibration.threshold / (1 - calibration.threshold)
        return calibration.temperature * math.log(odds)

    def _gather_removed(self, state: GraphState, owners: list[str]) -> GraphState:
        """With the removed pieces of the texts still there alone."""
        with self.graph.part("head"):
            removed = list(state.removed)
            for group, owner in enumerate(owners):
                states, origins = removed[group]
                removed[group] = (
                    self.graph.gather(states, owner),
                    self.graph.gather(origins, owner),
                )
        return replace(state, removed=tuple(removed))

    def _keep(self, state: GraphState, stay: str) -> GraphState:
        """The state of the texts that stay, but for what has been removed of them."""
        graph, products, width = self.graph, self.walk.products, self.walk.spec.width

        def keep(values: str | None) -> str | None:
            return None if values is None else graph.gather(values, stay)

        pieces = products.to_texts(state.hidden, width)
        hidden = products.to_rows(graph.gather(pieces, stay), width)
        return replace(
            state,
            hidden=hidden,
            origin=keep(state.origin) if self.walk.has_origin_by_text else state.origin,
            importance=keep(state.importance),
            heads=keep(state.heads),
            head_importance=keep(state.head_importance),
        )

    def _value(self, together: str) -> Value:
        return Value(together, np.float32, ("text", self._n_together, 1))
