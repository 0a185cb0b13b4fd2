"""A model as one ONNX file with everything inside: embeddings, blocks, pruning, exits, heads,
calibration.

The walk itself writes the graph (onnx_operations.py), for texts of equal length, one or several,
without padding:

    pieces (text, piece), segments (text, piece)
        →  TASK.logits (text, class), TASK.probabilities (text, class), TASK.label (text,)
        →  of a model with exits also answered_at_layer (text,)

Nothing is traced, so the file contains only what a text needs. Its metadata says what it was made
from: the sha256 of the model folder's weights and tokenizer, so that a file that does not belong to
its folder is noticed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.registry import unknown_name
from litotes.core.storage import json_bytes, write_bytes
from litotes.core.values import Task
from litotes.core.version import __version__
from litotes.encoder.operations import Encoding
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import GoOn, walk
from litotes.exporting.graph import Graph, Symbol, Value, model_bytes
from litotes.exporting.int8 import measure_inputs
from litotes.exporting.onnx_operations import OnnxOperations
from litotes.exporting.products import Float32, Int8, Int16, Products
from litotes.model.calibration import Calibration, thresholds_of
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.model.folder import ModelFolder
from litotes.model.heads import ExitHeads, read_texts
from litotes.prediction.onnx_file import (
    EXITS,
    FILE,
    HASH_OF,
    INT16,
    LAYERS,
    NOTE,
    ONE_BY_ONE,
    PIECES,
    SEGMENTS,
    SEVERAL,
)

PRECISIONS = ("float32", INT16, "int8")


def build_onnx(
    model: Model,
    *,
    precision: str = "float32",
    texts: Sequence[Pieces] = (),
    made_from: Mapping[str, str],
) -> bytes:
    """The file's content.

    texts: a few dozen, from which int8 learns how large activations get; the others need none.
    made_from: the sha256 of the files the model came from, by name.
    """
    graph, classifier = Graph(), model.classifier.eval()
    names = (PIECES, SEGMENTS)
    graph.inputs = [Value(name, np.int64, ("text", "piece")) for name in names]
    products = _choose_products(graph, classifier, precision, texts)
    with torch.no_grad():
        ops = OnnxOperations(
            products, classifier.encoder, names, firsts_only=classifier.firsts_only
        )
        try:
            logits, layers = _Writer(ops, model).write()
        except TypeError as error:
            if "Symbol" not in str(error):
                raise
            raise UserError(
                "A weighting, pruning or head of this model cannot be exported to ONNX, because it"
                f" is not written with operations alone ({error}): use the torch runtime."
            ) from error
        graph.part = "head"
        for name, task in classifier.tasks.items():
            graph.outputs += _write_answer(graph, task, model.calibration_of(name), logits[name])
        if layers is not None:
            graph.outputs.append(Value(LAYERS, np.int64, ("text",)))
            graph.add_as(LAYERS, "Identity", layers)
    return model_bytes(graph, _metadata(model, precision, made_from))


def _choose_products(
    graph: Graph, classifier: Classifier, precision: str, texts: Sequence[Pieces]
) -> Products:
    if precision not in PRECISIONS:
        raise UserError(unknown_name(precision, PRECISIONS, "precision"))
    if precision != "int8":
        return Float32(graph) if precision == "float32" else Int16(graph)
    if not texts:
        raise UserError(
            "int8 has to see how large activations get before it can write them in steps: give it a"
            " few dozen texts."
        )
    return Int8(graph, measure_inputs(classifier, texts))


class _Writer:
    """Answers to all texts, exits included: texts that an exit is sure of leave the group, and if
    none stays the rest is not computed (model/exits.py).

        layers  →  exit: answers of the texts still there, written over earlier ones
                →  If none stays: done
                   else: the texts that stay  →  layers  →  …  →  the model's own heads

    Each exit has a branch inside the branch of the one before. How sure an exit is, is computed in
    float64, so that a threshold decides as `Exits.log_odds` does.

    Where no text leaves, an exit costs its operators, not its numbers. So all tasks are one
    product, and one more output, without weights and with the layer as its offset, says where a
    text was answered: answers are kept together, (text, class of all tasks and then the layer, 1).

    there: the texts still there, by their places among all. answered: what earlier exits said.
    """

    def __init__(self, ops: OnnxOperations, model: Model) -> None:
        self.ops, self.graph, self.model = ops, ops.graph, model
        self.tasks = model.classifier.tasks
        self.there: Symbol | None = None
        self.answered: Symbol | None = None
        ends = np.cumsum([0, *(task.n_outputs for task in self.tasks.values())]).tolist()
        # where the classes of each task begin and end
        self.ends = dict(zip(self.tasks, pairwise(ends), strict=True))
        self.n_together = ends[-1] + 1

    def write(self) -> tuple[Mapping[str, Symbol], Symbol | None]:
        """The logits of each task, (text, class, 1), and after how many layers each text was
        answered, (text,); None: of a model without exits.
        """
        ops, graph, exits = self.ops, self.graph, self.model.exits
        layers = () if exits is None else exits.rule.inner_layers
        classifier = self.model.classifier
        walk_all = partial(
            walk, ops, classifier.encoder, cast(Any, ops.batch), firsts_only=classifier.firsts_only
        )
        if not layers:
            logits: Mapping[str, Symbol] = walk_all(read=self._read)
            return logits, None
        self.there = graph.range(0, ops.n)
        together = walk_all(
            exits={layer: partial(self._leave, layer) for layer in layers}, read=self._read_last
        )
        graph.part = "head"
        own = {name: graph.slice(together, *bounds, axis=1) for name, bounds in self.ends.items()}
        answered_at = graph.Gather(together, np.int64(self.n_together - 1), axis=1)
        return own, graph.cast(graph.Squeeze(answered_at, (1,)), np.int64)

    def _read(self, encoding: Encoding) -> Mapping[str, Symbol]:
        self.graph.part = "head"
        logits: Mapping[str, Symbol] = self.model.classifier.heads(encoding, ops=self.ops)
        return logits

    def _read_last(self, encoding: Encoding) -> Symbol:
        """The answers of the model's own heads to the texts still there, after all its layers."""
        graph, logits = self.graph, self._read(encoding)
        shape = graph.Concat(self.ops.n, (1, 1), axis=0)
        layers = graph.Expand(float(len(self.model.classifier.encoder.spec.walk)), shape)
        return self._overwrite(graph.Concat(*(logits[t] for t in self.tasks), layers, axis=1))

    def _overwrite(self, found: Symbol) -> Symbol:
        """Answers to the texts still there in place of earlier ones."""
        if self.answered is None:
            return found
        places = self.graph.Unsqueeze(self.there, (1,))
        return self.graph.ScatterND(self.answered, places, found)

    def _leave(self, layer: int, encoding: Encoding, go_on: GoOn) -> Symbol:
        graph, exits = self.graph, self.model.exits
        assert exits is not None
        graph.part = f"exit.{layer}"
        found = self.ops.linear(
            self._join_heads(exits.heads, layer), read_texts(encoding, self.ops)
        )
        self.answered = self._overwrite(found)
        stay = self._write_stay(layer, found)  # (text that stays,): places among those there
        nobody = graph.Squeeze(graph.constant((1,)) > graph.Shape(stay))
        with graph.branch() as done:
            # a branch gives only what is computed inside it
            done.outputs = [self._value(graph.Identity(self.answered))]
        with graph.branch() as rest:
            self.there = graph.Gather(self.there, stay)
            rest.outputs = [self._value(go_on(stay))]
        return graph.If(nobody, then_branch=done, else_branch=rest)

    def _value(self, together: Symbol) -> Value:
        return Value(together.name, np.float32, ("text", self.n_together, 1))

    def _join_heads(self, heads: ExitHeads, layer: int) -> nn.Linear:
        """The heads of one exit as one, with one more output: the layer."""
        own = list(heads.outputs(layer).values())
        joined = nn.Linear(own[0].in_features, self.n_together)
        joined.weight[:] = torch.cat([*(one.weight for one in own), joined.weight[:1] * 0])
        joined.bias[:] = torch.cat([*(one.bias for one in own), torch.tensor([float(layer)])])
        return joined

    def _write_stay(self, layer: int, found: Symbol) -> Symbol:
        """The places of the texts that the exit is not sure of. (text that stays,)

        With all signs turned: the largest of the tasks is the one it is least sure of.
        """
        graph, exits = self.graph, self.model.exits
        assert exits is not None
        order, leads = self._write_leads(found)  # (text, task, 1)
        sureness = [exits.rule.sureness[layer][task] for task in order]
        slopes = np.array([-one.slope for one in sureness])[:, None]
        offsets = np.array([-one.offset for one in sureness])[:, None]
        unsure = graph.Abs(leads) * slopes + offsets
        worst = graph.ReduceMax(unsure, (1, 2), keepdims=0)  # (text,)
        stays = worst > np.float64(-exits.rule.cut)
        return graph.Squeeze(graph.NonZero(stays), (0,))

    def _write_leads(self, found: Symbol) -> tuple[list[str], Symbol]:
        """Writes by how much a label leads the next one, or the second of two the first, minus what
        decides between them (`label_margins`); and the tasks in that order. (text, task, 1)
        """
        graph, precise = self.graph, self.graph.cast(found, np.float64)
        pairs = [task for task, (start, end) in self.ends.items() if end - start == 2]
        others = [task for task in self.ends if task not in pairs]
        leads = []
        if pairs:
            signs = np.zeros((len(pairs), self.n_together))
            for row, task in enumerate(pairs):
                signs[row, range(*self.ends[task])] = -1, 1
            bounds = np.array([self._bound(task) for task in pairs])[:, None]
            lead = signs @ precise
            leads.append(lead - bounds if bounds.any() else lead)
        for task in others:
            own = graph.slice(precise, *self.ends[task], axis=1)
            best, _ = graph.top(own, (2,), axis=1)
            leads.append(np.array([[1.0, -1.0]]) @ best)
        return [*pairs, *others], leads[0] if len(leads) == 1 else graph.Concat(*leads, axis=1)

    def _bound(self, task: str) -> float:
        """Computes what the second of two labels must lead by: 0 where no threshold was fitted."""
        calibration = self.model.calibration_of(task)
        if calibration.threshold is None:
            return 0.0
        odds = calibration.threshold / (1 - calibration.threshold)
        return calibration.temperature * math.log(odds)


