"""Writes the ONNX file of the built-in model, as `make light` does.

    python -m reproduction.light_builtin

Weights in 16 bits, computed in float32: half of the size of float32, and int8 changed more labels
than the half of a percent that is allowed (docs/reference/builtin.md). The file lies beside the
model's folder, is not under version control, and goes into every wheel.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from litotes.core.storage import json_bytes, write_bytes
from litotes.exporting.export import check_losses, export_model
from litotes.model.builtin import BUILTIN, light_folder
from litotes.model.folder import open_model
from litotes.runtime.onnx.file_format import FILE, HALF, MADE_FROM, NOTE

N_TEXTS = 200
"""Of the sampler's test split, on which the file is compared with torch."""


def write_light(out: Path, *, n_texts: int = N_TEXTS) -> None:
    """The file, and then the note that it is whole, with what it was made from."""
    folder = open_model(BUILTIN)
    result, content = export_model(folder, HALF, source="sampler", n_texts=n_texts)
    check_losses(result.losses, HALF)
    note = {"file": FILE, "sha256": hashlib.sha256(content).hexdigest(), "precision": HALF}
    note |= result.note() | {MADE_FROM: folder.stated_hashes}
    write_bytes(out / FILE, content)
    write_bytes(out / NOTE, json_bytes(note))
    for loss in result.losses:
        print(f"{loss.in_words()}; a probability by {loss.largest_difference:.1g} at most.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=light_folder(), help="default: the package")
    out = parser.parse_args().out
    write_light(out)
    print(f"Written to {out}: {(out / FILE).stat().st_size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
