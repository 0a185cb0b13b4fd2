"""Writes the ONNX file of the built-in model, as `make light` does.

    python -m reproduction.light_builtin
    python -m reproduction.light_builtin --model builtin@1 --out FOLDER  # LITOTES_LIGHT=FOLDER

Weights in 16 bits, computed in float32: half of the size, and nearly the same answers
(docs/reference/builtin.md). The file lies beside the model's folder, is not under version control,
and goes into every wheel; only the current edition has one there.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import asdict
from pathlib import Path
from random import Random

from litotes.core.storage import json_bytes, write_bytes
from litotes.data.sources import load
from litotes.exporting.export import check_losses, export_model
from litotes.model.builtin import BUILTIN, light_folder, resolve_model
from litotes.model.folder import open_model
from litotes.prediction.onnx_file import FILE, INT16, MADE_FROM, NOTE
from litotes.prediction.predictor import Predictor

N_TEXTS = 200
"""Of the sampler's test split, on which the file is compared with torch."""
N_COMPARED = 1000


def write_light(out: Path, *, model: str = BUILTIN, n_texts: int = N_TEXTS) -> None:
    """The file, and then the note that it is whole, with what it was made from."""
    folder = open_model(model)
    result, content = export_model(folder, INT16, source="sampler", n_texts=n_texts)
    check_losses(result.losses, INT16)
    note = {"file": FILE, "sha256": hashlib.sha256(content).hexdigest(), "precision": INT16}
    note |= {"measured_on": result.measured_on, MADE_FROM: folder.stated_hashes}
    note["loss"] = {loss.task: asdict(loss) for loss in result.losses}
    write_bytes(out / FILE, content)
    write_bytes(out / NOTE, json_bytes(note))
    for loss in result.losses:
        print(f"{loss.in_words()}; a probability by {loss.largest_difference:.1g} at most.")


def compare(source: str, model: str = BUILTIN) -> None:
    """The file that is there against torch, on texts of a source in random order."""
    texts = [example.text for example in load(source).examples]
    Random(0).shuffle(texts)
    texts = texts[:N_COMPARED]
    by_torch = Predictor.load(model, runtime="torch").predict(texts)
    by_onnx = Predictor.load(model, runtime="onnx").predict(texts)
    for task in by_torch[0].answers:
        n_labels, differences = 0, []
        for one, other in zip(by_torch, by_onnx, strict=True):
            n_labels += one.answers[task].label != other.answers[task].label
            shares = one.answers[task].probabilities, other.answers[task].probabilities
            differences.append(max(abs(shares[0][label] - shares[1][label]) for label in shares[0]))
        over = [sum(one > limit for one in differences) for limit in (1e-4, 1e-3)]
        print(
            f"{task}: of {len(texts)} texts {n_labels} labels differ; {over[0]} probabilities by"
            f" more than 0.0001, {over[1]} by more than 0.001, the largest by"
            f" {max(differences):.3f}."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=BUILTIN, metavar="NAME", help="default: the current one")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: the package")
    parser.add_argument("--compare", metavar="SOURCE", help="compare it with torch on these texts")
    options = parser.parse_args()
    if options.compare is not None:
        compare(options.compare, options.model)
        return
    if options.out is None and resolve_model(options.model) != resolve_model(BUILTIN):
        parser.error("the package has the file of the current edition alone: give --out FOLDER")
    out = options.out or light_folder()
    write_light(out, model=options.model)
    print(f"Written to {out}: {(out / FILE).stat().st_size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