def _write_answer(
    graph: Graph, task: Task, calibration: Calibration, logits: Symbol
) -> list[Value]:
    """The outputs of one task: `TASK.logits` and, if it has labels, `TASK.probabilities`, (text,
    class) both, and `TASK.label` (text,); where a text may have several labels `TASK.labels` (text,
    class), 1 for each that is given.

    In float64, so that a threshold decides as `Calibration.apply` does. logits: (text, class, 1)
    """
    raw = graph.add_as(f"{task.name}.logits", "Squeeze", logits, (2,))
    shape = ("text", task.n_outputs)
    outputs = [Value(raw.name, np.float32, shape)]
    if task.is_regression:
        return outputs
    scaled = graph.cast(raw, np.float64) / np.float64(calibration.temperature)
    name = f"{task.name}.probabilities"
    outputs.append(Value(name, np.float64, shape))
    one, zero = np.int64(1), np.int64(0)
    if task.multi_label:  # every label by a threshold of its own
        probabilities = graph.add_as(name, "Sigmoid", scaled)
        least = thresholds_of(calibration, task.n_outputs)[None]
        given = graph.GreaterOrEqual(probabilities, least)
        graph.add_as(f"{task.name}.labels", "Where", given, one, zero)
        return [*outputs, Value(f"{task.name}.labels", np.int64, shape)]
    probabilities = graph.add_as(name, "Softmax", scaled, axis=1)
    label = f"{task.name}.label"
    if calibration.threshold is None:
        graph.add_as(label, "ArgMax", raw, axis=1, keepdims=0)
    else:
        second = graph.Gather(probabilities, one, axis=1)
        reached = graph.GreaterOrEqual(second, np.float64(calibration.threshold))
        graph.add_as(label, "Where", reached, one, zero)
    return [*outputs, Value(label, np.int64, ("text",))]


