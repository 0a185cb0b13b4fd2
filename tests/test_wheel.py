"""What `pip wheel` puts into the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from litotes.model.builtin import EDITIONS

pytestmark = pytest.mark.slow

PLACE = "litotes/model/builtin/"
PARTS = ("README.md", "litotes.json", "manifest.json", "model.safetensors", "tokenizer.json")


@pytest.fixture(scope="module")
def sizes(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The files of the wheel and how many bytes each takes in it."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)],
        cwd=root,
        env=os.environ,
        check=True,
        capture_output=True,
    )
    (file,) = out.glob("litotes-*.whl")
    with ZipFile(file) as wheel:
        return {entry.filename: entry.compress_size for entry in wheel.infolist()}


def test_it_has_every_edition_of_the_built_in_model(sizes: dict[str, int]) -> None:
    ours = {name.removeprefix(PLACE) for name in sizes if name.startswith(PLACE)}
    editions = {f"edition_{edition}/{part}" for edition in EDITIONS for part in PARTS}
    assert ours >= {"__init__.py", *editions}
    # of `make light`, where that was run
    assert ours - {"__init__.py", *editions} <= {"light/model.onnx", "light/export.json"}


def test_an_edition_takes_ten_megabytes_at_most(sizes: dict[str, int]) -> None:
    for edition in EDITIONS:
        place = f"{PLACE}edition_{edition}/"
        assert sum(size for name, size in sizes.items() if name.startswith(place)) <= 10_000_000
