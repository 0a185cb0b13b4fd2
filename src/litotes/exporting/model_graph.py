"""A model as one ONNX file with everything inside: embeddings, blocks, pruning, heads, calibration.

The graph is written operator by operator from our own modules, for texts of equal length, one or
several, without padding:

    pieces (text, piece), segments (text, piece)
        →  TASK.logits (text, class), TASK.probabilities (text, class), TASK.label (text,)
        →  of a model with exits also answered_at_layer (text,)

Nothing is traced, so the file contains only what a text needs. Its metadata says what it was made
from: the sha256 of the model folder's weights and tokenizer, so that a file that does not belong to
its folder is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.registry import unknown_name
from litotes.core.storage import json_bytes, write_bytes
from litotes.core.version import __version__
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.exit_graph import write_answers
from litotes.exporting.graph import Graph, Value, model_bytes
from litotes.exporting.head_graph import write_answer
from litotes.exporting.int8 import Int8, measure_inputs
from litotes.exporting.products import Float32, Int16, Products
from litotes.exporting.texts_graph import Texts
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.model.folder import ModelFolder
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
    graph.inputs = [Value(name, np.int64, ("text", "piece")) for name in (PIECES, SEGMENTS)]
    with graph.part("embeddings"):
        group = Texts(graph, PIECES, most_pieces=classifier.encoder.spec.max_pieces)
    products = _choose_products(group, classifier, precision, texts)
    with torch.no_grad():
        _write_classifier(products, group, model)
    return model_bytes(graph, _metadata(model, precision, made_from))


def _write_classifier(products: Products, group: Texts, model: Model) -> None:
    graph = products.graph
    answered = write_answers(products, group, model)
    with graph.part("head"):
        for name, task in model.classifier.tasks.items():
            calibration = model.calibration_of(name)
            graph.outputs += write_answer(graph, task, calibration, answered.logits[name])
        if answered.layers is not None:
            graph.outputs.append(Value(LAYERS, np.int64, ("text",)))
            graph.add_as(LAYERS, "Identity", answered.layers)


def _choose_products(
    group: Texts, classifier: Classifier, precision: str, texts: Sequence[Pieces]
) -> Products:
    if precision not in PRECISIONS:
        raise UserError(unknown_name(precision, PRECISIONS, "precision"))
    if precision == "float32":
        return Float32(group)
    if precision == INT16:
        return Int16(group)
    if not texts:
        raise UserError(
            "int8 has to see how large activations get before it can write them in steps: give it a"
            " few dozen texts."
        )
    return Int8(group.graph, measure_inputs(classifier, texts))


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
    path, manifest = folder.path, folder.manifest
    note = {"file": FILE, "sha256": hashlib.sha256(content).hexdigest(), "precision": precision}
    note_content = json_bytes(note | dict(more))
    # A crash in between leaves a file that its note or the manifest does not know, which is
    # refused. A disk without room leaves an earlier export as it is.
    write_bytes(path / FILE, content)
    write_bytes(path / NOTE, note_content)
    if manifest is not None:
        manifest.with_files({FILE: content, NOTE: note_content}).write(path)