def _metadata(model: Model, precision: str, made_from: Mapping[str, str]) -> dict[str, str]:
    classifier = model.classifier
    labels = {name: list(task.labels) for name, task in classifier.tasks.items()}
    calibration = {name: values.as_json() for name, values in model.calibration.items()}
    metadata = {
        "litotes": __version__,
        "precision": precision,
        "tasks": to_json(labels),
        "max_pieces": str(classifier.encoder.spec.max_pieces),
        "calibration": to_json(calibration),
    }
    several = [name for name, task in classifier.tasks.items() if task.multi_label]
    if several:
        metadata[SEVERAL] = to_json(several)
    if model.exits is not None:
        metadata[EXITS] = to_json(model.exits.rule.as_json())
    # logarithms and the sum of a single row differ in their last bit with the number of texts;
    # in float32 that stays the last bit, int8 may make a whole step of it
    if precision == "int8" and classifier.encoder.spec.weighting == "entmax":
        metadata[ONE_BY_ONE] = "yes"
    for name, sha256 in made_from.items():
        metadata[f"{HASH_OF}{name}"] = sha256
    return metadata


def write_export(
    folder: ModelFolder, content: bytes, precision: str, more: Mapping[str, Any]
) -> None:
    """Writes the file, the note that it is whole, and both into the manifest.

    more: what else the note says.
    """
    path = folder.path
    note = {"file": FILE, "sha256": hashlib.sha256(content).hexdigest(), "precision": precision}
    note_content = json_bytes(note | dict(more))
    # A crash in between leaves a file that its note or the manifest does not know, which is
    # refused. A disk without room leaves an earlier export as it is.
    write_bytes(path / FILE, content)
    write_bytes(path / NOTE, note_content)
    folder.manifest.with_files({FILE: content, NOTE: note_content}).write(path)
