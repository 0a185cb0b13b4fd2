"""A model as one ONNX file with everything inside: embeddings, blocks, pruning, heads, calibration.

The graph is written operator by operator from our own modules, for texts of equal length, one or
several, without padding:

    pieces (text, piece), segments (text, piece)  →  TASK.logits (text, class), TASK.probabilities (text, class), TASK.label (text,)

Nothing is traced, so nothing is in the file but what a text needs. What it was made from stands in
its metadata: the sha256 of the model folder's weights and tokenizer, so that a file that does not
belong to its folder is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.errors import UserError
from litotes.core.registry import unknown
from litotes.core.storage import write_bytes, write_json
from litotes.core.version import __version__
from litotes.export.encoder_graph import encoded
from litotes.export.graph import Graph, Value, model_bytes
from litotes.export.head_graph import answer, logits_of
from litotes.export.int8 import Int8, measure_inputs
from litotes.export.products import Float32, Products
from litotes.export.texts_graph import Texts
from litotes.model.checkpoint import Model, load_model
from litotes.model.classifier import Classifier
from litotes.model.folder import hashes_in
from litotes.runtime.onnx.file_format import FILE, HASH_OF, NOTE, PIECES, SEGMENTS
from litotes.text.tokenizer import Pieces

PRECISIONS = ("float32", "int8")


def export(folder: Path, *, precision: str = "float32", texts: Sequence[str] = ()) -> Path:
    """Writes `model.onnx` into a model folder, unmeasured. texts: a few dozen for int8 to look at;
    float32 needs none.
    """
    model = load_model(folder)
    content = written(
        model, precision=precision, texts=model.tokenizer.encode(texts), made_from=hashes_in(folder)
    )
    write_export(folder, content, precision, {})
    return folder / FILE


def write_export(folder: Path, content: bytes, precision: str, more: Mapping[str, Any]) -> None:
    """Writes the file and then the note that it is whole. more: what else the note says."""
    # a crash from here on leaves a file that says it was not finished
    (folder / NOTE).unlink(missing_ok=True)
    write_bytes(folder / FILE, content)
    write_json(
        folder / NOTE,
        {
            "file": FILE,
            "sha256": hashlib.sha256(content).hexdigest(),
            "precision": precision,
            **more,
        },
    )


def written(
    model: Model,
    *,
    precision: str = "float32",
    texts: Sequence[Pieces] = (),
    made_from: Mapping[str, str],
) -> bytes:
    """The file's content. made_from: the sha256 of the files the model came from, by name."""
    graph, classifier = Graph(), model.classifier.eval()
    spec = classifier.encoder.spec
    graph.inputs = [Value(name, np.int64, ("text", "piece")) for name in (PIECES, SEGMENTS)]
    with graph.part("embeddings"):
        group = Texts(graph, PIECES, most_pieces=spec.max_pieces)
    products = _products(group, classifier, precision, texts)
    with torch.no_grad():
        hidden = encoded(products, classifier.encoder, group, firsts_only=classifier.firsts_only)
        with graph.part("head"):
            logits = logits_of(products, group, classifier.heads, hidden)
            for name, task in classifier.tasks.items():
                graph.outputs += answer(graph, task, model.calibration_of(name), logits[name])
    facts = {
        "litotes": __version__,
        "precision": precision,
        "tasks": json.dumps({name: list(task.labels) for name, task in classifier.tasks.items()}),
        "max_pieces": str(spec.max_pieces),
        "calibration": json.dumps(
            {name: calibration.as_json() for name, calibration in model.calibration.items()}
        ),
        **{f"{HASH_OF}{name}": sha256 for name, sha256 in made_from.items()},
    }
    return model_bytes(graph, facts)


def _products(
    group: Texts, classifier: Classifier, precision: str, texts: Sequence[Pieces]
) -> Products:
    if precision not in PRECISIONS:
        raise UserError(unknown(precision, PRECISIONS, "precision"))
    if precision == "float32":
        return Float32(group)
    if not texts:
        raise UserError(
            "int8 has to see how large activations get before it can write them in steps: give it a"
            " few dozen texts."
        )
    return Int8(group.graph, measure_inputs(classifier, texts))
