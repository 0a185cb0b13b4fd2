"""What `pip wheel` puts into the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from litotes.model.builtin import EDITIONS

pytestmark = pytest.mark.slow

PLACE = "litotes/model/builtin/"
PARTS = ("README.md", "litotes.json", "manifest.json", "model.safetensors", "tokenizer.json")


def test_it_has_every_edition_of_the_built_in_model_in_ten_megabytes_each(
    root: Path, tmp_path: Path
) -> None:
    pytest.importorskip("hatchling")
    build = ["hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run([sys.executable, "-m", *build], cwd=root, check=True, capture_output=True)
    (file,) = tmp_path.glob("litotes-*.whl")
    with ZipFile(file) as wheel:
        sizes = {entry.filename: entry.compress_size for entry in wheel.infolist()}
    ours = {name.removeprefix(PLACE) for name in sizes if name.startswith(PLACE)}
    editions = {f"edition_{edition}/{part}" for edition in EDITIONS for part in PARTS}
    assert ours >= {"__init__.py", *editions}
    # of `make light`, where that was run
    assert ours - {"__init__.py", *editions} <= {"light/model.onnx", "light/export.json"}
    for edition in EDITIONS:
        place = f"{PLACE}edition_{edition}/"
        assert sum(size for name, size in sizes.items() if name.startswith(place)) <= 10_000_000
